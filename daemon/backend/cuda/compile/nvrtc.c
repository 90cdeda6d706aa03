#include "daemon/backend/cuda/compile/nvrtc.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/backend/cuda/driver/toolkit.h"

static const char *const file_names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", NULL};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* Finds the library's file, with links resolved. */
static bool file_find(void *lib, char out[PATH_MAX])
{
    struct link_map *map = NULL;
    return dlinfo(lib, RTLD_DI_LINKMAP, &map) == 0 && realpath(map->l_name, out) != NULL;
}

/* Finds the toolkit's headers near the library, else in the toolkit of this build. */
static void include_find(const char *file, char out[PATH_MAX])
{
    static const char *const beside[] = {"../include", "../../include", "../../../include"};
    char path[PATH_MAX];
    char probe[PATH_MAX + 16];
    int folder = (int)(strrchr(file, '/') - file);
    for (size_t i = 0; i <= COUNT(beside); i++) {
        int n = i < COUNT(beside) ? snprintf(path, sizeof path, "%.*s/%s", folder, file, beside[i])
                                  : snprintf(path, sizeof path, "%s/include", GPUD_CUDA_TOOLKIT);
        (void)snprintf(probe, sizeof probe, "%s/cuda_fp16.h", path);
        if (n > 0 && (size_t)n < sizeof path && access(probe, R_OK) == 0 &&
            realpath(path, out) != NULL) {
            return;
        }
    }
    out[0] = '\0';
}

static int entries_resolve(void *lib, struct nvrtc *n, struct err *e)
{
    static const struct toolkit_entry entries[] = {
#define X(name, parameters) {"nvrtc" #name, offsetof(struct nvrtc, name)},
        NVRTC_ENTRIES(X)
#undef X
            {"nvrtcGetErrorString", offsetof(struct nvrtc, GetErrorString)},
    };
    const char *missing = "";
    if (!toolkit_resolve(lib, entries, COUNT(entries), n, &missing)) {
        return err_set(e, ERR_UNSUPPORTED,
                       "NVRTC is too old: it lacks %s; install the one of CUDA 12.4 or later",
                       missing);
    }
    void *pch = dlsym(lib, "nvrtcGetPCHCreateStatus");
    memcpy(&n->GetPCHCreateStatus, &pch, sizeof pch);
    return 0;
}

int nvrtc_load(const char *path, struct nvrtc *ret_nvrtc, struct err *e)
{
    struct nvrtc n = {.major = 0};
    bool given = path != NULL && path[0] != '\0';
    void *lib = toolkit_open(file_names, path);
    if (lib == NULL && given) {
        return err_set(e, ERR_UNSUPPORTED, "no NVRTC in %s, which the option nvrtc names", path);
    }
    if (lib == NULL) {
        return err_set(e, ERR_UNSUPPORTED,
                       "CUDA C needs NVRTC to be compiled, and there is no libnvrtc.so.13 or .12: "
                       "install the package cuda-nvrtc (Debian: libnvrtc12) or set the back end's "
                       "option nvrtc to its folder; PTX and cubin go without");
    }
    int rc = entries_resolve(lib, &n, e);
    if (rc != 0) {
        return rc;
    }
    rc = n.Version(&n.major, &n.minor);
    if (rc != NVRTC_SUCCESS) {
        return nvrtc_error(&n, rc, "nvrtcVersion", e);
    }
    char file[PATH_MAX];
    if (file_find(lib, file)) {
        include_find(file, n.include);
        (void)snprintf(n.file, sizeof n.file, "%s", strlen(file) < sizeof n.file ? file : "");
    }
    *ret_nvrtc = n;
    return 0;
}

int nvrtc_error(const struct nvrtc *n, int result, const char *call, struct err *e)
{
    const char *text = n->GetErrorString(result);
    int code = result == NVRTC_NOMEM        ? ERR_NOMEM
               : result == NVRTC_FAILED     ? ERR_COMPILE
               : result == NVRTC_BAD_OPTION ? ERR_INVALID
                                            : ERR_INTERNAL;
    return err_set_vendor(e, code, result, "%s: %s (%d)", call, text != NULL ? text : "", result);
}
