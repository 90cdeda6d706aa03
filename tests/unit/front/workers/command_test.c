/* Frames that end something in a worker: none of them may be lost while the worker goes on. */
#include <signal.h>

#include "daemon/front/model/arena.h"
#include "daemon/front/workers/command.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

#define WORKER 7u
#define ID     99u

static struct fake *k;
static int code; /* of each frame */
static unsigned kills;

static int on_send(struct link *l, const struct schema *schema, const void *msg,
                   const struct frame_fds *fds, struct err *e)
{
    return code == 0 ? fake_send(l, schema, msg, fds, e) : err_set(e, code, "not sent");
}

static int on_kill(struct launcher_link *l, uint64_t id, int signal, struct err *e)
{
    (void)l;
    (void)e;
    ck_assert_uint_eq(id, WORKER);
    ck_assert_int_eq(signal, SIGKILL);
    kills++;
    return 0;
}

static void forget_job(struct device *d)
{
    command_forget_job(d, ID);
}

static void forget_buffer(struct device *d)
{
    command_forget_buffer(d, ID);
}

static void unload(struct device *d)
{
    command_module_unload(d, ID);
}

static void drop_arena(struct device *d)
{
    struct arena a = {.handle = ID};
    device_set_put(&a.known, d->index);
    command_arena_drop(d, &a);
}

static void (*const gives_up[])(struct device *d) = {forget_job, forget_buffer, unload, drop_arena};
#define WAYS (sizeof gives_up / sizeof gives_up[0])

static unsigned kills_for(unsigned way, int with)
{
    k = fake_create();
    k->f.io.send = on_send;
    k->f.io.kill = on_kill;
    code = with;
    kills = 0;
    struct device *d = &k->device[0];
    d->worker = WORKER;
    gives_up[way](d);
    bool ends = d->killed_ns != 0;
    ck_assert_uint_eq(kills, ends);
    d->worker = 0;
    d->killed_ns = 0;
    fake_destroy(k);
    return kills;
}

START_TEST(a_worker_that_would_keep_it_ends)
{
    for (unsigned way = 0; way < WAYS; way++) {
        ck_assert_uint_eq(kills_for(way, ERR_NOMEM), 1);
    }
}
END_TEST

START_TEST(a_worker_that_was_told_goes_on)
{
    for (unsigned way = 0; way < WAYS; way++) {
        ck_assert_uint_eq(kills_for(way, 0), 0);
        ck_assert_uint_eq(kills_for(way, ERR_CLOSED), 0); /* its end is under way */
    }
}
END_TEST

SUITE_MAIN("command", a_worker_that_would_keep_it_ends, a_worker_that_was_told_goes_on)
