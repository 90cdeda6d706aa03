#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/backend/backend.h"
#include "daemon/backend/sim/engine.h"
#include "daemon/backend/sim/script.h"
#include "kernels/builtin.h"

static const struct backend *sim;
static struct backend_device *device;
static struct backend_stream *stream;

static void start(const char *options)
{
    struct err e = ERR_INIT;
    sim = backend_find("sim");
    ck_assert_msg(sim->device->open(0, options, NULL, NULL, &device, &e) == 0, "%s", e.text);
    ck_assert_int_eq(sim->stream->create(device, 0, &stream, &e), 0);
}

static void stop(void)
{
    sim->stream->destroy(stream);
    sim->device->close(device);
}

static struct backend_block *block_new(uint64_t size)
{
    struct backend_block *b = NULL;
    ck_assert_int_eq(sim->memory->alloc(device, size, &b, NULL), 0);
    return b;
}

static enum backend_state settle(struct backend_stream *s, struct err *e)
{
    const struct timespec pause = {0, 50000};
    struct backend_marker *m = NULL;
    ck_assert_int_eq(sim->stream->mark(s, &m, e), 0);
    enum backend_state state = sim->marker->state(m, e);
    while (state != BACKEND_DONE && state != BACKEND_FAILED) {
        nanosleep(&pause, NULL);
        state = sim->marker->state(m, e);
    }
    sim->marker->release(m);
    return state;
}

START_TEST(scripts_are_read)
{
    struct script s;
    struct err e = ERR_INIT;
    ck_assert_int_eq(script_parse("write:2=fail;launch:3+=fault;alloc:*=nomem;", &s, &e), 0);
    ck_assert_uint_eq(s.rule_count, 3);
    ck_assert_int_eq(script_next(&s, SIM_WRITE), SIM_OK);
    ck_assert_int_eq(script_next(&s, SIM_WRITE), SIM_FAIL);
    ck_assert_int_eq(script_next(&s, SIM_WRITE), SIM_OK);
    ck_assert_int_eq(script_next(&s, SIM_LAUNCH), SIM_OK);
    ck_assert_int_eq(script_next(&s, SIM_LAUNCH), SIM_OK);
    ck_assert_int_eq(script_next(&s, SIM_LAUNCH), SIM_FAULT);
    ck_assert_int_eq(script_next(&s, SIM_LAUNCH), SIM_FAULT);
    ck_assert_int_eq(script_next(&s, SIM_ALLOC), SIM_NOMEM);
    static const char *const bad[] = {"write",         "write:=fail", "write:0=fail",
                                      "write:1=",      "write:1=x",   "x:1=fail",
                                      "write:1x=fail", ";",           "write:-1=ok"};
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(script_parse(bad[i], &s, &e) == ERR_INVALID, "%s", bad[i]);
    }
}
END_TEST

START_TEST(is_labelled_as_simulated)
{
    struct backend_info info;
    struct err e = ERR_INIT;
    unsigned count = 0;
    start("devices=3,memory=8M");
    sim->device->info(device, &info);
    ck_assert(info.simulated);
    ck_assert_ptr_nonnull(strstr(info.name, "simulated"));
    ck_assert_uint_eq(info.memory, 8u << 20);
    ck_assert(!sim->auto_choice);
    ck_assert_int_eq(sim->enumerate("devices=3", &count, &e), 0);
    ck_assert_uint_eq(count, 3);
    ck_assert_int_eq(sim->enumerate("devices=0", &count, &e), ERR_NO_DEVICE);
    stop();
}
END_TEST

START_TEST(a_write_fails_on_cue)
{
    struct err e = ERR_INIT;
    uint32_t v = 5;
    start("speed=0,script=write:2=fail");
    struct backend_block *b = block_new(4);
    for (int i = 1; i <= 3; i++) {
        ck_assert_int_eq(sim->stream->write(stream, (struct backend_ref){b, 0}, &v, 4, &e), 0);
        ck_assert_int_eq(settle(stream, &e), i == 2 ? BACKEND_FAILED : BACKEND_DONE);
        ck_assert_int_eq(e.code, i == 1 ? 0 : ERR_IO);
    }
    sim->memory->free(device, b);
    stop();
}
END_TEST

START_TEST(a_fault_takes_the_device_with_it)
{
    struct err e = ERR_INIT;
    uint32_t v = 5;
    start("speed=0,script=fill:1=fault");
    struct backend_stream *other = NULL;
    struct backend_block *b = block_new(4);
    ck_assert_int_eq(sim->stream->create(device, 0, &other, &e), 0);
    ck_assert_int_eq(sim->stream->fill(stream, (struct backend_ref){b, 0}, &v, 4, 4, &e), 0);
    ck_assert_int_eq(settle(stream, &e), BACKEND_FAILED);
    ck_assert_int_eq(e.code, ERR_KERNEL_FAULT);
    ck_assert_int_eq(sim->stream->write(other, (struct backend_ref){b, 0}, &v, 4, &e), 0);
    ck_assert_int_eq(settle(other, &e), BACKEND_FAILED);
    ck_assert_int_eq(e.code, ERR_KERNEL_FAULT);
    sim->stream->destroy(other);
    sim->memory->free(device, b);
    stop();
}
END_TEST

/* The stream that hangs never passes its marker while another one does its work. */
START_TEST(a_hang_holds_its_stream_only)
{
    struct err e = ERR_INIT;
    uint32_t v = 5;
    struct backend_stream *other = NULL;
    struct backend_marker *stuck = NULL;
    start("speed=0,script=copy:1=hang");
    struct backend_block *b = block_new(8);
    struct backend_ref low = {b, 0};
    struct backend_ref high = {b, 4};
    ck_assert_int_eq(sim->stream->create(device, 0, &other, &e), 0);
    ck_assert_int_eq(sim->stream->copy(stream, low, high, 4, &e), 0);
    ck_assert_int_eq(sim->stream->mark(stream, &stuck, &e), 0);
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(sim->stream->write(other, high, &v, 4, &e), 0);
        ck_assert_int_eq(settle(other, &e), BACKEND_DONE);
        enum backend_state state = sim->marker->state(stuck, &e);
        ck_assert(state == BACKEND_PENDING || state == BACKEND_RUNNING);
    }
    sim->stream->destroy(other);
    sim->stream->destroy(stream);
    sim->marker->release(stuck);
    sim->memory->free(device, b);
    sim->device->close(device);
}
END_TEST

START_TEST(memory_and_open_fail_on_cue)
{
    struct err e = ERR_INIT;
    struct backend_block *b = NULL;
    struct backend_device *none = NULL;
    start("script=alloc:2=nomem");
    struct backend_block *a = block_new(1);
    ck_assert_int_eq(sim->memory->alloc(device, 1, &b, &e), ERR_DEVICE_MEMORY);
    sim->memory->free(device, a);
    stop();
    ck_assert_int_eq(sim->device->open(0, "script=open:1=lost", NULL, NULL, &none, &e),
                     ERR_DEVICE_LOST);
    ck_assert_ptr_null(none);
}
END_TEST

START_TEST(a_crash_ends_the_process)
{
    struct err e = ERR_INIT;
    uint32_t v = 5;
    start("speed=0,script=write:1=crash");
    struct backend_block *b = block_new(4);
    sim->stream->write(stream, (struct backend_ref){b, 0}, &v, 4, &e);
    settle(stream, &e);
}
END_TEST

/* The model says 16 ms for 16 MiB; that is how long it must seem to have taken at least. */
START_TEST(time_follows_the_cost_model)
{
    enum { BYTES = 16 << 20 };
    struct err e = ERR_INIT;
    struct backend_marker *m = NULL;
    uint64_t begin = 0;
    uint64_t end = 0;
    uint8_t zero = 0;
    start("bandwidth=1G,launch_ns=0");
    struct backend_block *b = block_new(BYTES);
    ck_assert_int_eq(sim->stream->fill(stream, (struct backend_ref){b, 0}, &zero, 1, BYTES, &e), 0);
    ck_assert_int_eq(sim->stream->mark(stream, &m, &e), 0);
    ck_assert_int_eq(settle(stream, &e), BACKEND_DONE);
    ck_assert_int_eq(sim->marker->state(m, &e), BACKEND_DONE);
    sim->marker->times(m, &begin, &end);
    ck_assert_uint_ge(end - begin, 15625000); /* 16 MiB at 1 GiB/s */
    sim->marker->release(m);
    sim->memory->free(device, b);
    stop();
}
END_TEST

static struct backend_marker *mark_of(struct backend_stream *s)
{
    struct err e = ERR_INIT;
    struct backend_marker *m = NULL;
    ck_assert_int_eq(sim->stream->mark(s, &m, &e), 0);
    return m;
}

static void times_of(struct backend_marker *m, uint64_t *ret_begin, uint64_t *ret_end)
{
    const struct timespec pause = {0, 50000};
    while (sim->marker->state(m, NULL) != BACKEND_DONE) {
        nanosleep(&pause, NULL);
    }
    sim->marker->times(m, ret_begin, ret_end);
    sim->marker->release(m);
}

/* Copies to the device share one engine, whichever streams they come from; copies from it have one
 * of their own. */
START_TEST(copies_share_an_engine_for_each_direction)
{
    enum { BYTES = 16 << 20 };
    static uint8_t host[3][BYTES];
    struct err e = ERR_INIT;
    struct backend_stream *other[2];
    uint64_t begin[3];
    uint64_t end[3];
    start("bandwidth=1G,launch_ns=0");
    struct backend_block *b = block_new(3 * (uint64_t)BYTES);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(sim->stream->create(device, 0, &other[i], &e), 0);
    }
    struct backend_ref at[3] = {{b, 0}, {b, BYTES}, {b, 2 * (uint64_t)BYTES}};
    ck_assert_int_eq(sim->stream->write(stream, at[0], host[0], BYTES, &e), 0);
    ck_assert_int_eq(sim->stream->write(other[0], at[1], host[1], BYTES, &e), 0);
    ck_assert_int_eq(sim->stream->read(other[1], host[2], at[2], BYTES, &e), 0);
    struct backend_marker *m[3] = {mark_of(stream), mark_of(other[0]), mark_of(other[1])};
    for (int i = 0; i < 3; i++) {
        times_of(m[i], &begin[i], &end[i]);
    }
    uint64_t first = begin[0] < begin[1] ? begin[0] : begin[1];
    uint64_t last = end[0] > end[1] ? end[0] : end[1];
    ck_assert_uint_ge(last - first, 31250000); /* one after the other */
    ck_assert(end[0] <= begin[1] || end[1] <= begin[0]);
    ck_assert_uint_eq(end[2] - begin[2], 15625000); /* nothing holds it up */
    sim->stream->destroy(other[0]);
    sim->stream->destroy(other[1]);
    sim->memory->free(device, b);
    stop();
}
END_TEST

static struct {
    struct sim_engine engine;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int order[3]; /* priorities, as they had their turn */
    int turns;
} race = {
    .engine = {.slots = 1}, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *racer(void *priority)
{
    const bool stop = false;
    uint64_t begin = 0;
    pthread_mutex_lock(&race.lock);
    int slot = sim_engine_take(&race.engine, *(int *)priority, &stop, &race.changed, &race.lock, 0,
                               &begin);
    race.order[race.turns++] = *(int *)priority;
    sim_engine_give(&race.engine, slot, begin + 5, &race.changed);
    pthread_mutex_unlock(&race.lock);
    return NULL;
}

static void await_waiting(unsigned count)
{
    const struct timespec pause = {0, 50000};
    for (unsigned there = 0; there < count;) {
        nanosleep(&pause, NULL);
        there = 0;
        pthread_mutex_lock(&race.lock);
        for (const struct sim_turn *t = race.engine.waiting; t != NULL; t = t->next) {
            there++;
        }
        pthread_mutex_unlock(&race.lock);
    }
}

/* Without the gate the launch would take an hour. */
START_TEST(an_open_gate_ends_what_lasts)
{
    char options[96];
    char path[] = "/tmp/gpud-sim-gate.XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    ck_assert_int_eq(unlink(path), 0);
    (void)snprintf(options, sizeof options, "bandwidth=1,gate=%s", path);
    start(options);
    struct backend_block *b = block_new(4096);
    struct backend_marker *m = NULL;
    const struct backend_ref all = {b, 0};
    const uint8_t byte = 7;
    ck_assert_int_eq(sim->stream->fill(stream, all, &byte, 1, 3600, NULL), 0);
    ck_assert_int_eq(sim->stream->mark(stream, &m, NULL), 0);
    while (sim->marker->state(m, NULL) == BACKEND_PENDING) {
    }
    ck_assert_int_eq(sim->marker->state(m, NULL), BACKEND_RUNNING);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    (void)close(fd);
    while (sim->marker->state(m, NULL) == BACKEND_RUNNING) {
    }
    ck_assert_int_eq(sim->marker->state(m, NULL), BACKEND_DONE);
    sim->marker->release(m);
    sim->memory->free(device, b);
    stop();
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

/* Of the commands that wait for an engine, those of the higher priority are next. */
START_TEST(a_higher_priority_goes_first)
{
    const bool stop = false;
    int priority[3] = {0, 2, 1};
    pthread_t thread[3];
    uint64_t begin = 0;
    pthread_mutex_lock(&race.lock);
    int slot = sim_engine_take(&race.engine, 0, &stop, &race.changed, &race.lock, 100, &begin);
    ck_assert_int_eq(slot, 0);
    ck_assert_uint_eq(begin, 100);
    pthread_mutex_unlock(&race.lock);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(pthread_create(&thread[i], NULL, racer, &priority[i]), 0);
        await_waiting(i + 1);
    }
    pthread_mutex_lock(&race.lock);
    sim_engine_give(&race.engine, slot, 200, &race.changed);
    pthread_mutex_unlock(&race.lock);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    }
    ck_assert_int_eq(race.order[0], 2);
    ck_assert_int_eq(race.order[1], 1);
    ck_assert_int_eq(race.order[2], 0);
    ck_assert_uint_eq(race.engine.free_ns[0], 215); /* one after the other, by the model */
}
END_TEST

START_TEST(a_users_kernel_is_unsupported)
{
    struct err e = ERR_INIT;
    struct backend_compiled c = {0};
    struct backend_source source = {
        .lang = BACKEND_LANG_DIALECT,
        .text = bytes_str("//@kernel axpy<T: f32>(T a, in T x[n], inout T y[n])  over n\n"
                          "{\n    y[i] = 0;\n}\n"),
        .file = "user.gk",
        .options = "",
        .arch = ""};
    sim = backend_find("sim");
    ck_assert_int_eq(sim->compile(0, &source, &c, &e), ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(e.text, "built-in kernels only"));
    source.lang = BACKEND_LANG_OPENCL;
    ck_assert_int_eq(sim->compile(0, &source, &c, &e), ERR_UNSUPPORTED);
}
END_TEST

START_TEST(every_builtin_module_compiles)
{
    struct err e = ERR_INIT;
    start("");
    for (unsigned m = 0; m < builtin_module_count(); m++) {
        struct backend_compiled c = {0};
        struct backend_module *module = NULL;
        struct backend_source source = {.lang = BACKEND_LANG_DIALECT,
                                        .text = builtin_module_source(m),
                                        .file = builtin_module_name(m),
                                        .options = "",
                                        .arch = ""};
        ck_assert_msg(sim->compile(0, &source, &c, &e) == 0, "%s: %s", source.file, e.text);
        struct bytes binary = bytes_of(c.binary, c.binary_size);
        ck_assert_msg(sim->module->load(device, binary, &module, &e) == 0, "%s", e.text);
        ck_assert_uint_eq(sim->module->kernel_count(module), c.kernel_count);
        sim->module->unload(module);
        backend_compiled_finish(&c);
    }
    stop();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim");
    TCase *t = tcase_create("sim");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, scripts_are_read);
    tcase_add_test(t, is_labelled_as_simulated);
    tcase_add_test(t, a_write_fails_on_cue);
    tcase_add_test(t, a_fault_takes_the_device_with_it);
    tcase_add_test(t, a_hang_holds_its_stream_only);
    tcase_add_test(t, memory_and_open_fail_on_cue);
    tcase_add_test_raise_signal(t, a_crash_ends_the_process, SIGABRT);
    tcase_add_test(t, time_follows_the_cost_model);
    tcase_add_test(t, copies_share_an_engine_for_each_direction);
    tcase_add_test(t, an_open_gate_ends_what_lasts);
    tcase_add_test(t, a_higher_priority_goes_first);
    tcase_add_test(t, a_users_kernel_is_unsupported);
    tcase_add_test(t, every_builtin_module_compiles);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
