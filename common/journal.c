#include "common/journal.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"

#define HEAD_MAX       128u
#define DRAIN_TRIES    100u
#define DRAIN_PAUSE_NS (10 * NS_PER_MS)

bool journal_is(int fd)
{
    struct stat st;
    char here[64];
    const char *journal = getenv("JOURNAL_STREAM");
    if (journal == NULL || fstat(fd, &st) != 0) {
        return false;
    }
    (void)snprintf(here, sizeof here, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    return strcmp(here, journal) == 0;
}

static bool address_of(const char *path, struct sockaddr_un *ret_addr)
{
    size_t size = strlen(path);
    *ret_addr = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (size >= sizeof ret_addr->sun_path) {
        return false;
    }
    memcpy(ret_addr->sun_path, path, size);
    return true;
}

/* Appends what fits. */
static size_t put(char *head, size_t at, const char *text)
{
    size_t size = strlen(text);
    if (size > HEAD_MAX - at) {
        size = HEAD_MAX - at;
    }
    for (size_t i = 0; i < size; i++) { /* without a NUL: the journal reads lines */
        head[at + i] = text[i];
    }
    return at + size;
}

/* Sends the journal's stream header: identifier, unit (empty, the journal knows it), default level,
 * whether lines have levels, and three forwarding flags. */
static bool greet(int fd, const char *identifier, bool levels)
{
    char head[HEAD_MAX];
    size_t at = put(head, 0, identifier);
    at = put(head, at, "\n\n6\n");
    at = put(head, at, levels ? "1\n" : "0\n");
    at = put(head, at, "0\n0\n0\n");
    return send(fd, head, at, MSG_NOSIGNAL) == (ssize_t)at;
}

int journal_stream(const char *path, const char *identifier, bool levels)
{
    struct sockaddr_un addr;
    int fd = address_of(path, &addr) ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    if (fd < 0) {
        return -1;
    }
    if (connect(fd, (const struct sockaddr *)&addr, sizeof addr) != 0 ||
        shutdown(fd, SHUT_RD) != 0 || !greet(fd, identifier, levels)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* ---- entries --------------------------------------------------------------------------------- */

struct parts {
    struct iovec iov[JOURNAL_FIELDS_MAX * 5];
    uint64_t size[JOURNAL_FIELDS_MAX]; /* little-endian */
    unsigned count;
};

static void part(struct parts *p, const void *data, size_t size)
{
    p->iov[p->count++] = (struct iovec){.iov_base = (void *)(uintptr_t)data, .iov_len = size};
}

/* "NAME=data\n"; data with a newline as "NAME\n", its size in eight bytes, data, "\n". */
static void field_put(struct parts *p, const struct journal_field *f, uint64_t *size)
{
    part(p, f->name, strlen(f->name));
    if (memchr(f->data, '\n', f->size) == NULL) {
        part(p, "=", 1);
    } else {
        *size = htole64(f->size);
        part(p, "\n", 1);
        part(p, size, sizeof *size);
    }
    part(p, f->data, f->size);
    part(p, "\n", 1);
}

int journal_socket(void)
{
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

int journal_send(int fd, const char *path, const struct journal_field *fields, unsigned count)
{
    struct parts p = {.count = 0};
    struct sockaddr_un addr;
    if (!address_of(path, &addr) || count > JOURNAL_FIELDS_MAX) {
        return ENAMETOOLONG;
    }
    for (unsigned i = 0; i < count; i++) {
        field_put(&p, &fields[i], &p.size[i]);
    }
    struct msghdr msg = {
        .msg_name = &addr, .msg_namelen = sizeof addr, .msg_iov = p.iov, .msg_iovlen = p.count};
    return sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ? 0 : errno;
}

/* The pause after the last look is for the journal's own look at the sender. */
void journal_drain(int fd)
{
    const struct timespec pause = {.tv_nsec = DRAIN_PAUSE_NS};
    int unread = 1;
    for (unsigned i = 0; unread > 0 && i < DRAIN_TRIES; i++) {
        if (ioctl(fd, SIOCOUTQ, &unread) != 0) {
            return;
        }
        (void)nanosleep(&pause, NULL);
    }
}
