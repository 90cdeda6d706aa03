#include "common/descriptors.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/resource.h>
#include <unistd.h>

void descriptors_standard(void)
{
    int fd = 0;
    while (fd >= 0 && fd <= STDERR_FILENO) {
        fd = open("/dev/null", O_RDWR);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

void descriptors_init(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max < DESCRIPTORS_MAX ? limit.rlim_max : DESCRIPTORS_MAX;
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* on failure there are fewer connections */
    }
}

static rlim_t part(rlim_t all, rlim_t most)
{
    return all / 4 < most ? all / 4 : most;
}

/* room: descriptors for connections count as reserved, too. */
static bool reserved(int fd, bool room)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return false;
    }
    rlim_t kept = part(limit.rlim_cur, DESCRIPTORS_KEPT);
    kept += room ? part(limit.rlim_cur, DESCRIPTORS_ROOM) : 0;
    return (rlim_t)fd >= limit.rlim_cur - kept;
}

static bool next_is_free(bool room)
{
    int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    bool is_free = !reserved(fd, room);
    (void)close(fd);
    return is_free;
}

bool descriptors_kept(int fd)
{
    return reserved(fd, false);
}

bool descriptors_left(void)
{
    return next_is_free(false);
}

bool descriptors_spare(void)
{
    return next_is_free(true);
}

void descriptor_close(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

/* ---- without waiting ------------------------------------------------------------------------- */

struct holder {
    sem_t holds;
    sem_t may_end;
};

static void await(sem_t *sem)
{
    while (sem_wait(sem) != 0) { /* EINTR */
    }
}

/* This thread has copies of all descriptors, so it has the last reference to each descriptor that
 * is closed meanwhile. Its exit closes them, and SO_LINGER does not delay a thread that exits. */
static void *hold(void *data)
{
    struct holder *h = data;
    (void)close_range(UINT_MAX, UINT_MAX, CLOSE_RANGE_UNSHARE); /* copies the table, closes none */
    (void)sem_post(&h->holds);
    await(&h->may_end);
    return NULL;
}

void descriptor_close_at_once(int *fd)
{
    struct holder h;
    pthread_t thread;
    if (*fd < 0) {
        return;
    }
    (void)sem_init(&h.holds, 0, 0); /* these cannot fail */
    (void)sem_init(&h.may_end, 0, 0);
    bool started = pthread_create(&thread, NULL, hold, &h) == 0;
    if (started) {
        await(&h.holds);
    }
    descriptor_close(fd);
    if (started) {
        (void)sem_post(&h.may_end);
        (void)pthread_join(thread, NULL);
    }
    (void)sem_destroy(&h.holds);
    (void)sem_destroy(&h.may_end);
}
