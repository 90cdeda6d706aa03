#include "daemon/monitor/nvml.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

static const struct {
    const char *name;
    bool required;
    size_t at; /* offset in struct nvml */
} entries[] = {
#define X(name, required, parameters) {"nvml" #name, required, offsetof(struct nvml, name)},
    NVML_ENTRIES(X)
#undef X
};

static int resolve(void *library, struct nvml *n, struct err *e)
{
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        void *fn = dlsym(library, entries[i].name);
        if (fn == NULL && entries[i].required) {
            return err_set(e, ERR_UNSUPPORTED, "libnvidia-ml.so.1 lacks %s: its driver is too old",
                           entries[i].name);
        }
        *(void **)((char *)n + entries[i].at) = fn;
    }
    *(void **)&n->ErrorString = dlsym(library, "nvmlErrorString");
    return 0;
}

int nvml_load(struct nvml *ret_nvml, struct err *e)
{
    struct nvml n = {0};
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL) {
        return err_set(e, ERR_UNSUPPORTED,
                       "no libnvidia-ml.so.1: it comes with the NVIDIA driver; where the driver is "
                       "packaged in parts, install nvidia-smi");
    }
    int rc = resolve(library, &n, e);
    if (rc != 0) {
        return rc;
    }
    int started = n.Init_v2();
    if (started != NVML_SUCCESS) {
        return err_set_vendor(e, ERR_NO_DEVICE, started, "nvmlInit: %s (%d)",
                              n.ErrorString != NULL ? n.ErrorString(started) : "failed", started);
    }
    *ret_nvml = n;
    return 0;
}
