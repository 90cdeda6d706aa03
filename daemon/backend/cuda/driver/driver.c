#include "daemon/backend/cuda/driver/driver.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "daemon/backend/cuda/driver/error.h"

/* A worker with the default settings has 9 streams, each with another one for calls; the clock and
 * libraries have one each. */
#define CONNECTIONS "20"

#define OPTIONAL false
#define REQUIRED true

static const struct {
    const char *name;
    int abi;
    bool required;
    size_t at; /* offset in struct cuda_driver */
} entries[] = {
#define X(name, abi, need) {"cu" #name, abi, need, offsetof(struct cuda_driver, name)},
    CUDA_ENTRIES(X)
#undef X
};

bool cuda_driver_serves(int version, int built)
{
    return version / 1000 >= built / 1000;
}

static int too_old(int version, struct err *e)
{
    return err_set(e, ERR_NO_DEVICE,
                   "the NVIDIA driver is too old: it serves CUDA %d.%d, gpud was built for %d.%d: "
                   "install driver %d or newer",
                   version / 1000, version % 1000 / 10, CUDA_VERSION / 1000,
                   CUDA_VERSION % 1000 / 10, CUDA_DRIVER_NEEDED);
}

/* Also tests each pointer, because the toolkit's stub library answers some calls and yields
 * NULL. */
static int resolve(PFN_cuGetProcAddress_v12000 get, struct cuda_driver *driver, struct err *e)
{
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        void *fn = NULL;
        CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
        CUresult rc =
            get(entries[i].name, &fn, entries[i].abi, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found);
        if (rc != CUDA_SUCCESS || found != CU_GET_PROC_ADDRESS_SUCCESS) {
            fn = NULL;
        }
        if (!fn && entries[i].required) {
            return err_set_vendor(e, ERR_NO_DEVICE, (int)rc, "the NVIDIA driver lacks %s (%s)",
                                  entries[i].name, cuda_error_name(rc));
        }
        *(void **)((char *)driver + entries[i].at) = fn;
    }
    return 0;
}

/* If the driver does not start, for whatever reason, there is no device. */
static int absent(CUresult rc, const char *call, struct err *e)
{
    (void)cuda_error(rc, call, e);
    if (e) {
        e->code = ERR_NO_DEVICE;
    }
    (void)err_wrap(e, "the NVIDIA driver does not start%s",
                   rc == CUDA_ERROR_UNKNOWN ? " (is there a /dev/nvidia-uvm? \"nvidia-modprobe -u "
                                              "-c 0\" makes it)"
                                            : "");
    return ERR_NO_DEVICE;
}

static int load(void *lib, struct cuda_driver *driver, struct err *e)
{
    int version = 0;
    PFN_cuDriverGetVersion_v2020 get_version = NULL;
    PFN_cuGetProcAddress_v12000 get = NULL;
    *(void **)&get_version = dlsym(lib, "cuDriverGetVersion");
    *(void **)&get = dlsym(lib, "cuGetProcAddress_v2");
    if (!get_version) {
        return err_set(e, ERR_NO_DEVICE, "libcuda.so.1 is not an NVIDIA driver's");
    }
    CUresult cu = get_version(&version);
    if (cu != CUDA_SUCCESS) {
        return absent(cu, "cuDriverGetVersion", e);
    }
    if (!get || !cuda_driver_serves(version, CUDA_VERSION)) {
        return too_old(version, e);
    }
    int rc = resolve(get, driver, e);
    if (rc != 0) {
        return rc;
    }
    /* With more streams than connections, streams share a queue to the device and wait for each
     * other. Each connection makes the context take longer: 145 ms with 8, 217 with 12, 305 with
     * 20, 560 with 32 (H200, driver 580). Only cuInit reads the variable, so it is set before. A
     * value set by the user is kept. */
    (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", CONNECTIONS, 0);
    cu = driver->Init(0);
    return cu == CUDA_SUCCESS ? 0 : absent(cu, "cuInit", e);
}

int cuda_driver_load_named(const char *name, struct cuda_driver *ret_driver, struct err *e)
{
    if (setenv("CUDA_VISIBLE_DEVICES", name, 1) != 0) {
        return err_set(e, ERR_NOMEM, "no memory for a variable of the environment");
    }
    int rc = cuda_driver_load(ret_driver, e);
    if (rc == ERR_NO_DEVICE && e->vendor == CUDA_ERROR_NO_DEVICE) { /* of others nothing is known */
        return err_set(
            e, rc, "the driver does not see the device %s: nvidia-smi -L lists the others", name);
    }
    return rc == 0 ? 0 : err_wrap(e, "device %s", name);
}

int cuda_driver_load(struct cuda_driver *ret_driver, struct err *e)
{
    struct cuda_driver driver = {0};
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!lib) {
        return err_set(e, ERR_NO_DEVICE,
                       "no CUDA driver: %s (install the NVIDIA driver for CUDA %d.%d or later)",
                       dlerror(), CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
    }
    int rc = load(lib, &driver, e);
    if (rc == 0) {
        *ret_driver = driver;
    }
    return rc;
}
