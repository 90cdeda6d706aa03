/* The server of metrics, with the test as the loop: which answer a request gets, and what clients
 * that misbehave cost. */
#include "daemon/front/metrics/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "daemon/front/metrics/page.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/scratch.h"

#define SCRAPERS 100
#define ROOM     (1u << 20)

static struct metrics_server *s;
static struct metrics_options options;
static char dir[SCRATCH_PATH];
static char path[SCRATCH_PATH + 16];
static char answer[ROOM];
static unsigned collections;
static int descriptors;

static void start(void)
{
    char listen[256];
    struct err e = ERR_INIT;
    (void)snprintf(listen, sizeof listen, "unix:%s", path);
    ck_assert_int_eq(metrics_addresses_parse(listen, &options.addresses, &e), 0);
    ck_assert_msg(metrics_server_start(&options, &s, &e) == 0, "%s", e.text);
}

static void setup(void)
{
    log_set_level(LOG_LEVEL_ERROR);
    scratch_make(dir);
    (void)snprintf(path, sizeof path, "%s/m", dir);
    descriptors = descriptors_open();
    options = (struct metrics_options){.gid = UINT32_MAX,
                                       .bell = eventfd(0, EFD_CLOEXEC),
                                       .patience_ns = 60 * NS_PER_S,
                                       .life_ns = 60 * NS_PER_S};
    collections = 0;
    start();
}

static void teardown(void)
{
    metrics_server_stop(s);
    (void)close(options.bell);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(descriptors_open(), descriptors);
    scratch_remove(dir);
}

static int dial(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct metrics_address *a = &options.addresses.address[0];
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, &a->at.any, a->size), 0);
    return fd;
}

static void say(int fd, const char *request)
{
    ck_assert_int_eq(send(fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
}

static void get(int fd, const char *where)
{
    char request[256];
    (void)snprintf(request, sizeof request,
                   "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", where);
    say(fd, request);
}

/* Until the server closes the connection. */
static const char *hear(int fd)
{
    size_t used = 0;
    ssize_t n;
    while ((n = read(fd, answer + used, ROOM - 1 - used)) > 0) {
        used += (size_t)n;
    }
    answer[used] = '\0';
    (void)close(fd);
    return answer;
}

/* The loop hears what is wanted, once; Check's time-out is the limit. */
static unsigned wants(void)
{
    uint64_t rings;
    ck_assert_int_eq(read(options.bell, &rings, sizeof rings), sizeof rings);
    return metrics_server_wants(s);
}

static void give(void)
{
    struct figures *n = figures_create(0);
    ck_assert_ptr_nonnull(n);
    n->build = "test";
    n->front.sessions = ++collections;
    metrics_server_give_figures(s, n);
}

static const char *ask_state(const char *where, bool ready, const char *text)
{
    int fd = dial();
    get(fd, where);
    ck_assert_uint_eq(wants(), WANT_STATE);
    metrics_server_give_state(s, ready, text);
    return hear(fd);
}

static void expect(const char *text, const char *status, const char *part)
{
    ck_assert_msg(strncmp(text, status, strlen(status)) == 0, "%s", text);
    ck_assert_msg(strstr(text, part) != NULL, "%s", text);
}

START_TEST(a_scrape_is_collected_and_written)
{
    int fd = dial();
    get(fd, "/metrics");
    ck_assert_uint_eq(wants(), WANT_FIGURES);
    give();
    expect(hear(fd), "HTTP/1.1 200 ", "\ngpud_sessions 1\n");
    ck_assert_ptr_nonnull(strstr(answer, "Content-Type: text/plain; version=0.0.4"));
    ck_assert_ptr_null(strstr(answer, "# EOF"));
}
END_TEST

START_TEST(openmetrics_is_sent_when_it_is_accepted)
{
    int fd = dial();
    say(fd, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAccept: "
            "application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n\r\n");
    ck_assert_uint_eq(wants(), WANT_FIGURES);
    give();
    expect(hear(fd), "HTTP/1.1 200 ", "\n# EOF\n");
    ck_assert_ptr_nonnull(strstr(answer, "application/openmetrics-text; version=1.0.0"));
}
END_TEST

/* The daemon may have changed since a collection began. */
START_TEST(a_request_is_not_answered_with_older_numbers)
{
    int first = dial();
    get(first, "/metrics");
    ck_assert_uint_eq(wants(), WANT_FIGURES);
    int second = dial(); /* during the collection */
    get(second, "/healthz");
    ck_assert_uint_eq(wants(), WANT_STATE); /* so the thread has seen what came before */
    int third = dial();
    get(third, "/metrics");
    metrics_server_give_state(s, true, "");
    expect(hear(second), "HTTP/1.1 200 ", "ok");
    (void)ask_state("/healthz", true, ""); /* and the third */
    give();
    expect(hear(first), "HTTP/1.1 200 ", "\ngpud_sessions 1\n");
    ck_assert_uint_eq(wants(), WANT_FIGURES);
    give();
    expect(hear(third), "HTTP/1.1 200 ", "\ngpud_sessions 2\n");
}
END_TEST

START_TEST(readiness_is_what_the_loop_says)
{
    expect(ask_state("/readyz", false, "0 of 1 required devices serve"), "HTTP/1.1 503 ",
           "not ready: 0 of 1 required devices serve\n");
    expect(ask_state("/readyz", true, ""), "HTTP/1.1 200 ", "\r\n\r\nready\n");
    /* not ready is no lack of health */
    expect(ask_state("/healthz", false, "draining"), "HTTP/1.1 200 ", "\r\n\r\nok\n");
}
END_TEST

START_TEST(a_loop_that_hangs_is_reported)
{
    static const char *const all[] = {"/healthz", "/readyz", "/metrics"};
    metrics_server_stop(s);
    options.patience_ns = 20 * NS_PER_MS;
    start();
    for (unsigned i = 0; i < 3; i++) {
        int fd = dial();
        get(fd, all[i]);
        expect(hear(fd), "HTTP/1.1 503 ", "the daemon's loop has not answered");
    }
}
END_TEST

START_TEST(without_memory_there_are_no_numbers)
{
    int fd = dial();
    get(fd, "/metrics");
    ck_assert_uint_eq(wants(), WANT_FIGURES);
    metrics_server_give_figures(s, NULL);
    expect(hear(fd), "HTTP/1.1 503 ", "no memory");
}
END_TEST

/* One collection serves all that wait; none is refused. */
START_TEST(a_hundred_scrapers_share_collections)
{
    int fd[SCRAPERS];
    for (unsigned i = 0; i < SCRAPERS; i++) {
        fd[i] = dial();
        get(fd[i], "/metrics");
    }
    for (unsigned i = 0; i < SCRAPERS; i++) {
        struct pollfd p = {.fd = fd[i], .events = POLLIN};
        while (poll(&p, 1, 0) == 0) {
            if ((wants() & WANT_FIGURES) != 0) {
                give();
            }
            (void)poll(&p, 1, 1);
            uint64_t one = 1; /* so that `wants` does not wait without need */
            ck_assert_int_eq(write(options.bell, &one, sizeof one), sizeof one);
        }
        expect(hear(fd[i]), "HTTP/1.1 200 ", "gpud_sessions ");
    }
    ck_assert_uint_le(collections, SCRAPERS / 2);
}
END_TEST

START_TEST(bad_requests_are_refused_and_the_server_goes_on)
{
    static const struct {
        const char *request, *status;
    } bad[] = {
        {"GET /nope HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "HTTP/1.1 404 "},
        {"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "HTTP/1.1 404 "},
        {"GET /metrics/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "HTTP/1.1 404 "},
        {"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nConnection: "
         "close\r\n\r\nabc",
         "HTTP/1.1 405 "},
        {"DELETE /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "HTTP/1.1 405 "},
        {"\r\n\r\nthis is not HTTP\r\n\r\n", "HTTP/1."},
        {"GET /metrics HTTP/1.1\r\nContent-Length: -5\r\n\r\n", "HTTP/1.1 400 "},
    };
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int fd = dial();
        say(fd, bad[i].request);
        (void)shutdown(fd, SHUT_WR);
        hear(fd);
        ck_assert_msg(strncmp(answer, bad[i].status, strlen(bad[i].status)) == 0 ||
                          (i == 5 && answer[0] == '\0'),
                      "%s gave %s", bad[i].request, answer);
    }
    int fd = dial(); /* a head that never ends, and is larger than the memory of a connection */
    say(fd, "GET /metrics HTTP/1.1\r\n");
    for (unsigned i = 0; i < 4096; i++) {
        static const char line[] = "X: yyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n";
        if (send(fd, line, sizeof line - 1, MSG_NOSIGNAL) < 0) {
            break;
        }
    }
    hear(fd);
    expect(ask_state("/healthz", true, ""), "HTTP/1.1 200 ", "ok");
}
END_TEST

START_TEST(the_head_of_an_answer_can_be_asked_for)
{
    int fd = dial();
    say(fd, "HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    ck_assert_uint_eq(wants(), WANT_FIGURES);
    give();
    expect(hear(fd), "HTTP/1.1 200 ", "Content-Length: ");
    ck_assert_ptr_null(strstr(answer, "gpud_"));
}
END_TEST

static void give_large(void)
{
    struct figures *n = figures_create(0);
    ck_assert_ptr_nonnull(n);
    n->build = "test";
    for (unsigned row = 0; row < TENANT_ROWS; row++) {
        (void)snprintf(n->tenant[row].name, sizeof n->tenant[row].name, "%060u", row);
    }
    metrics_server_give_figures(s, n);
}

/* Each text that is not read is larger than what sockets take. */
START_TEST(scrapers_that_do_not_read_hold_few_texts)
{
    int fd[METRICS_TEXTS + 4];
    int small = 4096;
    char first[16];
    unsigned refused = 0;
    for (unsigned i = 0; i < METRICS_TEXTS + 4; i++) {
        fd[i] = dial();
        ck_assert_int_eq(setsockopt(fd[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
        get(fd[i], "/metrics");
        ck_assert_uint_eq(wants(), WANT_FIGURES);
        give_large();
        ck_assert_int_eq(recv(fd[i], first, sizeof first, MSG_PEEK | MSG_WAITALL), sizeof first);
        refused += memcmp(first, "HTTP/1.1 503", 12) == 0;
    }
    ck_assert_uint_ge(refused, 3);
    expect(ask_state("/healthz", true, ""), "HTTP/1.1 200 ", "ok"); /* it needs no text */
    for (unsigned i = 0; i < METRICS_TEXTS + 4; i++) {
        (void)close(fd[i]);
    }
    bool served = false; /* their texts are free again, as soon as the server sees that they left */
    while (!served) {
        int other = dial();
        get(other, "/metrics");
        ck_assert_uint_eq(wants(), WANT_FIGURES);
        give_large();
        served = strncmp(hear(other), "HTTP/1.1 200", 12) == 0;
    }
}
END_TEST

START_TEST(a_connection_serves_one_request)
{
    int fd = dial();
    say(fd, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    ck_assert_uint_eq(wants(), WANT_FIGURES);
    give();
    expect(hear(fd), "HTTP/1.1 200 ", "Connection: close");
    fd = dial();
    say(fd, "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n");
    ck_assert_uint_eq(wants(), WANT_STATE);
    metrics_server_give_state(s, true, "");
    expect(hear(fd), "HTTP/1.1 200 ", "Connection: close");
}
END_TEST

static bool left(int fd)
{
    struct pollfd p = {.fd = fd, .events = 0};
    return poll(&p, 1, 10) == 1 && (p.revents & POLLHUP) != 0;
}

static void live_briefly(void)
{
    metrics_server_stop(s);
    options.life_ns = 50 * NS_PER_MS;
    start();
}

/* Silence is no sign of such a client, nor does its head reach the limit of memory. */
START_TEST(a_request_that_comes_byte_by_byte_is_ended)
{
    live_briefly();
    int fd = dial();
    say(fd, "GET /metrics HTTP/1.1\r\nX: ");
    while (!left(fd)) {
        (void)send(fd, "y", 1, MSG_NOSIGNAL);
    }
    (void)close(fd);
}
END_TEST

START_TEST(an_answer_that_is_read_byte_by_byte_is_ended)
{
    static const char length[] = "Content-Length: ";
    char head[512] = "";
    char c;
    size_t heard = 0;
    live_briefly();
    int fd = dial();
    get(fd, "/metrics");
    ck_assert_uint_eq(wants(), WANT_FIGURES);
    give_large();
    ck_assert_int_eq(recv(fd, head, sizeof head - 1, MSG_PEEK | MSG_WAITALL), sizeof head - 1);
    while (!left(fd)) {
        heard += recv(fd, &c, 1, MSG_DONTWAIT) == 1;
    }
    heard += strlen(hear(fd));
    const char *body = strstr(head, "\r\n\r\n");
    const char *size = strstr(head, length);
    ck_assert_ptr_nonnull(body);
    ck_assert_ptr_nonnull(size);
    ck_assert_uint_lt(heard, (size_t)(body + 4 - head) +
                                 strtoul(size + sizeof length - 1, NULL, 10)); /* it is cut off */
}
END_TEST

START_TEST(the_end_does_not_wait_for_scrapers)
{
    int fd = dial();
    get(fd, "/metrics");
    ck_assert_uint_eq(wants(), WANT_FIGURES);
    int silent = dial();
    metrics_server_stop(s);
    s = NULL;
    (void)hear(fd);
    (void)hear(silent);
    descriptors = descriptors_open() - 1; /* the bell, which teardown closes */
}
END_TEST

START_TEST(a_unix_socket_is_for_its_user_and_group)
{
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    metrics_server_stop(s);
    options.gid = getgid();
    start();
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0660);
}
END_TEST

START_TEST(an_address_in_use_is_refused)
{
    struct metrics_server *other = NULL;
    struct err e = ERR_INIT;
    ck_assert_int_eq(metrics_server_start(&options, &other, &e), ERR_EXISTS);
    ck_assert_ptr_null(other);
    ck_assert_int_eq(access(path, F_OK), 0); /* it is still the first one's */
}
END_TEST

START_TEST(a_port_in_use_is_named)
{
    struct metrics_server *other = NULL;
    struct err e = ERR_INIT;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    char listening[64];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&a, size), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &size), 0);
    (void)snprintf(listening, sizeof listening, "127.0.0.1:%u", ntohs(a.sin_port));
    ck_assert_int_eq(metrics_addresses_parse(listening, &options.addresses, &e), 0);
    ck_assert_int_eq(metrics_server_start(&options, &other, &e), ERR_EXISTS);
    (void)snprintf(listening, sizeof listening, "127.0.0.1:%u is in use", ntohs(a.sin_port));
    ck_assert_msg(strncmp(e.text, listening, strlen(listening)) == 0, "%s", e.text);
    (void)close(fd);
}
END_TEST

SUITE_MAIN_IN("server", setup, teardown, a_scrape_is_collected_and_written,
              openmetrics_is_sent_when_it_is_accepted, a_request_is_not_answered_with_older_numbers,
              readiness_is_what_the_loop_says, a_loop_that_hangs_is_reported,
              without_memory_there_are_no_numbers, a_hundred_scrapers_share_collections,
              bad_requests_are_refused_and_the_server_goes_on,
              the_head_of_an_answer_can_be_asked_for, scrapers_that_do_not_read_hold_few_texts,
              a_connection_serves_one_request, a_request_that_comes_byte_by_byte_is_ended,
              an_answer_that_is_read_byte_by_byte_is_ended, the_end_does_not_wait_for_scrapers,
              a_unix_socket_is_for_its_user_and_group, an_address_in_use_is_refused,
              a_port_in_use_is_named)
