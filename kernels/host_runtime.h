/* The definitions that generated host C uses; only that file includes this header. */
#ifndef KERNELS_HOST_RUNTIME_H
#define KERNELS_HOST_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>
#include <tgmath.h>

#include "kernels/host.h"
#include "kernels/host_int.h"

typedef int8_t i8;
typedef uint8_t u8;
typedef int16_t i16;
typedef uint16_t u16;
typedef int32_t i32;
typedef uint32_t u32;
typedef int64_t i64;
typedef uint64_t u64;
typedef float f32;
typedef double f64;

#define helper   static inline
#define constant static const
#define global
#define local
#define barrier() host_barrier(gk_item)
#define rsqrt(x)  (1 / sqrt(x))

#define min(a, b)                                                                                  \
    ({                                                                                             \
        __typeof__(a) gk_a = (a);                                                                  \
        __typeof__(b) gk_b = (b);                                                                  \
        gk_a < gk_b ? gk_a : gk_b;                                                                 \
    })
#define max(a, b)                                                                                  \
    ({                                                                                             \
        __typeof__(a) gk_a = (a);                                                                  \
        __typeof__(b) gk_b = (b);                                                                  \
        gk_a > gk_b ? gk_a : gk_b;                                                                 \
    })

/* One thread runs a launch, so these need not be atomic. Each returns the old value. */
#define GK_UPDATE(p, value)                                                                        \
    ({                                                                                             \
        __typeof__(p) gk_p = (p);                                                                  \
        __typeof__(*gk_p) gk_old = *gk_p;                                                          \
        *gk_p = (value);                                                                           \
        gk_old;                                                                                    \
    })
#define atomic_add(p, v) GK_UPDATE(p, gk_old + (v))
#define atomic_min(p, v) GK_UPDATE(p, min(gk_old, (v)))
#define atomic_max(p, v) GK_UPDATE(p, max(gk_old, (v)))

#define HOST_KERNEL(entry, count, barriers, local_bytes)                                           \
    static int run_##entry(const uint64_t *range, const uint64_t *group, void *const *args,        \
                           unsigned arg_count, struct err *e)                                      \
    {                                                                                              \
        static const struct host_code code = {#entry, item_##entry, count, barriers, local_bytes}; \
        return host_run(&code, range, group, args, arg_count, e);                                  \
    }
#define HOST_ROW(entry, count) {#entry, count, run_##entry},

#endif
