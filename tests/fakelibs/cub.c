#include "kernels/cub.h"
#include "common/shape.h"
#include "tests/fakelibs/fakelibs.h"

static int compare(const void *a, const void *b)
{
    unsigned x = *(const unsigned *)a;
    unsigned y = *(const unsigned *)b;
    return x < y ? -1 : x > y;
}

/* All for one type; integers wrap around. */
#define ALGORITHMS(NAME, T, SUM)                                                                   \
    static void NAME(const struct gpud_cub_call *c)                                                \
    {                                                                                              \
        const T *in = c->in;                                                                       \
        T *out = c->out;                                                                           \
        SUM sum = 0;                                                                               \
        T best = in[0];                                                                            \
        for (size_t i = 0; i < c->count; i++) {                                                    \
            if (c->operation == GPUD_CUB_SCAN_EXCLUSIVE) {                                         \
                T own = in[i];                                                                     \
                out[i] = (T)sum;                                                                   \
                sum += (SUM)own;                                                                   \
                continue;                                                                          \
            }                                                                                      \
            sum += (SUM)in[i];                                                                     \
            best = c->operation == GPUD_CUB_MIN   ? (in[i] < best ? in[i] : best)                  \
                   : c->operation == GPUD_CUB_MAX ? (in[i] > best ? in[i] : best)                  \
                                                  : best;                                          \
            if (c->operation == GPUD_CUB_SCAN_INCLUSIVE) {                                         \
                out[i] = (T)sum;                                                                   \
            }                                                                                      \
        }                                                                                          \
        if (c->operation == GPUD_CUB_SUM) {                                                        \
            out[0] = (T)sum;                                                                       \
        } else if (c->operation == GPUD_CUB_MIN || c->operation == GPUD_CUB_MAX) {                 \
            out[0] = best;                                                                         \
        }                                                                                          \
    }

ALGORITHMS(do_f32, float, double)
ALGORITHMS(do_f64, double, double)
ALGORITHMS(do_i32, int, unsigned)
ALGORITHMS(do_u32, unsigned, unsigned)

static void execute(const void *work)
{
    const struct gpud_cub_call *c = work;
    if (c->operation == GPUD_CUB_SORT) {
        qsort(c->out, (size_t)c->count, sizeof(unsigned), compare);
    } else if (c->dtype == DTYPE_F32) {
        do_f32(c);
    } else if (c->dtype == DTYPE_F64) {
        do_f64(c);
    } else if (c->dtype == DTYPE_I32) {
        do_i32(c);
    } else {
        do_u32(c);
    }
}

EXPORT int gpud_cub_run(const struct gpud_cub_call *call, void *workspace, size_t *bytes,
                        void *stream);
int gpud_cub_run(const struct gpud_cub_call *call, void *workspace, size_t *bytes, void *stream)
{
    if (!workspace) {
        *bytes = 1024;
        return scripted("cub");
    }
    return *bytes >= 1024 ? on_stream(stream, execute, call, sizeof *call) : 1;
}
