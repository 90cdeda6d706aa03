#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/src/wire/conn.h"

#define HOST_MAX TLS_NAME

static int parse_ipc(const char *path, struct address *a, struct err *e)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    size_t size = strlen(path);
    if (size == 0 || size >= sizeof un.sun_path) {
        return err_set(e, ERR_INVALID, "ipc path of %zu bytes, 1 to %zu are possible", size,
                       sizeof un.sun_path - 1);
    }
    memcpy(un.sun_path, path, size + 1);
    a->transport = SP_IPC;
    a->count = 1;
    a->item[0].family = AF_UNIX;
    a->item[0].size = sizeof un;
    memcpy(&a->item[0].at, &un, sizeof un);
    return 0;
}

/* "host:port" or "[v6 address]:port" */
static int split_host(const char *text, char host[HOST_MAX], const char **ret_port, struct err *e)
{
    const char *colon = strrchr(text, ':');
    if (colon == NULL || colon[1] == '\0' || colon == text || colon - text >= HOST_MAX) {
        return err_set(e, ERR_INVALID, "'%s' is not host:port", text);
    }
    size_t size = (size_t)(colon - text);
    if (text[0] == '[' && size > 2 && text[size - 1] == ']') {
        text++;
        size -= 2;
    }
    memcpy(host, text, size);
    host[size] = '\0';
    *ret_port = colon + 1;
    return 0;
}

static int parse_tcp(const char *text, struct address *a, struct err *e)
{
    char *host = a->host;
    const char *port = NULL;
    if (strchr(text, '?') != NULL) { /* it may be a token, which must not get into an error */
        return err_set(e, ERR_INVALID, "only URLs of tls+tcp:// may have a '?'");
    }
    int rc = split_host(text, host, &port, e);
    if (rc != 0) {
        return rc;
    }
    char *end = NULL;
    unsigned long number = strtoul(port, &end, 10);
    if (*end == '\0' && (number == 0 || number > UINT16_MAX)) { /* getaddrinfo would wrap it */
        return err_set(e, ERR_INVALID, "'%s' is no port: 1 to %d", port, UINT16_MAX);
    }
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int gai = getaddrinfo(host, port, &hints, &found);
    if (gai != 0) {
        return err_set(e, ERR_CONNECT, "looking up '%s': %s", host, gai_strerror(gai));
    }
    a->transport = SP_TCP;
    a->count = 0;
    for (struct addrinfo *i = found; i != NULL && a->count < CONN_ADDRESSES; i = i->ai_next) {
        if (i->ai_addrlen <= sizeof a->item[0].at) {
            a->item[a->count].family = i->ai_family;
            a->item[a->count].size = i->ai_addrlen;
            memcpy(&a->item[a->count].at, i->ai_addr, i->ai_addrlen);
            a->count++;
        }
    }
    freeaddrinfo(found);
    return a->count > 0 ? 0 : err_set(e, ERR_CONNECT, "'%s' has no address", host);
}

/* One of the names behind the '?' of a URL, as "ca=/etc/gpud/ca.pem". */
static int take_name(const char *text, size_t size, struct tls_names *names, struct err *e)
{
    const struct {
        const char *prefix;
        char *out;
        size_t room;
    } known[] = {{"ca=", names->ca, sizeof names->ca},
                 {"cert=", names->cert, sizeof names->cert},
                 {"key=", names->key, sizeof names->key},
                 {"name=", names->server, sizeof names->server}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t prefix = strlen(known[i].prefix);
        if (size <= prefix || strncmp(text, known[i].prefix, prefix) != 0) {
            continue;
        }
        if (size - prefix >= known[i].room) {
            return err_set(e, ERR_INVALID, "%s of the URL is too long", known[i].prefix);
        }
        memcpy(known[i].out, text + prefix, size - prefix);
        known[i].out[size - prefix] = '\0';
        return 0;
    }
    if (strncmp(text, "token", strlen("token")) == 0) { /* its value must not get into the text */
        return err_set(e, ERR_INVALID,
                       "no token may be in a URL, where others see it: use "
                       "GPUD_TOKEN_FILE or gpud_options.token");
    }
    size_t shown = strcspn(text, "=&");
    return err_set(e, ERR_INVALID, "'%.*s' in the URL: not one of ca=, cert=, key=, name=",
                   (int)(shown < 64 ? shown : 64), text);
}

static int parse_tls(const char *text, struct address *a, struct tls_names *names, struct err *e)
{
    char bare[HOST_MAX + 16];
    size_t size = strcspn(text, "?");
    int rc = 0;
    if (size >= sizeof bare) {
        return err_set(e, ERR_INVALID, "a host of %zu bytes is too long", size);
    }
    memcpy(bare, text, size);
    bare[size] = '\0';
    const char *at = text + size;
    while (rc == 0 && *at != '\0') {
        at++; /* '?' or '&' */
        size_t length = strcspn(at, "&");
        rc = take_name(at, length, names, e);
        at += length;
    }
    a->tls = true;
    return rc == 0 ? parse_tcp(bare, a, e) : rc;
}

bool address_is_here(const struct address *a)
{
    bool here = true;
    for (unsigned i = 0; i < a->count; i++) {
        struct sockaddr_in four;
        struct sockaddr_in6 six;
        memcpy(&four, &a->item[i].at, sizeof four);
        memcpy(&six, &a->item[i].at, sizeof six);
        int family = a->item[i].family;
        here = here && (family == AF_INET    ? ntohl(four.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
                        : family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&six.sin6_addr)
                                             : family == AF_UNIX);
    }
    return here;
}

int address_parse(const char *url, struct address *ret_address, struct tls_names *names,
                  struct err *e)
{
    struct address a = {0};
    int rc;
    if (strncmp(url, "ipc://", 6) == 0) {
        rc = parse_ipc(url + 6, &a, e);
    } else if (strncmp(url, "tcp://", 6) == 0) {
        rc = parse_tcp(url + 6, &a, e);
    } else if (strncmp(url, "tls+tcp://", 10) == 0) {
        rc = parse_tls(url + 10, &a, names, e);
    } else {
        size_t shown = strcspn(url, "?");
        rc = err_set(e, ERR_INVALID, "'%.*s' is neither ipc://, tcp:// nor tls+tcp://",
                     (int)(shown < 200 ? shown : 200), url);
    }
    if (rc == 0) {
        *ret_address = a;
    }
    return rc;
}
