#include "common/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

void descriptors_init(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max < DESCRIPTORS_MAX ? limit.rlim_max : DESCRIPTORS_MAX;
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* fewer connections then */
    }
}

bool descriptors_kept(int fd)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return false;
    }
    rlim_t kept = limit.rlim_cur / 4 < DESCRIPTORS_KEPT ? limit.rlim_cur / 4 : DESCRIPTORS_KEPT;
    return (rlim_t)fd >= limit.rlim_cur - kept;
}

bool descriptors_left(void)
{
    int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    bool left = !descriptors_kept(fd);
    (void)close(fd);
    return left;
}

void descriptor_close(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}
