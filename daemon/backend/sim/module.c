#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/backend/sim/sim.h"
#include "kernels/builtin.h"
#include "kernels/host.h"
#include "kernels/signature.h"

#define KERNELS_MAX 512u
#define GROUP_X     64u /* work items of a group if the launch does not give a size */

/* ---- loading ------------------------------------------------------------------------------- */

static bool signature_member(const struct signature *sig, const char *entry, int *ret_dtype)
{
    char name[2 * SIG_NAME];
    unsigned count = sig->type_count ? sig->type_count : 1;
    for (unsigned i = 0; i < count; i++) {
        int dtype = sig->type_count ? sig->type[i] : DTYPE_NONE;
        if (signature_entry(sig, dtype, name, sizeof name, NULL) == 0 && strcmp(name, entry) == 0) {
            *ret_dtype = dtype;
            return true;
        }
    }
    return false;
}

static int kernel_find_builtin(const char *entry, struct sim_kernel *ret_kernel, struct err *e)
{
    struct sim_kernel k = {.host = host_kernel_find(entry)};
    unsigned module = 0;
    for (unsigned i = 0; k.host && i < builtin_kernel_count(); i++) {
        const struct signature *sig = builtin_kernel(i, &module);
        if (signature_member(sig, entry, &k.dtype)) {
            k.signature = sig;
            *ret_kernel = k;
            return 0;
        }
    }
    return err_set(e, ERR_UNSUPPORTED,
                   "simulated devices run built-in kernels only: %s is not built in", entry);
}

static int kernel_compare(const void *a, const void *b)
{
    const struct sim_kernel *x = a;
    const struct sim_kernel *y = b;
    return strcmp(x->host->entry, y->host->entry);
}

static int line_load(struct backend_module *m, const char *line, size_t size, struct err *e)
{
    char entry[128];
    if (m->kernel_count == KERNELS_MAX ||
        !bytes_to_str(bytes_of(line, size), entry, sizeof entry)) {
        return err_set(e, ERR_INVALID, "the module is damaged");
    }
    int rc = kernel_find_builtin(entry, &m->kernels[m->kernel_count], e);
    if (rc == 0) {
        m->kernel_count++;
    }
    return rc;
}

static int lines_load(struct backend_module *m, struct bytes binary, struct err *e)
{
    static const char magic[] = SIM_MAGIC;
    size_t at = sizeof magic - 1;
    if (binary.size < at || memcmp(binary.data, magic, at) != 0) {
        return err_set(e, ERR_INVALID, "not a module of the simulated back end");
    }
    int rc = 0;
    while (rc == 0 && at < binary.size) {
        const uint8_t *line = binary.data + at;
        const uint8_t *stop = memchr(line, '\n', binary.size - at);
        if (!stop) {
            return err_set(e, ERR_INVALID, "the module is cut off");
        }
        rc = line_load(m, (const char *)line, (size_t)(stop - line), e);
        at += (size_t)(stop - line) + 1;
    }
    return rc;
}

static void module_unload(struct backend_module *m)
{
    if (m) {
        free(m->kernels);
        free(m);
    }
}

static int module_load(struct backend_device *d, struct bytes binary,
                       struct backend_module **ret_module, struct err *e)
{
    pthread_mutex_lock(&d->lock);
    enum sim_action action = script_next(&d->config.script, SIM_LOAD);
    pthread_mutex_unlock(&d->lock);
    sim_linger(d, d->config.load_us);
    int rc = sim_action_error(action, SIM_LOAD, e);
    if (rc != 0) {
        return rc;
    }
    struct backend_module *m = calloc(1, sizeof *m);
    struct sim_kernel *kernels = calloc(KERNELS_MAX, sizeof *kernels);
    if (!m || !kernels) {
        free(m);
        free(kernels);
        return err_set(e, ERR_NOMEM, "no memory for a module");
    }
    m->kernels = kernels;
    rc = lines_load(m, binary, e);
    if (rc != 0) {
        module_unload(m);
        return rc;
    }
    qsort(m->kernels, m->kernel_count, sizeof *m->kernels, kernel_compare);
    *ret_module = m;
    return 0;
}

static unsigned module_kernel_count(struct backend_module *m)
{
    return m->kernel_count;
}

static int module_kernel(struct backend_module *m, unsigned index,
                         struct backend_kernel *ret_kernel, struct err *e)
{
    if (index >= m->kernel_count) {
        return err_set(e, ERR_RANGE, "kernel %u of %u", index, m->kernel_count);
    }
    const struct host_kernel *h = m->kernels[index].host;
    struct backend_kernel k = {.arg_count = h->arg_count, .max_group = SIM_MAX_GROUP};
    snprintf(k.entry, sizeof k.entry, "%s", h->entry);
    *ret_kernel = k;
    return 0;
}

const struct backend_module_ops sim_module_ops = {
    .load = module_load,
    .unload = module_unload,
    .kernel_count = module_kernel_count,
    .kernel = module_kernel,
};

/* ---- launching ----------------------------------------------------------------------------- */

static const struct sim_kernel *kernel_find(const struct backend_module *m, const char *entry)
{
    struct host_kernel host = {.entry = entry};
    struct sim_kernel key = {.host = &host};
    return bsearch(&key, m->kernels, m->kernel_count, sizeof *m->kernels, kernel_compare);
}

/* Bytes of argument i if it is a value; 0: it is an array. Named sizes follow the user's
 * arguments. */
static size_t value_bytes(const struct sim_kernel *k, unsigned i)
{
    if (i >= k->signature->arg_count) {
        return sizeof(uint64_t);
    }
    const struct sig_arg *a = &k->signature->arg[i];
    if (a->kind == SIG_ARRAY) {
        return 0;
    }
    return dtype_size(a->dtype == DTYPE_NONE ? k->dtype : a->dtype);
}

static int arg_make(const struct sim_kernel *k, unsigned i, const struct backend_arg *arg,
                    struct sim_launch *out, struct err *e)
{
    size_t bytes = value_bytes(k, i);
    bool array = bytes == 0;
    if ((array && arg->kind != BACKEND_ARG_MEMORY) ||
        (!array && (arg->kind != BACKEND_ARG_VALUE || arg->size != bytes))) {
        err_set(e, ERR_ARG_TYPE, "kernel %s: argument %u: the kernel takes %s", k->host->entry, i,
                array ? "memory" : "a value of another size or kind");
        if (e) {
            e->arg = (int)i;
        }
        return ERR_ARG_TYPE;
    }
    if (!array) {
        memcpy(&out->value[i], arg->value, bytes);
        return 0;
    }
    struct backend_ref ref = arg->memory;
    if (ref.block && ref.offset >= ref.block->size) {
        return err_set(e, ERR_RANGE, "kernel %s: argument %u: offset %llu in a block of %llu bytes",
                       k->host->entry, i, (unsigned long long)ref.offset,
                       (unsigned long long)ref.block->size);
    }
    out->arg[i] = ref.block ? ref.block->data + ref.offset : NULL;
    return 0;
}

static int sizes_make(const char *entry, const struct backend_launch *launch,
                      struct sim_launch *out, struct err *e)
{
    bool given = launch->local[0] || launch->local[1] || launch->local[2];
    uint64_t group = 1;
    for (unsigned i = 0; i < 3; i++) {
        uint64_t local = launch->local[i] ? launch->local[i] : 1;
        while (!given && i == 0 && local < GROUP_X && launch->global[0] % (local * 2) == 0) {
            local *= 2;
        }
        if (launch->global[i] == 0 || local > SIM_MAX_GROUP || launch->global[i] % local != 0) {
            return err_set(e, ERR_LAUNCH, "kernel %s: %llu work items in groups of %llu", entry,
                           (unsigned long long)launch->global[i], (unsigned long long)local);
        }
        group *= local;
        out->global[i] = launch->global[i];
        out->local[i] = local;
    }
    return group <= SIM_MAX_GROUP ? 0
                                  : err_set(e, ERR_LAUNCH, "kernel %s: a group of %llu work items",
                                            entry, (unsigned long long)group);
}

int sim_launch_make(const struct backend_module *m, const char *entry,
                    const struct backend_launch *launch, struct sim_launch *ret_launch,
                    struct err *e)
{
    const struct sim_kernel *k = kernel_find(m, entry);
    if (!k) {
        return err_set(e, ERR_NOT_FOUND, "the module has no kernel \"%s\"", entry);
    }
    if (launch->arg_count != k->host->arg_count || launch->arg_count > SIM_ARGS_MAX) {
        return err_set(e, ERR_ARG_COUNT, "kernel %s: %u arguments given, %u taken", entry,
                       launch->arg_count, k->host->arg_count);
    }
    struct sim_launch out = {.host = k->host, .arg_count = launch->arg_count};
    int rc = sizes_make(entry, launch, &out, e);
    for (unsigned i = 0; rc == 0 && i < launch->arg_count; i++) {
        rc = arg_make(k, i, &launch->args[i], &out, e);
    }
    if (rc == 0) {
        *ret_launch = out;
    }
    return rc;
}
