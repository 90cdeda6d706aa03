/* The plans that several benchmarks carry out, with their expected results. Thread: one. */
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

/* Memory of a plan's content belongs to it. */
struct planned {
    struct plan plan;
    enum plans which;
    uint32_t n;
    float a;
    float *content[PLAN_BUFFERS]; /* owned */
};

void planned_init(struct planned *p, enum plans which, uint32_t n);
void planned_finish(struct planned *p);
/* GPU_DOUBLE=1 in the environment: the driver is a double, which runs no kernels of plans. */
bool plans_on_double(void);
/* Is this what the buffer `result` holds after so many runs? On a double everything is. */
bool planned_right(const struct planned *p, const float *result, uint64_t runs);

#endif
