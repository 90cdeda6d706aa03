/* Memory for the requests of unfinished jobs: one tenant leaves a part of it for others. */
#include <stdlib.h>
#include <string.h>

#include "daemon/front/model/request.h"
#include "daemon/front/requests/hello.h"
#include "daemon/front/requests/intake.h"
#include "daemon/front/requests/session_end.h"
#include "proto/codec.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

#define LIMIT 1600u
#define OWN   1500u /* fifteen sixteenths */

static struct fake *k;

static struct session *greet(uint32_t pipe, uint32_t uid)
{
    const uint8_t id[PROTO_CLIENT_ID_BYTES] = {(uint8_t)pipe};
    struct request hello = {.peer = {.pipe = pipe, .local = true, .uid = uid},
                            .kind = MSG_KIND_HELLO};
    struct session *made = NULL;
    struct capbuf out;
    struct err e = ERR_INIT;
    hello.msg.hello =
        (struct msg_hello){.major = PROTO_MAJOR, .client_id = bytes_of(id, sizeof id), .resume = 1};
    capbuf_init(&out, 4096);
    ck_assert_int_eq(session_hello(&k->f, &hello, &out, &made, &e), 0);
    capbuf_finish(&out);
    return made;
}

/* Whether the job is admitted; else it waits for room. */
static bool submit(struct session *s, uint32_t pipe, size_t size)
{
    struct request *r = calloc(1, sizeof *r);
    ck_assert_ptr_nonnull(r);
    *r = (struct request){.peer = {.pipe = pipe}, .kind = MSG_KIND_SUBMIT, .size = size};
    r->msg.submit = (struct msg_submit){.seq = s->order.expect, .flags = SUBMIT_BLOCK};
    uint64_t before = s->order.expect;
    intake_request(&k->f, r);
    return s->order.expect > before;
}

START_TEST(a_tenant_leaves_bytes_for_others)
{
    k = fake_create();
    k->f.config.staging_input_bytes = LIMIT;
    k->f.config.queue_max = 100;
    k->f.config.keep_results_bytes = 1 << 20;
    struct session *busy = greet(1, 1000);
    struct session *other = greet(2, 1001);
    busy->tenant->input_bytes = k->f.input_bytes = OWN - 10; /* of its jobs in flight */
    ck_assert(submit(busy, 1, 10));
    ck_assert(!submit(busy, 1, 1));
    ck_assert(submit(other, 2, 50));
    ck_assert(submit(other, 2, 50));
    ck_assert_uint_eq(k->f.input_bytes, LIMIT);
    busy->tenant->input_bytes -= 100;
    k->f.input_bytes -= 100;
    intake_room(&k->f);
    ck_assert_ptr_null(k->f.parked.first);
    busy->tenant->input_bytes -= OWN - 110;
    k->f.input_bytes -= OWN - 110;
    session_end(&k->f, busy);
    session_end(&k->f, other);
    ck_assert_uint_eq(k->f.input_bytes, 0);
    fake_destroy(k);
}
END_TEST

SUITE_MAIN("bytes", a_tenant_leaves_bytes_for_others)
