#include "daemon/front/metrics/sockets.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/front/settings/listener_url.h"

#define BACKLOG 128

/* errno is of bind or listen. */
static int refused(const struct metrics_address *a, struct err *e)
{
    return errno == EADDRINUSE
               ? err_set(e, ERR_EXISTS, "%s is in use: ss -ltnp names the program", a->text)
               : err_errno(e, ERR_IO, "%s", a->text);
}

static int bind_tcp(int fd, const struct metrics_address *a, struct err *e)
{
    int on = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    return bind(fd, &a->at.any, a->size) != 0 ? refused(a, e) : 0;
}

static int bind_path(int fd, const struct metrics_address *a, uint32_t gid, struct err *e)
{
    const char *path = metrics_address_path(a);
    int rc = listen_take_over(path, e);
    if (rc == 0 && fchmod(fd, 0600) != 0) { /* the file begins with these permissions */
        rc = err_errno(e, ERR_IO, "permissions of %s", path);
    }
    if (rc == 0 && bind(fd, &a->at.any, a->size) != 0) {
        rc = err_errno(e, ERR_IO, "%s", path);
    }
    if (rc == 0 && gid != UINT32_MAX && (rc = listen_permit(path, 0660, gid, e)) != 0) {
        (void)unlink(path);
    }
    return rc;
}

int metrics_sockets_open(struct metrics_sockets *ret_sockets,
                         const struct metrics_addresses *addresses, uint32_t gid, struct err *e)
{
    struct metrics_sockets *s = ret_sockets;
    *s = (struct metrics_sockets){.addresses = *addresses};
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < addresses->count; i++) {
        const struct metrics_address *a = &addresses->address[i];
        int fd = socket(a->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 && errno == EAFNOSUPPORT) {
            return err_set(e, ERR_UNSUPPORTED,
                           "%s: gpud.service needs gpud-metrics.conf for it (systemctl edit gpud, "
                           "and restart it), or the host has no IPv6",
                           a->text);
        }
        if (fd < 0) {
            return err_errno(e, ERR_IO, "a socket for %s", a->text);
        }
        rc = metrics_address_path(a) != NULL ? bind_path(fd, a, gid, e) : bind_tcp(fd, a, e);
        if (rc == 0 && listen(fd, BACKLOG) != 0) {
            rc = refused(a, e);
        }
        if (rc != 0) {
            (void)close(fd);
            return rc;
        }
        s->fd[s->count++] = fd;
    }
    return rc;
}

void metrics_sockets_close(struct metrics_sockets *s)
{
    for (unsigned i = 0; i < s->count; i++) {
        const char *path = metrics_address_path(&s->addresses.address[i]);
        if (path != NULL) {
            (void)unlink(path);
        }
        if (s->fd[i] >= 0) {
            (void)close(s->fd[i]);
        }
    }
}
