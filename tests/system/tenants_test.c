/* Tenants through the daemon: the test's user is one tenant, a client over tcp is another. A
 * tenant's limits do not depend on its number of clients, and new settings apply while it runs. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/system/harness/harness.h"

#define BUFFER_BYTES (1u << 20)
#define WORDS        (BUFFER_BYTES / 4)

static struct daemon daemon_of_test;
static char settings[DAEMON_PATH + 16];
static char far_url[64];
static char ipc_url[DAEMON_PATH];

/* What both may have on a device of 16 MiB. */
static void settings_write(const char *near, const char *far)
{
    char text[512];
    int n =
        snprintf(text, sizeof text, "[tenant near]\nusers = %u\n%s\n[tenant far]\ntcp = yes\n%s\n",
                 (unsigned)getuid(), near, far);
    file_write(settings, text, (size_t)n);
}

static gpud_client *begin_with(const char *backend, const char *options, const char *near,
                               const char *far)
{
    struct daemon *d = &daemon_of_test;
    tcp_url(far_url, sizeof far_url);
    daemon_prepare(d, "--backend", backend, "--backend-options", options, "--config", settings,
                   "--set", "jobs.window=1", "--set", "jobs.batch_percent=1", "--set",
                   "jobs.device_memory_max=16M", "--set", "memory.spill_limit=48M", "--listen",
                   ipc_url, "--listen", far_url, NULL);
    (void)snprintf(ipc_url, sizeof ipc_url, "%s", d->url);
    (void)snprintf(settings, sizeof settings, "%s/tenants.conf", d->dir);
    settings_write(near, far);
    daemon_spawn(d);
    daemon_wait_ready(d);
    return client_open(d->url);
}

static gpud_client *begin(const char *backend, const char *near, const char *far)
{
    return begin_with(backend, strcmp(backend, "sim") == 0 ? "speed=0" : "", near, far);
}

static gpud_buffer make(gpud_client *c)
{
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U32, WORDS), 0, "test", &b));
    return b;
}

static void words_of(uint32_t *words, uint32_t seed)
{
    for (uint32_t k = 0; k < WORDS; k++) {
        words[k] = seed * 2654435761u + k;
    }
}

/* Buffers whose words identify them. */
static void fill(gpud_client *c, gpud_buffer *b, unsigned count, uint32_t seed)
{
    static uint32_t words[WORDS];
    for (unsigned i = 0; i < count; i++) {
        b[i] = make(c);
        words_of(words, seed + i);
        ck_gpud_ok(gpud_write(c, b[i], GPUD_U32, 0, GPUD_REST, words, NULL));
    }
}

static void check(gpud_client *c, const gpud_buffer *b, unsigned count, uint32_t seed)
{
    static uint32_t words[WORDS];
    static uint32_t expected[WORDS];
    for (unsigned i = 0; i < count; i++) {
        memset(words, 0xa5, sizeof words);
        ck_gpud_ok(gpud_read(c, b[i], GPUD_U32, 0, GPUD_REST, words, NULL));
        words_of(expected, seed + i);
        ck_assert_msg(memcmp(words, expected, sizeof words) == 0, "buffer %u of %u", i, seed);
    }
}

static uint64_t has(gpud_client *c, const char *tenant, const char *column)
{
    return query_value(c, "tenants", tenant, column);
}

/* FAULT other: a tenant exceeds its limits
 * required: a buffer over its hard limit is refused by name, whatever number of clients it has;
 *   its excess over the soft limit goes to the host first; memory guaranteed to others stays
 * defence: `front/model/tenant.c`: tenant_room; `worker/spill/prospect.c`: prospect_may_go,
 *   prospect_host_allows; `worker/spill/spill.c`: evict
 * also: `worker_memory_test`: soft_limits_give_first, guarantees_are_kept,
 *   hard_limits_are_a_tenants_own_matter, the_hosts_share_has_a_limit; `test_system_tenants`
 * mutants: tenant-hard, tenant-guarantee */
/* A limit belongs to the tenant, and its error says the tenant, the bytes, and what helps. */
START_TEST(a_hard_limit_over_several_clients)
{
    gpud_client *near = begin("sim", "memory_hard = 4M", "");
    gpud_client *second = client_open(daemon_of_test.url);
    gpud_client *far = client_open(far_url);
    gpud_buffer b[3];
    gpud_buffer c[2];
    gpud_buffer more = {0};
    gpud_shape shape = gpud_shape_1d(GPUD_U32, WORDS);
    fill(near, b, 3, 1);
    fill(second, c, 1, 11);
    ck_gpud_err(gpud_buffer_create(second, shape, 0, NULL, &more), GPUD_ERR_LIMIT);
    const char *text = gpud_last_error()->text;
    ck_assert_msg(
        strstr(text, "tenant near wants 1048576 bytes on device 0 and may have 4194304") != NULL,
        "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "its buffers have 4194304"));
    ck_assert_ptr_nonnull(strstr(text, "raise its memory_hard"));
    ck_assert_uint_eq(has(near, "near", "buffers"), 4 * BUFFER_BYTES);
    ck_assert_uint_eq(has(near, "near", "sessions"), 2);
    ck_assert_uint_eq(has(near, "near", "hard"), 4 * BUFFER_BYTES);
    ck_assert_uint_eq(has(near, "near", "refusals"), 1);
    gpud_buffer others[8];
    fill(far, others, 8, 21);
    ck_gpud_ok(gpud_buffer_free(near, b[2]));
    ck_until(gpud_buffer_create(second, shape, 0, NULL, &more) == 0);
    check(near, b, 2, 1);
    check(second, c, 1, 11);
    check(far, others, 8, 21);
    gpud_close(far);
    gpud_close(second);
    daemon_end(&daemon_of_test, near);
}
END_TEST

/* Two tenants use three times the device's memory: bytes guaranteed to one of them stay on the
 * device. */
START_TEST(a_guarantee_under_pressure)
{
    gpud_client *near = begin(_i == 0 ? "sim" : "opencl", "memory_guaranteed = 25%", "");
    gpud_client *far = client_open(far_url);
    gpud_buffer b[3];
    gpud_buffer c[32];
    fill(near, b, 3, 1);
    fill(far, c, 32, 101); /* twice the device alone */
    check(far, c, 32, 101);
    ck_until(has(near, "far", "spilled") >= 20 * BUFFER_BYTES);
    ck_assert_uint_eq(has(near, "near", "spilled"), 0);
    ck_assert_uint_ge(has(near, "near", "mapped"), 3 * BUFFER_BYTES);
    ck_assert_uint_eq(has(near, "near", "guaranteed"), 4 * BUFFER_BYTES);
    check(near, b, 3, 1);
    check(far, c, 32, 101);
    ck_until(query_value(near, "status", NULL, "spilled") >= 20 * BUFFER_BYTES);
    gpud_close(far);
    daemon_end(&daemon_of_test, near);
}
END_TEST

START_TEST(soft_limits_give_first)
{
    gpud_client *near = begin("sim", "", "memory_soft = 2M");
    gpud_client *far = client_open(far_url);
    gpud_buffer b[12];
    gpud_buffer c[6];
    fill(near, b, 6, 1);
    fill(far, c, 6, 101);
    fill(near, b + 6, 6, 7); /* as many more as fit if the other tenant's buffers move */
    ck_until(has(near, "far", "spilled") > 0);
    ck_assert_uint_eq(has(near, "near", "spilled"), 0);
    check(near, b, 12, 1);
    check(far, c, 6, 101);
    gpud_close(far);
    daemon_end(&daemon_of_test, near);
}
END_TEST

/* Lower limits end nothing and refuse new requests; a guarantee that cannot be kept is refused as a
 * whole. */
START_TEST(a_reload_lowers_a_limit)
{
    static char out[DAEMON_OUTPUT];
    static char err[DAEMON_OUTPUT];
    gpud_client *near = begin("sim", "memory_hard = 8M", "");
    gpud_buffer b[6];
    gpud_buffer more = {0};
    gpud_shape shape = gpud_shape_1d(GPUD_U32, WORDS);
    fill(near, b, 6, 1);
    settings_write("memory_hard = 4M", "memory_guaranteed = 4M");
    ck_assert_int_eq(gpuctl(&daemon_of_test, out, err, "reload", NULL), 0);
    ck_assert_uint_eq(has(near, "near", "hard"), 4 * BUFFER_BYTES);
    ck_assert_uint_eq(has(near, "far", "guaranteed"), 4 * BUFFER_BYTES);
    check(near, b, 6, 1);
    ck_gpud_err(gpud_buffer_create(near, shape, 0, NULL, &more), GPUD_ERR_LIMIT);
    ck_until(has(near, "near", "mapped") <= 4 * BUFFER_BYTES);
    settings_write("memory_hard = 4M", "memory_guaranteed = 17M");
    ck_assert_int_ne(gpuctl(&daemon_of_test, out, err, "reload", NULL), 0);
    ck_assert_msg(
        strstr(err, "device 0: 17825792 bytes are guaranteed to tenants (far 17825792)") != NULL,
        "%s", err);
    ck_assert_uint_eq(has(near, "far", "guaranteed"), 4 * BUFFER_BYTES);
    check(near, b, 6, 1);
    settings_write("memory_hard = 50%", "");
    ck_assert_int_eq(gpuctl(&daemon_of_test, out, err, "reload", NULL), 0);
    ck_gpud_ok(gpud_buffer_create(near, shape, 0, NULL, &more));
    check(near, b, 6, 1);
    ck_assert_int_eq(gpuctl(&daemon_of_test, out, err, "tenants", "-o", "wide", NULL), 0);
    ck_assert_ptr_nonnull(strstr(out, "near"));
    ck_assert_ptr_nonnull(strstr(out, "tcp"));
    ck_assert_uint_eq(query_value(near, "status", NULL, "restarts"), 0);
    daemon_end(&daemon_of_test, near);
}
END_TEST

/* Another front comes to the same worker, with other settings. */
static void hand_over(const char *near, const char *far)
{
    pid_t worker = daemon_worker(&daemon_of_test, 0);
    daemon_hand_over(&daemon_of_test);
    settings_write(near, far);
    daemon_spawn(&daemon_of_test);
    daemon_wait_ready(&daemon_of_test);
    ck_assert_int_eq(daemon_worker(&daemon_of_test, 0), worker);
}

/* A worker applies the limits of its current front only: with the guarantees of the front before
 * there would be no room for those of this one. */
START_TEST(limits_are_those_of_the_front)
{
    static char state[64];
    gpud_client *near = begin("sim", "memory_hard = 4M", "memory_guaranteed = 13M");
    gpud_buffer b[4];
    gpud_buffer c[8];
    fill(near, b, 4, 1);
    ck_until(has(near, "near", "spilled") > 0);
    hand_over("memory_guaranteed = 14M", "");
    gpud_client *far = client_open(far_url);
    check(near, b, 4, 1);
    fill(far, c, 8, 101);
    check(near, b, 4, 1);
    check(far, c, 8, 101);
    ck_until(has(near, "far", "spilled") >= 6 * BUFFER_BYTES);
    ck_until(has(near, "near", "mapped") == 4 * BUFFER_BYTES);
    ck_assert_uint_eq(has(near, "near", "spilled"), 0);
    ck_assert_uint_eq(has(near, "near", "guaranteed"), 14 * BUFFER_BYTES);
    query_text(near, "status", NULL, "state", state, sizeof state);
    ck_assert_str_eq(state, "ready");
    hand_over("memory_hard = 2M", _i == 0 ? "memory_guaranteed = 8M" : "memory_guaranteed = 14M");
    ck_until(has(near, "near", "spilled") >= 2 * BUFFER_BYTES); /* by F_TENANT alone */
    check(near, b, 4, 1);
    check(far, c, 8, 101);
    ck_until(has(near, "far", "mapped") == 8 * BUFFER_BYTES);
    check(near, b, 4, 1); /* the rest of near's limit, beside the guarantee */
    hand_over("", "");
    for (unsigned round = 0; round < 2; round++) {
        check(near, b, 4, 1);
        check(far, c, 8, 101);
    }
    ck_until(has(near, "near", "mapped") == 4 * BUFFER_BYTES);
    ck_until(has(near, "far", "mapped") == 8 * BUFFER_BYTES);
    gpud_close(far);
    daemon_end(&daemon_of_test, near);
}
END_TEST

/* Nor does another worker forget a limit. */
START_TEST(limits_outlive_the_worker)
{
    gpud_client *near = begin("sim", "memory_hard = 4M", "memory_guaranteed = 13M");
    gpud_buffer b[4];
    gpud_buffer more = {0};
    gpud_shape shape = gpud_shape_1d(GPUD_U32, WORDS);
    fill(near, b, 4, 1);
    hand_over("memory_hard = 4M", "memory_guaranteed = 13M");
    check(near, b, 4, 1);
    ck_assert_uint_eq(has(near, "near", "buffers"), 4 * BUFFER_BYTES);
    ck_gpud_err(gpud_buffer_create(near, shape, 0, NULL, &more), GPUD_ERR_LIMIT);
    pid_t before = daemon_worker(&daemon_of_test, 0);
    ck_assert_int_eq(kill(before, SIGKILL), 0);
    daemon_wait_worker(&daemon_of_test, 0, before);
    for (unsigned i = 0; i < 4; i++) {
        (void)gpud_buffer_free(near, b[i]);
    }
    ck_until(has(near, "near", "buffers") == 0);
    fill(near, b, 4, 1);
    ck_gpud_err(gpud_buffer_create(near, shape, 0, NULL, &more), GPUD_ERR_LIMIT);
    /* beside the other tenant's guarantee there is less room than it uses */
    ck_until(has(near, "near", "spilled") > 0);
    check(near, b, 4, 1);
    daemon_end(&daemon_of_test, near);
}
END_TEST

/* More than a device has is guaranteed: it does not serve, and says why, until it is less. */
START_TEST(a_device_that_cannot_keep_what_is_guaranteed)
{
    static char out[DAEMON_OUTPUT];
    static char err[DAEMON_OUTPUT];
    struct daemon *d = &daemon_of_test;
    char reason[512];
    daemon_prepare(d, "--backend", "sim", "--backend-options", "speed=0", "--config", settings,
                   "--set", "jobs.device_memory_max=16M", NULL);
    (void)snprintf(settings, sizeof settings, "%s/tenants.conf", d->dir);
    settings_write("memory_guaranteed = 10M", "memory_guaranteed = 7M");
    daemon_spawn(d);
    gpud_client *c = NULL;
    ck_until(gpud_open(d->url, NULL, &c) == 0);
    ck_until(daemon_logged(d, "device 0 does not serve"));
    query_text(c, "devices", "0", "reason", reason, sizeof reason);
    ck_assert_msg(strstr(reason, "17825792 bytes are guaranteed to tenants (far 7340032, near "
                                 "10485760), the device's pool may take 16777216") != NULL,
                  "%s", reason);
    settings_write("memory_guaranteed = 9M", "memory_guaranteed = 7M");
    ck_assert_int_eq(gpuctl(d, out, err, "reload", NULL), 0);
    daemon_wait_ready(d);
    gpud_buffer b[2];
    fill(c, b, 2, 1);
    check(c, b, 2, 1);
    daemon_end(d, c);
}
END_TEST

/* The limit on the host counts for all devices together, and its error says so. */
START_TEST(limits_of_the_host_and_of_all_devices)
{
    static char out[DAEMON_OUTPUT];
    static char err[DAEMON_OUTPUT];
    gpud_client *near = begin("sim", "memory_spilled = 4M\nmemory_total = 18M", "");
    gpud_buffer b[20];
    gpud_buffer more = {0};
    gpud_shape shape = gpud_shape_1d(GPUD_U32, WORDS);
    fill(near, b, 18, 1);
    ck_gpud_err(gpud_buffer_create(near, shape, 0, NULL, &more), GPUD_ERR_LIMIT);
    ck_assert_msg(strstr(gpud_last_error()->text, "raise its memory_total") != NULL, "%s",
                  gpud_last_error()->text);
    for (unsigned round = 0; round < 2; round++) {
        check(near, b, 18, 1); /* in and out, within the limit */
    }
    ck_assert_uint_eq(has(near, "near", "spilled_max"), 4 * BUFFER_BYTES);
    ck_assert_uint_eq(has(near, "near", "total_max"), 18 * BUFFER_BYTES);
    ck_until(has(near, "near", "spilled") >= 2 * BUFFER_BYTES);
    ck_assert_uint_le(has(near, "near", "spilled"), 5 * BUFFER_BYTES); /* one was on its way */
    settings_write("memory_spilled = 4M", "");
    ck_assert_int_eq(gpuctl(&daemon_of_test, out, err, "reload", NULL), 0);
    ck_gpud_ok(gpud_buffer_create(near, shape, 0, NULL, &more));
    ck_gpud_ok(gpud_buffer_create(near, shape, 0, NULL, &more));
    ck_gpud_err(gpud_buffer_create(near, shape, 0, NULL, &more), GPUD_ERR_LIMIT);
    ck_assert_msg(strstr(gpud_last_error()->text, "raise its memory_spilled") != NULL, "%s",
                  gpud_last_error()->text);
    check(near, b, 18, 1);
    ck_assert_uint_eq(has(near, "near", "refusals"), 2);
    daemon_end(&daemon_of_test, near);
}
END_TEST

/* No tenant takes the room that the kernels of all have. */
START_TEST(kernels_have_a_limit)
{
    static const char source[] =
        "//@kernel k(inout f32 y[n])  over n\n{\n    y[i] = y[i] + 1.0f;\n}\n";
    struct daemon d;
    gpud_client *c =
        daemon_begin(&d, "--backend", "opencl", "--set", "tenants.kernels_max=2", NULL);
    gpud_module m[3];
    for (unsigned i = 0; i < 2; i++) {
        ck_gpud_ok(gpud_module_load(c, GPUD_LANG_DIALECT, source, sizeof source - 1, NULL, &m[i]));
    }
    ck_gpud_err(gpud_module_load(c, GPUD_LANG_DIALECT, source, sizeof source - 1, NULL, &m[2]),
                GPUD_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(gpud_last_error()->text, "kernels_max"));
    ck_gpud_ok(gpud_module_unload(c, m[0]));
    ck_gpud_ok(gpud_module_load(c, GPUD_LANG_DIALECT, source, sizeof source - 1, NULL, &m[2]));
    daemon_end(&d, c);
}
END_TEST

/* What the daemon keeps of a tenant's sources, too, whichever session they are of. */
START_TEST(messages_have_a_limit)
{
    enum { LENGTH = 600 * 1024 };
    static const char kernel[] =
        "//@kernel k(inout f32 y[n])  over n\n{\n    y[i] = y[i] + 1.0f;\n}\n";
    static char source[LENGTH];
    struct daemon d;
    gpud_client *c =
        daemon_begin(&d, "--backend", "opencl", "--set", "tenants.message_bytes_max=1M", NULL);
    gpud_client *other = client_open(d.url);
    gpud_module m[2];
    memset(source, '\n', sizeof source);
    memcpy(source, kernel, sizeof kernel - 1);
    ck_gpud_ok(gpud_module_load(c, GPUD_LANG_DIALECT, source, LENGTH, NULL, &m[0]));
    ck_gpud_err(gpud_module_load(other, GPUD_LANG_DIALECT, source, LENGTH, NULL, &m[1]),
                GPUD_ERR_BUSY);
    ck_assert_ptr_nonnull(strstr(gpud_last_error()->text, "message_bytes_max"));
    ck_gpud_ok(gpud_module_unload(c, m[0]));
    ck_gpud_ok(gpud_module_load(other, GPUD_LANG_DIALECT, source, LENGTH, NULL, &m[1]));
    gpud_close(other);
    daemon_end(&d, c);
}
END_TEST

/* ---- device time ----------------------------------------------------------------------------- */

/* A fill of a group of so many elements, or of a part of one, takes 2 ms. */
#define ITEMS "items=128000"
enum { BACKLOG = 120, GROUP = 256, EACH = 1, HELD = 750, GROUP_MS = 2 };

/* A job that takes so many groups. */
static gpud_job *send(gpud_client *c, gpud_kernel fill, gpud_buffer b, uint64_t groups,
                      enum gpud_class class)
{
    gpud_arg args[] = {gpud_f32(1), gpud_arg_with(gpud_slice(b, 0, groups * GROUP), GPUD_OUT)};
    gpud_submit_options o = {.size = sizeof o, .job_class = class};
    gpud_job *job = NULL;
    ck_gpud_ok(gpud_launch(c, fill, args, 2, NULL, &o, &job));
    return job;
}

struct sender {
    gpud_client *client;
    gpud_kernel fill;
    gpud_buffer buffer;
    gpud_job *job[BACKLOG];
};

static void sender_begin(struct sender *s, gpud_client *c)
{
    s->client = c;
    s->fill = kernel_find(c, "fill");
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, GROUP * HELD), GPUD_BUFFER_ZERO, NULL,
                                  &s->buffer));
}

static void sender_send(struct sender *s, enum gpud_class class)
{
    for (unsigned i = 0; i < BACKLOG; i++) {
        s->job[i] = send(s->client, s->fill, s->buffer, EACH, class);
    }
}

/* How many jobs of the tenant ended until then. *ret_last_ns: when the last of them did. */
static unsigned ended(gpud_client *c, const char *tenant, uint64_t until_ns, uint64_t *ret_last_ns)
{
    gpud_query_options o = {.size = sizeof o, .tenant = tenant};
    gpud_table *jobs = NULL;
    unsigned count = 0;
    ck_gpud_ok(gpud_query_with(c, "jobs", &o, &jobs));
    int at = gpud_table_find(jobs, "ended_at");
    ck_assert_int_ge(at, 0);
    for (uint32_t row = 0; row < gpud_table_rows(jobs); row++) {
        uint64_t ns = gpud_table_value(jobs, row, (uint32_t)at);
        *ret_last_ns = ns <= until_ns && ns > *ret_last_ns ? ns : *ret_last_ns;
        count += ns != 0 && ns <= until_ns;
    }
    gpud_table_free(jobs);
    return count;
}

static void sender_end(struct sender *s)
{
    for (unsigned i = 0; i < BACKLOG; i++) {
        ck_gpud_ok(gpud_wait(s->job[i], PATIENCE));
        gpud_job_free(s->job[i]);
    }
}

/* While a job of the near tenant holds the device, both send what they have. How many of those jobs
 * of the near one have ended when all of the far one have. */
static unsigned near_done(struct sender *near, struct sender *far, enum gpud_class class)
{
    uint64_t last_ns = 0;
    uint64_t any_ns = 0;
    gpud_job *held = send(near->client, near->fill, near->buffer, HELD, GPUD_CLASS_USUAL);
    job_await_dispatch(near->client, held);
    sender_send(near, class);
    sender_send(far, GPUD_CLASS_USUAL);
    ck_gpud_ok(gpud_flush(near->client, PATIENCE));
    ck_gpud_ok(gpud_flush(far->client, PATIENCE));
    ck_assert_uint_eq(ended(near->client, "far", UINT64_MAX, &last_ns), BACKLOG);
    unsigned done = ended(near->client, "near", last_ns, &any_ns) - 1;
    sender_end(near);
    sender_end(far);
    ck_gpud_ok(gpud_wait(held, PATIENCE));
    gpud_job_free(held);
    return done;
}

/* Of two tenants with as many jobs each, the one with three times the weight is done when the other
 * has had a third of its jobs done, and first paid for the job that held the device: */
START_TEST(device_time_goes_by_weight)
{
    static const struct {
        const char *near, *far;
        enum gpud_class class;
        unsigned least, most;
    } of[] = {
        {"weight = 100", "weight = 300", GPUD_CLASS_USUAL, 0, BACKLOG / 3},
        {"weight = 10000", "weight = 1", GPUD_CLASS_USUAL, BACKLOG - 3, BACKLOG},
        {"weight = 10000", "weight = 1", GPUD_CLASS_BATCH, 0, BACKLOG / 4},
        {"weight = 10000\nclass = batch", "weight = 1", GPUD_CLASS_REALTIME, 0, BACKLOG / 4},
    };
    struct sender near;
    struct sender far;
    gpud_client *c = begin_with("sim", ITEMS, of[_i].near, of[_i].far);
    sender_begin(&near, c);
    sender_begin(&far, client_open(far_url));
    unsigned done = near_done(&near, &far, of[_i].class);
    ck_assert_msg(done >= of[_i].least && done <= of[_i].most, "%u of %u are done, not %u to %u",
                  done, (unsigned)BACKLOG, of[_i].least, of[_i].most);
    uint64_t cost = (uint64_t)BACKLOG * EACH * GROUP_MS * 1000000;
    ck_assert_uint_ge(has(c, "far", "device_time"), cost);
    ck_assert_uint_ge(has(c, "near", "device_time"), cost + (uint64_t)HELD * GROUP_MS * 1000000);
    gpud_close(far.client);
    daemon_end(&daemon_of_test, c);
}
END_TEST

/* The settings of a tenant count for jobs that wait already. */
START_TEST(a_reload_changes_a_weight)
{
    struct sender near;
    struct sender far;
    gpud_client *c = begin_with("sim", ITEMS, "weight = 1", "weight = 1");
    sender_begin(&near, c);
    sender_begin(&far, client_open(far_url));
    settings_write("weight = 10000", "weight = 1");
    ck_gpud_ok(gpud_control(c, "reload", NULL));
    ck_assert_uint_eq(has(c, "near", "weight"), 10000);
    ck_assert_uint_ge(near_done(&near, &far, GPUD_CLASS_USUAL), BACKLOG - 3);
    gpud_close(far.client);
    daemon_end(&daemon_of_test, c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tenants");
    suite_add(suite, a_hard_limit_over_several_clients);
    suite_add_loop(suite, a_guarantee_under_pressure, 2);
    suite_add(suite, soft_limits_give_first);
    suite_add(suite, a_reload_lowers_a_limit);
    suite_add_loop(suite, limits_are_those_of_the_front, 2);
    suite_add(suite, limits_outlive_the_worker);
    suite_add(suite, limits_of_the_host_and_of_all_devices);
    suite_add(suite, a_device_that_cannot_keep_what_is_guaranteed);
    suite_add(suite, kernels_have_a_limit);
    suite_add(suite, messages_have_a_limit);
    suite_add_loop(suite, device_time_goes_by_weight, 4);
    suite_add(suite, a_reload_changes_a_weight);
    return system_main(suite);
}
