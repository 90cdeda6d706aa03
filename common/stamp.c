#include "common/stamp.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

const char *stamp_make(const char *path, char *out, size_t size)
{
    struct stat st;
    out[0] = '\0';
    if (path == NULL || path[0] != '/' || stat(path, &st) != 0) {
        return out;
    }
    int n = snprintf(out, size, "%lld,%lld.%09ld %s", (long long)st.st_size,
                     (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, path);
    if (n < 0 || (size_t)n >= size) {
        out[0] = '\0';
    }
    return out;
}

bool stamp_changed(const char *stamp)
{
    char now[PATH_MAX + 64];
    const char *blank = strchr(stamp, ' ');
    return blank != NULL && stamp_make(blank + 1, now, sizeof now)[0] != '\0' &&
           strcmp(now, stamp) != 0;
}
