#include "kernels/plan.h"

#include <pthread.h>
#include <string.h>

#include "kernels/builtin.h"
#include "kernels/plan_int.h"

static const struct plan_operation *const operations[] = {
    &plan_reduce_sum,     &plan_reduce_min,   &plan_reduce_max, &plan_dot,     &plan_scan_inclusive,
    &plan_scan_exclusive, &plan_histogram,    &plan_sort,       &plan_fft,     &plan_ifft,
    &plan_fft_batched,    &plan_ifft_batched, &plan_fft_2d,     &plan_ifft_2d, &plan_gaussian,
};
#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

static struct signature signatures[OPERATIONS];

static void load(void)
{
    for (size_t o = 0; o < OPERATIONS; o++) {
        /* a text that does not parse leaves a row without a name, which is never found */
        (void)signature_parse(bytes_str(operations[o]->text), &signatures[o], NULL);
    }
}

static int find(const char *operation)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    for (size_t o = 0; o < OPERATIONS; o++) {
        if (operation[0] != 0 && strcmp(signatures[o].name, operation) == 0) {
            return (int)o;
        }
    }
    return -1;
}

const struct signature *plan_signature(const char *operation)
{
    int o = find(operation);
    return o < 0 ? NULL : &signatures[o];
}

unsigned plan_operation_count(void)
{
    return (unsigned)OPERATIONS;
}

const char *plan_operation_name(unsigned index)
{
    (void)find("");
    return index < OPERATIONS ? signatures[index].name : NULL;
}

bool plan_library(const char *kernel)
{
    static const char *const names[] = {"gemm", "gemm_add", "gemm_batched", "random_normal"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(kernel, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* A primitive kernel called by its own name. */
static void make_single(struct plan_build *b)
{
    struct plan_ref args[SIG_ARGS];
    for (unsigned a = 0; a < b->sig->arg_count; a++) {
        args[a] = plan_user(b, a);
    }
    plan_launch(b, b->sig->name, args, b->sig->arg_count);
}

int plan_make(const char *operation, const struct sig_value *values, unsigned count,
              const struct sig_binding *binding, struct plan *ret_plan, struct err *e)
{
    int o = find(operation);
    unsigned module = 0;
    struct plan_build b = {.plan = ret_plan, .values = values, .binding = binding, .e = e};
    if (o >= 0) {
        b.sig = &signatures[o];
    } else if (!builtin_find(operation, &module, &b.sig)) {
        return err_set(e, ERR_NOT_FOUND, "no operation %s", operation);
    }
    if (count != b.sig->arg_count) {
        return err_set(e, ERR_ARG_COUNT, "%s takes %u arguments, not %u", operation,
                       b.sig->arg_count, count);
    }
    ret_plan->step_count = 0;
    ret_plan->temp_count = 0;
    ret_plan->library = false;
    ret_plan->after = 0;
    if (o >= 0) {
        operations[o]->make(&b);
    } else {
        make_single(&b);
    }
    return b.code;
}
