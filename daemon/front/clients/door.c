/* Doors: addresses that the daemon listens on. A door pauses while no connection can be
 * accepted. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/clock.h"
#include "common/descriptors.h"
#include "common/log.h"
#include "daemon/front/clients/listener_int.h"

#define PAUSE_FIRST_NS (10 * NS_PER_MS)
#define PAUSE_MAX_NS   NS_PER_S
#define LOG_NS         (10 * NS_PER_S)
#define CLOSING_MAX    256u      /* connections being closed; beyond that none is accepted */
#define RENEWED        NNG_EINTR /* of an accept that doors_renew_tls abandoned */

#if !defined(SO_PASSRIGHTS) && (defined(__x86_64__) || defined(__aarch64__))
#define SO_PASSRIGHTS 83 /* since Linux 6.16 */
#endif

/* ---- accepting ------------------------------------------------------------------------------- */

/* The state may change with each descriptor. So the log gets at most one shortage in LOG_NS, and
 * the end of each that it got. */
void doors_starve(struct listener *l, bool starved)
{
    uint64_t now = clock_now_ns();
    if (starved && !l->starved && now >= l->starve_log_ns) {
        l->starve_log_ns = ns_add(now, LOG_NS);
        l->starve_logged = true;
        log_say(LOG_DESCRIPTORS_OUT,
                "out of descriptors, except for the reserve: %u connections are open; new ones "
                "wait until some are closed",
                l->connected + l->turned_away);
    } else if (!starved && l->starve_logged) {
        l->starve_logged = false;
        log_say(LOG_DESCRIPTORS_BACK, "descriptors are free again: new connections are accepted");
    }
    l->starved = starved;
}

/* Locked. */
static bool may_accept(struct listener *l)
{
    return !l->starved && l->alive < l->connected + l->turned_away + CLOSING_MAX;
}

/* Locked. */
static void pause_door(struct door *d)
{
    d->pause_ns = d->pause_ns == 0                 ? PAUSE_FIRST_NS
                  : d->pause_ns < PAUSE_MAX_NS / 2 ? 2 * d->pause_ns
                                                   : PAUSE_MAX_NS;
    d->again_ns = ns_add(clock_now_ns(), d->pause_ns);
    d->listener->wake_pending = true; /* so that the loop arms its timer */
}

/* Locked: the time of the first paused door. */
static void note_pauses(struct listener *l)
{
    l->accept_ns = NS_NEVER;
    for (const struct door *d = l->doors; d != NULL; d = d->next) {
        l->accept_ns = d->again_ns != 0 && d->again_ns < l->accept_ns ? d->again_ns : l->accept_ns;
    }
}

/* A reload may have come between the choice of a certificate and the accept with it. */
static void abandon_former(struct door *d)
{
    listener_lock(d->listener);
    bool former = d->kind == LISTEN_TLS && d->tls != d->listener->tls;
    listener_unlock(d->listener);
    if (former) {
        nng_aio_abort(d->accept, RENEWED);
    }
}

/* A door uses a new certificate from its next accept on, so the pending one is abandoned.
 *
 * rc: NNG's result of the last accept. Errors other than the end of the door are temporary: no
 * memory, no descriptors, a peer that closed while it connected. */
static void accept_next(struct door *d, int rc)
{
    struct listener *l = d->listener;
    bool descriptors = rc != NNG_ENOFILES && descriptors_left();
    listener_lock(l);
    bool over = l->ending || rc == NNG_ECLOSED || rc == NNG_ECANCELED;
    bool fresh = d->tls != l->tls && d->kind == LISTEN_TLS;
    doors_starve(l, !descriptors);
    bool next = !over && (rc == 0 || rc == RENEWED) && may_accept(l);
    d->tls = l->tls;
    if (over) {
        d->again_ns = NS_NEVER;
    } else if (next) {
        d->again_ns = 0;
        d->pause_ns = 0;
    } else {
        pause_door(d);
    }
    note_pauses(l);
    listener_unlock(l);
    if (fresh) { /* fails only for an option that is unknown or no pointer */
        (void)nng_stream_listener_set_ptr(d->stream, NNG_OPT_TLS_CONFIG, d->tls);
    }
    if (next) {
        nng_stream_listener_accept(d->stream, d->accept);
        abandon_former(d);
    }
}

static void accepted(void *door)
{
    struct door *d = door;
    int rc = nng_aio_result(d->accept);
    if (rc == 0) {
        connection_admit(d, nng_aio_get_output(d->accept, 0));
    }
    accept_next(d, rc);
}

void doors_retry(struct listener *l, uint64_t now)
{
    for (struct door *d = l->doors; d != NULL; d = d->next) {
        listener_lock(l);
        bool retry = d->again_ns != 0 && d->again_ns <= now;
        listener_unlock(l);
        if (retry) {
            accept_next(d, 0);
        }
    }
}

void doors_renew_tls(struct listener *l)
{
    for (struct door *d = l->doors; d != NULL; d = d->next) {
        if (d->kind == LISTEN_TLS) {
            nng_aio_abort(d->accept, RENEWED);
        }
    }
}

/* ---- opening --------------------------------------------------------------------------------- */

#ifdef SO_PASSRIGHTS
static bool listens_at(int fd, const char *path)
{
    struct sockaddr_un address = {0};
    socklen_t size = sizeof address;
    int listens = 0;
    socklen_t room = sizeof listens;
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &room) == 0 && listens != 0 &&
           getsockname(fd, (struct sockaddr *)&address, &size) == 0 &&
           address.sun_family == AF_UNIX &&
           strncmp(address.sun_path, path, sizeof address.sun_path) == 0;
}

/* Switches SO_PASSRIGHTS off, so that the kernel refuses descriptors that a client sends with its
 * bytes. Otherwise the kernel would close them in NNG's thread, which can take as long as the
 * client wants (SO_LINGER). Connections inherit the option from the listening socket. NNG does not
 * give that socket out, so all open descriptors are searched for it. Kernels before 6.16 lack the
 * option. */
static void refuse_descriptors(const char *path)
{
    const int off = 0;
    DIR *dir = opendir("/proc/self/fd");
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        int fd = (int)strtol(entry->d_name, NULL, 10); /* 0 for "." */
        if (listens_at(fd, path)) {
            (void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof off);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}
#else
static void refuse_descriptors(const char *path)
{
    (void)path;
}
#endif

static void door_destroy(struct door *d)
{
    if (d->stream != NULL) {
        nng_stream_listener_close(d->stream);
    }
    nng_aio_stop(d->accept);
    nng_stream_listener_free(d->stream);
    nng_aio_free(d->accept);
    free(d);
}

static int listen_on(struct door *d, const char *url)
{
    int rc = nng_aio_alloc(&d->accept, accepted, d);
    if (rc == 0) {
        rc = nng_stream_listener_alloc(&d->stream, url);
    }
    if (rc == 0 && d->kind == LISTEN_TLS) {
        rc = nng_stream_listener_set_ptr(d->stream, NNG_OPT_TLS_CONFIG, d->tls);
    }
    if (rc == 0 && d->kind == LISTEN_IPC) {
        uint32_t mode = d->number != 0 ? 0600 : d->listener->options.ipc_mode;
        rc = nng_stream_listener_set_int(d->stream, NNG_OPT_IPC_PERMISSIONS, (int)mode);
    } else if (rc == 0) {
        rc = nng_stream_listener_set_bool(d->stream, NNG_OPT_TCP_NODELAY, true);
    }
    return rc == 0 ? nng_stream_listener_listen(d->stream) : rc;
}

static int nng_error(int rc, const char *url, struct err *e)
{
    int code = rc == NNG_EADDRINUSE ? ERR_EXISTS
               : rc == NNG_EPERM    ? ERR_PERMISSION
               : rc == NNG_ENOMEM   ? ERR_NOMEM
                                    : ERR_IO;
    return err_set(e, code, "listening on %s: %s", url, nng_strerror(rc));
}

int door_open(struct listener *l, const char *url, enum listen_kind kind, uint32_t number,
              struct err *e)
{
    struct door *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return err_set(e, ERR_NOMEM, "no memory to listen on %s", url);
    }
    d->listener = l;
    d->kind = kind;
    d->number = number;
    d->tls = l->tls;
    (void)snprintf(d->url, sizeof d->url, "%s", url);
    int rc = listen_on(d, url);
    if (rc != 0) {
        door_destroy(d);
        return nng_error(rc, url, e);
    }
    if (kind == LISTEN_IPC) {
        refuse_descriptors(url + strlen("ipc://"));
    }
    listener_lock(l);
    d->next = l->doors;
    l->doors = d;
    listener_unlock(l);
    accept_next(d, 0);
    return 0;
}

void door_close(struct listener *l, uint32_t number)
{
    listener_lock(l);
    struct door **at = &l->doors;
    while (*at != NULL && (*at)->number != number) {
        at = &(*at)->next;
    }
    struct door *d = *at;
    if (d != NULL) {
        *at = d->next;
        note_pauses(l);
    }
    listener_unlock(l);
    if (d != NULL) {
        door_destroy(d);
    }
}

void doors_close(struct listener *l)
{
    while (l->doors != NULL) {
        struct door *d = l->doors;
        l->doors = d->next;
        door_destroy(d);
    }
}
