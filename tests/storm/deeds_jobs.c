/* Deeds that send jobs: what they return is computed here as well. */
#include <stdio.h>
#include <string.h>

#include "tests/storm/client.h"
#include "tests/system/harness/harness.h"

static struct task tasks[TASKS_MAX]; /* of this process */

static void numbers(struct chance *r, float *out, unsigned count)
{
    float first = (float)chance_below(r, 1000);
    for (unsigned i = 0; i < count; i++) {
        out[i] = first + (float)i;
    }
}

/* y = a * x + start everywhere */
static void check_axpy(struct client *k, const float *x, const float *y, unsigned count, float a,
                       float start)
{
    for (unsigned i = 0; i < count; i++) {
        if (y[i] != a * x[i] + start) {
            ledger_break(k->l, BREACH_WRONG, "client %u, deed %s: element %u of %u is %g, not %g",
                         k->index, deed_name(k->deed), i, count, (double)y[i],
                         (double)(a * x[i] + start));
            return;
        }
    }
}

static void fill(float *out, unsigned count, float value)
{
    for (unsigned i = 0; i < count; i++) {
        out[i] = value;
    }
}

void deed_call(struct client *k)
{
    struct task *t = &tasks[0];
    unsigned count = 1 + (unsigned)chance_below(&k->chance, ITEMS_MAX);
    float a = (float)chance_below(&k->chance, 100);
    numbers(&k->chance, t->x, count);
    fill(t->y, count, 7);
    gpud_arg args[] = {gpud_f32(a), gpud_host(t->x, count, GPUD_F32),
                       gpud_host(t->y, count, GPUD_F32)};
    int rc = CALL(k, "gpud_call", gpud_call(k->c, k->axpy, args, 3, NULL));
    if (expect(k, rc, "gpud_call", expect_pure)) {
        atomic_fetch_add(&k->l->jobs, 1);
        check_axpy(k, t->x, t->y, count, a, 7);
    }
}

static void send_add(struct client *k, struct task *t, gpud_submit_options *o, unsigned count)
{
    static float y[ITEMS_MAX];
    numbers(&k->chance, t->x, count);
    t->value = (float)chance_below(&k->chance, 1000);
    fill(y, count, t->value);
    gpud_arg args[] = {gpud_host(t->x, count, GPUD_F32), gpud_host(y, count, GPUD_F32),
                       gpud_host_out(t->y, count, GPUD_F32)};
    t->code = CALL(k, "gpud_launch", gpud_launch(k->c, k->add, args, 3, NULL, o, &t->job));
    (void)expect(k, t->code, "gpud_launch", expect_pure);
}

/* Several at once; some have a deadline, some are cancelled, some have one answer only. */
void deed_async(struct client *k)
{
    static const int codes[] = {GPUD_ERR_BUSY, GPUD_ERR_LIMIT, GPUD_ERR_CANCELLED,
                                GPUD_ERR_DEADLINE, 0};
    unsigned count = 1 + (unsigned)chance_below(&k->chance, ITEMS_MAX);
    unsigned many = 1 + (unsigned)chance_below(&k->chance, TASKS_MAX);
    for (unsigned i = 0; i < many; i++) {
        gpud_submit_options o;
        task_prepare(&tasks[i]);
        task_options(&tasks[i], &o);
        o.flags = (uint32_t)chance_below(&k->chance, 4); /* BLOCK, HELD, both, none */
        o.priority = (int32_t)chance_below(&k->chance, 5) - 2;
        o.job_class = (uint32_t)chance_below(&k->chance, GPUD_CLASS_BATCH + 1);
        o.deadline_ns = chance_one_in(&k->chance, 8) ? 1 + chance_below(&k->chance, 20 * MS) : 0;
        send_add(k, &tasks[i], &o, count);
    }
    for (unsigned i = 0; i < many; i++) {
        if (tasks[i].job != NULL && chance_one_in(&k->chance, 6)) {
            static const int refused[] = {GPUD_ERR_STATE, 0};
            int rc = CALL(k, "gpud_cancel", gpud_cancel(tasks[i].job));
            (void)expect(k, rc, "gpud_cancel", refused);
        }
    }
    for (unsigned i = 0; i < many; i++) {
        bool sent = tasks[i].job != NULL;
        if (task_finish(k, &tasks[i], codes) == 0 && sent) {
            check_axpy(k, tasks[i].x, tasks[i].y, count, 1, tasks[i].value);
        }
    }
}

/* ---- a counter in a resident buffer ------------------------------------------------------- */

static bool counter_ready(struct client *k)
{
    if (k->counter.id != 0) {
        return true;
    }
    k->counter_mark = mark_now(k);
    k->low = k->high = 0;
    k->tainted = false;
    k->failed[0] = '\0';
    int rc = CALL(k, "gpud_buffer_create",
                  gpud_buffer_create(k->c, gpud_shape_1d(GPUD_F32, COUNT_ITEMS), GPUD_BUFFER_ZERO,
                                     "counter", &k->counter));
    return expect(k, rc, "gpud_buffer_create", expect_pure);
}

static void counter_drop(struct client *k)
{
    (void)gpud_buffer_free(k->c, k->counter);
    k->counter.id = 0;
}

/* The job's part in what the counter may show. */
static void counter_account(struct client *k, const struct task *t)
{
    size_t used = strlen(k->failed);
    if (t->code != 0) {
        (void)snprintf(k->failed + used, sizeof k->failed - used, " %s/%d", gpud_err_name(t->code),
                       t->effects);
    }
    if (t->code == 0) {
        k->low++;
        k->high++;
    } else if (t->effects != GPUD_EFFECTS_NONE) {
        k->high++;
        k->tainted = true;
    }
}

static void counter_judge(struct client *k, const float *value)
{
    for (unsigned i = 1; i < COUNT_ITEMS; i++) {
        if (value[i] != value[0]) {
            ledger_break(k->l, BREACH_WRONG, "client %u: the counter has %g and %g", k->index,
                         (double)value[0], (double)value[i]);
            counter_drop(k);
            return;
        }
    }
    if (value[0] > (float)k->high || value[0] < (float)k->low) {
        ledger_break(k->l, value[0] > (float)k->high ? BREACH_DOUBLED : BREACH_LOST,
                     "client %u: the counter shows %g after %llu to %llu additions", k->index,
                     (double)value[0], (unsigned long long)k->low, (unsigned long long)k->high);
        counter_drop(k);
        return;
    }
    k->low = k->high = (uint64_t)value[0];
    k->tainted = false;
}

static void counter_check(struct client *k)
{
    float value[COUNT_ITEMS];
    int rc = CALL(k, "gpud_read", gpud_read(k->c, k->counter, GPUD_F32, 0, GPUD_REST, value, NULL));
    if (expect(k, rc, "reading the counter", expect_resident)) {
        counter_judge(k, value);
        return;
    }
    if (rc == GPUD_ERR_BUFFER_LOST && !harmed_worker(k, &k->counter_mark)) {
        ledger_break(k->l, BREACH_UNEXPECTED, "client %u: a buffer is lost without a mishap",
                     k->index);
    }
    if (rc == GPUD_ERR_UNDEFINED && !k->tainted) {
        ledger_break(k->l, BREACH_UNEXPECTED,
                     "client %u: the counter is undefined, but each failed job said that it "
                     "changed nothing: %s; jobs:%s",
                     k->index, gpud_last_error()->text, k->failed);
    }
    if (rc != GPUD_ERR_BUSY && rc != GPUD_ERR_LIMIT) {
        counter_drop(k);
    }
}

static void counter_send(struct client *k, struct task *t)
{
    static const float ones[COUNT_ITEMS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                            1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                            1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                            1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    gpud_submit_options o;
    task_prepare(t);
    task_options(t, &o);
    o.flags = (uint32_t)chance_below(&k->chance, 2) * GPUD_SUBMIT_BLOCK;
    o.job_class = (uint32_t)chance_below(&k->chance, GPUD_CLASS_BATCH + 1);
    o.deadline_ns = chance_one_in(&k->chance, 60) ? 1 + chance_below(&k->chance, 10 * MS) : 0;
    gpud_arg args[] = {gpud_f32(1), gpud_host_in(ones, COUNT_ITEMS, GPUD_F32),
                       gpud_inout(k->counter)};
    t->code = CALL(k, "gpud_launch", gpud_launch(k->c, k->axpy, args, 3, NULL, &o, &t->job));
    t->effects = t->code != 0 ? gpud_last_error()->effects : GPUD_EFFECTS_NONE;
    (void)expect(k, t->code, "gpud_launch", expect_resident);
}

/* Additions are done once, or not at all, and each answer says which of both. */
void deed_counter(struct client *k)
{
    static const int codes[] = {
        GPUD_ERR_BUSY,        GPUD_ERR_LIMIT,       GPUD_ERR_CANCELLED, GPUD_ERR_DEADLINE,
        GPUD_ERR_WORKER_LOST, GPUD_ERR_BUFFER_LOST, GPUD_ERR_UNDEFINED, 0};
    if (!counter_ready(k)) {
        return;
    }
    unsigned many = 1 + (unsigned)chance_below(&k->chance, TASKS_MAX);
    bool sent[TASKS_MAX];
    for (unsigned i = 0; i < many; i++) {
        counter_send(k, &tasks[i]);
        sent[i] = tasks[i].job != NULL;
    }
    for (unsigned i = 0; i < many; i++) {
        if (sent[i] && chance_one_in(&k->chance, 40)) {
            int rc = CALL(k, "gpud_cancel", gpud_cancel(tasks[i].job));
            (void)expect(k, rc, "gpud_cancel", expect_pure);
        }
    }
    for (unsigned i = 0; i < many; i++) {
        if (sent[i]) {
            (void)task_finish(k, &tasks[i], codes);
        }
        counter_account(k, &tasks[i]);
    }
    counter_check(k);
}

/* ---- programs ----------------------------------------------------------------------------- */

enum { PROGRAM_ITEMS = 512 };

/* result = value + 2 * data */
static bool program_ready(struct client *k)
{
    if (k->program != NULL) {
        return true;
    }
    gpud_program *p = NULL;
    gpud_shape shape = gpud_shape_1d(GPUD_F32, PROGRAM_ITEMS);
    int rc = gpud_program_create(k->c, "storm", &p);
    if (!expect(k, rc, "gpud_program_create", expect_pure)) {
        return false;
    }
    gpud_arg value = gpud_program_param(p, "value", GPUD_PARAM_SCALAR, gpud_shape_1d(GPUD_F32, 1));
    gpud_arg data = gpud_program_param(p, "data", GPUD_PARAM_DATA, shape);
    gpud_arg x = gpud_program_temp(p, shape);
    gpud_arg y = gpud_program_temp(p, shape);
    gpud_arg args[] = {gpud_f32(2), gpud_arg_with(x, GPUD_IN), gpud_arg_with(y, GPUD_INOUT)};
    (void)gpud_program_write(p, x, data);
    (void)gpud_program_fill(p, y, value);
    (void)gpud_program_launch(p, k->axpy, args, 3, NULL);
    (void)gpud_program_read(p, y);
    rc = CALL(k, "gpud_program_seal", gpud_program_seal(p));
    if (!expect(k, rc, "gpud_program_seal", expect_pure)) {
        gpud_program_free(p);
        return false;
    }
    k->program = p;
    return true;
}

static void program_check(struct client *k, gpud_job *job, const float *x, float value)
{
    const void *out = NULL;
    size_t bytes = 0;
    int rc = gpud_job_output(job, 3, 0, &out, &bytes);
    if (rc != 0 || bytes != PROGRAM_ITEMS * sizeof(float)) {
        ledger_break(k->l, BREACH_WRONG, "client %u: a program's output of %zu bytes: %s", k->index,
                     bytes, gpud_err_name(rc));
        return;
    }
    check_axpy(k, x, out, PROGRAM_ITEMS, 2, value);
}

void deed_program(struct client *k)
{
    struct task *t = &tasks[0];
    if (!program_ready(k)) {
        return;
    }
    for (unsigned i = 0; i < 3; i++) {
        float value = (float)chance_below(&k->chance, 1000);
        gpud_job *job = NULL;
        numbers(&k->chance, t->x, PROGRAM_ITEMS);
        gpud_arg args[] = {gpud_f32(value), gpud_host_in(t->x, PROGRAM_ITEMS, GPUD_F32)};
        int rc = CALL(k, "gpud_run", gpud_run(k->c, k->program, args, 2, NULL, &job));
        if (expect(k, rc, "gpud_run", expect_pure)) {
            atomic_fetch_add(&k->l->jobs, 1);
            program_check(k, job, t->x, value);
        }
        gpud_job_free(job);
    }
    if (chance_one_in(&k->chance, 10)) {
        gpud_program_free(k->program);
        k->program = NULL;
    }
}

/* ---- memory shared with the daemon -------------------------------------------------------- */

static bool arena_ready(struct client *k)
{
    void *memory = NULL;
    if (k->arena != NULL) {
        return true;
    }
    int rc =
        CALL(k, "gpud_host_alloc", gpud_host_alloc(k->c, 2 * ARENA_ITEMS * sizeof(float), &memory));
    if (!expect(k, rc, "gpud_host_alloc", expect_pure)) {
        return false;
    }
    k->arena = memory;
    k->arena_value = 3;
    fill(k->arena, ARENA_ITEMS, 1);
    fill(k->arena + ARENA_ITEMS, ARENA_ITEMS, k->arena_value);
    return true;
}

/* Adds in place: a job that ran again after its worker ended must not add twice. */
void deed_arena(struct client *k)
{
    if (!arena_ready(k)) {
        return;
    }
    float *y = k->arena + ARENA_ITEMS;
    gpud_arg args[] = {gpud_f32(1), gpud_host_in(k->arena, ARENA_ITEMS, GPUD_F32),
                       gpud_host_inout(y, ARENA_ITEMS, GPUD_F32)};
    if (chance_one_in(&k->chance, 2)) {
        args[2] = gpud_arg_direct(args[2]);
    }
    int rc = CALL(k, "gpud_call", gpud_call(k->c, k->axpy, args, 3, NULL));
    if (expect(k, rc, "gpud_call in an arena", expect_arena)) {
        atomic_fetch_add(&k->l->jobs, 1);
        k->arena_value += 1;
        check_axpy(k, k->arena, y, ARENA_ITEMS, 0, k->arena_value);
    }
    fill(y, ARENA_ITEMS, k->arena_value);
    if (chance_one_in(&k->chance, 20)) {
        int freed = CALL(k, "gpud_host_free", gpud_host_free(k->c, k->arena));
        (void)expect(k, freed, "gpud_host_free", expect_pure);
        k->arena = NULL;
    }
}
