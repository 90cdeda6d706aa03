#include "tests/gpu/direct.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/backend/cuda/driver/device.h"

_Noreturn void direct_die(const char *call, int code)
{
    (void)fprintf(stderr, "%s: %s (%d)\n", call, cuda_error_name((CUresult)code), code);
    exit(EXIT_FAILURE);
}

static void extras_resolve(struct direct *d)
{
    static const struct {
        const char *name;
        int abi;
        size_t at;
    } entries[] = {
#define X(name, abi) {"cu" #name, abi, offsetof(struct direct, name)},
        DIRECT_ENTRIES(X)
#undef X
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    PFN_cuGetProcAddress_v12000 get = NULL;
    if (library != NULL) {
        *(void **)&get = dlsym(library, "cuGetProcAddress_v2");
    }
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
        void *fn = NULL;
        if (get == NULL || get(entries[i].name, &fn, entries[i].abi,
                               CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found) != CUDA_SUCCESS) {
            direct_die(entries[i].name, (int)CUDA_ERROR_NOT_FOUND);
        }
        *(void **)((char *)d + entries[i].at) = fn;
    }
}

void *direct_fatbin(size_t *ret_size)
{
    const char *path = getenv("GPU_KERNELS");
    FILE *f = fopen(path != NULL ? path : "kernels.fatbin", "rbe");
    if (f == NULL || fseek(f, 0, SEEK_END) != 0) {
        perror("kernels.fatbin");
        exit(EXIT_FAILURE);
    }
    long size = ftell(f);
    char *data = size > 0 ? malloc((size_t)size + 1) : NULL;
    rewind(f);
    if (data == NULL || fread(data, 1, (size_t)size, f) != (size_t)size) {
        perror("kernels.fatbin");
        exit(EXIT_FAILURE);
    }
    (void)fclose(f);
    data[size] = '\0';
    *ret_size = (size_t)size;
    return data;
}

void direct_open(struct direct *d)
{
    struct err e = ERR_INIT;
    CUdevice devices[CUDA_DEVICES_MAX];
    unsigned count = 0;
    size_t size = 0;
    *d = (struct direct){.module = NULL};
    if (cuda_driver_load(&d->cu, &e) != 0 || cuda_devices(&d->cu, "", devices, &count, &e) != 0) {
        (void)fprintf(stderr, "%s\n", e.text);
        exit(EXIT_FAILURE);
    }
    d->device = devices[0];
    extras_resolve(d);
    must(d->cu.DevicePrimaryCtxRetain(&d->context, d->device));
    must(d->cu.CtxSetCurrent(d->context));
    must(d->cu.StreamCreateWithPriority(&d->stream, CU_STREAM_NON_BLOCKING, 0));
    void *fatbin = direct_fatbin(&size);
    must(d->cu.ModuleLoadDataEx(&d->module, fatbin, 0, NULL, NULL));
    free(fatbin);
}

void direct_close(struct direct *d)
{
    must(d->cu.CtxSetCurrent(d->context)); /* the back end takes it away when it closes */
    must(d->cu.ModuleUnload(d->module));
    must(d->cu.StreamDestroy(d->stream));
    must(d->cu.DevicePrimaryCtxRelease(d->device));
}

CUfunction direct_kernel(const struct direct *d, const char *name)
{
    CUfunction kernel = NULL;
    must(d->ModuleGetFunction(&kernel, d->module, name));
    return kernel;
}

void direct_launch(const struct direct *d, CUfunction kernel, unsigned groups, uint64_t value)
{
    void *args[] = {&value};
    unsigned threads = groups == 0 ? 1 : 128;
    must(d->cu.LaunchKernel(kernel, groups == 0 ? 1 : groups, 1, 1, threads, 1, 1, 0, d->stream,
                            args, NULL));
}

void direct_wait(const struct direct *d)
{
    must(d->cu.StreamSynchronize(d->stream));
}
