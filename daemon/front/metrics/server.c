#include "daemon/front/metrics/server.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "common/log.h"
#include "common/thread.h"
#include "daemon/front/metrics/page.h"
#include "daemon/front/metrics/sockets.h"

#define STACK ((size_t)256 * 1024)
#define KINDS 2u /* of wants */

enum path { PATH_METRICS, PATH_HEALTH, PATH_READY, PATHS };

static const char *const paths[PATHS] = {"/metrics", "/healthz", "/readyz"};

enum request_state { REQUEST_NEW, REQUEST_WAITS, REQUEST_ANSWERED, REQUEST_GIVEN_UP };

/* A request from its head to its answer. In the list while it waits for the loop. */
struct http_request {
    struct MHD_Connection *connection;
    enum path path;
    enum request_state state;
    bool openmetrics;
    uint64_t since_ns;
    uint64_t round; /* of questions to the loop: the first one whose answer is new enough */
    struct http_request *prev, *next;
};

/* A client's, for one request. In the list until its time is over. */
struct connection {
    int fd;            /* MHD's */
    bool ended;        /* its time is over; it is in no list */
    uint64_t until_ns; /* by which its answer is to be read */
    struct connection *prev, *next;
};

/* Questions of one kind to the loop; the thread's. */
struct question {
    bool open;       /* it was asked and not answered */
    uint64_t round;  /* of the last question */
    uint64_t due_ns; /* when the next one may be asked */
};

struct metrics_server {
    pthread_t thread;
    int bell; /* the loop's; not owned */
    int wake; /* the thread's */
    uint64_t patience_ns;
    uint64_t life_ns;

    pthread_mutex_t lock;
    /* under the lock */
    bool ending;
    unsigned wanted;   /* enum metrics_want, that the loop has yet to see */
    unsigned answered; /* the same, that the thread has yet to see */
    struct figures *given;
    bool given_ready;
    char given_text[METRICS_STATE_TEXT];

    /* the thread's */
    struct metrics_sockets sockets;
    struct MHD_Daemon *daemon[METRICS_LISTEN_MAX];
    unsigned daemon_count;
    struct connection *connections; /* the oldest first */
    struct http_request *waiting;
    struct question question[KINDS];
    bool ready;
    char text[METRICS_STATE_TEXT];
    struct metrics_page page;
};

static unsigned kind_of(const struct http_request *r)
{
    return r->path == PATH_METRICS ? 1 : 0;
}

static const enum metrics_want wants[KINDS] = {WANT_STATE, WANT_FIGURES};

static void ring(int fd)
{
    uint64_t one = 1;
    (void)!write(fd, &one, sizeof one); /* a full counter has rung as well */
}

/* ---- connections ----------------------------------------------------------------------------- */

static void on_connection(void *data, struct MHD_Connection *c, void **ret_connection,
                          enum MHD_ConnectionNotificationCode code)
{
    struct metrics_server *s = data;
    struct connection *own = *ret_connection;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        int fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        own = calloc(1, sizeof *own);
        if (own == NULL) {
            (void)shutdown(fd, SHUT_RDWR);
            return;
        }
        own->fd = fd;
        own->until_ns = ns_add(clock_now_ns(), s->life_ns);
        DL_APPEND(s->connections, own);
        *ret_connection = own;
    } else if (own != NULL) {
        if (!own->ended) {
            DL_DELETE(s->connections, own);
        }
        free(own);
    }
}

/* Ends connections whose time is over: MHD closes them as it does when the client leaves. Returns
 * when it has to be called again; NS_NEVER: there are none. */
static uint64_t end_late(struct metrics_server *s)
{
    uint64_t now = clock_now_ns();
    struct connection *c;
    while ((c = s->connections) != NULL && now >= c->until_ns) {
        DL_DELETE(s->connections, c);
        c->ended = true;
        (void)shutdown(c->fd, SHUT_RDWR);
    }
    return c != NULL ? c->until_ns : NS_NEVER;
}

/* ---- answers --------------------------------------------------------------------------------- */

static enum MHD_Result answer_text(struct MHD_Connection *c, unsigned status, const char *text)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_MUST_COPY);
    if (response == NULL) {
        return MHD_NO; /* closes the connection */
    }
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                  "text/plain; charset=utf-8");
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    }
    enum MHD_Result rc = MHD_queue_response(c, status, response);
    MHD_destroy_response(response);
    return rc;
}

static enum MHD_Result answer_metrics(struct metrics_server *s, const struct http_request *r)
{
    struct MHD_Response *response = NULL;
    const char *why = metrics_page_response(&s->page, r->openmetrics, &response);
    return why != NULL ? answer_text(r->connection, MHD_HTTP_SERVICE_UNAVAILABLE, why)
                       : MHD_queue_response(r->connection, MHD_HTTP_OK, response);
}

static enum MHD_Result answer(struct metrics_server *s, const struct http_request *r)
{
    char text[METRICS_STATE_TEXT + 32];
    const char *state = s->ready ? "ready" : "not ready";
    if (r->state == REQUEST_GIVEN_UP) {
        (void)snprintf(text, sizeof text, "the daemon's loop has not answered for %.1f s\n",
                       (double)s->patience_ns / 1e9);
        return answer_text(r->connection, MHD_HTTP_SERVICE_UNAVAILABLE, text);
    }
    switch (r->path) {
    case PATH_METRICS:
        return answer_metrics(s, r);
    case PATH_HEALTH:
        return answer_text(r->connection, MHD_HTTP_OK, "ok\n");
    default:
        (void)snprintf(text, sizeof text, "%s%s%s\n", state, s->text[0] != '\0' ? ": " : "",
                       s->text);
        return answer_text(r->connection, s->ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE,
                           text);
    }
}

/* ---- requests -------------------------------------------------------------------------------- */

static bool accepts_openmetrics(struct MHD_Connection *c)
{
    const char *accept = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
    return accept != NULL && strstr(accept, "application/openmetrics-text") != NULL;
}

static enum MHD_Result begin(struct MHD_Connection *c, const char *url, const char *method,
                             void **ret_request)
{
    unsigned path = 0;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        return answer_text(c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are served\n");
    }
    while (path < PATHS && strcmp(url, paths[path]) != 0) {
        path++;
    }
    if (path == PATHS) {
        return answer_text(c, MHD_HTTP_NOT_FOUND, "there are /metrics, /healthz and /readyz\n");
    }
    struct http_request *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return MHD_NO;
    }
    r->connection = c;
    r->path = (enum path)path;
    r->openmetrics = accepts_openmetrics(c);
    *ret_request = r;
    return MHD_YES;
}

/* MHD calls it for the head of a request, for each piece of a body, at its end, and again when the
 * connection is resumed. */
static enum MHD_Result on_request(void *data, struct MHD_Connection *c, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **request)
{
    struct metrics_server *s = data;
    struct http_request *r = *request;
    (void)version;
    (void)upload;
    if (r == NULL) {
        return begin(c, url, method, request);
    }
    if (*upload_size > 0) { /* a body is of no use */
        *upload_size = 0;
        return MHD_YES;
    }
    if (r->state != REQUEST_NEW) {
        return answer(s, r);
    }
    r->state = REQUEST_WAITS;
    r->since_ns = clock_now_ns();
    r->round = s->question[kind_of(r)].round + 1;
    DL_APPEND(s->waiting, r);
    MHD_suspend_connection(c);
    return MHD_YES;
}

static void on_completed(void *data, struct MHD_Connection *c, void **request,
                         enum MHD_RequestTerminationCode how)
{
    struct metrics_server *s = data;
    struct http_request *r = *request;
    (void)c;
    (void)how;
    if (r != NULL && r->state == REQUEST_WAITS) {
        DL_DELETE(s->waiting, r);
    }
    free(r);
    *request = NULL;
}

static void go_on(struct metrics_server *s, struct http_request *r, enum request_state state)
{
    DL_DELETE(s->waiting, r);
    r->state = state;
    MHD_resume_connection(r->connection);
}

/* ---- questions to the loop ------------------------------------------------------------------- */

static void take_answers(struct metrics_server *s)
{
    (void)pthread_mutex_lock(&s->lock);
    unsigned answered = s->answered;
    struct figures *figures = s->given;
    s->answered = WANT_NOTHING;
    s->given = NULL;
    if ((answered & WANT_STATE) != 0) {
        s->ready = s->given_ready;
        memcpy(s->text, s->given_text, sizeof s->text);
    }
    (void)pthread_mutex_unlock(&s->lock);
    if ((answered & WANT_FIGURES) != 0) {
        metrics_page_set(&s->page, figures);
    }
    for (unsigned k = 0; k < KINDS; k++) {
        s->question[k].open = s->question[k].open && (answered & wants[k]) == 0;
    }
    struct http_request *r;
    struct http_request *next;
    DL_FOREACH_SAFE(s->waiting, r, next)
    {
        unsigned k = kind_of(r);
        if ((answered & wants[k]) != 0 && r->round <= s->question[k].round) {
            go_on(s, r, REQUEST_ANSWERED);
        }
    }
}

/* Asks what requests wait for, and gives up on a loop that does not answer. Returns when it has to
 * be called again; NS_NEVER: not before something happens. */
static uint64_t ask(struct metrics_server *s)
{
    uint64_t now = clock_now_ns();
    uint64_t again = NS_NEVER;
    unsigned wanted = 0;
    struct http_request *r;
    struct http_request *next;
    DL_FOREACH_SAFE(s->waiting, r, next)
    {
        struct question *q = &s->question[kind_of(r)];
        uint64_t until = ns_add(r->since_ns, s->patience_ns);
        if (now >= until) {
            go_on(s, r, REQUEST_GIVEN_UP);
            again = 0; /* MHD answers in its next run */
            continue;
        }
        again = until < again ? until : again;
        if (!q->open && now >= q->due_ns) {
            q->open = true;
            q->round++;
            q->due_ns = ns_add(now, ASK_PAUSE_NS);
            wanted |= wants[kind_of(r)];
        } else if (!q->open) {
            again = q->due_ns < again ? q->due_ns : again;
        }
    }
    if (wanted != 0) {
        (void)pthread_mutex_lock(&s->lock);
        s->wanted |= wanted;
        (void)pthread_mutex_unlock(&s->lock);
        ring(s->bell);
    }
    return again;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static int timeout_ms(const struct metrics_server *s, uint64_t until)
{
    uint64_t now = clock_now_ns();
    uint64_t ms = UINT64_MAX;
    if (until != NS_NEVER) {
        ms = until > now ? (until - now + NS_PER_MS - 1) / NS_PER_MS : 0;
    }
    for (unsigned i = 0; i < s->daemon_count; i++) {
        MHD_UNSIGNED_LONG_LONG own = 0;
        if (MHD_get_timeout(s->daemon[i], &own) == MHD_YES && own < ms) {
            ms = own;
        }
    }
    return ms == UINT64_MAX ? -1 : ms > 60000 ? 60000 : (int)ms;
}

/* Waits until there is something to do. false: the server ends. */
static bool wait_for_work(struct metrics_server *s, uint64_t until)
{
    struct pollfd fds[METRICS_LISTEN_MAX + 1] = {{.fd = s->wake, .events = POLLIN}};
    for (unsigned i = 0; i < s->daemon_count; i++) {
        const union MHD_DaemonInfo *info =
            MHD_get_daemon_info(s->daemon[i], MHD_DAEMON_INFO_EPOLL_FD);
        fds[i + 1] = (struct pollfd){.fd = info->epoll_fd, .events = POLLIN};
    }
    (void)poll(fds, s->daemon_count + 1, timeout_ms(s, until));
    if (fds[0].revents != 0) {
        uint64_t rings;
        (void)!read(s->wake, &rings, sizeof rings);
    }
    (void)pthread_mutex_lock(&s->lock);
    bool ending = s->ending;
    (void)pthread_mutex_unlock(&s->lock);
    return !ending;
}

static void run_daemons(struct metrics_server *s)
{
    for (unsigned i = 0; i < s->daemon_count; i++) {
        (void)MHD_run(s->daemon[i]);
    }
}

static void *run(void *data)
{
    struct metrics_server *s = data;
    uint64_t until = NS_NEVER;
    while (wait_for_work(s, until)) {
        take_answers(s);
        run_daemons(s);
        uint64_t asked = ask(s);
        uint64_t late = end_late(s);
        until = asked < late ? asked : late;
    }
    while (s->waiting != NULL) { /* MHD wants no connection suspended at the end */
        go_on(s, s->waiting, REQUEST_GIVEN_UP);
    }
    run_daemons(s);
    return NULL;
}

/* ---- start and end --------------------------------------------------------------------------- */

/* The daemon of MHD owns the descriptor from then on. */
static int start_daemon(struct metrics_server *s, int fd, struct err *e)
{
    struct MHD_Daemon *d = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, s,
        MHD_OPTION_LISTEN_SOCKET, (MHD_socket)fd, MHD_OPTION_CONNECTION_LIMIT, METRICS_CONNECTIONS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)16384, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_END);
    if (d == NULL) {
        return err_set(e, ERR_NOMEM, "no memory, or no descriptor, to serve metrics");
    }
    s->daemon[s->daemon_count++] = d;
    return 0;
}

static void destroy(struct metrics_server *s)
{
    for (unsigned i = 0; i < s->daemon_count; i++) {
        MHD_stop_daemon(s->daemon[i]);
    }
    metrics_sockets_close(&s->sockets);
    metrics_page_finish(&s->page);
    figures_destroy(s->given);
    if (s->wake >= 0) {
        (void)close(s->wake);
    }
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

int metrics_server_start(const struct metrics_options *options, struct metrics_server **ret_server,
                         struct err *e)
{
    struct metrics_server *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return err_set(e, ERR_NOMEM, "no memory to serve metrics");
    }
    (void)pthread_mutex_init(&s->lock, NULL); /* cannot fail on Linux */
    s->bell = options->bell;
    s->patience_ns = options->patience_ns;
    s->life_ns = options->life_ns;
    s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc = s->wake >= 0 ? 0 : err_errno(e, ERR_IO, "eventfd");
    rc = rc == 0 ? metrics_sockets_open(&s->sockets, &options->addresses, options->gid, e) : rc;
    for (unsigned i = 0; rc == 0 && i < s->sockets.count; i++) {
        rc = start_daemon(s, s->sockets.fd[i], e);
        s->sockets.fd[i] = rc == 0 ? -1 : s->sockets.fd[i];
    }
    if (rc == 0 && !thread_start(STACK, run, s, &s->thread)) {
        rc = err_set(e, ERR_NOMEM, "the system has no room for the thread that serves metrics");
    }
    if (rc != 0) {
        destroy(s);
        return rc;
    }
    *ret_server = s;
    return 0;
}

void metrics_server_stop(struct metrics_server *s)
{
    if (s == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&s->lock);
    s->ending = true;
    (void)pthread_mutex_unlock(&s->lock);
    ring(s->wake);
    (void)pthread_join(s->thread, NULL);
    destroy(s);
}

unsigned metrics_server_wants(struct metrics_server *s)
{
    (void)pthread_mutex_lock(&s->lock);
    unsigned wanted = s->wanted;
    s->wanted = WANT_NOTHING;
    (void)pthread_mutex_unlock(&s->lock);
    return wanted;
}

void metrics_server_give_state(struct metrics_server *s, bool ready, const char *text)
{
    (void)pthread_mutex_lock(&s->lock);
    s->given_ready = ready;
    (void)snprintf(s->given_text, sizeof s->given_text, "%s", text);
    s->answered |= WANT_STATE;
    (void)pthread_mutex_unlock(&s->lock);
    ring(s->wake);
}

void metrics_server_give_figures(struct metrics_server *s, struct figures *n)
{
    (void)pthread_mutex_lock(&s->lock);
    struct figures *unread = s->given;
    s->given = n;
    s->answered |= WANT_FIGURES;
    (void)pthread_mutex_unlock(&s->lock);
    figures_destroy(unread);
    ring(s->wake);
}
