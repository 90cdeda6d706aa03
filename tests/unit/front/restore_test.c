/* Sealed buffers come back to another worker a few at a time. */
#include "common/memfd.h"
#include "daemon/front/command.h"
#include "daemon/front/link.h"
#include "daemon/front/requests.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

#define BUFFERS 100u
#define BESIDE  32u /* restores that are not answered */

static struct fake *k;
static uint64_t asked[2 * BUFFERS]; /* buffers, in this order */
static unsigned asked_count;

int __wrap_link_send(struct link *l, const struct schema *schema, const void *msg,
                     const struct frame_fds *fds, struct err *e);

int __wrap_link_send(struct link *l, const struct schema *schema, const void *msg,
                     const struct frame_fds *fds, struct err *e)
{
    (void)l;
    (void)e;
    if (schema == &schema_msg_f_buffer_restore) {
        const struct msg_f_buffer_restore *m = msg;
        ck_assert_int_eq(fds->count, 1);
        asked[asked_count++] = m->id;
    }
    return 0;
}

static void begin(void)
{
    k = fake_create();
    asked_count = 0;
    for (unsigned i = 0; i < BUFFERS; i++) {
        struct memfd host = MEMFD_NONE;
        struct buffer *b = fake_buffer(k, i == 7 ? 1 : 0, 64, true); /* one is another device's */
        ck_assert_int_eq(memfd_create_sealed("host", 64, &host, NULL), 0);
        ck_assert(buffer_charge(b, &k->device[b->device]));
        b->sealed = true;
        b->host_fd = host.fd;
        host.fd = -1;
        memfd_finish(&host);
    }
    buffer_device_lost(&k->f, &k->device[0]);
    buffer_device_ready(&k->f, &k->device[0]);
}

static void answer(uint64_t id)
{
    buffer_answered(&k->f, &k->device[0], &(const struct msg_w_buffer){.id = id});
}

START_TEST(each_answer_brings_the_next_one)
{
    begin();
    ck_assert_uint_eq(asked_count, BESIDE);
    for (unsigned i = 0; i < BUFFERS - 1; i++) {
        ck_assert(buffer_restoring(&k->f, &k->device[0]));
        answer(asked[i]);
        ck_assert_uint_eq(asked_count, i + 1 + BESIDE < BUFFERS ? i + 1 + BESIDE : BUFFERS - 1);
    }
    ck_assert(!buffer_restoring(&k->f, &k->device[0]));
    fake_destroy(k);
}
END_TEST

/* Nobody waits for its answer, which comes all the same. */
START_TEST(so_does_one_that_is_let_go)
{
    begin();
    for (unsigned i = 0; i < BUFFERS - 1; i++) {
        struct buffer *b = idmap_get(&k->f.buffers, asked[i]);
        ck_assert_ptr_nonnull(b);
        buffer_drop(&k->f, b);
        answer(asked[i]);
    }
    ck_assert_uint_eq(asked_count, BUFFERS - 1);
    ck_assert_uint_eq(k->device[0].restores, 0);
    fake_destroy(k);
}
END_TEST

START_TEST(a_worker_that_ends_meanwhile)
{
    begin();
    answer(asked[0]);
    asked_count = 0;
    buffer_device_lost(&k->f, &k->device[0]);
    ck_assert_uint_eq(asked_count, 0);
    buffer_device_ready(&k->f, &k->device[0]);
    ck_assert_uint_eq(asked_count, BESIDE);
    for (unsigned i = 0; i < BUFFERS - 1; i++) {
        answer(asked[i]);
    }
    ck_assert(!buffer_restoring(&k->f, &k->device[0]));
    fake_destroy(k);
}
END_TEST

SUITE_MAIN("restore", each_answer_brings_the_next_one, so_does_one_that_is_let_go,
           a_worker_that_ends_meanwhile)
