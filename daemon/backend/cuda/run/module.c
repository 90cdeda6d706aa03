#include "daemon/backend/cuda/run/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "daemon/backend/cuda/run/binary.h"

#define LOG_BYTES    4096u
#define KERNELS_MAX  65536u
#define GROUP_CHOSEN 256 /* limit of work items in a group if the launch does not give a size */

/* bytes of shared memory, the kernel's own and a launch's, that a group has by default */
#define SHARED_DEFAULT (UINT64_C(48) << 10)

static void module_unload(struct backend_module *m)
{
    if (!m) {
        return;
    }
    if (m->module) { /* this may be another thread */
        (void)m->device->cu.CtxSetCurrent(m->device->context);
        m->device->cu.ModuleUnload(m->module);
    }
    while (m->variables) {
        struct cuda_variable *v = m->variables;
        m->variables = v->next;
        free(v);
    }
    free(m->kernels);
    free(m->kinds);
    free(m);
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Adds the output of the driver's PTX compiler to the error, in one line. */
static void wrap_log(char *log, struct err *e)
{
    size_t length = strnlen(log, LOG_BYTES - 1);
    while (length > 0 && strchr(" \n", log[length - 1])) {
        length--;
    }
    log[length] = '\0';
    for (char *at = log; *at; at++) {
        *at = *at == '\n' ? ' ' : *at;
    }
    if (length > 0) {
        (void)err_wrap(e, "%.200s", log);
    }
}

/* Loads a copy, which is aligned and ends with a NUL. The driver needs the NUL to know the size
 * of PTX. */
static int image_load(struct backend_module *m, struct bytes payload, struct err *e)
{
    char log[LOG_BYTES] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    char *image = malloc(payload.size + 1);
    if (!image) {
        return err_set(e, ERR_NOMEM, "no memory for a module of %zu bytes", payload.size);
    }
    memcpy(image, payload.data, payload.size);
    image[payload.size] = '\0';
    int rc = CUDA_CALL(&m->device->cu, e, ModuleLoadDataEx, &m->module, image, 2, options, values);
    free(image);
    if (rc != 0) {
        m->module = NULL;
        wrap_log(log, e);
    }
    return rc;
}

/* Can a launch name the kernel? */
static bool name_usable(const char *name)
{
    size_t length = 0;
    while (name[length] > ' ' && name[length] <= '~') {
        length++;
    }
    return length > 0 && name[length] == '\0' &&
           length < sizeof((struct backend_kernel *)NULL)->entry;
}

static int kernel_compare(const void *a, const void *b)
{
    return strcmp(((const struct cuda_kernel *)a)->name, ((const struct cuda_kernel *)b)->name);
}

static struct cuda_kernel *lookup(const struct backend_module *m, const char *entry)
{
    const struct cuda_kernel key = {.name = entry};
    return bsearch(&key, m->kernels, m->kernel_count, sizeof *m->kernels, kernel_compare);
}

static int kernels_name(struct backend_module *m, const CUfunction *functions, unsigned count,
                        struct err *e)
{
    for (unsigned i = 0; i < count; i++) {
        const char *name = NULL;
        int rc = CUDA_CALL(&m->device->cu, e, FuncGetName, &name, functions[i]);
        if (rc != 0) {
            return rc;
        }
        if (!name || !name_usable(name)) {
            continue;
        }
        m->kernels[m->kernel_count++] =
            (struct cuda_kernel){.name = name, .function = functions[i]};
    }
    if (m->kernel_count < count) {
        log_say(LOG_KERNELS_LEFT_OUT,
                "%u kernels of a module have names that cannot be used and are left out",
                count - m->kernel_count);
    }
    qsort(m->kernels, m->kernel_count, sizeof *m->kernels, kernel_compare);
    return 0;
}

static int kernels_list(struct backend_module *m, struct err *e)
{
    const struct cuda_driver *cu = &m->device->cu;
    unsigned count = 0;
    int rc = CUDA_CALL(cu, e, ModuleGetFunctionCount, &count, m->module);
    if (rc == 0 && count > KERNELS_MAX) {
        rc = err_set(e, ERR_LIMIT, "%u kernels in a module, %u at most", count, KERNELS_MAX);
    }
    if (rc != 0) {
        return rc;
    }
    CUfunction *functions = calloc(count > 0 ? count : 1, sizeof *functions);
    m->kernels = calloc(count > 0 ? count : 1, sizeof *m->kernels);
    if (!functions || !m->kernels) {
        rc = err_set(e, ERR_NOMEM, "no memory for a module of %u kernels", count);
    } else if (count > 0) {
        rc = CUDA_CALL(cu, e, ModuleEnumerateFunctions, functions, count, m->module);
        rc = rc == 0 ? kernels_name(m, functions, count, e) : rc;
    }
    free(functions);
    return rc;
}

static int kinds_take(struct backend_module *m, struct bytes kinds, struct err *e)
{
    const char *entry;
    const char *letters;
    m->kinds = malloc(kinds.size + 1);
    if (!m->kinds) {
        return err_set(e, ERR_NOMEM, "no memory for a module's parameters");
    }
    memcpy(m->kinds, kinds.data, kinds.size);
    struct bytes rest = bytes_of(m->kinds, kinds.size);
    while (cuda_binary_next(&rest, &entry, &letters)) {
        struct cuda_kernel *k = lookup(m, entry);
        if (k) {
            k->kinds = bytes_str(letters);
        }
    }
    return 0;
}

static int module_load(struct backend_device *d, struct bytes binary,
                       struct backend_module **ret_module, struct err *e)
{
    struct cuda_binary parts;
    int rc = cuda_binary_unwrap(d->info.arch, binary, &parts, e);
    if (rc != 0) {
        return rc;
    }
    struct backend_module *m = calloc(1, sizeof *m);
    if (!m) {
        return err_set(e, ERR_NOMEM, "no memory for a module");
    }
    m->device = d;
    rc = CUDA_CALL(&d->cu, e, CtxSetCurrent, d->context); /* this may be another thread */
    rc = rc == 0 ? image_load(m, parts.payload, e) : rc;
    rc = rc == 0 ? kernels_list(m, e) : rc;
    rc = rc == 0 ? kinds_take(m, parts.kinds, e) : rc;
    if (rc != 0) {
        module_unload(m);
        return rc;
    }
    *ret_module = m;
    return 0;
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* 0 if the driver does not know it, or not now. */
static uint64_t attribute(const struct backend_module *m, const struct cuda_kernel *k,
                          CUfunction_attribute what)
{
    int value = 0;
    CUresult rc = m->device->cu.FuncGetAttribute(&value, what, k->function);
    return rc == CUDA_SUCCESS && value > 0 ? (uint64_t)value : 0;
}

/* Lists the parameters. The driver has no count: they end at the first unknown index. Parameters
 * beyond the limit are only counted, because the module's other kernels are still useful. */
static int params_list(const struct backend_module *m, struct cuda_kernel *k, struct err *e)
{
    size_t offset = 0;
    size_t size = 0;
    unsigned count = 0;
    CUresult rc = CUDA_SUCCESS;
    while ((rc = m->device->cu.FuncGetParamInfo(k->function, count, &offset, &size)) ==
           CUDA_SUCCESS) {
        if (count < CUDA_PARAMS_MAX) {
            k->param_size[count] = (uint32_t)size;
        }
        count++;
    }
    k->param_count = count;
    return rc == CUDA_ERROR_INVALID_VALUE ? 0 : cuda_error(rc, "cuFuncGetParamInfo", e);
}

/* Queries a kernel's properties. The driver loads a kernel when it is first needed, and waits
 * for all running work to do so: better here than in a launch. */
static int kernel_describe(struct backend_module *m, struct cuda_kernel *k, struct err *e)
{
    if (k->described) {
        return 0;
    }
    int rc = CUDA_CALL(&m->device->cu, e, FuncLoad, k->function);
    rc = rc == 0 ? params_list(m, k, e) : rc;
    if (rc != 0 && rc != ERR_KERNEL_FAULT) { /* a fault is not this kernel's, which did not start */
        (void)err_wrap(e, "kernel %s", k->name);
    }
    if (rc != 0) {
        return rc;
    }
    int group = 0; /* kept for all launches, so a failure must not count as 0 */
    rc = CUDA_CALL(&m->device->cu, e, FuncGetAttribute, &group,
                   CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k->function);
    if (rc != 0) {
        return rc;
    }
    k->max_group = group > 0 ? (uint64_t)group : 0;
    k->shared = attribute(m, k, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    /* drivers may report a group's default without subtracting the kernel's own memory */
    uint64_t allowed = attribute(m, k, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    uint64_t left = k->shared < SHARED_DEFAULT ? SHARED_DEFAULT - k->shared : 0;
    k->shared_allowed = allowed < left ? allowed : left;
    k->described = true;
    return 0;
}

int cuda_kernel_find(struct backend_module *m, const char *entry, struct cuda_kernel **ret_kernel,
                     struct err *e)
{
    struct cuda_kernel *k = lookup(m, entry);
    if (!k) {
        return err_set(e, ERR_NOT_FOUND, "the module has no kernel \"%s\"", entry);
    }
    int rc = kernel_describe(m, k, e);
    if (rc != 0) {
        return rc;
    }
    if (k->param_count > CUDA_PARAMS_MAX) {
        return err_set(e, ERR_LIMIT, "kernel %s takes %u parameters, %u at most can be given",
                       entry, k->param_count, CUDA_PARAMS_MAX);
    }
    *ret_kernel = k;
    return 0;
}

bool cuda_module_has(const struct backend_module *m, const char *entry)
{
    return lookup(m, entry) != NULL;
}

int cuda_kernel_group(const struct backend_device *d, struct cuda_kernel *k, uint64_t shared,
                      uint64_t *ret_items, struct err *e)
{
    int grid = 0;
    int items = 0;
    if (shared == 0 && k->best_group > 0) {
        *ret_items = k->best_group;
        return 0;
    }
    int rc = CUDA_CALL(&d->cu, e, OccupancyMaxPotentialBlockSize, &grid, &items, k->function, NULL,
                       shared, GROUP_CHOSEN);
    if (rc != 0) {
        return rc;
    }
    *ret_items = items > 0 ? (uint64_t)items : 1;
    k->best_group = shared == 0 ? *ret_items : k->best_group;
    return 0;
}

/* Work items that run at once on a compute unit with the best group size, in millionths of its
 * capacity; 0 if the driver does not know. */
static uint64_t occupancy(const struct backend_device *d, struct cuda_kernel *k)
{
    uint64_t items = 0;
    int groups = 0;
    if (d->unit_items == 0 || cuda_kernel_group(d, k, 0, &items, NULL) != 0 ||
        d->cu.OccupancyMaxActiveBlocksPerMultiprocessor(&groups, k->function, (int)items, 0) !=
            CUDA_SUCCESS ||
        groups <= 0) {
        return 0;
    }
    uint64_t ppm = (uint64_t)groups * items * 1000000 / d->unit_items;
    return ppm < 1000000 ? ppm : 1000000;
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
    struct cuda_kernel *k = &m->kernels[index];
    int rc = kernel_describe(m, k, e);
    if (rc != 0) {
        return rc;
    }
    *ret_kernel = (struct backend_kernel){
        .arg_count = k->param_count,
        .registers = attribute(m, k, CU_FUNC_ATTRIBUTE_NUM_REGS),
        .local_bytes = attribute(m, k, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES),
        .shared_bytes = k->shared,
        .max_group = k->max_group,
        .preferred_multiple = m->device->warp,
        .occupancy = occupancy(m->device, k),
    };
    (void)snprintf(ret_kernel->entry, sizeof ret_kernel->entry, "%s", k->name);
    return 0;
}

/* ---- variables ------------------------------------------------------------------------------- */

static struct cuda_variable *variable_known(const struct backend_module *m, const char *name)
{
    struct cuda_variable *v = m->variables;
    while (v && strcmp(v->name, name) != 0) {
        v = v->next;
    }
    return v;
}

static int variable_ask(struct backend_module *m, const char *name,
                        struct cuda_variable **ret_variable, struct err *e)
{
    CUdeviceptr address = 0;
    size_t bytes = 0;
    CUresult rc = m->device->cu.ModuleGetGlobal(&address, &bytes, m->module, name);
    if (rc == CUDA_ERROR_NOT_FOUND || (rc == CUDA_SUCCESS && bytes == 0)) {
        return err_set(e, ERR_NOT_FOUND, "the module has no variable \"%s\"", name);
    }
    if (rc != CUDA_SUCCESS) {
        return cuda_error(rc, "cuModuleGetGlobal", e);
    }
    size_t size = strlen(name) + 1;
    struct cuda_variable *v = calloc(1, sizeof *v + size);
    if (!v) {
        return err_set(e, ERR_NOMEM, "no memory for a variable of a module");
    }
    v->block = (struct backend_block){.address = address, .size = bytes};
    memcpy(v->name, name, size);
    v->next = m->variables;
    m->variables = v;
    *ret_variable = v;
    return 0;
}

static int module_variable(struct backend_module *m, const char *name,
                           struct backend_block **ret_block, uint64_t *ret_bytes, struct err *e)
{
    struct cuda_variable *v = variable_known(m, name);
    int rc = v ? 0 : variable_ask(m, name, &v, e);
    if (rc == 0) {
        *ret_block = &v->block;
        *ret_bytes = v->block.size;
    }
    return rc;
}

const struct backend_module_ops cuda_module_ops = {
    .load = module_load,
    .unload = module_unload,
    .kernel_count = module_kernel_count,
    .kernel = module_kernel,
    .variable = module_variable,
};
