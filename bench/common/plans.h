/* The plans that several benchmarks run, with their expected results. Thread: one. */
#ifndef BENCH_PLANS_H
#define BENCH_PLANS_H

#include "bench/common/plan.h"

enum plans {
    PLANS_EMPTY,    /* an empty kernel */
    PLANS_SAXPY,    /* n elements, resident */
    PLANS_SUM,      /* n elements, resident: partial sums */
    PLANS_GEMM,     /* n by n, resident */
    PLANS_PIPELINE, /* n elements: write, scale, blur, root, read */
    PLANS_FRAME,    /* n elements: write, weigh with a sealed buffer, sum, read the sums */
    PLANS_COUNT
};

/* A plan and its parameters; owns the memory of the plan's content. */
struct planned {
    struct plan plan;
    enum plans which;
    uint32_t n;
    float a;
    float *content[PLAN_BUFFERS]; /* owned */
};

void planned_init(struct planned *p, enum plans which, uint32_t n);
void planned_finish(struct planned *p);
/* GPU_DOUBLE=1 in the environment: the driver is a test double, which runs no kernels of plans. */
bool plans_on_double(void);
/* Is this the content of the buffer `result` after so many runs? Always true on a test double. */
bool planned_right(const struct planned *p, const float *result, uint64_t runs);

#endif
