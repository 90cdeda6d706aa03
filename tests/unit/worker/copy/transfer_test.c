/* What becomes of the host copy that a seal makes. gpud-worker as a process. */
#include <unistd.h>

#include "common/memfd.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/worker/fake_front.h"

#define BYTES 4096u

/* Returns the descriptor of the copy, which has no mapping here: that would be in the way. */
static int copied(struct fake *f, bool lent)
{
    struct err e = ERR_INIT;
    struct memfd host = MEMFD_NONE;
    struct msg_w_buffer answer;
    ck_assert_int_eq(fake_buffer(f, 1, BYTES, true), 0);
    ck_assert_int_eq(memfd_create_freezable("host", BYTES, &host, &e), 0);
    int fd = host.fd;
    host.fd = -1;
    memfd_finish(&host);
    const struct msg_f_buffer_seal msg = {.id = 1, .size = BYTES, .lent = lent};
    fake_send(f, &schema_msg_f_buffer_seal, &msg, fd);
    fake_expect(f, FRAME_KIND_W_BUFFER, &schema_msg_w_buffer, &answer);
    ck_assert_int_eq((int)answer.code, 0);
    return fd;
}

/* It can go to other tenants, so no process can write it any more. */
START_TEST(a_sealed_copy_is_frozen)
{
    struct fake f;
    fake_start(&f, "sim", NULL);
    int fd = copied(&f, false);
    ck_assert(memfd_frozen(fd));
    (void)close(fd);
    fake_stop(&f);
}
END_TEST

/* It goes to no other tenant, and the worker does not keep it. */
START_TEST(a_lent_copy_is_not)
{
    struct fake f;
    fake_start(&f, "sim", NULL);
    int fd = copied(&f, true);
    ck_assert(!memfd_frozen(fd));
    (void)close(fd);
    fake_stop(&f);
}
END_TEST

SUITE_MAIN("transfers", a_sealed_copy_is_frozen, a_lent_copy_is_not)
