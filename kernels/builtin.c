#include "kernels/builtin.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/builtin_text.h"
#include "kernels/dialect.h"

#define MODULES_MAX 64

/* Filled once, then only read. */
static struct {
    pthread_once_t once;
    struct signature *sig[MODULES_MAX];
    unsigned sig_count[MODULES_MAX];
    unsigned kernel_count;
    int code;
    struct err why;
} state = {.once = PTHREAD_ONCE_INIT};

static int load_module(unsigned m, struct signature *room)
{
    unsigned count = 0;
    int r = dialect_signatures(builtin_module_source(m), builtin_texts[m].name, room,
                               DIALECT_KERNELS_MAX, &count, &state.why);
    if (r != 0) {
        return r;
    }
    state.sig[m] = calloc(count, sizeof(*room));
    if (state.sig[m] == NULL) {
        return err_set(&state.why, ERR_NOMEM, "no memory for built-in kernels");
    }
    memcpy(state.sig[m], room, count * sizeof(*room));
    state.sig_count[m] = count;
    state.kernel_count += count;
    return 0;
}

static void load(void)
{
    struct signature *room = calloc(DIALECT_KERNELS_MAX, sizeof(*room));
    state.why = ERR_INIT;
    state.code =
        room == NULL ? err_set(&state.why, ERR_NOMEM, "no memory for built-in kernels") : 0;
    if (builtin_text_count > MODULES_MAX) {
        state.code = err_set(&state.why, ERR_INTERNAL, "more than %d modules", MODULES_MAX);
    }
    for (unsigned m = 0; state.code == 0 && m < builtin_text_count; m++) {
        state.code = load_module(m, room);
    }
    free(room);
}

int builtin_init(struct err *e)
{
    pthread_once(&state.once, load);
    return state.code == 0 ? 0 : err_set(e, state.code, "%s", state.why.text);
}

unsigned builtin_module_count(void)
{
    return builtin_text_count;
}

const char *builtin_module_name(unsigned module)
{
    return module < builtin_text_count ? builtin_texts[module].name : NULL;
}

struct bytes builtin_module_source(unsigned module)
{
    if (module >= builtin_text_count) {
        return bytes_of(NULL, 0);
    }
    return bytes_of(builtin_texts[module].data, builtin_texts[module].size);
}

bool builtin_find(const char *name, unsigned *ret_module, const struct signature **ret_sig)
{
    if (builtin_init(NULL) != 0) {
        return false;
    }
    for (unsigned m = 0; m < builtin_text_count; m++) {
        for (unsigned k = 0; k < state.sig_count[m]; k++) {
            if (strcmp(state.sig[m][k].name, name) == 0) {
                *ret_module = m;
                *ret_sig = &state.sig[m][k];
                return true;
            }
        }
    }
    return false;
}

unsigned builtin_kernel_count(void)
{
    return builtin_init(NULL) == 0 ? state.kernel_count : 0;
}

const struct signature *builtin_kernel(unsigned index, unsigned *ret_module)
{
    if (index >= builtin_kernel_count()) {
        return NULL;
    }
    unsigned m = 0;
    while (index >= state.sig_count[m]) {
        index -= state.sig_count[m++];
    }
    *ret_module = m;
    return &state.sig[m][index];
}
