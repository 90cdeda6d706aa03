/* The listener and nanomsg's REQ, which shares no code with NNG's or with libgpud's. */
#include "tests/unit/front/clients/listener_world.h"

#include <check.h>
#include <nanomsg/nn.h>
#include <nanomsg/reqrep.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/common/suite.h"

static char tcp[SCRATCH_PATH + 32];

static int nn_open(const char *url)
{
    int any = -1;
    int never = 1 << 30;
    int s = nn_socket(AF_SP, NN_REQ);
    ck_assert_int_ge(s, 0);
    ck_assert_int_eq(nn_setsockopt(s, NN_SOL_SOCKET, NN_RCVMAXSIZE, &any, sizeof any), 0);
    ck_assert_int_eq(nn_setsockopt(s, NN_REQ, NN_REQ_RESEND_IVL, &never, sizeof never), 0);
    ck_assert_int_ge(nn_connect(s, url), 0);
    return s;
}

static uint64_t nn_ask(int s, uint64_t value)
{
    uint8_t out[512];
    char *in = NULL;
    struct msg_ping ping = {.value = value};
    size_t size = encode(&schema_msg_ping, &ping, out);
    ck_assert_int_eq(nn_send(s, out, size, 0), (int)size);
    int n = nn_recv(s, (void *)&in, NN_MSG, 0);
    ck_assert_int_gt(n, 0);
    uint64_t answer = pong_of(in, (size_t)n);
    (void)nn_freemsg(in);
    return answer;
}

static void client_nanomsg(struct world *world)
{
    const char *const urls[] = {world->url, tcp};
    for (unsigned i = 0; i < 2; i++) {
        uint8_t out[512];
        char *in = NULL;
        struct msg_ping ping = {.value = DO_LONG};
        int s = nn_open(urls[i]);
        for (uint64_t k = 0; k < 50; k++) {
            ck_assert_uint_eq(nn_ask(s, k), k);
        }
        size_t size = encode(&schema_msg_ping, &ping, out);
        ck_assert_int_eq(nn_send(s, out, size, 0), (int)size);
        ck_assert_int_eq(nn_recv(s, (void *)&in, NN_MSG, 0), (int)LONG_BYTES);
        for (size_t k = 0; k < LONG_BYTES; k++) {
            ck_assert_uint_eq((uint8_t)in[k], k % 251);
        }
        (void)nn_freemsg(in);
        ck_assert_int_eq(nn_close(s), 0);
    }
}

START_TEST(nanomsg_is_served)
{
    struct err e = ERR_INIT;
    start(&usual);
    (void)snprintf(tcp, sizeof tcp, "tcp://127.0.0.1:%u", free_port());
    ck_assert_msg(listener_add(w.listener, tcp, &e) == 0, "%s", e.text);
    serve(client_nanomsg);
    ck_assert_uint_eq(w.stats.requests, 2 * 51);
    ck_assert_uint_eq(w.stats.protocol_errors, 0);
}
END_TEST

SUITE_MAIN("listener_nanomsg", nanomsg_is_served)
