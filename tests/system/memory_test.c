/* The memory that a device's worker may take changes while it runs. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/system/harness/harness.h"

#define MIB     (UINT64_C(1) << 20)
#define BUFFERS 12u
#define WORDS   ((uint32_t)(MIB / 4))

static struct daemon d;
static char settings[DAEMON_PATH + 32];

static void write_settings(uint64_t memory_mib, uint64_t recall_ms, const char *more)
{
    char text[512];
    int n = snprintf(text, sizeof text,
                     "[jobs]\ndevice_memory_max = %lluM\n[memory]\nspill_limit = 64M\n"
                     "recall_ms = %llu\n%s\n",
                     (unsigned long long)memory_mib, (unsigned long long)recall_ms, more);
    file_write(settings, text, (size_t)n);
}

static const struct {
    const char *backend, *options;
} ON[] = {{"sim", "speed=0,pages=on"}, {"sim", "speed=0,pages=off"}, {"opencl", ""}};

#define KINDS ((int)(sizeof ON / sizeof ON[0]))

static gpud_client *begin(int kind, uint64_t memory_mib, uint64_t recall_ms, const char *more)
{
    daemon_prepare(&d, "--backend", ON[kind].backend, "--backend-options", ON[kind].options,
                   "--config", settings, NULL);
    (void)snprintf(settings, sizeof settings, "%s/memory.conf", d.dir);
    write_settings(memory_mib, recall_ms, more);
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    return client_open(d.url);
}

static int reload(char *err)
{
    static char out[DAEMON_OUTPUT];
    return gpuctl(&d, out, err, "reload", NULL);
}

static uint64_t pool_of(gpud_client *c, const char *column)
{
    return query_value(c, "pool", "0", column);
}

static gpud_buffer make(gpud_client *c, uint32_t flags)
{
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U32, WORDS), flags, "test", &b));
    return b;
}

static void write_words(gpud_client *c, gpud_buffer b, uint32_t seed)
{
    static uint32_t words[WORDS];
    for (uint32_t k = 0; k < WORDS; k++) {
        words[k] = seed * 2654435761u + k;
    }
    ck_gpud_ok(gpud_write(c, b, GPUD_U32, 0, GPUD_REST, words, NULL));
}

static void check_words(gpud_client *c, gpud_buffer b, uint32_t seed)
{
    static uint32_t words[WORDS];
    memset(words, 0xa5, sizeof words);
    ck_gpud_ok(gpud_read(c, b, GPUD_U32, 0, GPUD_REST, words, NULL));
    uint32_t k = 0;
    while (k < WORDS && words[k] == seed * 2654435761u + k) {
        k++;
    }
    ck_assert_msg(k == WORDS, "word %u of buffer %u", k, seed);
}

/* A daemon with 16M of device memory, all of it in buffers. */
static gpud_client *begin_full(int kind, uint64_t recall_ms, gpud_buffer *b)
{
    gpud_client *c = begin(kind, 16, recall_ms, "");
    for (uint32_t i = 0; i < BUFFERS; i++) {
        b[i] = make(c, 0);
        write_words(c, b[i], i);
    }
    return c;
}

/* FAULT other: an administrator lowers `device_memory_max` below what is in use
 * required: the worker gives the rest back in slices: free memory, then buffers that no job
 *   uses go to the host; jobs go on within what is left. What is missing after the deadline is
 *   shown. A limit below what is guaranteed, or must stay, is refused
 * defence: `pool/quota.c`: quota_admit; `pool/lease.c`: pool_lease_set;
 *   `worker/serve/budget.c`: budget_turn; `front/tenants/tenant_quota.c`: check_devices
 * also: `test_pool_lease`; `worker_budget_test`; `front_quota_test`:
 *   a_budget_is_never_below_what_is_guaranteed; `test_system_memory`
 * mutants: recall-excess */
/* Buffers go to the host, jobs go on with all of them, and a higher limit gives all of it back. */
START_TEST(a_reload_changes_the_memory)
{
    static char err[DAEMON_OUTPUT];
    gpud_buffer b[BUFFERS];
    gpud_client *c = begin_full(_i, 60000, b);
    ck_until(pool_of(c, "limit") == 16 * MIB);
    ck_assert_uint_eq(query_value(c, "devices", "0", "memory_limit"), 16 * MIB);
    write_settings(4, 60000, "");
    ck_assert_msg(reload(err) == 0, "%s", err);
    ck_assert_uint_eq(query_value(c, "devices", "0", "memory_limit"), 4 * MIB);
    ck_until(pool_of(c, "size") <= 4 * MIB && pool_of(c, "recalled") == 0);
    ck_until(pool_of(c, "spilled") >= 8 * MIB);
    for (uint32_t i = 0; i < BUFFERS; i++) {
        check_words(c, b[i], i);
        write_words(c, b[i], 100 + i);
    }
    ck_assert_uint_le(pool_of(c, "size"), 4 * MIB);
    gpud_buffer large = {0}; /* more than the device may have at all */
    ck_gpud_err(gpud_buffer_create(c, gpud_shape_1d(GPUD_U8, 5 * MIB), 0, NULL, &large),
                GPUD_ERR_DEVICE_MEMORY);
    write_settings(16, 60000, "");
    ck_assert_msg(reload(err) == 0, "%s", err);
    for (uint32_t i = 0; i < BUFFERS; i++) {
        check_words(c, b[i], 100 + i);
    }
    ck_until(pool_of(c, "used") >= BUFFERS * MIB);
    ck_assert_uint_eq(query_value(c, "devices", "0", "restarts"), 0);
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U8, 5 * MIB), 0, NULL, &large));
    daemon_end(&d, c);
}
END_TEST

/* Jobs that are queued while the memory goes, and while it comes back. */
START_TEST(jobs_go_on_meanwhile)
{
    enum { JOBS = 60 };
    static char err[DAEMON_OUTPUT];
    static gpud_job *jobs[JOBS];
    gpud_buffer b[BUFFERS];
    float is[BUFFERS];
    gpud_client *c = begin(_i, 16, 60000, "");
    for (uint32_t i = 0; i < BUFFERS; i++) {
        is[i] = (float)i;
        ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, WORDS), 0, "test", &b[i]));
        ck_gpud_ok(gpud_fill(c, gpud_out(b[i]), gpud_f32(is[i])));
    }
    gpud_kernel axpy = kernel_find(c, "axpy");
    for (unsigned n = 0; n < JOBS; n++) {
        if (n % 20 == 10) {
            write_settings(n % 40 == 10 ? 4 : 16, 60000, "");
            ck_assert_msg(reload(err) == 0, "%s", err);
        }
        const gpud_arg args[] = {gpud_f32(1), gpud_in(b[n % BUFFERS]),
                                 gpud_inout(b[(n + 5) % BUFFERS])};
        ck_gpud_ok(gpud_launch(c, axpy, args, 3, NULL, NULL, &jobs[n]));
        is[(n + 5) % BUFFERS] += is[n % BUFFERS];
    }
    for (unsigned n = 0; n < JOBS; n++) {
        ck_gpud_ok(gpud_wait(jobs[n], PATIENCE));
        gpud_job_free(jobs[n]);
    }
    for (uint32_t i = 0; i < BUFFERS; i++) {
        float at[2] = {0};
        ck_gpud_ok(gpud_read(c, b[i], GPUD_F32, 0, 1, &at[0], NULL));
        ck_gpud_ok(gpud_read(c, b[i], GPUD_F32, WORDS - 1, 1, &at[1], NULL));
        ck_assert(at[0] == is[i] && at[1] == is[i]);
    }
    daemon_end(&d, c);
}
END_TEST

/* What is guaranteed must fit; a refused reload changes nothing. */
START_TEST(a_limit_below_the_guarantees)
{
    static char err[DAEMON_OUTPUT];
    char near[96];
    (void)snprintf(near, sizeof near, "[tenant near]\nusers = %u\nmemory_guaranteed = 8M\n",
                   (unsigned)getuid());
    gpud_client *c = begin(0, 16, 60000, near);
    write_settings(6, 60000, near);
    ck_assert_int_ne(reload(err), 0);
    ck_assert_ptr_nonnull(strstr(err, "guaranteed"));
    ck_assert_uint_eq(query_value(c, "devices", "0", "memory_limit"), 16 * MIB);
    write_settings(8, 60000, near);
    ck_assert_msg(reload(err) == 0, "%s", err);
    ck_until(pool_of(c, "limit") == 8 * MIB);
    daemon_end(&d, c);
}
END_TEST

/* Without any time: what is missing is shown, and goes back when it is freed. */
START_TEST(what_cannot_go_is_shown)
{
    static char err[DAEMON_OUTPUT];
    gpud_buffer b[BUFFERS];
    gpud_client *c = begin_full(_i, 0, b);
    write_settings(4, 0, ""); /* no time at all */
    ck_assert_msg(reload(err) == 0, "%s", err);
    ck_until(pool_of(c, "recalled") > 0);
    ck_until(daemon_logged(&d, "more than it may"));
    check_words(c, b[0], 0);
    for (uint32_t i = 0; i < BUFFERS; i++) {
        ck_gpud_ok(gpud_buffer_free(c, b[i]));
    }
    ck_until(pool_of(c, "recalled") == 0 && pool_of(c, "size") <= 4 * MIB);
    daemon_end(&d, c);
}
END_TEST

/* A buffer that stays is never on the host, whatever else is needed; how many may stay is limited,
 * and a budget below them is refused. */
START_TEST(what_stays_stays)
{
    static char err[DAEMON_OUTPUT];
    gpud_buffer other[2 * BUFFERS];
    gpud_buffer more = {0};
    gpud_client *c = begin(_i, 16, 60000, "stay_percent = 25\n");
    gpud_buffer stays[4];
    for (uint32_t i = 0; i < 4; i++) {
        stays[i] = make(c, GPUD_BUFFER_STAY);
        write_words(c, stays[i], 1000 + i);
    }
    for (uint32_t i = 0; i < 2 * BUFFERS; i++) {
        other[i] = make(c, 0);
        write_words(c, other[i], i);
    }
    ck_until(pool_of(c, "spilled") >= 12 * MIB);
    /* a report of the worker that knows of this has all returns of the writes, too */
    ck_gpud_ok(gpud_buffer_free(c, stays[3]));
    ck_until(pool_of(c, "staying") == 3 * MIB);
    uint64_t returns = pool_of(c, "returns");
    for (uint32_t i = 0; i < 3; i++) {
        check_words(c, stays[i], 1000 + i);
    }
    check_words(c, other[0], 0); /* the oldest: it has to return */
    ck_until(pool_of(c, "returns") > returns);
    ck_assert_uint_eq(pool_of(c, "returns"), returns + 1);
    ck_assert_uint_eq(pool_of(c, "staying"), 3 * MIB);
    ck_assert_uint_eq(pool_of(c, "stay_limit"), 4 * MIB);
    ck_gpud_err(
        gpud_buffer_create(c, gpud_shape_1d(GPUD_U8, 2 * MIB), GPUD_BUFFER_STAY, NULL, &more),
        GPUD_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(gpud_last_error()->text, "stay on the device"));
    ck_gpud_err(gpud_buffer_create(c, gpud_shape_1d(GPUD_U8, 1),
                                   GPUD_BUFFER_STAY | GPUD_BUFFER_EXPORT, NULL, &more),
                GPUD_ERR_INVALID);
    write_settings(2, 60000, "stay_percent = 25\n");
    ck_assert_msg(reload(err) == 0, "%s", err);
    ck_until(query_value(c, "devices", "0", "memory_limit") == 16 * MIB);
    char why[512];
    query_text(c, "status", NULL, "problem", why, sizeof why);
    ck_assert_msg(strstr(why, "must stay on the device") != NULL, "%s", why);
    for (uint32_t i = 0; i < 2 * BUFFERS; i++) {
        check_words(c, other[i], i);
    }
    ck_gpud_ok(gpud_buffer_free(c, stays[0]));
    ck_gpud_ok(gpud_buffer_free(c, stays[1]));
    ck_gpud_ok(
        gpud_buffer_create(c, gpud_shape_1d(GPUD_U8, 2 * MIB), GPUD_BUFFER_STAY, NULL, &more));
    daemon_end(&d, c);
}
END_TEST

/* Runs of a program find the addresses of earlier runs, with other jobs between them that use the
 * memory; the places end with the program. */
START_TEST(runs_of_a_program)
{
    enum { RUNS = 10 };
    static float back[MIB];
    gpud_client *c = begin(_i, 16, 60000, "");
    bool placed = _i == 0;
    const gpud_shape row = gpud_shape_1d(GPUD_F32, MIB); /* 4 MiB */
    gpud_program *p = NULL;
    ck_gpud_ok(gpud_program_create(c, "again", &p));
    gpud_arg value = gpud_program_param(p, "value", GPUD_PARAM_SCALAR, gpud_shape_1d(GPUD_F32, 1));
    gpud_arg out = gpud_program_param(p, "out", GPUD_PARAM_BUFFER, row);
    gpud_arg temp = gpud_program_temp(p, row);
    ck_assert_int_ge(gpud_program_fill(p, temp, value), 0);
    ck_assert_int_ge(gpud_program_copy(p, out, temp), 0);
    ck_gpud_ok(gpud_program_seal(p));
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, row, 0, NULL, &b));
    for (unsigned n = 0; n < RUNS; n++) {
        gpud_buffer between = {0};
        const gpud_arg args[] = {gpud_f32((float)n), gpud_out(b)};
        ck_gpud_ok(gpud_run(c, p, args, 2, NULL, NULL));
        ck_gpud_ok(gpud_read(c, b, GPUD_F32, 0, GPUD_REST, back, NULL));
        ck_assert(back[0] == (float)n && back[MIB - 1] == (float)n);
        ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U8, 8 * MIB), 0, NULL, &between));
        ck_gpud_ok(gpud_fill(c, gpud_out(between), gpud_u8(7)));
        ck_gpud_ok(gpud_buffer_free(c, between));
    }
    ck_until(pool_of(c, "private_returns") == (placed ? RUNS - 1 : 0));
    ck_assert_uint_eq(pool_of(c, "private_others"), placed ? 1 : 0);
    ck_assert_uint_eq(pool_of(c, "private_places"), placed ? 1 : 0);
    ck_assert_uint_eq(pool_of(c, "private_bytes"), placed ? 4 * MIB : 0);
    gpud_program_free(p);
    ck_until(pool_of(c, "private_places") == 0 && pool_of(c, "private_bytes") == 0);
    daemon_end(&d, c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("memory");
    suite_add_loop(suite, a_reload_changes_the_memory, KINDS);
    suite_add_loop(suite, jobs_go_on_meanwhile, KINDS);
    suite_add(suite, a_limit_below_the_guarantees);
    suite_add_loop(suite, what_cannot_go_is_shown, KINDS);
    suite_add_loop(suite, what_stays_stays, KINDS);
    suite_add_loop(suite, runs_of_a_program, KINDS);
    return system_main(suite);
}
