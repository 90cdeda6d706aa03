/* NNG's own echo: REQ contexts against REP contexts whose callbacks answer at once. */
#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/common/echo.h"

#define CONTEXTS 128u /* of the server: twice the slots of a client */

struct echo {
    nng_socket socket;
    unsigned count;
    struct {
        nng_ctx ctx;
        nng_aio *aio;
    } slot[ECHO_SLOTS];
};

struct context {
    nng_ctx ctx;
    nng_aio *aio;
    bool sending;
};

static void must(int rc, const char *what)
{
    if (rc != 0) {
        bench_die("NNG: %s: %s", what, nng_strerror(rc));
    }
}

static void served(void *data)
{
    struct context *x = data;
    if (nng_aio_result(x->aio) != 0) {
        if (!x->sending) {
            return;
        }
        nng_msg_free(nng_aio_get_msg(x->aio));
        nng_aio_set_msg(x->aio, NULL);
    }
    x->sending = !x->sending;
    if (x->sending) { /* sends the received message back */
        nng_ctx_send(x->ctx, x->aio);
    } else {
        nng_ctx_recv(x->ctx, x->aio);
    }
}

static void serve(const char *address)
{
    char url[160];
    nng_socket s;
    static struct context contexts[CONTEXTS];
    (void)snprintf(url, sizeof url, "ipc://%s", address);
    must(nng_rep0_open(&s), "a socket");
    for (unsigned i = 0; i < CONTEXTS; i++) {
        must(nng_ctx_open(&contexts[i].ctx, s), "a context");
        must(nng_aio_alloc(&contexts[i].aio, served, &contexts[i]), "an aio");
        nng_ctx_recv(contexts[i].ctx, contexts[i].aio);
    }
    must(nng_listen(s, url, NULL, 0), url);
    for (;;) {
        (void)pause();
    }
}

static struct echo *open_client(const char *address, unsigned outstanding)
{
    char url[160];
    struct echo *c = calloc(1, sizeof *c);
    if (c == NULL) {
        bench_die("no memory");
    }
    (void)snprintf(url, sizeof url, "ipc://%s", address);
    must(nng_req0_open(&c->socket), "a socket");
    must(nng_socket_set_ms(c->socket, NNG_OPT_RECONNMINT, 10), "an option");
    must(nng_dial(c->socket, url, NULL, NNG_FLAG_NONBLOCK), url);
    c->count = outstanding;
    for (unsigned i = 0; i < outstanding; i++) {
        must(nng_ctx_open(&c->slot[i].ctx, c->socket), "a context");
        must(nng_ctx_set_ms(c->slot[i].ctx, "req:resend-time", NNG_DURATION_INFINITE), "an option");
        must(nng_aio_alloc(&c->slot[i].aio, NULL, NULL), "an aio");
    }
    return c;
}

static void begin(struct echo *c, unsigned slot)
{
    nng_msg *msg;
    nng_aio *aio = c->slot[slot].aio;
    must(nng_msg_alloc(&msg, ECHO_BYTES), "a message");
    memset(nng_msg_body(msg), (int)slot + 1, ECHO_BYTES);
    nng_aio_set_msg(aio, msg);
    nng_ctx_send(c->slot[slot].ctx, aio);
}

static void take(struct echo *c, unsigned slot)
{
    nng_aio *aio = c->slot[slot].aio;
    nng_aio_wait(aio);
    must(nng_aio_result(aio), "sending");
    nng_ctx_recv(c->slot[slot].ctx, aio);
    nng_aio_wait(aio);
    must(nng_aio_result(aio), "receiving");
    nng_msg *msg = nng_aio_get_msg(aio);
    if (nng_msg_len(msg) != ECHO_BYTES || *(unsigned char *)nng_msg_body(msg) != slot + 1) {
        bench_die("NNG: a wrong answer");
    }
    nng_msg_free(msg);
}

static void close_client(struct echo *c)
{
    for (unsigned i = 0; i < c->count; i++) {
        nng_aio_free(c->slot[i].aio);
        (void)nng_ctx_close(c->slot[i].ctx);
    }
    (void)nng_close(c->socket);
    free(c);
}

const struct echo_kind echo_nng = {
    .name = "nng",
    .what = "NNG over ipc, 64 bytes, REQ and REP contexts, answered in the callback",
    .serve = serve,
    .open = open_client,
    .send = begin,
    .take = take,
    .close = close_client,
};
