#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/bytes.h"
#include "daemon/front/settings/listener_url.h"

struct host {
    bool known; /* it is a numeric address */
    bool six;
    bool loopback;
};

static struct host host_of(const char *text)
{
    struct in_addr four;
    struct in6_addr six;
    if (inet_pton(AF_INET, text, &four) == 1) {
        return (struct host){.known = true, .loopback = (ntohl(four.s_addr) >> 24) == 127};
    }
    if (inet_pton(AF_INET6, text, &six) == 1) {
        return (struct host){.known = true, .six = true, .loopback = IN6_IS_ADDR_LOOPBACK(&six)};
    }
    return (struct host){.known = false};
}

static bool port_of(const char *text, unsigned *ret_port)
{
    size_t length = strspn(text, "0123456789");
    if (length == 0 || length > 5 || text[length] != '\0') {
        return false;
    }
    unsigned long port = strtoul(text, NULL, 10);
    *ret_port = (unsigned)port;
    return port >= 1 && port <= 65535;
}

/* Composes the URL anew from its checked parts, so that NNG cannot read it differently. */
static int tcp_url(const char *url, const char *address, bool tls, char ret_url[LISTEN_URL_MAX],
                   struct err *e)
{
    char host[64];
    const char *colon = strrchr(address, ':');
    unsigned port = 0;
    if (colon == NULL || !port_of(colon + 1, &port)) {
        return err_set(e, ERR_INVALID, "%s: a port from 1 to 65535 is needed", url);
    }
    struct bytes name = bytes_of(address, (size_t)(colon - address));
    if (name.size >= 2 && name.data[0] == '[' && name.data[name.size - 1] == ']') {
        name = bytes_of(name.data + 1, name.size - 2);
    }
    if (!bytes_to_str(name, host, sizeof host)) {
        return err_set(e, ERR_INVALID, "%s: no address", url);
    }
    if (strcmp(host, "localhost") == 0) {
        (void)snprintf(host, sizeof host, "127.0.0.1"); /* whatever a resolver has for it */
    }
    struct host h = host_of(host);
    if (!tls && !h.loopback) {
        return err_set(e, ERR_PERMISSION,
                       "%s: only loopback addresses may be listened on without TLS: use "
                       "tls+tcp://%s:%u",
                       url, h.known ? host : "ADDRESS", port);
    }
    if (!h.known) {
        return err_set(e, ERR_INVALID,
                       "%s: a numeric address is needed, as 0.0.0.0 for all of IPv4", url);
    }
    (void)snprintf(ret_url, LISTEN_URL_MAX, h.six ? "%stcp://[%s]:%u" : "%stcp://%s:%u",
                   tls ? "tls+" : "", host, port);
    return 0;
}

int listen_url(const char *url, char ret_url[LISTEN_URL_MAX], enum listen_kind *ret_kind,
               struct err *e)
{
    static const char ipc[] = "ipc://";
    static const char tcp[] = "tcp://";
    static const char tls[] = "tls+tcp://";
    if (strncmp(url, tcp, sizeof tcp - 1) == 0) {
        *ret_kind = LISTEN_TCP;
        return tcp_url(url, url + sizeof tcp - 1, false, ret_url, e);
    }
    if (strncmp(url, tls, sizeof tls - 1) == 0) {
        *ret_kind = LISTEN_TLS;
        return tcp_url(url, url + sizeof tls - 1, true, ret_url, e);
    }
    if (strncmp(url, ipc, sizeof ipc - 1) != 0) {
        return err_set(e, ERR_INVALID, "%s: neither ipc://, tcp:// nor tls+tcp://", url);
    }
    const char *path = url + sizeof ipc - 1;
    size_t max = sizeof((struct sockaddr_un *)0)->sun_path;
    if (path[0] != '/' || strlen(path) >= max) {
        return err_set(e, ERR_INVALID, "%s: an absolute path of less than %zu bytes is needed", url,
                       max);
    }
    *ret_kind = LISTEN_IPC;
    (void)snprintf(ret_url, LISTEN_URL_MAX, "%s", url);
    return 0;
}

static int probe(const char *path, bool *ret_served, struct err *e)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return err_errno(e, ERR_IO, "socket");
    }
    /* Any answer but a refusal means that a server has the other end, also a full backlog. */
    int rc = connect(fd, (const struct sockaddr *)&address, sizeof address);
    *ret_served = rc == 0 || (errno != ECONNREFUSED && errno != ENOENT);
    (void)close(fd);
    return 0;
}

int listen_take_over(const char *path, struct err *e)
{
    struct stat st;
    if (lstat(path, &st) != 0) {
        return errno == ENOENT ? 0 : err_errno(e, ERR_IO, "%s", path);
    }
    if (!S_ISSOCK(st.st_mode)) {
        return err_set(e, ERR_EXISTS, "%s is not a socket", path);
    }
    bool served = false;
    int rc = probe(path, &served, e);
    if (rc != 0) {
        return rc;
    }
    if (served) {
        return err_set(e, ERR_EXISTS,
                       "another gpud serves %s: end it, or choose another address by --listen",
                       path);
    }
    if (unlink(path) != 0 && errno != ENOENT) {
        return err_errno(e, ERR_IO, "removing the stale %s", path);
    }
    return 0;
}

int listen_permit(const char *path, uint32_t mode, uint32_t gid, struct err *e)
{
    char self[32];
    struct stat st;
    int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return err_errno(e, ERR_IO, "%s", path);
    }
    (void)snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    int rc = 0;
    if (fstat(fd, &st) != 0 || !S_ISSOCK(st.st_mode)) {
        rc = err_set(e, ERR_EXISTS, "%s is not a socket", path);
    } else if (gid != UINT32_MAX && gid != st.st_gid &&
               fchownat(fd, "", (uid_t)-1, gid, AT_EMPTY_PATH) != 0) {
        rc = err_errno(e, ERR_PERMISSION, "group %u for %s: the daemon must be in it",
                       (unsigned)gid, path);
    } else if (chmod(self, mode) != 0) {
        rc = err_errno(e, ERR_IO, "permissions of %s", path);
    }
    (void)close(fd);
    return rc;
}
