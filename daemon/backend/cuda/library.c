#include "daemon/backend/cuda/library.h"

#include <string.h>

#include "common/log.h"

static const struct cuda_library_part *const parts[] = {&cuda_blas, &cuda_fft, &cuda_rand,
                                                        &cuda_cub};
#define PARTS (sizeof parts / sizeof parts[0])

bool cuda_library_open(struct cuda_library *l, const struct toolkit_entry *entries, size_t count,
                       void *table)
{
    const char *missing = NULL;
    if (l->tried) {
        return l->open;
    }
    l->tried = true;
    void *library = toolkit_open(l->files, NULL);
    if (library == NULL) {
        log_info("no %s: the portable kernels do its work; %s", l->files[0], l->advice);
    } else if (!toolkit_resolve(library, entries, count, table, &missing)) {
        log_warn("%s lacks %s: the portable kernels do its work; %s", l->name, missing, l->advice);
    } else {
        l->open = true;
    }
    return l->open;
}

int cuda_library_check(struct cuda_library *l, int status, const char *call, struct err *e)
{
    if (status == 0) {
        return 0;
    }
    if (!l->told) {
        log_warn("%s: %s gave %d: the portable kernel does it", l->name, call, status);
        l->told = true;
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

/* "cublas+cufft"; "" allows all, "off" none. */
static bool allowed(const char *list, const char *name)
{
    size_t length = strlen(name);
    bool any = list[0] == '\0';
    for (const char *at = list; *at != '\0' && !any; at += strcspn(at, "+"), at += *at == '+') {
        any = strcspn(at, "+") == length && strncmp(at, name, length) == 0;
    }
    return any;
}

static const struct cuda_served *find(const struct backend_device *d, const struct backend_call *c,
                                      const char **ret_by)
{
    for (size_t p = 0; p < PARTS; p++) {
        const struct cuda_served *s = parts[p]->served;
        for (; allowed(d->libraries, parts[p]->by) && s->operation != NULL; s++) {
            if (strcmp(s->operation, c->operation) == 0) {
                *ret_by = parts[p]->by;
                return s;
            }
        }
    }
    return NULL;
}

static int library_workspace(struct backend_stream *s, const struct backend_call *c,
                             uint64_t *ret_bytes, struct err *e)
{
    const char *by = NULL;
    uint64_t bytes = 0;
    const struct cuda_served *served = find(s->device, c, &by);
    if (!served) {
        return err_set(e, ERR_UNSUPPORTED, "no library has %s", c->operation);
    }
    int rc = served->workspace(s, c, &bytes, e);
    if (rc == 0) {
        *ret_bytes = bytes;
    }
    return rc;
}

static int library_run(struct backend_stream *s, const struct backend_call *c,
                       struct backend_ref workspace, const char **ret_by, struct err *e)
{
    const struct cuda_served *served = find(s->device, c, ret_by);
    if (!served) {
        return err_set(e, ERR_UNSUPPORTED, "no library has %s", c->operation);
    }
    CUdeviceptr address = workspace.block ? workspace.block->address + workspace.offset : 0;
    uint64_t bytes = 0;
    int rc = served->workspace(s, c, &bytes, e);
    rc = rc == 0 ? cuda_stream_begin(s, e) : rc;
    return rc == 0 ? served->run(s, c, address, bytes, e) : rc;
}

void cuda_library_finish(struct backend_stream *s)
{
    for (size_t p = 0; p < PARTS; p++) {
        if (parts[p]->finish) {
            parts[p]->finish(s);
        }
    }
}

const struct backend_library_ops cuda_library_ops = {
    .workspace = library_workspace,
    .run = library_run,
};
