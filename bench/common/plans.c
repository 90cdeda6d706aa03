#include "bench/common/plans.h"

#include <math.h>
#include <stdlib.h>

#include "bench/common/echo.h"

static float *content(struct planned *p, unsigned buffer, size_t count)
{
    float *data = malloc(count * sizeof *data);
    if (data == NULL) {
        bench_die("no memory for %zu numbers", count);
    }
    for (size_t i = 0; i < count; i++) {
        data[i] = (float)((i * 7 + buffer * 3) % 1000) / 1000.0f;
    }
    p->content[buffer] = data;
    p->plan.content[buffer] = data;
    p->plan.bytes[buffer] = count * sizeof *data;
    return data;
}

static void room(struct planned *p, unsigned buffer, size_t count)
{
    p->plan.bytes[buffer] = count * sizeof(float);
}

static void init_saxpy(struct planned *p)
{
    p->plan.name = "saxpy";
    p->plan.buffer_count = 2;
    p->plan.result = 1;
    (void)content(p, 0, p->n);
    (void)content(p, 1, p->n);
    plan_launch(&p->plan, PLAN_SAXPY, p->n, 64);
    plan_value(&p->plan, &p->n);
    plan_value(&p->plan, &p->a);
    plan_buffer(&p->plan, PLAN_IN, 0);
    plan_buffer(&p->plan, PLAN_INOUT, 1);
}

static void init_sum(struct planned *p)
{
    size_t parts = (p->n + PLAN_SUM_ITEMS - 1) / PLAN_SUM_ITEMS;
    p->plan.name = "sum";
    p->plan.buffer_count = 2;
    p->plan.result = 1;
    (void)content(p, 0, p->n);
    room(p, 1, parts);
    plan_launch(&p->plan, PLAN_SUM, parts, 1);
    plan_value(&p->plan, &p->n);
    plan_buffer(&p->plan, PLAN_IN, 0);
    plan_buffer(&p->plan, PLAN_OUT, 1);
}

static void init_gemm(struct planned *p)
{
    size_t count = (size_t)p->n * p->n;
    p->plan.name = "gemm";
    p->plan.buffer_count = 3;
    p->plan.result = 2;
    (void)content(p, 0, count);
    (void)content(p, 1, count);
    room(p, 2, count);
    plan_launch(&p->plan, PLAN_GEMM, p->n, 16);
    p->plan.step[0].global[1] = p->plan.step[0].global[0];
    p->plan.step[0].local[1] = 16;
    plan_value(&p->plan, &p->n);
    plan_buffer(&p->plan, PLAN_IN, 0);
    plan_buffer(&p->plan, PLAN_IN, 1);
    plan_buffer(&p->plan, PLAN_OUT, 2);
}

static void stage(struct planned *p, enum plan_kernel k, unsigned from, unsigned to)
{
    plan_launch(&p->plan, k, p->n, 64);
    plan_value(&p->plan, &p->n);
    if (k == PLAN_SCALE) {
        plan_value(&p->plan, &p->a);
    }
    plan_buffer(&p->plan, PLAN_IN, from);
    plan_buffer(&p->plan, PLAN_OUT, to);
}

static void init_pipeline(struct planned *p)
{
    p->plan.name = "pipeline";
    p->plan.buffer_count = 2;
    p->plan.result = 1;
    (void)content(p, 0, p->n);
    room(p, 1, p->n);
    plan_move(&p->plan, PLAN_WRITE, 0);
    stage(p, PLAN_SCALE, 0, 1);
    stage(p, PLAN_BLUR, 1, 0);
    stage(p, PLAN_ROOT, 0, 1);
    plan_move(&p->plan, PLAN_READ, 1);
}

static void init_frame(struct planned *p)
{
    size_t parts = (p->n + PLAN_SUM_ITEMS - 1) / PLAN_SUM_ITEMS;
    p->plan.name = "frame";
    p->plan.buffer_count = 4;
    p->plan.result = 3;
    p->plan.sealed = 1u << 1;
    (void)content(p, 0, p->n);
    (void)content(p, 1, p->n);
    room(p, 2, p->n);
    room(p, 3, parts);
    plan_move(&p->plan, PLAN_WRITE, 0);
    plan_launch(&p->plan, PLAN_WEIGH, p->n, 64);
    plan_value(&p->plan, &p->n);
    plan_buffer(&p->plan, PLAN_IN, 0);
    plan_buffer(&p->plan, PLAN_IN, 1);
    plan_buffer(&p->plan, PLAN_OUT, 2);
    plan_launch(&p->plan, PLAN_SUM, parts, 1);
    plan_value(&p->plan, &p->n);
    plan_buffer(&p->plan, PLAN_IN, 2);
    plan_buffer(&p->plan, PLAN_OUT, 3);
    plan_move(&p->plan, PLAN_READ, 3);
}

void planned_init(struct planned *p, enum plans which, uint32_t n)
{
    static void (*const inits[PLANS_COUNT])(struct planned *) = {
        NULL, init_saxpy, init_sum, init_gemm, init_pipeline, init_frame};
    *p = (struct planned){.which = which, .n = n, .a = 0.25f};
    if (which == PLANS_EMPTY) {
        p->plan.name = "empty";
        p->plan.buffer_count = 1;
        (void)content(p, 0, 16);
        plan_launch(&p->plan, PLAN_NOTHING, 1, 1);
    } else {
        inits[which](p);
    }
}

void planned_finish(struct planned *p)
{
    for (unsigned i = 0; i < PLAN_BUFFERS; i++) {
        free(p->content[i]);
    }
    *p = (struct planned){.n = 0};
}

/* ---- expected results --------------------------------------------------------------------- */

static double scaled(const struct planned *p, size_t i)
{
    return (double)p->a * (double)p->content[0][i];
}

static double expected(const struct planned *p, size_t i, uint64_t runs)
{
    double sum = 0;
    switch (p->which) {
    case PLANS_SAXPY:
        return (double)p->content[1][i] + (double)runs * scaled(p, i);
    case PLANS_SUM:
        for (size_t k = i * PLAN_SUM_ITEMS; k < (i + 1) * PLAN_SUM_ITEMS && k < p->n; k++) {
            sum += (double)p->content[0][k];
        }
        return sum;
    case PLANS_FRAME:
        for (size_t k = i * PLAN_SUM_ITEMS; k < (i + 1) * PLAN_SUM_ITEMS && k < p->n; k++) {
            sum += (double)p->content[0][k] * (double)p->content[1][k];
        }
        return sum;
    case PLANS_GEMM:
        for (size_t k = 0; k < p->n; k++) {
            sum += (double)p->content[0][i / p->n * p->n + k] *
                   (double)p->content[1][k * p->n + i % p->n];
        }
        return sum;
    case PLANS_PIPELINE:
        return sqrt(
            (scaled(p, i > 0 ? i - 1 : i) + scaled(p, i) + scaled(p, i + 1 < p->n ? i + 1 : i)) /
            3);
    default:
        return (double)p->content[0][i];
    }
}

bool plans_on_double(void)
{
    const char *given = getenv("GPU_DOUBLE");
    return given != NULL && given[0] == '1';
}

bool planned_right(const struct planned *p, const float *result, uint64_t runs)
{
    if (plans_on_double()) {
        return true;
    }
    size_t count = p->plan.bytes[p->plan.result] / sizeof(float);
    size_t pace = count / 1000 + 1; /* about 1000 elements are enough */
    for (size_t i = 0; i < count; i += pace) {
        double right = expected(p, i, runs);
        if (!(fabs((double)result[i] - right) <= 1e-3 * fabs(right) + 1e-5)) {
            return false;
        }
    }
    return true;
}
