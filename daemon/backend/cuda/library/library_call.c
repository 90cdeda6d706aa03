#include "daemon/backend/cuda/library/library_call.h"

#include <string.h>

#include "common/clock.h"
#include "common/log.h"

/* The first pause between tries; each pause is twice as long as the one before. */
#define AGAIN_NS      NS_PER_S
#define AGAIN_DOUBLED 9u

void cuda_library_set(struct cuda_library *l, enum cuda_library_state state)
{
    atomic_store_explicit(&l->state, (int)state, memory_order_release);
}

void cuda_library_later(struct cuda_library *l)
{
    l->again_ns = clock_now_ns() + (AGAIN_NS << l->failures);
    l->failures += l->failures < AGAIN_DOUBLED;
    cuda_library_set(l, CUDA_LIBRARY_LATER);
}

int cuda_library_check(struct cuda_library *l, int status, const char *call, struct err *e)
{
    if (status == 0) {
        return 0;
    }
    if (!l->reported) {
        log_say(LOG_LIBRARY_BAD, "%s: %s gave %d: the portable kernel does it", l->name, call,
                status);
        l->reported = true;
    }
    return err_set_vendor(e, ERR_UNSUPPORTED, status, "%s: %s gave %d", l->name, call, status);
}

void *cuda_call_address(const struct backend_call *c, unsigned arg)
{
    const struct backend_ref *ref = &c->args[arg].memory;
    return ref->block != NULL ? (void *)(uintptr_t)(ref->block->address + ref->offset) : NULL;
}

uint64_t cuda_call_u64(const struct backend_call *c, unsigned arg)
{
    uint64_t value = 0;
    if (arg < c->arg_count && c->args[arg].kind == BACKEND_ARG_VALUE &&
        c->args[arg].size == sizeof value) {
        memcpy(&value, c->args[arg].value, sizeof value);
    }
    return value;
}

const void *cuda_call_value(const struct backend_call *c, unsigned arg)
{
    return c->args[arg].value;
}
