#include "tests/sim/client/fiber.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#define STACK_BYTES (4u << 20)
#else
#define STACK_BYTES (1u << 20) /* touched as far as it is used */
#endif

struct fiber {
    ucontext_t context;
    void *stack; /* owned */
    void *fake;  /* AddressSanitizer's, while the fiber is stopped */
    void (*run)(void *arg);
    void *arg;
};

static struct {
    ucontext_t context;
    void *fake;
    const void *bottom; /* of the thread's stack */
    size_t size;
    struct fiber *current; /* NULL: the thread itself runs */
} base;

/* AddressSanitizer has to know which stack is in use. */
static void leave(void **fake, const void *bottom, size_t size)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(fake, bottom, size);
#else
    (void)fake;
    (void)bottom;
    (void)size;
#endif
}

static void arrive(void *fake, const void **bottom, size_t *size)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(fake, bottom, size);
#else
    (void)fake;
    (void)bottom;
    (void)size;
#endif
}

static void begin(void)
{
    struct fiber *f = base.current;
    arrive(NULL, &base.bottom, &base.size);
    f->run(f->arg);
    abort();
}

/* getcontext may return twice, for all that the compiler knows. */
static __attribute__((noinline)) bool prepare(struct fiber *f)
{
    return getcontext(&f->context) == 0;
}

struct fiber *fiber_make(void (*run)(void *arg), void *arg)
{
    struct fiber *f = calloc(1, sizeof *f);
    void *stack =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (f == NULL || stack == MAP_FAILED || !prepare(f)) {
        abort();
    }
    f->run = run;
    f->arg = arg;
    f->stack = stack;
    f->context.uc_stack = (stack_t){.ss_sp = f->stack, .ss_size = STACK_BYTES};
    makecontext(&f->context, begin, 0);
    return f;
}

void fiber_free(struct fiber *f)
{
    (void)munmap(f->stack, STACK_BYTES);
    free(f);
}

void fiber_resume(struct fiber *f)
{
    base.current = f;
    leave(&base.fake, f->stack, STACK_BYTES);
    (void)swapcontext(&base.context, &f->context);
    arrive(base.fake, NULL, NULL);
    base.current = NULL;
}

void fiber_stop(void)
{
    struct fiber *f = base.current;
    leave(&f->fake, base.bottom, base.size);
    (void)swapcontext(&f->context, &base.context);
    arrive(f->fake, &base.bottom, &base.size);
}

bool fiber_runs(void)
{
    return base.current != NULL;
}
