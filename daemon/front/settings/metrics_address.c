#include "daemon/front/settings/metrics_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNIX "unix:"

static int set_path(const char *text, struct metrics_address *out, struct err *e)
{
    const char *path = text + strlen(UNIX);
    if (path[0] != '/' || strlen(path) >= sizeof out->at.local.sun_path) {
        return err_set(e, ERR_INVALID,
                       "listen = %s: an absolute path of less than %zu bytes is needed after "
                       "unix:",
                       text, sizeof out->at.local.sun_path);
    }
    out->at.local = (struct sockaddr_un){.sun_family = AF_UNIX};
    (void)snprintf(out->at.local.sun_path, sizeof out->at.local.sun_path, "%s", path);
    out->size = sizeof out->at.local;
    return 0;
}

/* 0: it is none. */
static unsigned port_of(const char *text)
{
    size_t length = strspn(text, "0123456789");
    unsigned long port =
        length > 0 && length <= 5 && text[length] == '\0' ? strtoul(text, NULL, 10) : 0;
    return port <= 65535 ? (unsigned)port : 0;
}

/* false: it is no numeric address. */
static bool set_host(const char *host, unsigned port, struct metrics_address *out,
                     bool *ret_loopback)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host, &four.sin_addr) == 1) {
        memcpy(&out->at, &four, sizeof four);
        out->size = sizeof four;
        *ret_loopback = (ntohl(four.sin_addr.s_addr) >> 24) == 127;
        return true;
    }
    if (inet_pton(AF_INET6, host, &six.sin6_addr) == 1) {
        memcpy(&out->at, &six, sizeof six);
        out->size = sizeof six;
        *ret_loopback = IN6_IS_ADDR_LOOPBACK(&six.sin6_addr);
        return true;
    }
    return false;
}

static int set_tcp(char *text, struct metrics_address *out, struct err *e)
{
    char *colon = strrchr(text, ':');
    unsigned port = colon != NULL ? port_of(colon + 1) : 0;
    bool loopback = false;
    if (port == 0) {
        return err_set(
            e, ERR_INVALID,
            "listen = %s: neither unix:PATH nor a loopback address with a port from 1 to "
            "65535, as 127.0.0.1:9464",
            text);
    }
    *colon = '\0';
    size_t length = strlen(text);
    char *host = text;
    if (length >= 2 && host[0] == '[' && host[length - 1] == ']') {
        host[length - 1] = '\0';
        host++;
    }
    if (strcmp(host, "localhost") == 0) {
        host = "127.0.0.1"; /* whatever a resolver has for it */
    }
    if (!set_host(host, port, out, &loopback) || !loopback) {
        return err_set(
            e, ERR_PERMISSION,
            "listen = %s:%u: metrics are served on loopback only, as 127.0.0.1:%u: let a "
            "proxy serve other hosts",
            host, port, port);
    }
    return 0;
}

int metrics_addresses_parse(const char *text, struct metrics_addresses *ret_addresses,
                            struct err *e)
{
    static const char separators[] = ", \t\n";
    struct metrics_addresses all = {.count = 0};
    char one[METRICS_LISTEN_TEXT];
    int rc = 0;
    for (const char *c = text + strspn(text, separators); rc == 0 && *c != '\0';) {
        size_t length = strcspn(c, separators);
        if (length >= sizeof one || all.count == METRICS_LISTEN_MAX) {
            return err_set(e, ERR_LIMIT, "listen: over %u addresses, or one of over %zu bytes",
                           METRICS_LISTEN_MAX, sizeof one - 1);
        }
        (void)snprintf(one, sizeof one, "%.*s", (int)length, c);
        struct metrics_address *to = &all.address[all.count++];
        (void)snprintf(to->text, sizeof to->text, "%s", one); /* longer ones are refused below */
        rc = strncmp(one, UNIX, strlen(UNIX)) == 0 ? set_path(one, to, e) : set_tcp(one, to, e);
        c += length;
        c += strspn(c, separators);
    }
    if (rc == 0) {
        *ret_addresses = all;
    }
    return rc;
}

const char *metrics_address_path(const struct metrics_address *a)
{
    return a->at.any.sa_family == AF_UNIX ? a->at.local.sun_path : NULL;
}
