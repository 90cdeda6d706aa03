/*
 * What a tenant is guaranteed is there, through a whole worker. Other tenants fill the device with
 * buffers of many sizes and with temporaries, free some while jobs use them, and let some move to
 * the host and back. At random moments a tenant asks for all that is guaranteed to it, as one piece
 * or as several of whole pages, and gets it. GPUD_PROMISE_SEED begins elsewhere.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/backend/backend.h"
#include "tests/unit/worker/fake_front.h"

#define KIB        UINT64_C(1024)
#define MIB        (KIB * KIB)
#define LIMIT      (64 * MIB)
#define GUARANTEED (24 * MIB)
#define OWNER      1u
#define OTHERS     3u /* tenants 2 … */
#define BUFFERS    120u
#define OPEN       16u /* jobs of others under way */
#define FILLING    30u /* rounds of the others alone */
#define ROUNDS     40u /* else GPUD_PROMISE_ROUNDS */

struct kept {
    uint64_t id, size, tenant;
};

static struct world {
    struct fake f;
    struct kept buffer[BUFFERS];
    unsigned count;
    unsigned open; /* jobs of others that have not ended */
    uint64_t ids;  /* of buffers and jobs */
    uint64_t state;
    unsigned refused; /* jobs and buffers of others: that is allowed */
} w;

static uint64_t rnd(uint64_t below)
{
    w.state = w.state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (w.state >> 33) % below;
}

static uint64_t some_size(void)
{
    switch (rnd(5)) {
    case 0:
        return 2 * MIB * (1 + rnd(4));
    case 1:
        return 2 * MIB;
    case 2:
        return 1 + rnd(64 * KIB);
    default:
        return 1 + rnd(4 * MIB);
    }
}

/* The next answer to a buffer, or the end of a job: of any for UINT64_MAX. Ends of jobs of others
 * are counted. */
static unsigned next(uint64_t own_job, struct msg_w_done *ret_done)
{
    for (;;) {
        struct err e = ERR_INIT;
        unsigned kind = fake_next(&w.f);
        ck_assert_uint_ne(kind, 0); /* the worker ended */
        if (kind == FRAME_KIND_W_BUFFER) {
            return kind;
        }
        if (kind == FRAME_KIND_W_DONE) {
            ck_assert_int_eq(
                proto_decode(&schema_msg_w_done, bytes_of(w.f.frame, w.f.size), ret_done, &e), 0);
            if (ret_done->job == own_job) {
                return kind;
            }
            bool full = ret_done->code == ERR_DEVICE_MEMORY;
            ck_assert_msg(ret_done->code == 0 || full, "%.*s", (int)ret_done->text.size,
                          ret_done->text.data);
            w.refused += full;
            w.open--;
            if (own_job == UINT64_MAX) {
                return kind;
            }
        }
    }
}

static int buffer(uint64_t id, uint64_t size, uint64_t tenant, struct err *e)
{
    const struct msg_f_buffer_create msg = {.id = id, .size = size, .tenant = tenant};
    struct msg_w_buffer answer;
    struct msg_w_done done;
    fake_send(&w.f, &schema_msg_f_buffer_create, &msg, -1);
    ck_assert_uint_eq(next(0, &done), FRAME_KIND_W_BUFFER);
    ck_assert_int_eq(
        proto_decode(&schema_msg_w_buffer, bytes_of(w.f.frame, w.f.size), &answer, NULL), 0);
    ck_assert_uint_eq(answer.id, id);
    return answer.code != 0 ? err_set(e, (int)answer.code, "%.*s", (int)answer.text.size,
                                      (const char *)answer.text.data)
                            : 0;
}

static void buffer_free_of(uint64_t id)
{
    const struct msg_f_buffer_free msg = {.id = id};
    fake_send(&w.f, &schema_msg_f_buffer_free, &msg, -1);
}

/* ---- the others -------------------------------------------------------------------------------*/

static void other_buffer(void)
{
    const struct kept b = {++w.ids, some_size(), 2 + rnd(OTHERS)};
    int rc = buffer(b.id, b.size, b.tenant, NULL);
    ck_assert(rc == 0 || rc == ERR_DEVICE_MEMORY);
    w.refused += rc != 0;
    if (rc == 0) {
        w.buffer[w.count++] = b;
    }
}

/* Writes some buffers of one tenant, and a temporary now and then. */
static void other_job(void)
{
    struct job_draft d;
    unsigned first = (unsigned)rnd(w.count);
    uint64_t tenant = w.buffer[first].tenant;
    uint64_t temp = rnd(3) == 0 ? some_size() : 0;
    draft_init(&d, ++w.ids, (unsigned)rnd(2));
    for (unsigned i = first; i < w.count && i < first + 6; i++) {
        const struct kept *b = &w.buffer[i];
        if (b->tenant == tenant) {
            draft_fill(&d, ref_buffer(b->id, 0, b->size), "o", 1);
        }
    }
    if (temp != 0) {
        draft_fill(&d, ref_temp(draft_temp(&d, temp), temp), "t", 1);
    }
    w.f.tenant = tenant;
    draft_send(&d, &w.f);
    w.open++;
}

static void other_free(void)
{
    unsigned i = (unsigned)rnd(w.count);
    buffer_free_of(w.buffer[i].id);
    w.buffer[i] = w.buffer[--w.count];
}

static void churn(void)
{
    struct msg_w_done done;
    for (uint64_t n = 4 + rnd(10); n > 0; n--) {
        uint64_t dice = rnd(10);
        while (w.open >= OPEN) {
            (void)next(UINT64_MAX, &done);
        }
        if (dice < 4 && w.count < BUFFERS) {
            other_buffer();
        } else if (dice < 8 && w.count > 0) {
            other_job();
        } else if (w.count > 0) {
            other_free();
        }
    }
}

/* ---- the owner of the guarantee ---------------------------------------------------------------*/

static void done_well(uint64_t job, unsigned round, unsigned pieces)
{
    struct msg_w_done done;
    ck_assert_uint_eq(next(job, &done), FRAME_KIND_W_DONE);
    ck_assert_msg(done.code == 0, "round %u, %u pieces: %.*s", round, pieces, (int)done.text.size,
                  done.text.data);
}

static void own_temporary(unsigned round)
{
    struct job_draft d;
    draft_init(&d, ++w.ids, (unsigned)rnd(2));
    draft_fill(&d, ref_temp(draft_temp(&d, GUARANTEED), GUARANTEED), "g", 1);
    w.f.tenant = OWNER;
    draft_send(&d, &w.f);
    done_well(d.msg.job, round, 1);
}

/* One job needs all of the buffers at once. */
static void own_buffers(unsigned round, unsigned pieces)
{
    struct job_draft d;
    uint64_t first = w.ids + 1;
    uint64_t left = GUARANTEED;
    uint64_t size[16];
    for (unsigned i = 0; i < pieces; i++) {
        struct err e = ERR_INIT;
        uint64_t most = left / (pieces - i);
        size[i] = i + 1 == pieces ? left : 2 * MIB * (1 + rnd(most / (2 * MIB)));
        left -= size[i];
        ck_assert_msg(buffer(++w.ids, size[i], OWNER, &e) == 0, "round %u, %u of %u pieces: %s",
                      round, i, pieces, e.text);
    }
    draft_init(&d, ++w.ids, (unsigned)rnd(2));
    for (unsigned i = 0; i < pieces; i++) {
        draft_fill(&d, ref_buffer(first + i, 0, size[i]), "g", 1);
    }
    w.f.tenant = OWNER;
    draft_send(&d, &w.f);
    done_well(first + pieces, round, pieces);
    for (unsigned i = 0; i < pieces; i++) {
        buffer_free_of(first + i);
    }
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

/* Pages (_i even) and blocks; a device that takes its time (_i < 2) and one that does not. */
START_TEST(what_is_guaranteed_is_there)
{
    static const char *const OPTIONS[] = {"speed=0.5,pages=on", "speed=0.5,pages=off",
                                          "speed=0,pages=on", "speed=0,pages=off"};
    const char *args[] = {"--options", OPTIONS[_i], "--memory-limit", "67108864", "--spill-limit",
                          "67108864",  NULL};
    const struct msg_f_tenant quota = {.tenant = OWNER,
                                       .name = bytes_str("owner"),
                                       .hard = UINT64_MAX,
                                       .soft = UINT64_MAX,
                                       .guaranteed = GUARANTEED,
                                       .spilled = UINT64_MAX};
    struct msg_w_done done;
    bool pages = _i % 2 == 0;
    memset(&w, 0, sizeof w);
    w.state = (uint64_t)_i + 1 + 4 * setting("GPUD_PROMISE_SEED", 0);
    fake_start(&w.f, "sim", args);
    fake_send(&w.f, &schema_msg_f_tenant, &quota, -1);
    unsigned rounds = (unsigned)setting("GPUD_PROMISE_ROUNDS", ROUNDS);
    for (unsigned n = 0; n < FILLING; n++) {
        churn();
    }
    for (unsigned round = 0; round < rounds; round++) {
        churn();
        if (round % 3 == 0) {
            own_temporary(round);
        } else {
            own_buffers(round, pages && round % 3 == 1 ? 2 + (unsigned)rnd(11) : 1);
        }
    }
    while (w.open > 0) {
        (void)next(UINT64_MAX, &done);
    }
    ck_assert_uint_gt(w.refused, 0); /* the others were short */
    fake_stop(&w.f);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("guarantees");
    TCase *t = tcase_create("worker");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, what_is_guaranteed_is_there, 0, 4);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
