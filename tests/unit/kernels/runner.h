/*
 * Runs operations by their plans without a daemon: on the host's C functions or straight on an
 * OpenCL device. Results are poisoned first and every array has guard bytes behind it.
 */
#ifndef TEST_KERNELS_RUNNER_H
#define TEST_KERNELS_RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/shape.h"
#include "kernels/signature.h"

struct runner_arg {
    bool array;
    const void *value; /* scalars: read; a pointer to one value of `dtype` */
    int dtype;
    void *memory;
};

/* Where kernels are executed. A handle is what mem_create gave. */
struct runner_target {
    const char *name;
    uint64_t size_max; /* elements of the largest arrays that are tested */
    int (*init)(void); /* 0, 77 if there is no such target here, else an error */
    void (*finish)(void);
    void *(*mem_create)(const void *data, size_t size);
    void (*mem_read)(void *memory, void *data, size_t size);
    void (*mem_write)(void *memory, const void *data, size_t size);
    void (*mem_free)(void *memory);
    void (*launch)(unsigned module, const char *entry, const struct sig_binding *binding,
                   const struct runner_arg *args, unsigned count);
    /* NULL: there are none. Runs a whole operation by a library; false: none serves it. */
    bool (*library)(const char *operation, int dtype, const struct runner_arg *args,
                    unsigned count);
};

extern const struct runner_target runner_target; /* the program's */

/* An actual argument of an operation: arrays are given by host memory, which receives results. */
struct operand {
    bool array;
    struct shape shape;
    void *data;
    int dtype;
    uint64_t bits;
};

struct operand op_f32(float v);
struct operand op_f64(double v);
struct operand op_u32(uint32_t v);
struct operand op_scalar(int dtype, double v); /* of any type, exact */
struct operand op_array(int dtype, void *data, unsigned ndim, const uint64_t *dims);
struct operand op_vector(int dtype, void *data, uint64_t count);

/* Binds, plans and executes; fails the running test if anything is refused. Arrays of one `data`
 * are one array on the target, too. */
void run_operation(const char *name, const struct operand *operands, unsigned count);

/* Random numbers, the same in each run. */
void random_seed(uint64_t seed);
uint64_t random_u64(void);
double random_in(double low, double high);

/* An array as long double, whatever its type. */
long double value_at(int dtype, const void *data, uint64_t index);
void value_set(int dtype, void *data, uint64_t index, double value);
void *array_random(int dtype, uint64_t count, double low, double high); /* malloc */
void *array_new(int dtype, uint64_t count);                             /* malloc */
double unit_roundoff(int dtype);                                        /* 2^-24, 2^-53 */

/* Fails unless |actual - expected| <= bound; NaN fails. */
void check_close(const char *what, uint64_t index, long double actual, long double expected,
                 long double bound);

/* Sizes that matter: 0, 1, primes, about a block, and one that is large for the target. */
unsigned size_count(void);
uint64_t size_at(unsigned index);

#endif
