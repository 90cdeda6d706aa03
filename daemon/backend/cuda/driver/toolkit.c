#include "daemon/backend/cuda/driver/toolkit.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void *open_file(const char *path)
{
    return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

/* Opens a file in the folder, or in one of the usual library folders of a toolkit. */
static void *open_in(const char *const *files, const char *folder)
{
    static const char *const below[] = {"lib64", "lib", "targets/x86_64-linux/lib", "."};
    char path[PATH_MAX];
    if (folder == NULL || folder[0] != '/') {
        return NULL; /* never relative, because anyone may write to the working folder */
    }
    for (size_t f = 0; f < sizeof below / sizeof below[0]; f++) {
        for (const char *const *file = files; *file != NULL; file++) {
            int n = snprintf(path, sizeof path, "%s/%s/%s", folder, below[f], *file);
            if (n < 0 || (size_t)n >= sizeof path || access(path, R_OK) != 0) {
                continue;
            }
            void *library = open_file(path);
            if (library != NULL) {
                return library;
            }
        }
    }
    return NULL;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

void *toolkit_open(const char *const *files, const char *path)
{
    void *library = NULL;
    if (path != NULL && path[0] != '\0') {
        return is_folder(path) ? open_in(files, path) : open_file(path);
    }
    for (const char *const *file = files; library == NULL && *file != NULL; file++) {
        library = open_file(*file);
    }
    library = library != NULL ? library : open_in(files, getenv("CUDA_PATH"));
    library = library != NULL ? library : open_in(files, getenv("CUDA_HOME"));
    library = library != NULL ? library : open_in(files, GPUD_CUDA_TOOLKIT);
    return library != NULL ? library : open_in(files, "/usr/local/cuda");
}

bool toolkit_resolve(void *library, const struct toolkit_entry *entries, size_t count, void *table,
                     const char **ret_missing)
{
    for (size_t i = 0; i < count; i++) {
        void *fn = dlsym(library, entries[i].name);
        if (fn == NULL) {
            *ret_missing = entries[i].name;
            return false;
        }
        *(void **)((char *)table + entries[i].at) = fn;
    }
    return true;
}
