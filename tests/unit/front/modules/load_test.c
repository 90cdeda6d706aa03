/* Sources that come before there is a device to compile them for, and that nobody waits for any
 * more. The compiler is not there: what it is asked for is noted (linked with --wrap). */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/front/clients/listener.h"
#include "daemon/front/modules/building.h"
#include "daemon/front/requests/requests.h"
#include "daemon/front/requests/standing.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

#define PIPE 11u

void __wrap_reply_answer_error(struct front *f, struct op *o, const struct err *e,
                               struct bytes log);
int __wrap_building_compile(struct front *f, struct module *m, const struct device *d,
                            struct err *e);
void __wrap_listener_drop(struct listener *l, struct listener_slot *slot);

static struct fake *k;
static struct session *s;
static char slot;
static unsigned compiles;
static const struct device *compiled_for;
static int compiler_says;
static unsigned room; /* of the compiler */
static unsigned drops;
static unsigned answers;
static struct err last; /* the last answer */

int __wrap_building_compile(struct front *f, struct module *m, const struct device *d,
                            struct err *e)
{
    (void)f;
    struct build *b = module_build_obtain(m, d->backend, d->arch);
    ck_assert_ptr_nonnull(b);
    compiled_for = d;
    if (compiler_says != 0 || room == 0) {
        return err_set(e, compiler_says != 0 ? compiler_says : ERR_BUSY, "said");
    }
    room--;
    compiles++;
    b->state = BUILD_RUNNING;
    m->users++;
    return 0;
}

void __wrap_listener_drop(struct listener *l, struct listener_slot *to)
{
    (void)l;
    ck_assert_ptr_eq(to, &slot);
    drops++;
}

void __wrap_reply_answer_error(struct front *f, struct op *o, const struct err *e, struct bytes log)
{
    (void)f;
    (void)log;
    answers++;
    last = *e;
    op_destroy(o);
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
    k->f.listed = true;
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        k->device[i].arch[0] = '\0';
        k->device[i].state = DEVICE_STARTING;
    }
    capbuf_init(&out, 4096);
    ck_assert_int_eq(standing_hello(&k->f, &hello, &out, &s, &ERR_INIT), 0);
    capbuf_finish(&out);
    compiles = drops = answers = 0;
    compiler_says = 0;
    compiled_for = NULL;
    room = UINT_MAX;
}

/* What was given to the compiler and not answered yet; NULL: nothing. */
static struct build *at_compiler(void)
{
    uint32_t cursor = 0;
    struct module *m;
    while ((m = idmap_next(&k->f.modules, &cursor, NULL)) != NULL) {
        for (struct build *b = m->builds; b != NULL; b = b->next) {
            if (b->state == BUILD_RUNNING) {
                return b;
            }
        }
    }
    return NULL;
}

/* As the compiler's callback does it: that source did not compile. */
static void fail_build(struct build *b)
{
    struct module *m = b->module;
    b->state = BUILD_FAILED;
    (void)err_set(&b->error, ERR_COMPILE, "not compiled");
    room++;
    module_answered(&k->f, b, NULL);
    m->users--;
    building_settle(&k->f, m);
}

static void end(void)
{
    struct build *b;
    standing_end(&k->f, s);
    while ((b = at_compiler()) != NULL) {
        fail_build(b);
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
    struct op *o = op_create_loose(s, (struct listener_slot *)(void *)&slot);
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
        fail_build(at_compiler());
        ck_assert_uint_eq(answers, i + 1);
        ck_assert_int_eq(last.code, ERR_COMPILE);
        ck_assert_uint_eq(compiles, i < 2 ? i + 2 : 3); /* there was room for the next one */
    }
    ck_assert_uint_eq(s->modules, 0);
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
    standing_disconnected(&k->f, PIPE);
    ck_assert_uint_eq(s->modules, 0);
    ck_assert_uint_eq(drops, 2);
    end();
}
END_TEST

SUITE_MAIN("load", a_source_waits_for_a_device, no_device_comes, too_many_before_it,
           the_last_device_goes_while_one_waits, the_compiler_refuses_one_that_waited,
           its_connection_breaks)
