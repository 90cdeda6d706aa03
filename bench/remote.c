/*
 * bench_remote: the same null jobs and copies over ipc, over tcp and over TLS, all on this host:
 * what a client of another host pays for the way and for its encryption, without the network.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/common/bench.h"
#include "bench/common/scratch.h"
#include "bench/common/trial.h"
#include "common/clock.h"
#include "common/token.h"

#define FOLDER 64u
#define PATHS  (2 * FOLDER)
#define BULK   ((size_t)16 << 20)

struct files {
    char folder[FOLDER];
    char config[PATHS], cert[PATHS], key[PATHS], token[PATHS], hashes[PATHS];
    char url[2][64]; /* tcp, tls */
};

/* ---- what TLS needs ------------------------------------------------------------------------- */

static void name_of(struct files *f, char out[PATHS], const char *name)
{
    (void)snprintf(out, PATHS, "%s/%s", f->folder, name);
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0 || chmod(path, 0600) != 0) {
        bench_die("%s: %s", path, strerror(errno));
    }
}

/* A certificate that signs itself. false: there is no openssl. */
static bool certificate(const struct files *f)
{
    const char *const argv[] = {"openssl",
                                "req",
                                "-x509",
                                "-newkey",
                                "ec",
                                "-pkeyopt",
                                "ec_paramgen_curve:P-256",
                                "-nodes",
                                "-days",
                                "2",
                                "-subj",
                                "/CN=localhost",
                                "-addext",
                                "subjectAltName=DNS:localhost,IP:127.0.0.1",
                                "-keyout",
                                f->key,
                                "-out",
                                f->cert,
                                NULL};
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        (void)!freopen("/dev/null", "w", stderr);
        (void)execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        bench_die("openssl: %s", strerror(errno));
    }
    return status == 0;
}

static void tokens(const struct files *f)
{
    char token[TOKEN_TEXT_BYTES];
    char line[TOKEN_LINE_BYTES];
    struct token_hash hash;
    struct err e = ERR_INIT;
    if (token_make(token, &e) != 0 || token_hash_of(bytes_str(token), &hash, &e) != 0) {
        bench_die("a token: %s", e.text);
    }
    token_line(&hash, line);
    put(f->token, token);
    put(f->hashes, line);
}

static bool prepare(struct files *f)
{
    char text[1024];
    scratch_folder(f->folder);
    name_of(f, f->config, "remote.conf");
    name_of(f, f->cert, "cert.pem");
    name_of(f, f->key, "key.pem");
    name_of(f, f->token, "token");
    name_of(f, f->hashes, "hashes");
    scratch_url(f->url[0], sizeof f->url[0], "tcp");
    scratch_url(f->url[1], sizeof f->url[1], "tls+tcp");
    if (!certificate(f)) {
        return false;
    }
    tokens(f);
    (void)snprintf(text, sizeof text,
                   "[daemon]\ntls_cert = %s\ntls_key = %s\n[tenant far]\ntokens = %s\n", f->cert,
                   f->key, f->hashes);
    put(f->config, text);
    return setenv("GPUD_CA_FILE", f->cert, 1) == 0 && setenv("GPUD_TOKEN_FILE", f->token, 1) == 0;
}

/* ---- the figures ---------------------------------------------------------------------------- */

static const char *const ways[] = {"ipc", "tcp", "tls"};
#define WAYS 3u

static const char *url_of(const struct files *f, const struct gpud *g, unsigned way)
{
    return way == 0 ? g->url : f->url[way - 1];
}

static void trips(struct bench *b, const char *part, const char *way, const char *url,
                  unsigned outstanding)
{
    struct trial_result r;
    const struct trial t = {.kind = &echo_gpud,
                            .address = url,
                            .lane = "nng",
                            .place = PLACE_ONE,
                            .sessions = 1,
                            .outstanding = outstanding,
                            .warm = bench_scale(b, 200, 4) + outstanding,
                            .count = bench_scale(b, 4000, 64)};
    trial_run(&t, &r);
    report_add(&b->report, part, way, "p50", "us", r.p50_us);
    report_add(&b->report, part, way, "p99", "us", r.p99_us);
    report_add(&b->report, part, way, "rate", "/s", r.rate);
}

static void bulk(struct bench *b, const char *part, const char *way, const char *url)
{
    gpud_client *c = NULL;
    gpud_buffer buffer = {0};
    size_t bytes = bench_scale(b, BULK, (size_t)1 << 20);
    uint8_t *data = malloc(bytes);
    if (data == NULL) {
        bench_die("no memory");
    }
    memset(data, 7, bytes);
    if (gpud_open(url, NULL, &c) != 0 ||
        gpud_buffer_create(c, gpud_shape_1d(GPUD_U8, bytes), 0, NULL, &buffer) != 0) {
        bench_die("%s: %s", url, gpud_last_error()->text);
    }
    for (unsigned i = 0; i < 2; i++) { /* the first is not counted */
        uint64_t begin_ns = clock_now_ns();
        int rc = gpud_write(c, buffer, GPUD_U8, 0, GPUD_REST, data, NULL);
        uint64_t written_ns = clock_now_ns();
        memset(data, 0, bytes);
        uint64_t again_ns = clock_now_ns();
        rc = rc == 0 ? gpud_read(c, buffer, GPUD_U8, 0, GPUD_REST, data, NULL) : rc;
        uint64_t end_ns = clock_now_ns();
        if (rc != 0 || data[0] != 7 || data[bytes - 1] != 7) {
            bench_die("%s: copies: %s", url, gpud_last_error()->text);
        }
        if (i > 0) {
            report_add(&b->report, part, way, "in", "MB/s",
                       (double)bytes * 1e3 / (double)(written_ns - begin_ns));
            report_add(&b->report, part, way, "out", "MB/s",
                       (double)bytes * 1e3 / (double)(end_ns - again_ns));
        }
    }
    gpud_close(c);
    free(data);
}

static void dial(struct bench *b, const char *part, const char *way, const char *url)
{
    gpud_client *c = NULL;
    uint64_t begin_ns = clock_now_ns();
    if (gpud_open(url, NULL, &c) != 0) {
        bench_die("%s: %s", url, gpud_last_error()->text);
    }
    report_add(&b->report, part, way, "time", "us", (double)(clock_now_ns() - begin_ns) / 1e3);
    gpud_close(c);
}

static void against(struct bench *b, const char *part, const char *const *figures)
{
    for (; *figures != NULL; figures++) {
        report_against(&b->report, part, "tcp", *figures, "ipc");
        report_against(&b->report, part, "tls", *figures, "tcp");
    }
}

static void measure(struct bench *b, const struct files *f, const struct gpud *g)
{
    static const char *const parts[] = {"1 at a time", "64 at a time", "16 MiB", "a new session"};
    static const char *const figures[][4] = {{"p50", "p99", "rate", NULL},
                                             {"p50", "p99", "rate", NULL},
                                             {"in", "out", NULL},
                                             {"time", NULL}};
    gpud_place(g, PLACE_ONE);
    for (unsigned p = 0; p < 4; p++) {
        for (unsigned i = 0; bench_wants(b, parts[p]) && i < b->repeat; i++) {
            for (unsigned w = 0; w < WAYS; w++) {
                const char *url = url_of(f, g, w);
                if (p < 2) {
                    trips(b, parts[p], ways[w], url, p == 0 ? 1 : 64);
                } else if (p == 2) {
                    bulk(b, parts[p], ways[w], url);
                } else {
                    dial(b, parts[p], ways[w], url);
                }
            }
        }
        against(b, parts[p], figures[p]);
    }
}

int main(int argc, char **argv)
{
    struct bench b;
    struct gpud g;
    static struct files f = {.folder = "/tmp/gpud-bench-remote-XXXXXX"};
    const char *const args[] = {"--config", f.config, "--listen", f.url[0],
                                "--listen", f.url[1], NULL};
    bench_begin(
        &b, "remote",
        "Null jobs and copies over ipc, tcp and TLS, all on this host and on one processor.", 5,
        argc, argv);
    bool ready = prepare(&f);
    if (ready) {
        bench_gpud(&b, &g, args);
        measure(&b, &f, &g);
        gpud_stop(&g);
    } else {
        (void)fprintf(stderr, "bench: not measured: no openssl, which makes the certificate\n");
    }
    scratch_remove(f.folder);
    return ready ? bench_end(&b) : BENCH_SKIPPED;
}
