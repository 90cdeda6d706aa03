#include "common/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"

#define LOCK_TRIES    100u
#define LOCK_PAUSE_NS (10 * NS_PER_MS)

static int check(const char *dir, int fd, struct err *e)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return err_errno(e, ERR_IO, "runtime directory %s", dir);
    }
    if (st.st_uid != geteuid() && st.st_uid != 0) {
        return err_set(e, ERR_PERMISSION,
                       "runtime directory %s belongs to user %u: this is user %u", dir,
                       (unsigned)st.st_uid, (unsigned)geteuid());
    }
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return err_set(e, ERR_PERMISSION,
                       "others may write into the runtime directory %s (mode %04o): chmod go-w",
                       dir, (unsigned)st.st_mode & 07777u);
    }
    return 0;
}

/* Opens the folder. Returns a descriptor, so that the folder that is checked is the one used. */
static int folder_open(const char *dir, int *ret_fd, struct err *e)
{
    if (mkdir(dir, 0750) != 0 && errno != EEXIST) {
        return err_errno(e, ERR_IO, "runtime directory %s", dir);
    }
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return err_errno(e, ERR_IO, "runtime directory %s", dir);
    }
    int rc = check(dir, fd, e);
    if (rc != 0) {
        (void)close(fd);
        return rc;
    }
    *ret_fd = fd;
    return 0;
}

/* A killed process has its lock until the last of its threads is gone. Returns 0, or an errno. */
static int lock(int fd)
{
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};
    for (unsigned i = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; i++) {
        int number = errno;
        if (number != EWOULDBLOCK || i == LOCK_TRIES) {
            return number;
        }
        (void)nanosleep(&pause, NULL);
    }
    return 0;
}

int runtime_lock(const char *dir, const char *name, const char *owner, int *ret_fd, struct err *e)
{
    int folder = -1;
    int rc = folder_open(dir, &folder, e);
    if (rc != 0) {
        return rc;
    }
    int fd = openat(folder, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int number = errno;
    (void)close(folder);
    if (fd < 0) {
        errno = number;
        return err_errno(e, ERR_IO, "opening %s/%s", dir, name);
    }
    number = lock(fd);
    if (number != 0) {
        (void)close(fd);
    }
    if (number == EWOULDBLOCK) {
        return err_set(e, ERR_EXISTS,
                       "another %s serves %s: end it, or choose another folder by --runtime-dir",
                       owner, dir);
    }
    if (number != 0) {
        errno = number;
        return err_errno(e, ERR_IO, "locking %s/%s", dir, name);
    }
    *ret_fd = fd;
    return 0;
}
