/*
 * gpu-probe [--needs]: the machine's means to run the suite (or only what the suite needs). Prints
 * "name=value" lines, without spaces around '=', and exits with 0; without a GPU one line on
 * stderr, and 77. Every value comes from the driver that was loaded, and the library itself says
 * whether it is the tests' double.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/err.h"
#include "daemon/backend/backend.h"
#include "daemon/backend/cuda/driver/driver.h"
#include "daemon/backend/cuda/driver/toolkit.h"
#include "tests/gpu/direct.h"

#define SKIPPED 77

/* The kernel's part of the driver, "" where it is unknown (containers, WSL). */
static void kernel_driver(char *out, size_t size)
{
    FILE *f = fopen("/proc/driver/nvidia/version", "re");
    out[0] = '\0';
    if (f == NULL) {
        return;
    }
    if (fgets(out, (int)size, f) == NULL) {
        out[0] = '\0';
    }
    (void)fclose(f);
    out[strcspn(out, "\n")] = '\0';
}

static void tell_library(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    Dl_info info;
    void *init = library != NULL ? dlsym(library, "cuInit") : NULL;
    bool found = init != NULL && dladdr(init, &info) != 0;
    (void)printf("library=%s\n", found ? info.dli_fname : "");
    (void)printf("double=%d\n", library != NULL && dlsym(library, "fakecuda_is_a_double") != NULL);
}

/* Where gpud looks, too. */
static void tell_nvrtc(void)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", NULL};
    void *library = toolkit_open(names, NULL);
    Dl_info info;
    void *version = library != NULL ? dlsym(library, "nvrtcVersion") : NULL;
    bool found = version != NULL && dladdr(version, &info) != 0;
    (void)printf("nvrtc=%s\n", found ? info.dli_fname : "");
}

static void tell_needs(void)
{
    (void)printf("built_for=CUDA %d.%d\n", CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
    (void)printf("needs_driver=%d\n", CUDA_DRIVER_NEEDED);
}

static int tell_devices(const struct backend *b, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct err e = ERR_INIT;
        struct backend_device *device = NULL;
        struct backend_info info;
        if (b->device->open(i, "", NULL, NULL, &device, &e) != 0) {
            (void)fprintf(stderr, "gpu-probe: device %u: %s\n", i, e.text);
            return EXIT_FAILURE;
        }
        b->device->info(device, &info);
        (void)printf("device%u=%s, %s, %llu MiB, %llu multiprocessors\n", i, info.name, info.arch,
                     (unsigned long long)(info.memory >> 20), (unsigned long long)info.units);
        if (i == 0) {
            (void)printf("device=%s\narch=%s\ncuda=%s\n", info.name, info.arch, info.driver);
        }
        b->device->close(device);
    }
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct err e = ERR_INIT;
    unsigned count = 0;
    char kernel[256];
    const struct backend *b = backend_find("cuda");
    if (argc == 2 && strcmp(argv[1], "--needs") == 0) {
        tell_needs();
        return EXIT_SUCCESS;
    }
    if (b == NULL || b->enumerate("", &count, &e) != 0) {
        (void)fprintf(stderr, "no GPU: %s\n", b == NULL ? "built without CUDA" : e.text);
        return SKIPPED;
    }
    kernel_driver(kernel, sizeof kernel);
    (void)printf("devices=%u\nkernel_driver=%s\n", count, kernel);
    tell_needs();
    tell_library();
    tell_nvrtc();
    return tell_devices(b, count);
}
