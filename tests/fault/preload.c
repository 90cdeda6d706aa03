#include "tests/fault/preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS 1000000000

static struct preload *control; /* NULL: nothing to do */
static uintptr_t begin, end;    /* of the front's own code; empty in other processes */

/* The first object is the program. */
static int find_program(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    (void)data;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && (p->p_flags & PF_X) != 0) {
            begin = info->dlpi_addr + p->p_vaddr;
            end = begin + p->p_memsz;
        }
    }
    return 1;
}

__attribute__((constructor)) static void attach(void)
{
    const char *path = getenv(PRELOAD_CONTROL);
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *at = fd >= 0 ? mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                       : MAP_FAILED;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (at == MAP_FAILED) {
        return;
    }
    if (strcmp(program_invocation_short_name, "gpud") == 0) {
        (void)dl_iterate_phdr(find_program, NULL);
    }
    control = at;
}

/* ---- clocks --------------------------------------------------------------------------------- */

int clock_gettime(clockid_t id, struct timespec *ret)
{
    static int (*real)(clockid_t, struct timespec *);
    if (real == NULL) {
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    }
    int rc = real(id, ret);
    if (rc == 0 && control != NULL && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
        int64_t ns = ret->tv_nsec + atomic_load(&control->wall_ns) % NS;
        ret->tv_sec += atomic_load(&control->wall_ns) / NS + (ns >= NS) - (ns < 0);
        ret->tv_nsec = (ns + NS) % NS;
        (void)atomic_fetch_add(&control->asked, 1);
    }
    return rc;
}

int gettimeofday(struct timeval *ret, void *zone)
{
    (void)zone;
    struct timespec t;
    int rc = clock_gettime(CLOCK_REALTIME, &t);
    *ret = (struct timeval){.tv_sec = t.tv_sec, .tv_usec = t.tv_nsec / 1000};
    return rc;
}

time_t time(time_t *ret)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    if (ret != NULL) {
        *ret = t.tv_sec;
    }
    return t.tv_sec;
}

/* ---- allocations ---------------------------------------------------------------------------- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *at, size_t size);

static bool fails(const void *caller)
{
    uintptr_t at = (uintptr_t)caller;
    return at >= begin && at < end && atomic_load(&control->fail_at) > 0 &&
           atomic_fetch_sub(&control->fail_at, 1) == 1;
}

#define OR_FAIL(allocation)                                                                        \
    (fails(__builtin_return_address(0)) ? (errno = ENOMEM, (void *)NULL) : (allocation))

void *malloc(size_t size)
{
    return OR_FAIL(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return OR_FAIL(__libc_calloc(count, size));
}

void *realloc(void *at, size_t size)
{
    return OR_FAIL(__libc_realloc(at, size));
}
