#include "common/descriptors.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

/* Failing to set a limit leaves fewer descriptors, not a wrong state: nothing is reported. */
static void set_soft(bool all)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return;
    }
    rlim_t top = limit.rlim_max < DESCRIPTORS_MAX ? limit.rlim_max : DESCRIPTORS_MAX;
    rlim_t kept = top / 4 < DESCRIPTORS_KEPT ? top / 4 : DESCRIPTORS_KEPT;
    limit.rlim_cur = all ? top : top - kept;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

void descriptors_init(void)
{
    set_soft(false);
}

void descriptors_reserve_open(void)
{
    set_soft(true);
}

void descriptors_reserve_close(void)
{
    set_soft(false);
}

bool descriptors_left(void)
{
    int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    if (fd >= 0) {
        (void)close(fd);
    }
    return fd >= 0;
}
