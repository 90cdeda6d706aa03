/* Clients of other hosts: TLS and tokens, through the real daemon and libgpud. */
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/token.h"
#include "tests/system/harness/certs.h"
#include "tests/system/harness/harness.h"

#define PATHS 160

static struct daemon daemon_of_test;
static struct cert_authority *authority;
static char settings[PATHS];
static char ca[PATHS];
static char other_ca[PATHS];
static char cert[PATHS];
static char key[PATHS];
static char hashes[PATHS];
static char token_file[PATHS];
static char token[TOKEN_TEXT_BYTES];
static char tls_url[64];
static char plain_url[64];

static void path_set(char out[PATHS], const char *name)
{
    (void)snprintf(out, PATHS, "%s/%s", daemon_of_test.dir, name);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static void token_new(char out[TOKEN_TEXT_BYTES], char line[TOKEN_LINE_BYTES])
{
    struct token_hash hash;
    struct err e = ERR_INIT;
    ck_assert_int_eq(token_make(out, &e), 0);
    ck_assert_int_eq(token_hash_of(bytes_str(out), &hash, &e), 0);
    token_line(&hash, line);
}

/* The lines that the daemon knows from the next reload on. */
static void hashes_write(const char *first, const char *second)
{
    char text[256];
    int n = snprintf(text, sizeof text, "# tokens\n%s first\n\n%s\n", first, second);
    file_write(hashes, text, (size_t)n);
    ck_assert_int_eq(chmod(hashes, 0640), 0);
}

static void token_write(const char *text)
{
    char line[TOKEN_TEXT_BYTES + 2];
    int n = snprintf(line, sizeof line, "%s\n", text);
    file_write(token_file, line, (size_t)n);
    ck_assert_int_eq(chmod(token_file, 0600), 0);
}

/* ---- daemon and clients ---------------------------------------------------------------------- */

static void settings_write(const char *more)
{
    char text[1024];
    int n = snprintf(text, sizeof text,
                     "[daemon]\ntls_cert = %s\ntls_key = %s\n%s"
                     "[tenant vision]\ntokens = %s\nload_kernels = yes\n",
                     cert, key, more, hashes);
    file_write(settings, text, (size_t)n);
}

static void prepare(void)
{
    struct daemon *d = &daemon_of_test;
    static char ipc_url[DAEMON_PATH];
    char line[TOKEN_LINE_BYTES];
    tcp_url(plain_url, sizeof plain_url);
    char bare[60];
    tcp_url(bare, sizeof bare);
    (void)snprintf(tls_url, sizeof tls_url, "tls+%.50s", bare);
    daemon_prepare(d, "--backend", "sim", "--backend-options", "speed=0", "--config", settings,
                   "--listen", ipc_url, "--listen", tls_url, "--listen", plain_url, NULL);
    (void)snprintf(ipc_url, sizeof ipc_url, "%s", d->url);
    path_set(settings, "remote.conf");
    path_set(ca, "ca.pem");
    path_set(other_ca, "other-ca.pem");
    path_set(cert, "cert.pem");
    path_set(key, "key.pem");
    path_set(hashes, "vision.tokens");
    path_set(token_file, "token");
    authority = certs_authority("test-ca", ca);
    certs_authority_free(certs_authority("other-ca", other_ca));
    certs_issue(authority, "gpu-host", CERT_GOOD, cert, key);
    token_new(token, line);
    token_write(token);
    hashes_write(line, "");
    settings_write("");
    (void)setenv("GPUD_CA_FILE", ca, 1);
    (void)setenv("GPUD_TOKEN_FILE", token_file, 1);
}

static void begin(void)
{
    prepare();
    daemon_spawn(&daemon_of_test);
    daemon_wait_ready(&daemon_of_test);
}

static void end(gpud_client *c)
{
    certs_authority_free(authority);
    daemon_end(&daemon_of_test, c);
}

static void reload(int expected)
{
    gpud_client *c = client_open(daemon_of_test.url);
    int rc = gpud_control(c, "reload", NULL);
    ck_assert_msg(rc == expected, "%s: %s", gpud_err_name(rc), gpud_last_error()->text);
    gpud_close(c);
}

static void tenant_of(gpud_client *c, char out[GPUD_NAME])
{
    gpud_limits_desc limits = {.size = sizeof limits};
    ck_gpud_ok(gpud_limits(c, &limits));
    (void)snprintf(out, GPUD_NAME, "%s", limits.tenant);
}

static void ck_serves(gpud_client *c)
{
    static float x[100000];
    static float y[100000];
    for (unsigned i = 0; i < 100000; i++) {
        x[i] = (float)i;
        y[i] = 1;
    }
    gpud_arg args[] = {gpud_f32(2), gpud_host(x, 100000, GPUD_F32), gpud_host(y, 100000, GPUD_F32)};
    ck_gpud_ok(gpud_call(c, kernel_find(c, "axpy"), args, 3, NULL));
    for (unsigned i = 0; i < 100000; i++) {
        ck_assert_float_eq(y[i], 2 * (float)i + 1);
    }
}

static unsigned count_of(const char *folder)
{
    unsigned count = 0;
    DIR *dir = opendir(folder);
    ck_assert_ptr_nonnull(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    (void)closedir(dir);
    return count;
}

/* ---- the tests ------------------------------------------------------------------------------- */

START_TEST(a_token_names_the_tenant)
{
    begin();
    unsigned threads = count_of("/proc/self/task");
    char tenant[GPUD_NAME];
    gpud_client *c = client_open(tls_url);
    tenant_of(c, tenant);
    ck_assert_str_eq(tenant, "vision");
    gpud_limits_desc limits = {.size = sizeof limits};
    ck_gpud_ok(gpud_limits(c, &limits));
    ck_assert(limits.may_load);
    ck_serves(c);
    ck_assert_uint_eq(count_of("/proc/self/task"), threads);
    gpud_client *plain = client_open(plain_url); /* a token counts there as well */
    tenant_of(plain, tenant);
    ck_assert_str_eq(tenant, "vision");
    gpud_close(plain);
    (void)unsetenv("GPUD_TOKEN_FILE");
    plain = client_open(plain_url);
    tenant_of(plain, tenant);
    ck_assert_str_ne(tenant, "vision");
    gpud_close(plain);
    ck_assert(!daemon_logged(&daemon_of_test, token));
    end(c);
}
END_TEST

#define MANY 64u
#define FEW  2u

/* Of this process, and of the daemon that it starts: so answers wait for each other. */
static void use_one_processor(void)
{
    cpu_set_t all;
    cpu_set_t one;
    unsigned first = 0;
    CPU_ZERO(&one);
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    while (!CPU_ISSET(first, &all)) {
        first++;
    }
    CPU_SET(first, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
}

/* Answers of several jobs at once share records of TLS: each has the bytes of its own job, those
 * that are longer than a record as well. */
START_TEST(many_answers_at_once)
{
    static float y[MANY][5000];
    gpud_job *job[MANY];
    use_one_processor();
    begin();
    const gpud_options o = {.size = sizeof o, .timeout_ns = PATIENCE, .reconnect_ns = 1};
    gpud_client *c = NULL;
    ck_gpud_ok(gpud_open(tls_url, &o, &c)); /* a broken stream is not mended silently */
    gpud_kernel fill = kernel_find(c, "fill");
    for (unsigned round = 0; round < 20; round++) {
        memset(y, 0, sizeof y);
        for (unsigned i = 0; i < MANY; i++) {
            uint32_t n = i % 16 == 15 ? 5000 : FEW;
            gpud_arg args[] = {gpud_f32((float)(round * MANY + i)),
                               gpud_host_out(y[i], n, GPUD_F32)};
            ck_gpud_ok(gpud_launch(c, fill, args, 2, NULL, NULL, &job[i]));
        }
        for (unsigned i = 0; i < MANY; i++) {
            uint32_t n = i % 16 == 15 ? 5000 : FEW;
            ck_gpud_ok(gpud_wait(job[i], PATIENCE));
            gpud_job_free(job[i]);
            for (uint32_t k = 0; k < n; k++) {
                ck_assert_float_eq(y[i][k], (float)(round * MANY + i));
            }
        }
    }
    end(c);
}
END_TEST

/* Opens and expects a refusal, which never tells a token. */
static void refused(const char *url, const gpud_options *o, int code, const char *text)
{
    gpud_client *c = NULL;
    int rc = gpud_open(url, o, &c);
    const char *said = gpud_last_error()->text;
    ck_assert_msg(rc == code && strstr(said, text) != NULL, "%s: %s: %s", url, gpud_err_name(rc),
                  said);
    ck_assert_ptr_null(strstr(said, token));
}

/* FAULT other: other hosts: clients without a right to be here, daemons that are not the right one
 * required: each is refused with its reason, and costs the daemon nothing; others are served
 * defence: `client/src/wire/tls.c`: tls_handshake; `front/requests/hello.c`: identify
 * mutants: token-wrong, token-missing */
START_TEST(who_has_no_right_is_refused)
{
    begin();
    gpud_client *good = client_open(tls_url);
    char line[TOKEN_LINE_BYTES];
    char wrong[TOKEN_TEXT_BYTES];
    char url[256];
    token_new(wrong, line);
    gpud_options o = {.size = sizeof o, .connect_timeout_ns = 10 * SECOND};
    o.ca_file = other_ca;
    refused(tls_url, &o, GPUD_ERR_PERMISSION, "no CA that this client trusts");
    o.ca_file = ca;
    o.server_name = "another-host";
    refused(tls_url, &o, GPUD_ERR_PERMISSION, "another name");
    o.server_name = "gpu-host";
    o.token = wrong;
    o.token_size = strlen(wrong);
    refused(tls_url, &o, GPUD_ERR_PERMISSION, "the token is not");
    refused(plain_url, &o, GPUD_ERR_PERMISSION, "the token is not");
    o.token_size = strlen(token) - 1;
    o.token = token;
    refused(tls_url, &o, GPUD_ERR_PERMISSION, "the token is not");
    (void)unsetenv("GPUD_TOKEN_FILE");
    o.token = NULL;
    o.token_size = 0;
    refused(tls_url, &o, GPUD_ERR_PERMISSION, "need a token");
    (void)snprintf(url, sizeof url, "%s?token=%s", tls_url, token);
    refused(url, NULL, GPUD_ERR_INVALID, "no token may be in a URL");
    (void)setenv("GPUD_TOKEN_FILE", token_file, 1);
    ck_assert_int_eq(chmod(token_file, 0644), 0);
    refused(tls_url, NULL, GPUD_ERR_PERMISSION, "chmod o=");
    ck_assert_int_eq(chmod(token_file, 0600), 0);
    (void)snprintf(url, sizeof url, "tls+%s", plain_url);
    refused(url, NULL, GPUD_ERR_PROTOCOL, "speaks no TLS");
    o.connect_timeout_ns = SECOND;
    refused(tls_url + strlen("tls+"), &o, GPUD_ERR_CONNECT, "is this a port for tls+tcp://?");
    ck_serves(good);
    end(good);
}
END_TEST

START_TEST(clients_need_the_certificate_that_a_ca_asks_for)
{
    char more[PATHS + 32];
    char own[PATHS];
    char own_key[PATHS];
    char url[3 * PATHS];
    prepare();
    (void)snprintf(more, sizeof more, "tls_client_ca = %s\n", ca);
    settings_write(more);
    daemon_spawn(&daemon_of_test);
    daemon_wait_ready(&daemon_of_test);
    path_set(own, "own.pem");
    path_set(own_key, "own-key.pem");
    certs_issue(authority, "a-client", CERT_GOOD, own, own_key);
    gpud_options o = {.size = sizeof o, .connect_timeout_ns = SECOND};
    gpud_client *c = NULL;
    ck_assert_int_ne(gpud_open(tls_url, &o, &c), 0);
    ck_assert_ptr_nonnull(strstr(gpud_last_error()->text, "GPUD_CERT_FILE"));
    (void)snprintf(url, sizeof url, "%s?cert=%s&key=%s&name=gpu-host", tls_url, own, own_key);
    c = client_open(url);
    ck_serves(c);
    end(c);
}
END_TEST

/* FAULT other: an expired certificate
 * required: --check-config, a reload and the log name it; clients of this host are served; clients
 * of others are served after a reload with a good certificate
 * defence: `front/settings/tls_files.c`: check_times
 * mutants: certificate-expired */
START_TEST(an_expired_certificate_is_told)
{
    char out[DAEMON_OUTPUT];
    char err[DAEMON_OUTPUT];
    prepare();
    certs_issue(authority, "gpu-host", CERT_EXPIRED, cert, key);
    daemon_spawn(&daemon_of_test);
    ck_until(access(daemon_of_test.log, R_OK) == 0 &&
             daemon_logged(&daemon_of_test, "ready: 1 device"));
    ck_assert(daemon_logged(&daemon_of_test, "the certificate expired at 2021-01-01"));
    gpud_client *near = client_open(daemon_of_test.url);
    ck_serves(near);
    (void)gpuctl(&daemon_of_test, out, err, "status", NULL);
    ck_assert_ptr_nonnull(strstr(out, "the certificate expired"));
    reload(GPUD_ERR_INVALID);
    certs_issue(authority, "gpu-host", CERT_GOOD, cert, key);
    reload(0);
    gpud_client *c = client_open(tls_url);
    certs_issue(authority, "gpu-host", CERT_EXPIRED, cert, key);
    reload(GPUD_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(gpud_last_error()->text, "expired"));
    gpud_client *again = client_open(tls_url); /* by the former certificate */
    gpud_close(again);
    gpud_close(near);
    end(c);
}
END_TEST

/* While it still serves: the state and the doctor name the end. */
START_TEST(a_certificate_that_ends_soon_is_told)
{
    char out[DAEMON_OUTPUT];
    char err[DAEMON_OUTPUT];
    char until[32];
    time_t end_s = time(NULL) + 3 * 86400;
    struct tm tm;
    ck_assert_ptr_nonnull(gmtime_r(&end_s, &tm));
    ck_assert_uint_eq(strftime(until, sizeof until, "%Y%m%d%H%M%S", &tm), 14);
    prepare();
    certs_issue(authority, "gpu-host", until, cert, key);
    daemon_spawn(&daemon_of_test);
    daemon_wait_ready(&daemon_of_test);
    gpud_client *c = client_open(tls_url);
    ck_until(daemon_logged(&daemon_of_test, "cert.pem: the certificate expires at 20"));
    ck_assert_int_eq(gpuctl(&daemon_of_test, out, err, "status", NULL), 0);
    ck_assert_ptr_nonnull(strstr(out, "cert.pem: the certificate expires at 20"));
    (void)gpuctl(&daemon_of_test, out, err, "doctor", NULL);
    ck_assert_ptr_nonnull(strstr(out, "cert.pem: the certificate expires at 20"));
    certs_issue(authority, "gpu-host", CERT_GOOD, cert, key);
    reload(0);
    ck_assert_int_eq(gpuctl(&daemon_of_test, out, err, "status", NULL), 0);
    ck_assert_ptr_null(strstr(out, "expires"));
    end(c);
}
END_TEST

/* A key of another certificate, or one that others can read. */
START_TEST(files_that_are_not_good_are_named)
{
    char path[PATHS];
    begin();
    path_set(path, "unused.pem");
    certs_issue(authority, "gpu-host", CERT_GOOD, path, key);
    reload(GPUD_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(gpud_last_error()->text, "it is not the key of tls_cert"));
    certs_issue(authority, "gpu-host", CERT_GOOD, cert, key);
    ck_assert_int_eq(chmod(key, 0604), 0);
    reload(GPUD_ERR_PERMISSION);
    ck_assert_ptr_nonnull(strstr(gpud_last_error()->text, "chmod o="));
    ck_assert_int_eq(chmod(key, 0600), 0);
    ck_assert_int_eq(chmod(hashes, 0644), 0);
    reload(GPUD_ERR_PERMISSION);
    ck_assert_ptr_nonnull(strstr(gpud_last_error()->text, "tenant vision: tokens = "));
    ck_assert_int_eq(unlink(hashes), 0);
    reload(GPUD_ERR_NOT_FOUND);
    file_write(hashes, "sha256:123\n", 11);
    ck_assert_int_eq(chmod(hashes, 0640), 0);
    reload(GPUD_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(gpud_last_error()->text, "line 1"));
    gpud_client *c = client_open(tls_url); /* by the former files */
    end(c);
}
END_TEST

/* A new certificate counts for the very next connection. */
START_TEST(a_reload_changes_the_certificate)
{
    begin();
    gpud_client *old = client_open(tls_url);
    certs_authority_free(authority);
    authority = certs_authority("other-ca", other_ca);
    certs_issue(authority, "gpu-host", CERT_GOOD, cert, key);
    reload(0);
    refused(tls_url, NULL, GPUD_ERR_PERMISSION, "no CA that this client trusts");
    (void)setenv("GPUD_CA_FILE", other_ca, 1);
    gpud_client *c = client_open(tls_url);
    ck_serves(c);
    ck_serves(old);
    gpud_close(old);
    end(c);
}
END_TEST

struct seen {
    unsigned lost;
    unsigned back;
};

static void on_event(gpud_client *c, const gpud_event *event, void *user)
{
    struct seen *seen = user;
    (void)c;
    seen->lost += event->kind == GPUD_EVENT_DISCONNECTED;
    seen->back += event->kind == GPUD_EVENT_RECONNECTED;
}

/* Two tokens are valid together; the end of one closes its connections, and a client that finds the
 * other in its file comes back to the same session. */
START_TEST(tokens_are_rotated_by_a_reload)
{
    char first[TOKEN_LINE_BYTES];
    char second[TOKEN_LINE_BYTES];
    char second_token[TOKEN_TEXT_BYTES];
    struct token_hash hash;
    struct err e = ERR_INIT;
    uint32_t word = 7;
    begin();
    gpud_client *c = client_open(tls_url);
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U32, 1), 0, "kept", &b));
    ck_gpud_ok(gpud_write(c, b, GPUD_U32, 0, 1, &word, NULL));
    ck_assert_int_eq(token_hash_of(bytes_str(token), &hash, &e), 0);
    token_line(&hash, first);
    token_new(second_token, second);
    hashes_write(first, second);
    reload(0);
    gpud_options o = {.size = sizeof o, .token = second_token, .token_size = strlen(second_token)};
    gpud_client *other = NULL;
    ck_gpud_ok(gpud_open(tls_url, &o, &other));
    gpud_close(other);
    struct seen seen = {0};
    ck_gpud_ok(gpud_set_event_cb(c, on_event, &seen));
    token_write(second_token);
    hashes_write(second, "");
    reload(0);
    ck_until(gpud_dispatch(c) == 0 && seen.back == 1);
    ck_assert_uint_eq(seen.lost, 1);
    word = 0;
    ck_gpud_ok(gpud_read(c, b, GPUD_U32, 0, 1, &word, NULL));
    ck_assert_uint_eq(word, 7);
    o.token = token;
    o.token_size = strlen(token);
    refused(tls_url, &o, GPUD_ERR_PERMISSION, "no longer");
    end(c);
}
END_TEST

/* FAULT other: a client's certificate ends while the client runs
 * required: a new one in the same files counts for its next connection, without a new gpud_open
 * defence: `client/src/wire/tls.c`: renew
 * mutants: tls-renew */
START_TEST(a_connection_takes_new_certificates_of_the_client)
{
    char more[PATHS + 32];
    char own[PATHS];
    char own_key[PATHS];
    char second[TOKEN_LINE_BYTES];
    char second_token[TOKEN_TEXT_BYTES];
    struct seen seen = {0};
    prepare();
    (void)snprintf(more, sizeof more, "tls_client_ca = %s\n", ca);
    settings_write(more);
    daemon_spawn(&daemon_of_test);
    daemon_wait_ready(&daemon_of_test);
    path_set(own, "own.pem");
    path_set(own_key, "own-key.pem");
    certs_issue(authority, "a-client", CERT_GOOD, own, own_key);
    (void)setenv("GPUD_CERT_FILE", own, 1);
    (void)setenv("GPUD_KEY_FILE", own_key, 1);
    gpud_client *c = client_open(tls_url);
    ck_gpud_ok(gpud_set_event_cb(c, on_event, &seen));
    struct cert_authority *other = certs_authority("other-ca", other_ca);
    certs_issue(other, "a-client", CERT_GOOD, own, own_key);
    certs_authority_free(other);
    (void)snprintf(more, sizeof more, "tls_client_ca = %s\n", other_ca);
    settings_write(more);
    token_new(second_token, second);
    token_write(second_token);
    hashes_write(second, ""); /* which ends the connection */
    reload(0);
    ck_until(gpud_dispatch(c) == 0 && seen.back == 1);
    ck_serves(c);
    end(c);
}
END_TEST

/* ---- a network between ----------------------------------------------------------------------- */

#define LINKS 8

static volatile sig_atomic_t cut;
static volatile sig_atomic_t stalls;

static void on_signal(int number)
{
    cut = cut || number == SIGUSR1;
    stalls = stalls || number == SIGUSR2;
}

static int dial_port(unsigned port)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && connect(fd, (const struct sockaddr *)&in, sizeof in) == 0 ? fd : -1;
}

static bool pass(int from, int to)
{
    char part[65536];
    ssize_t n = recv(from, part, sizeof part, 0);
    return n > 0 && send(to, part, (size_t)n, MSG_NOSIGNAL) == n;
}

/* Passes bytes on between two sockets until it is to cut them. */
static int network_run(void *data)
{
    const int *at = data; /* the listening socket, the daemon's port */
    int pair[LINKS][2];
    unsigned count = 0;
    struct sigaction act = {.sa_handler = on_signal};
    (void)sigaction(SIGUSR1, &act, NULL);
    (void)sigaction(SIGUSR2, &act, NULL);
    for (;;) {
        struct pollfd p[2 * LINKS + 1] = {{.fd = at[0], .events = POLLIN}};
        for (unsigned i = 0; i < count; i++) {
            p[1 + 2 * i] = (struct pollfd){.fd = pair[i][0], .events = POLLIN};
            p[2 + 2 * i] = (struct pollfd){.fd = stalls ? -1 : pair[i][1], .events = POLLIN};
        }
        (void)poll(p, 1 + 2 * count, 20);
        for (unsigned i = 0; i < count; i++) {
            bool ok = (p[1 + 2 * i].revents == 0 || pass(pair[i][0], pair[i][1])) &&
                      (p[2 + 2 * i].revents == 0 || pass(pair[i][1], pair[i][0]));
            if (!ok || cut) {
                (void)close(pair[i][0]);
                (void)close(pair[i][1]);
                pair[i][0] = pair[i][1] = -1;
            }
        }
        cut = 0;
        unsigned kept = 0;
        for (unsigned i = 0; i < count; i++) {
            if (pair[i][0] >= 0) {
                memcpy(pair[kept++], pair[i], sizeof pair[i]);
            }
        }
        count = kept;
        if ((p[0].revents & POLLIN) != 0 && count < LINKS) {
            pair[count][0] = accept(at[0], NULL, NULL);
            pair[count][1] = dial_port((unsigned)at[1]);
            count += pair[count][0] >= 0 && pair[count][1] >= 0;
        }
    }
    return 0;
}

static pid_t network_start(char url[64])
{
    static int at[2];
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof in;
    at[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    at[1] = atoi(strrchr(tls_url, ':') + 1);
    ck_assert_int_eq(bind(at[0], (const struct sockaddr *)&in, sizeof in), 0);
    ck_assert_int_eq(listen(at[0], LINKS), 0);
    ck_assert_int_eq(getsockname(at[0], (struct sockaddr *)&in, &size), 0);
    (void)snprintf(url, 64, "tls+tcp://127.0.0.1:%u", ntohs(in.sin_port));
    return process_start(network_run, at);
}

static void network_end(pid_t network)
{
    (void)kill(network, SIGKILL);
    (void)process_wait(network);
}

START_TEST(a_broken_connection_is_resumed)
{
    char url[64];
    begin();
    pid_t network = network_start(url);
    gpud_client *c = client_open(url);
    struct seen seen = {0};
    ck_gpud_ok(gpud_set_event_cb(c, on_event, &seen));
    uint32_t word = 11;
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U32, 1), 0, "kept", &b));
    ck_gpud_ok(gpud_write(c, b, GPUD_U32, 0, 1, &word, NULL));
    for (unsigned i = 0; i < 5; i++) {
        (void)kill(network, SIGUSR1);
        ck_until(gpud_dispatch(c) == 0 && seen.lost == i + 1);
        ck_serves(c);
    }
    word = 0;
    ck_gpud_ok(gpud_read(c, b, GPUD_U32, 0, 1, &word, NULL));
    ck_assert_uint_eq(word, 11);
    gpud_close(c);
    network_end(network);
    end(NULL);
}
END_TEST

static uint64_t resident_kib(pid_t pid)
{
    char path[64];
    char text[4096];
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    file_read(path, text, sizeof text);
    const char *at = strstr(text, "VmRSS:");
    ck_assert_ptr_nonnull(at);
    return strtoull(at + strlen("VmRSS:"), NULL, 10);
}

#define READ_BYTES (256u << 20)
#define PART_BYTES (16u << 20)
#ifdef __SANITIZE_ADDRESS__
#define PARTS_MAX 8u /* freed memory stays for a while */
#else
#define PARTS_MAX 4u
#endif

static int read_much(void *data)
{
    gpud_client *c = client_open(data);
    gpud_buffer b = {0};
    void *room = malloc(READ_BYTES);
    const gpud_transfer t = {.size = sizeof t, .part_bytes = PART_BYTES};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U8, READ_BYTES), 0, "much", &b));
    ck_gpud_ok(gpud_read(c, b, GPUD_U8, 0, READ_BYTES, room, &t));
    return 0;
}

/* A client that asks for 256 MiB over a link that stands still costs the daemon a few parts. */
START_TEST(a_slow_link_costs_a_bounded_buffer)
{
    char url[64];
    begin();
    pid_t network = network_start(url);
    gpud_client *good = client_open(tls_url);
    ck_serves(good);
    uint64_t before = resident_kib(daemon_of_test.pid);
    (void)kill(network, SIGUSR2);
    pid_t reader = process_start(read_much, url);
    for (unsigned i = 0; i < 20; i++) {
        ck_serves(good);
        pause_ms(50);
    }
    uint64_t grown = resident_kib(daemon_of_test.pid) - before;
    ck_assert_msg(grown < PARTS_MAX * PART_BYTES / 1024, "%llu KiB", (unsigned long long)grown);
    (void)kill(reader, SIGKILL);
    (void)process_wait(reader);
    network_end(network);
    end(good);
}
END_TEST

/* ---- what is no client ----------------------------------------------------------------------- */

START_TEST(garbage_costs_itself_alone)
{
    static const char *const garbage[] = {"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x40\x00\x01", "",
                                          "\x16\x03\x03\xff\xff", "\x80\x2e\x01\x03\x01"};
    char folder[64];
    begin();
    gpud_client *c = client_open(tls_url);
    ck_serves(c);
    (void)snprintf(folder, sizeof folder, "/proc/%d/fd", (int)daemon_of_test.pid);
    unsigned before = count_of(folder);
    for (unsigned i = 0; i < 100; i++) {
        const char *bytes = garbage[i % 5];
        int fd = dial_port((unsigned)atoi(strrchr(tls_url, ':') + 1));
        ck_assert_int_ge(fd, 0);
        (void)!send(fd, bytes, strlen(bytes), MSG_NOSIGNAL);
        (void)close(fd);
    }
    ck_serves(c);
    ck_until(count_of(folder) <= before);
    end(c);
}
END_TEST

/* They get no further than a connection, which takes a place. */
START_TEST(strangers_leave_places_for_others)
{
    int fd[40];
    prepare();
    daemon_of_test.args[daemon_of_test.arg_count++] = "--set";
    daemon_of_test.args[daemon_of_test.arg_count++] = "daemon.connections_max=20";
    daemon_of_test.args[daemon_of_test.arg_count++] = "--set";
    daemon_of_test.args[daemon_of_test.arg_count++] = "daemon.handshake_timeout_ms=60000";
    daemon_spawn(&daemon_of_test);
    daemon_wait_ready(&daemon_of_test);
    for (unsigned i = 0; i < 40; i++) {
        fd[i] = dial_port((unsigned)atoi(strrchr(tls_url, ':') + 1));
        ck_assert_int_ge(fd[i], 0);
    }
    ck_until(daemon_logged(&daemon_of_test, "too many wait for their HELLO"));
    (void)unsetenv("GPUD_TOKEN_FILE");
    gpud_client *c[5];
    for (unsigned i = 0; i < 5; i++) { /* by tcp, as root would have places of its own */
        c[i] = client_open(plain_url);
    }
    for (unsigned i = 0; i < 40; i++) {
        (void)close(fd[i]);
    }
    for (unsigned i = 0; i < 5; i++) {
        gpud_close(c[i]);
    }
    end(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("remote");
    suite_add(suite, a_token_names_the_tenant);
    suite_add(suite, many_answers_at_once);
    suite_add(suite, who_has_no_right_is_refused);
    suite_add(suite, clients_need_the_certificate_that_a_ca_asks_for);
    suite_add(suite, an_expired_certificate_is_told);
    suite_add(suite, a_certificate_that_ends_soon_is_told);
    suite_add(suite, files_that_are_not_good_are_named);
    suite_add(suite, a_reload_changes_the_certificate);
    suite_add(suite, tokens_are_rotated_by_a_reload);
    suite_add(suite, a_connection_takes_new_certificates_of_the_client);
    suite_add(suite, a_broken_connection_is_resumed);
    suite_add(suite, a_slow_link_costs_a_bounded_buffer);
    suite_add(suite, garbage_costs_itself_alone);
    suite_add(suite, strangers_leave_places_for_others);
    return system_main(suite);
}
