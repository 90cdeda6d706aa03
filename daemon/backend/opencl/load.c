#include <dlfcn.h>

#include "daemon/backend/opencl/opencl.h"

static int symbol(void *lib, const char *name, void *ret_fn, struct err *e)
{
    void *fn = dlsym(lib, name);
    if (!fn) {
        return err_set(e, ERR_NO_DEVICE, "the OpenCL loader is too old: it lacks %s", name);
    }
    *(void **)ret_fn = fn;
    return 0;
}

int opencl_load(struct opencl_api *ret_api, struct err *e)
{
    struct opencl_api api = {0};
    char note[sizeof((struct backend_info *)0)->note];
    /* before drivers are loaded, because they read it then */
    int rc = opencl_cache_choose(note, sizeof note, e);
    if (rc != 0) {
        return rc;
    }
    void *lib = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!lib) {
        return err_set(e, ERR_NO_DEVICE,
                       "no OpenCL loader (libOpenCL.so.1): apt-get install ocl-icd-libopencl1, and "
                       "pocl-opencl-icd (CPU) or the vendor's OpenCL driver");
    }
#define X(name)                                                                                    \
    if (rc == 0) {                                                                                 \
        rc = symbol(lib, "cl" #name, &api.name, e);                                                \
    }
    OPENCL_ENTRIES(X)
#undef X
#define X(name) *(void **)&api.name = dlsym(lib, "cl" #name);
    OPENCL_SVM_ENTRIES(X)
#undef X
    if (rc == 0) {
        *ret_api = api;
    }
    return rc;
}
