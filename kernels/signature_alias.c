#include "kernels/signature.h"

static bool overlap(const struct sig_place *a, const struct sig_place *b)
{
    return a->memory != NULL && a->memory == b->memory && a->begin < a->end && b->begin < b->end &&
           a->begin < b->end && b->begin < a->end;
}

/* Are both arguments one array, and does the kernel write only one of them? It then reads each
 * element before it writes that element. */
static bool same(const struct signature *s, const struct sig_value *values,
                 const struct sig_place *places, unsigned a, unsigned b)
{
    bool both = (s->arg[a].access & s->arg[b].access & ACCESS_OUT) != 0;
    return !both && places[a].begin == places[b].begin && places[a].end == places[b].end &&
           dtype_size(values[a].shape.dtype) == dtype_size(values[b].shape.dtype);
}

static int refuse(const struct signature *s, unsigned a, unsigned b, struct err *e)
{
    static const char *const words[] = {
        [SIG_ALIAS_NONE] = "none", [SIG_ALIAS_SAME] = "same", [SIG_ALIAS_ANY] = "any"};
    bool both = (s->arg[a].access & s->arg[b].access & ACCESS_OUT) != 0;
    const char *needs = both                         ? "writes both, so they have to lie apart"
                        : s->alias == SIG_ALIAS_SAME ? "takes one range for both, or two apart"
                                                     : "needs them apart";
    int r = err_set(e, ERR_RANGE, "arguments %s and %s share memory; the kernel %s (alias %s)",
                    s->arg[a].name, s->arg[b].name, needs, words[s->alias]);
    if (e != NULL) {
        e->arg = (int)((s->arg[b].access & ACCESS_OUT) != 0 ? b : a);
    }
    return r;
}

int signature_alias(const struct signature *s, const struct sig_value *values,
                    const struct sig_place *places, struct err *e)
{
    if (s->alias == SIG_ALIAS_ANY) {
        return 0;
    }
    for (unsigned b = 1; b < s->arg_count; b++) {
        for (unsigned a = 0; a < b; a++) {
            bool arrays = s->arg[a].kind == SIG_ARRAY && s->arg[b].kind == SIG_ARRAY;
            bool written = ((s->arg[a].access | s->arg[b].access) & ACCESS_OUT) != 0;
            if (!arrays || !written || !overlap(&places[a], &places[b])) {
                continue;
            }
            if (s->alias != SIG_ALIAS_SAME || !same(s, values, places, a, b)) {
                return refuse(s, a, b, e);
            }
        }
    }
    return 0;
}
