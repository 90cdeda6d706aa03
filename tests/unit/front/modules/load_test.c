/* Sources that come before there is a device to compile them for, and that nobody waits for any
 * more. The test is the compiler and the listener (front_io). */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/front/model/op.h"
#include "daemon/front/modules/building.h"
#include "daemon/front/modules/compiler.h"
#include "daemon/front/requests/hello.h"
#include "daemon/front/requests/requests.h"
#include "daemon/front/requests/session_end.h"
#include "proto/compile.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

#define PIPE         11u
#define COMPILES_MAX 8u

static struct fake *k;
static struct session *s;
static char slot;
static struct {
    compiler_done_fn done;
    void *data;
} at_compiler[COMPILES_MAX]; /* in order of their begin */
static unsigned compiles;    /* begun */
static unsigned ended;       /* of them */
static const struct device *compiled_for;
static int compiler_says;
static unsigned room; /* of the compiler */
static unsigned drops;
static unsigned answers;
static struct err last; /* the last answer */

static int on_compile(struct compiler *c, const struct compiler_request *request,
                      compiler_done_fn done, void *data, struct err *e)
{
    (void)c;
    if (compiler_says != 0 || room == 0) {
        return err_set(e, compiler_says != 0 ? compiler_says : ERR_BUSY, "said");
    }
    ck_assert_uint_lt(compiles, COMPILES_MAX);
    ck_assert_str_eq(request->owner, s->tenant->name); /* in the cache, too */
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        if (strtoul(request->device, NULL, 10) == k->device[i].number) {
            compiled_for = &k->device[i];
        }
    }
    room--;
    at_compiler[compiles].done = done;
    at_compiler[compiles++].data = data;
    return 0;
}

static void on_drop(struct listener *l, struct listener_slot *to)
{
    (void)l;
    ck_assert_ptr_eq(to, &slot);
    drops++;
}

static void on_reply(struct listener *l, struct listener_slot *to, struct bytes message)
{
    struct msg_error m;
    (void)l;
    ck_assert_ptr_eq(to, &slot);
    ck_assert_int_eq(proto_decode(&schema_msg_error, message, &m, NULL), 0);
    answers++;
    last.code = (int)m.code;
}

static void begin(void)
{
    static const uint8_t id[PROTO_CLIENT_ID_BYTES] = {1};
    struct request hello = {.peer = {.pipe = PIPE, .local = true, .uid = 0},
                            .kind = MSG_KIND_HELLO};
    struct capbuf out;
    hello.msg.hello =
        (struct msg_hello){.major = PROTO_MAJOR, .client_id = bytes_of(id, sizeof id), .resume = 1};
    k = fake_create();
    k->f.io.drop = on_drop;
    k->f.io.reply = on_reply;
    k->f.io.compile = on_compile;
    k->f.hooks.module_build_done = module_answered;
    k->f.listed = true;
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        k->device[i].number = i;
        k->device[i].arch[0] = '\0';
        k->device[i].state = DEVICE_STARTING;
    }
    capbuf_init(&out, 4096);
    ck_assert_int_eq(session_hello(&k->f, &hello, &out, &s, &ERR_INIT), 0);
    capbuf_finish(&out);
    compiles = ended = drops = answers = 0;
    compiler_says = 0;
    compiled_for = NULL;
    room = UINT_MAX;
}

/* The oldest source at the compiler does not compile. */
static void fail_compile(void)
{
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_COMPILE, "not compiled");
    ck_assert_uint_lt(ended, compiles);
    unsigned i = ended++;
    room++;
    at_compiler[i].done(at_compiler[i].data, ERR_COMPILE, NULL, (struct hash){0}, &e);
}

static void end(void)
{
    session_end(&k->f, s);
    while (ended < compiles) {
        fail_compile();
    }
    uint32_t cursor = 0;
    ck_assert_ptr_null(idmap_next(&k->f.modules, &cursor, NULL));
    fake_destroy(k);
}

/* Without a number, as after a restart. */
static int load(void)
{
    struct err e = ERR_INIT;
    struct capbuf out;
    struct request r = {.kind = MSG_KIND_MODULE_LOAD};
    r.msg.module_load = (struct msg_module_load){.source = bytes_str("source")};
    capbuf_init(&out, 4096);
    struct op *o = op_create_unnumbered(s, (struct listener_slot *)(void *)&slot);
    ck_assert_ptr_nonnull(o);
    struct request_context c = {.f = &k->f, .s = s, .o = o, .r = &r, .out = &out};
    int rc = request_module_load(&c, &e);
    ck_assert_uint_eq(out.size, 0);
    capbuf_finish(&out);
    if (rc != 0) {
        last = e;
        op_destroy(o);
    }
    return rc;
}

/* FAULT 19: sources of two tenants with the same hash
 * required: neither gets the other's binary from the cache
 * defence: `front/requests/module.c`: request_module_load
 * mutants: module-owner */
START_TEST(a_source_waits_for_a_device)
{
    begin();
    ck_assert_int_eq(load(), 0);
    ck_assert_int_eq(load(), 0);
    module_begin_waiting(&k->f); /* nothing came of it */
    ck_assert_uint_eq(compiles, 0);
    ck_assert_uint_eq(s->modules, 2);
    (void)strcpy(k->device[1].arch, "any");
    module_begin_waiting(&k->f);
    ck_assert_uint_eq(compiles, 2);
    ck_assert_ptr_eq(compiled_for, &k->device[1]);
    module_begin_waiting(&k->f);
    ck_assert_int_eq(load(), 0);
    ck_assert_uint_eq(compiles, 3);
    ck_assert_uint_eq(answers, 0);
    end();
}
END_TEST

START_TEST(no_device_comes)
{
    begin();
    ck_assert_int_eq(load(), 0);
    k->device[0].state = DEVICE_ABSENT;
    module_begin_waiting(&k->f);
    ck_assert_uint_eq(answers, 0);
    k->device[1].state = DEVICE_STUCK;
    module_begin_waiting(&k->f);
    ck_assert_uint_eq(answers, 1);
    ck_assert_int_eq(last.code, ERR_NO_DEVICE);
    ck_assert_uint_eq(s->modules, 0);
    ck_assert_int_eq(load(), ERR_NO_DEVICE);
    k->f.listed = false; /* what there is was not told yet */
    ck_assert_int_eq(load(), 0);
    end();
}
END_TEST

START_TEST(too_many_before_it)
{
    begin();
    ck_assert_int_eq(load(), 0);
    ck_assert_int_eq(load(), 0);
    ck_assert_int_eq(load(), 0);
    room = 1;
    (void)strcpy(k->device[0].arch, "any");
    for (unsigned i = 0; i < 3; i++) { /* those who waited go on waiting */
        module_begin_waiting(&k->f);
        ck_assert_uint_eq(compiles, i + 1);
        ck_assert_uint_eq(answers, i);
        ck_assert_int_eq(load(), ERR_BUSY);
        ck_assert_uint_gt(last.retry_after_ns, 0);
        fail_compile();
        ck_assert_uint_eq(answers, i + 1);
        ck_assert_int_eq(last.code, ERR_COMPILE);
        ck_assert_uint_eq(compiles, i < 2 ? i + 2 : 3); /* there was room for the next one */
    }
    ck_assert_uint_eq(s->modules, 0);
    end();
}
END_TEST

/* The binary is kept in memory of its own, which takes a descriptor. */
START_TEST(no_descriptor_for_the_binary)
{
    struct rlimit limit;
    struct compile_response response = {.binary = bytes_str("binary")};
    begin();
    ck_assert_int_eq(load(), 0);
    (void)strcpy(k->device[0].arch, "any");
    module_begin_waiting(&k->f);
    ck_assert_uint_eq(compiles, 1);
    int next = dup(STDERR_FILENO);
    ck_assert_int_ge(next, 0);
    (void)close(next);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit low = {.rlim_cur = (rlim_t)next, .rlim_max = limit.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
    ended++;
    at_compiler[0].done(at_compiler[0].data, 0, &response, (struct hash){0}, NULL);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_eq(answers, 1);
    ck_assert_int_eq(last.code, ERR_LIMIT);
    end();
}
END_TEST

START_TEST(the_last_device_goes_while_one_waits)
{
    begin();
    ck_assert_int_eq(load(), 0);
    room = 0;
    (void)strcpy(k->device[0].arch, "any");
    module_begin_waiting(&k->f);
    ck_assert_uint_eq(answers, 0);
    k->device[0].state = DEVICE_ABSENT;
    k->device[1].state = DEVICE_ABSENT;
    module_begin_waiting(&k->f);
    ck_assert_uint_eq(answers, 1);
    ck_assert_int_eq(last.code, ERR_NO_DEVICE);
    ck_assert_uint_eq(s->modules, 0);
    end();
}
END_TEST

START_TEST(the_compiler_refuses_one_that_waited)
{
    begin();
    ck_assert_int_eq(load(), 0);
    compiler_says = ERR_NOMEM;
    (void)strcpy(k->device[0].arch, "any");
    module_begin_waiting(&k->f);
    ck_assert_uint_eq(answers, 1);
    ck_assert_int_eq(last.code, ERR_NOMEM);
    ck_assert_uint_eq(s->modules, 0);
    end();
}
END_TEST

/* Its answer would find nobody: the same client asks for it again. */
START_TEST(its_connection_breaks)
{
    begin();
    ck_assert_int_eq(load(), 0);
    (void)strcpy(k->device[0].arch, "any");
    ck_assert_int_eq(load(), 0);
    ck_assert_uint_eq(s->modules, 2);
    session_disconnected(&k->f, PIPE);
    ck_assert_uint_eq(s->modules, 0);
    ck_assert_uint_eq(drops, 2);
    end();
}
END_TEST

/* Its client asks the next front for it. */
START_TEST(the_front_hands_over)
{
    begin();
    (void)strcpy(k->device[0].arch, "any");
    ck_assert_int_eq(load(), 0);
    ck_assert_uint_eq(compiles, 1);
    front_life_step(&k->f.life, FRONT_HANDING_OVER);
    front_life_step(&k->f.life, FRONT_LEAVING);
    fail_compile();
    ck_assert_uint_eq(answers, 0);
    end();
}
END_TEST

SUITE_MAIN("load", a_source_waits_for_a_device, no_device_comes, too_many_before_it,
           no_descriptor_for_the_binary, the_last_device_goes_while_one_waits,
           the_compiler_refuses_one_that_waited, its_connection_breaks, the_front_hands_over)
