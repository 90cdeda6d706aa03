/* Deeds with buffers that stay, and with sessions that end. */
#include <stdio.h>
#include <string.h>

#include "tests/storm/client.h"
#include "tests/system/harness/harness.h"

#define SHARED_ITEMS   2048u
#define TRANSFER_BYTES (3u << 20)

static void judge_numbers(struct client *k, const float *value, uint32_t count, float first)
{
    for (uint32_t i = 0; i < count; i++) {
        if (value[i] != first + (float)i) {
            ledger_break(k->l, BREACH_WRONG, "client %u, deed %s: element %u of %u is %g, not %g",
                         k->index, deed_name(k->deed), i, count, (double)value[i],
                         (double)(first + (float)i));
            return;
        }
    }
}

static bool make(struct client *k, uint32_t count, float first, gpud_buffer *ret_buffer)
{
    static float value[ITEMS_MAX];
    for (uint32_t i = 0; i < count; i++) {
        value[i] = first + (float)i;
    }
    gpud_buffer b = {0};
    int rc = CALL(k, "gpud_buffer_create",
                  gpud_buffer_create(k->c, gpud_shape_1d(GPUD_F32, count), 0, "numbers", &b));
    if (!expect(k, rc, "gpud_buffer_create", expect_pure)) {
        return false;
    }
    rc = CALL(k, "gpud_write", gpud_write(k->c, b, GPUD_F32, 0, GPUD_REST, value, NULL));
    if (!expect(k, rc, "gpud_write", expect_resident)) {
        (void)gpud_buffer_free(k->c, b);
        return false;
    }
    *ret_buffer = b;
    return true;
}

/* ---- sealed ------------------------------------------------------------------------------- */

static void sealed_make(struct client *k, struct sealed *s)
{
    gpud_buffer b = {0};
    s->count = 1 + (uint32_t)chance_below(&k->chance, ITEMS_MAX);
    s->first = (uint32_t)chance_below(&k->chance, 10000);
    s->mark = mark_now(k);
    if (!make(k, s->count, (float)s->first, &b)) {
        return;
    }
    int rc = CALL(k, "gpud_buffer_seal", gpud_buffer_seal(k->c, b));
    if (expect(k, rc, "gpud_buffer_seal", expect_resident)) {
        s->buffer = b;
    } else {
        (void)gpud_buffer_free(k->c, b);
    }
}

/* Its content stays, whatever happens to its worker. The host's copy of it ends with the worker and
 * the front together. */
void deed_sealed(struct client *k)
{
    static float value[ITEMS_MAX];
    struct sealed *s = &k->sealed[chance_below(&k->chance, SEALED_MAX)];
    if (s->buffer.id == 0) {
        sealed_make(k, s);
        return;
    }
    static const int lost[] = {GPUD_ERR_BUSY, GPUD_ERR_LIMIT, GPUD_ERR_BUFFER_LOST, 0};
    int rc = 0;
    if (chance_one_in(&k->chance, 2)) {
        rc = CALL(k, "gpud_read", gpud_read(k->c, s->buffer, GPUD_F32, 0, GPUD_REST, value, NULL));
    } else {
        memset(value, 0, sizeof value);
        gpud_arg args[] = {gpud_f32(1), gpud_in(s->buffer), gpud_host(value, s->count, GPUD_F32)};
        rc = CALL(k, "gpud_call", gpud_call(k->c, k->axpy, args, 3, NULL));
    }
    if (expect(k, rc, "using a sealed buffer", harmed_both(k, &s->mark) ? lost : expect_pure)) {
        atomic_fetch_add(&k->l->jobs, 1);
        judge_numbers(k, value, s->count, (float)s->first);
    }
    if ((rc != 0 && rc != GPUD_ERR_BUSY && rc != GPUD_ERR_LIMIT) || chance_one_in(&k->chance, 12)) {
        (void)gpud_buffer_free(k->c, s->buffer);
        s->buffer.id = 0;
    }
}

/* ---- published ---------------------------------------------------------------------------- */

/* What a published buffer holds follows from its name. */
static float shared_first(unsigned owner, uint64_t serial)
{
    return (float)((owner * 977 + serial) % 10000);
}

static void shared_name(char *out, size_t size, unsigned owner, uint64_t serial)
{
    (void)snprintf(out, size, "storm-%u-%llu", owner, (unsigned long long)serial);
}

static void shared_publish(struct client *k)
{
    char name[GPUD_NAME];
    gpud_buffer b = {0};
    uint64_t serial = ++k->serial;
    if (!make(k, SHARED_ITEMS, shared_first(k->index, serial), &b)) {
        return;
    }
    shared_name(name, sizeof name, k->index, serial);
    int rc = CALL(k, "gpud_buffer_publish", gpud_buffer_publish(k->c, b, name, GPUD_IN, SECOND));
    if (!expect(k, rc, "gpud_buffer_publish", expect_resident)) {
        (void)gpud_buffer_free(k->c, b);
        return;
    }
    atomic_store(&k->l->shared[k->index], serial);
    if (k->shared.id != 0) {
        (void)gpud_buffer_free(k->c, k->shared);
    }
    k->shared = b;
}

void deed_shared(struct client *k)
{
    static const int codes[] = {GPUD_ERR_BUSY,        GPUD_ERR_LIMIT,     GPUD_ERR_BUFFER_LOST,
                                GPUD_ERR_WORKER_LOST, GPUD_ERR_NOT_FOUND, 0};
    static float value[SHARED_ITEMS];
    char name[GPUD_NAME];
    unsigned owner = (unsigned)chance_below(&k->chance, CLIENTS);
    uint64_t serial = atomic_load(&k->l->shared[owner]);
    if (serial == 0 || owner == k->index || chance_one_in(&k->chance, 4)) {
        shared_publish(k);
        return;
    }
    gpud_buffer b = {0};
    shared_name(name, sizeof name, owner, serial);
    int rc = CALL(k, "gpud_buffer_open", gpud_buffer_open(k->c, name, &b));
    if (!expect(k, rc, "gpud_buffer_open", codes)) {
        return;
    }
    rc = CALL(k, "gpud_read", gpud_read(k->c, b, GPUD_F32, 0, GPUD_REST, value, NULL));
    if (expect(k, rc, "reading a published buffer", codes)) {
        atomic_fetch_add(&k->l->jobs, 1);
        judge_numbers(k, value, SHARED_ITEMS, shared_first(owner, serial));
    }
    (void)gpud_buffer_free(k->c, b);
}

/* ---- megabytes ---------------------------------------------------------------------------- */

static int transfer_through(struct client *k, gpud_buffer *b, const uint8_t *from, uint8_t *to)
{
    gpud_shape shape = gpud_shape_1d(GPUD_U8, TRANSFER_BYTES);
    int rc = CALL(k, "gpud_buffer_create", gpud_buffer_create(k->c, shape, 0, "from", &b[0]));
    rc = rc == 0 ? CALL(k, "gpud_buffer_create", gpud_buffer_create(k->c, shape, 0, "to", &b[1]))
                 : rc;
    rc = rc == 0 ? CALL(k, "gpud_write", gpud_write(k->c, b[0], GPUD_U8, 0, GPUD_REST, from, NULL))
                 : rc;
    rc = rc == 0 ? CALL(k, "gpud_copy", gpud_copy(k->c, gpud_out(b[1]), gpud_in(b[0]))) : rc;
    return rc == 0 ? CALL(k, "gpud_read", gpud_read(k->c, b[1], GPUD_U8, 0, GPUD_REST, to, NULL))
                   : rc;
}

void deed_transfer(struct client *k)
{
    static uint8_t from[TRANSFER_BYTES];
    static uint8_t to[TRANSFER_BYTES];
    gpud_buffer b[2] = {{0}, {0}};
    for (unsigned i = 0; i < TRANSFER_BYTES; i += sizeof(uint64_t)) {
        uint64_t number = chance_next(&k->chance);
        memcpy(from + i, &number, sizeof number);
    }
    memset(to, 0, sizeof to);
    int rc = transfer_through(k, b, from, to);
    if (expect(k, rc, "a transfer", expect_resident)) {
        atomic_fetch_add(&k->l->jobs, 3);
        if (memcmp(from, to, sizeof from) != 0) {
            ledger_break(k->l, BREACH_WRONG, "client %u: 3 MiB came back changed", k->index);
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        if (b[i].id != 0) {
            (void)gpud_buffer_free(k->c, b[i]);
        }
    }
}

/* ---- modules ------------------------------------------------------------------------------ */

static void module_run(struct client *k, gpud_module m, unsigned number)
{
    float x[COUNT_ITEMS];
    gpud_kernel kernel = {0};
    int rc = gpud_module_kernel(k->c, m, "times", &kernel);
    if (!expect(k, rc, "gpud_module_kernel", expect_pure)) {
        return;
    }
    for (unsigned i = 0; i < COUNT_ITEMS; i++) {
        x[i] = (float)i;
    }
    gpud_arg args[] = {gpud_host_inout(x, COUNT_ITEMS, GPUD_F32)};
    rc = CALL(k, "gpud_call", gpud_call(k->c, kernel, args, 1, NULL));
    if (!expect(k, rc, "a loaded kernel", expect_pure)) {
        return;
    }
    atomic_fetch_add(&k->l->jobs, 1);
    for (unsigned i = 0; i < COUNT_ITEMS; i++) {
        if (x[i] != (float)(i * number)) {
            ledger_break(k->l, BREACH_WRONG, "client %u: %u times %u is %g", k->index, i, number,
                         (double)x[i]);
            return;
        }
    }
}

/* A compiler that was killed costs its caller an error. */
void deed_module(struct client *k)
{
    static const int codes[] = {GPUD_ERR_BUSY, GPUD_ERR_LIMIT, 0};
    static const int killed[] = {GPUD_ERR_BUSY, GPUD_ERR_LIMIT, GPUD_ERR_COMPILE,
                                 GPUD_ERR_COMPILE_LIMIT, 0};
    char source[256];
    gpud_module m = {0};
    unsigned number = 2 + (unsigned)chance_below(&k->chance, 60);
    (void)snprintf(source, sizeof source,
                   "//@kernel times<T: f32>(inout T x[n]) over n\n{\n    x[i] = x[i] * %u;\n}\n",
                   number);
    struct mark before = mark_now(k);
    int rc = CALL(k, "gpud_module_load",
                  gpud_module_load(k->c, GPUD_LANG_DIALECT, source, strlen(source), NULL, &m));
    bool excused = harmed(k, &before, VICTIM_COMPILER) || harmed(k, &before, VICTIM_LAUNCHER);
    if (expect(k, rc, "gpud_module_load", excused ? killed : codes)) {
        module_run(k, m, number);
        (void)gpud_module_unload(k->c, m);
    }
}

/* ---- sessions that end -------------------------------------------------------------------- */

/* Submits additions to the published counter; the number of those that were acknowledged. */
static unsigned detached_send(struct client *k, gpud_buffer b, unsigned many)
{
    static const float two[2] = {1, 1};
    unsigned acknowledged = 0;
    gpud_job *jobs[TASKS_MAX] = {NULL};
    for (unsigned i = 0; i < many; i++) {
        gpud_submit_options o = {.size = sizeof o, .flags = GPUD_SUBMIT_DETACHED};
        gpud_arg args[] = {gpud_f32(1), gpud_host_in(two, 2, GPUD_F32), gpud_inout(b)};
        int rc = CALL(k, "gpud_launch", gpud_launch(k->c, k->axpy, args, 3, NULL, &o, &jobs[i]));
        (void)expect(k, rc, "gpud_launch of a detached job", expect_resident);
    }
    (void)CALL(k, "gpud_ping", gpud_ping(k->c, NULL));
    for (unsigned i = 0; i < many; i++) {
        if (jobs[i] != NULL) {
            gpud_error error = {.size = sizeof error};
            bool known = gpud_job_id(jobs[i]) != 0;
            (void)gpud_job_error(jobs[i], &error);
            acknowledged += known && error.code == 0 ? 1 : 0;
            gpud_job_free(jobs[i]);
        }
    }
    return acknowledged;
}

static void detached_check(struct client *k, const char *name, const struct mark *before,
                           unsigned low, unsigned high)
{
    static const int codes[] = {GPUD_ERR_BUSY,
                                GPUD_ERR_LIMIT,
                                GPUD_ERR_BUFFER_LOST,
                                GPUD_ERR_WORKER_LOST,
                                GPUD_ERR_NOT_FOUND,
                                GPUD_ERR_UNDEFINED,
                                0};
    gpud_buffer b = {0};
    float value[2] = {0, 0};
    int rc = CALL(k, "gpud_buffer_open", gpud_buffer_open(k->c, name, &b));
    rc = rc == 0 ? CALL(k, "gpud_read", gpud_read(k->c, b, GPUD_F32, 0, GPUD_REST, value, NULL))
                 : rc;
    bool excused = harmed_worker(k, before);
    static const int calm[] = {GPUD_ERR_BUSY, GPUD_ERR_LIMIT, 0};
    if (!expect(k, rc, "the counter of detached jobs", excused ? codes : calm)) {
        return;
    }
    if (value[0] != value[1] || value[0] > (float)high) {
        ledger_break(k->l, BREACH_DOUBLED, "client %u: %g and %g after %u detached additions",
                     k->index, (double)value[0], (double)value[1], high);
    }
    /* a front that is killed takes the queue of those that have left with it */
    if (value[0] < (float)low && !excused) {
        ledger_break(k->l, BREACH_LOST, "client %u: %g of %u acknowledged detached additions",
                     k->index, (double)value[0], low);
    }
    (void)gpud_buffer_free(k->c, b);
}

/* Jobs that go on after their session, into a buffer that outlives it as well. */
void deed_detached(struct client *k)
{
    char name[GPUD_NAME];
    gpud_buffer b = {0};
    struct mark before = mark_now(k);
    (void)snprintf(name, sizeof name, "detached-%u-%llu", k->index,
                   (unsigned long long)++k->serial);
    int rc = CALL(k, "gpud_buffer_create",
                  gpud_buffer_create(k->c, gpud_shape_1d(GPUD_F32, 2), GPUD_BUFFER_ZERO, NULL, &b));
    rc = rc == 0 ? CALL(k, "gpud_buffer_publish",
                        gpud_buffer_publish(k->c, b, name, GPUD_INOUT, 5 * SECOND))
                 : rc;
    if (!expect(k, rc, "a buffer for detached jobs", expect_resident)) {
        return;
    }
    unsigned many = 1 + (unsigned)chance_below(&k->chance, TASKS_MAX);
    unsigned low = detached_send(k, b, many);
    client_end(k);
    if (client_begin(k)) {
        detached_check(k, name, &before, low, many);
    }
}

/* A process that ends with its connection open and its jobs unfinished. */
static int vanish(void *data)
{
    const struct client *k = data;
    static float y[ITEMS_MAX];
    gpud_client *c = NULL;
    gpud_options o = {.size = sizeof o, .connect_timeout_ns = 5 * SECOND, .timeout_ns = 5 * SECOND};
    gpud_kernel fill = {0};
    if (gpud_open(k->url, &o, &c) != 0 || gpud_kernel_find(c, "fill", &fill) != 0) {
        return 0;
    }
    gpud_buffer b = {0};
    (void)gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, ITEMS_MAX), 0, "left", &b);
    for (unsigned i = 0; i < TASKS_MAX; i++) {
        gpud_job *job = NULL;
        gpud_arg args[] = {gpud_f32(1), gpud_host_out(y, ITEMS_MAX, GPUD_F32)};
        (void)gpud_launch(c, fill, args, 2, NULL, NULL, &job);
    }
    return 0;
}

/* The session's end answers each job once. */
void deed_leave(struct client *k)
{
    static struct task left[TASKS_MAX];
    static float y[TASKS_MAX][COUNT_ITEMS];
    for (unsigned i = 0; i < TASKS_MAX; i++) {
        gpud_submit_options o;
        task_prepare(&left[i]);
        task_options(&left[i], &o);
        gpud_arg args[] = {gpud_host_in(left[i].x, COUNT_ITEMS, GPUD_F32),
                           gpud_host_in(left[i].x, COUNT_ITEMS, GPUD_F32),
                           gpud_host_out(y[i], COUNT_ITEMS, GPUD_F32)};
        int rc = CALL(k, "gpud_launch", gpud_launch(k->c, k->add, args, 3, NULL, &o, &left[i].job));
        (void)expect(k, rc, "gpud_launch", expect_pure);
    }
    client_end(k);
    for (unsigned i = 0; i < TASKS_MAX; i++) {
        if (left[i].job != NULL && left[i].answers != 1) {
            ledger_break(k->l, left[i].answers == 0 ? BREACH_LOST : BREACH_DOUBLED,
                         "client %u: %u answers of a job at the end of its session", k->index,
                         left[i].answers);
        }
        gpud_job_free(left[i].job);
        left[i].job = NULL;
    }
    if (chance_one_in(&k->chance, 2)) {
        (void)process_wait(process_start(vanish, k));
    }
}
