#include "tests/unit/worker/rooms.h"

#include <check.h>
#include <string.h>

#include "daemon/backend/backend.h"

static const struct {
    const char *backend;
    const char *options;
} KIND[ROOMS] = {{"sim", "speed=0,pages=on"}, {"sim", "speed=0,pages=off"}, {"opencl", ""}};

bool room_start_with(struct fake *f, int which, const char *options, const char *spill)
{
    const char *args[] = {"--options",
                          options != NULL ? options : KIND[which].options,
                          "--memory-limit",
                          "12582912",
                          "--spill-limit",
                          spill,
                          NULL};
    if (backend_find(KIND[which].backend) == NULL) {
        return false;
    }
    fake_start(f, KIND[which].backend, args);
    if (f->absent) {
        fake_finish(f);
    }
    return !f->absent;
}

bool room_start(struct fake *f, int which, const char *spill)
{
    return room_start_with(f, which, NULL, spill);
}

void room_words(uint8_t *at, uint64_t buffer, unsigned round)
{
    for (uint32_t i = 0; i < ROOM_BYTES / 8; i++) {
        uint64_t word = (buffer << 40) + ((uint64_t)round << 32) + i;
        memcpy(at + i * 8, &word, 8);
    }
}

void room_write(struct fake *f, uint64_t buffer, unsigned round)
{
    struct job_draft d;
    room_words(f->input.data, buffer, round);
    draft_init(&d, (uint64_t)round << 32 | buffer, (unsigned)buffer % 2);
    draft_move(&d, OP_WRITE, ref_buffer(buffer, 0, ROOM_BYTES), 0);
    draft_send(&d, f);
    ck_assert_int_eq(fake_done(f, (uint64_t)round << 32 | buffer, NULL), 0);
}

void room_check(struct fake *f, uint64_t buffer, unsigned round)
{
    static uint8_t expected[ROOM_BYTES];
    struct job_draft d;
    struct msg_w_done done;
    static uint64_t checks;
    uint64_t job = UINT64_C(1) << 60 | ++checks;
    memset(f->output.data, 0xa5, ROOM_BYTES);
    draft_init(&d, job, (unsigned)buffer % 2);
    draft_move(&d, OP_READ, ref_buffer(buffer, 0, ROOM_BYTES), 0);
    draft_send(&d, f);
    int code = fake_done(f, job, &done);
    ck_assert_msg(code == 0, "%.*s", (int)done.text.size, done.text.data);
    room_words(expected, buffer, round);
    ck_assert_msg(memcmp(f->output.data, expected, ROOM_BYTES) == 0, "buffer %u, round %u",
                  (unsigned)buffer, round);
}

/* The last W_TENANT. */
static struct msg_w_tenant uses[TENANTS_MAX];

const struct msg_w_tenant *room_use(struct fake *f, uint64_t tenant)
{
    const struct msg_f_pool ask = {0};
    unsigned kind = 0;
    fake_send(f, &schema_msg_f_pool, &ask, -1);
    while (kind != FRAME_KIND_W_POOL) {
        struct msg_w_tenant m;
        kind = fake_next(f);
        if (kind == FRAME_KIND_W_TENANT) {
            ck_assert_int_eq(
                proto_decode(&schema_msg_w_tenant, bytes_of(f->frame, f->size), &m, NULL), 0);
            ck_assert_uint_lt(m.tenant, TENANTS_MAX);
            uses[m.tenant] = m;
        }
    }
    return &uses[tenant];
}

void room_quota(struct fake *f, uint64_t tenant, const char *name, uint64_t hard, uint64_t soft,
                uint64_t guaranteed)
{
    const struct msg_f_tenant m = {.tenant = tenant,
                                   .name = bytes_str(name),
                                   .hard = hard,
                                   .soft = soft,
                                   .guaranteed = guaranteed,
                                   .spilled = UINT64_MAX};
    fake_send(f, &schema_msg_f_tenant, &m, -1);
}

void room_fill(struct fake *f, uint64_t tenant, uint64_t first, unsigned count)
{
    f->tenant = tenant;
    for (uint64_t b = first; b < first + count; b++) {
        ck_assert_int_eq(fake_buffer(f, b, ROOM_BYTES, false), 0);
        room_write(f, b, 1);
    }
}

void room_check_all(struct fake *f, uint64_t tenant, uint64_t first, unsigned count)
{
    f->tenant = tenant;
    for (uint64_t b = first; b < first + count; b++) {
        room_check(f, b, 1);
    }
}

int room_temporaries(struct fake *f, uint64_t tenant, uint64_t job, uint64_t bytes,
                     struct msg_w_done *ret_done)
{
    struct job_draft d;
    f->tenant = tenant;
    draft_init(&d, job, 0);
    uint64_t t = draft_temp(&d, bytes);
    draft_fill(&d, ref_temp(t, bytes), "x", 1);
    draft_send(&d, f);
    return fake_done(f, job, ret_done);
}
