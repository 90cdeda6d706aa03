#include "daemon/backend/cuda/library/library.h"

#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/backend/cuda/library/library_call.h"
#include "daemon/backend/cuda/run/module.h"
#include "daemon/backend/options.h"

static struct cuda_library *const libraries[] = {&cuda_blas, &cuda_fft, &cuda_rand, &cuda_cub};
#define LIBRARIES (sizeof libraries / sizeof libraries[0])

static enum cuda_library_state state_of(const struct cuda_library *l)
{
    return (enum cuda_library_state)atomic_load_explicit(&l->state, memory_order_acquire);
}

/* Is the library in a list like "cublas+cufft"? "" allows all, "off" none. */
static bool allowed(const char *list, const char *name)
{
    size_t length = strlen(name);
    bool any = list[0] == '\0';
    for (const char *at = list; *at != '\0' && !any; at += strcspn(at, "+"), at += *at == '+') {
        any = strcspn(at, "+") == length && strncmp(at, name, length) == 0;
    }
    return any;
}

/* ---- preparing
 * -------------------------------------------------------------------------------- */

static void stream_ends(struct backend_stream *s)
{
    for (size_t i = 0; i < LIBRARIES; i++) {
        if (libraries[i]->finish) {
            libraries[i]->finish(s);
        }
    }
}

int cuda_library_init(struct backend_device *d, const char *options, struct err *e)
{
    char list[64] = "";
    bool any = false;
    (void)option_text(options, "libraries", list, sizeof list);
    for (size_t i = 0; i < LIBRARIES; i++) {
        bool may = allowed(list, libraries[i]->name);
        libraries[i]->failures = 0;
        cuda_library_set(libraries[i], may ? CUDA_LIBRARY_NEW : CUDA_LIBRARY_FAILED);
        any = any || may;
    }
    d->stream_ends = stream_ends;
    return any ? CUDA_CALL(&d->cu, e, StreamCreateWithPriority, &d->prepare_stream,
                           CU_STREAM_NON_BLOCKING, d->priority_least)
               : 0;
}

static unsigned library_wanted(struct backend_module *m)
{
    unsigned wanted = 0;
    for (size_t i = 0; i < LIBRARIES; i++) {
        bool fresh = state_of(libraries[i]) == CUDA_LIBRARY_NEW;
        for (const char *const *k = libraries[i]->kernels; fresh && *k != NULL; k++) {
            wanted |= cuda_module_has(m, *k) ? 1u << i : 0;
        }
    }
    return wanted;
}

static bool library_open(struct cuda_library *l)
{
    const char *missing = NULL;
    void *library = toolkit_open(l->files, NULL);
    if (library == NULL) {
        log_say(LOG_LIBRARY, "no %s: the portable kernels do its work; %s", l->files[0], l->advice);
        return false;
    }
    if (!toolkit_resolve(library, l->entries, l->entry_count, l->table, &missing)) {
        log_say(LOG_LIBRARY_BAD, "%s lacks %s: the portable kernels do its work; %s", l->name,
                missing, l->advice);
        return false;
    }
    return true;
}

static int scratch_make(struct backend_device *d, struct err *e)
{
    /* the preparing thread has no context yet */
    int rc = CUDA_CALL(&d->cu, e, CtxSetCurrent, d->context);
    if (rc == 0 && d->scratch == 0) {
        rc = CUDA_CALL(&d->cu, e, MemAlloc, &d->scratch, 2 * CUDA_LIBRARY_SCRATCH);
        d->scratch = rc == 0 ? d->scratch : 0;
    }
    return rc;
}

static void prepare_one(struct backend_device *d, struct cuda_library *l)
{
    struct err e = ERR_INIT;
    if (state_of(l) == CUDA_LIBRARY_NEW && !library_open(l)) {
        cuda_library_set(l, CUDA_LIBRARY_FAILED);
        return;
    }
    int rc = scratch_make(d, &e);
    rc = rc == 0 ? l->prepare(d, &e) : rc;
    if (rc != 0) {
        if (l->failures == 0) {
            log_say(LOG_LIBRARY_BAD, "%s is not available and will be tried again: %s", l->name,
                    e.text);
        }
        cuda_library_later(l);
        return;
    }
    if (l->failures > 0) {
        log_say(LOG_LIBRARY, "%s is available now", l->name);
    }
    cuda_library_set(l, CUDA_LIBRARY_READY);
}

static bool to_prepare(const struct cuda_library *l)
{
    enum cuda_library_state state = state_of(l);
    return state == CUDA_LIBRARY_NEW || state == CUDA_LIBRARY_LATER;
}

static void library_prepare(struct backend_device *d, unsigned wanted)
{
    for (size_t i = 0; i < LIBRARIES; i++) {
        if ((wanted >> i & 1u) != 0 && to_prepare(libraries[i])) {
            prepare_one(d, libraries[i]);
        }
    }
}

/* Called often, so the clock is read only if a library waits for its next try. */
static unsigned library_again(struct backend_device *d)
{
    unsigned again = 0;
    (void)d; /* a process has one device */
    for (size_t i = 0; i < LIBRARIES; i++) {
        bool later = state_of(libraries[i]) == CUDA_LIBRARY_LATER;
        again |= later && clock_now_ns() >= libraries[i]->again_ns ? 1u << i : 0;
    }
    return again;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static bool serves(const struct cuda_library *l, const char *operation)
{
    const char *const *at = l->operations;
    while (*at != NULL && strcmp(*at, operation) != 0) {
        at++;
    }
    return *at != NULL && state_of(l) == CUDA_LIBRARY_READY;
}

/* NULL: no library serves the call. */
static const struct cuda_library *find(const struct backend_call *c, struct err *e)
{
    for (size_t i = 0; i < LIBRARIES; i++) {
        if (serves(libraries[i], c->operation)) {
            return libraries[i];
        }
    }
    (void)err_set(e, ERR_UNSUPPORTED, "no library has %s", c->operation);
    return NULL;
}

static int library_workspace(struct backend_stream *s, const struct backend_call *c,
                             uint64_t *ret_bytes, struct err *e)
{
    const struct cuda_library *l = find(c, e);
    return l ? l->workspace(s, c, ret_bytes, e) : ERR_UNSUPPORTED;
}

static int library_run(struct backend_stream *s, const struct backend_call *c,
                       struct backend_ref workspace, const char **ret_by, struct err *e)
{
    CUdeviceptr address = workspace.block ? workspace.block->address + workspace.offset : 0;
    uint64_t bytes = 0;
    const struct cuda_library *l = find(c, e);
    int rc = l ? l->workspace(s, c, &bytes, e) : ERR_UNSUPPORTED;
    rc = rc == 0 ? cuda_stream_begin(s, e) : rc;
    if (l) {
        *ret_by = l->name;
    }
    return rc == 0 ? l->run(s, c, address, bytes, e) : rc;
}

void cuda_library_close(struct backend_device *d)
{
    if (d->prepare_stream) { /* the first small calls may still run */
        d->cu.StreamSynchronize(d->prepare_stream);
    }
    for (size_t i = 0; i < LIBRARIES; i++) {
        if (libraries[i]->close) {
            libraries[i]->close(d);
        }
    }
    if (d->prepare_stream) {
        d->cu.StreamDestroy(d->prepare_stream);
    }
    if (d->scratch) {
        d->cu.MemFree(d->scratch);
    }
}

static void library_tidy(struct backend_device *d)
{
    for (size_t i = 0; i < LIBRARIES; i++) {
        if (libraries[i]->tidy && state_of(libraries[i]) == CUDA_LIBRARY_READY) {
            libraries[i]->tidy(d);
        }
    }
}

const struct backend_library_ops cuda_library_ops = {
    .wanted = library_wanted,
    .prepare = library_prepare,
    .again = library_again,
    .workspace = library_workspace,
    .run = library_run,
    .tidy = library_tidy,
};
