#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fakecuda/fake.h"

#define LOG_SIZE    512u
#define DYNAMIC_MAX 232448u
#define STATIC_MAX  49152u

/* ---- making and unmaking --------------------------------------------------------------------- */

static CUresult variables_place(struct module *m, struct context *c)
{
    for (unsigned i = 0; i < m->image.variable_count; i++) {
        struct variable *v = m->image.variables[i];
        struct range r = {.size = v->size, .kind = RANGE_GLOBAL, .context = c, .device = c->device};
        CUresult rc = v->size ? device_take(c->device, (v->size + 511) / 512 * 512) : CUDA_SUCCESS;
        if (rc != CUDA_SUCCESS) {
            return rc;
        }
        if (v->size == 0) {
            continue;
        }
        r.base = pages_new(v->size, &r.mapped);
        if (r.base == 0 || !range_add(&r)) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        v->address = r.base;
        if (v->init) {
            memcpy((void *)(uintptr_t)v->address, v->init, v->init_size);
        }
    }
    return CUDA_SUCCESS;
}

static void variables_drop(struct module *m)
{
    for (unsigned i = 0; i < m->image.variable_count; i++) {
        struct variable *v = m->image.variables[i];
        struct range *r = v->address ? range_at(v->address) : NULL;
        if (r) {
            r->device->used -= (v->size + 511) / 512 * 512;
            pages_free(r->base, r->mapped);
            range_remove(r);
        }
    }
}

void module_drop(struct module *m)
{
    for (unsigned i = 0; i < m->image.entry_count; i++) {
        struct entry *e = m->image.entries[i];
        object_remove(&e->function);
        object_remove(&e->kernel);
    }
    variables_drop(m);
    image_finish(&m->image);
    object_remove(&m->object);
    free(m);
}

struct jit {
    unsigned count;
    CUjit_option *options;
    void **values;
};

static void **jit_value(const struct jit *j, CUjit_option which)
{
    for (unsigned i = 0; i < j->count; i++) {
        if (j->options[i] == which) {
            return &j->values[i];
        }
    }
    return NULL;
}

static void jit_tell(const struct jit *j, const char *log)
{
    void **buffer = jit_value(j, CU_JIT_ERROR_LOG_BUFFER);
    void **size = jit_value(j, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
    if (buffer && *buffer && size && (uintptr_t)*size > 0) {
        snprintf(*buffer, (uintptr_t)*size, "%s", log);
        *size = (void *)strlen(*buffer);
    }
}

static CUresult module_new(const void *data, const struct jit *j, bool library,
                           struct module **ret_module)
{
    char log[LOG_SIZE] = "";
    struct context *c = context_current();
    struct module *m = calloc(1, sizeof *m);
    if (!data || !m) {
        free(m);
        return data ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
    }
    CUresult r = image_parse(data, fake.script.arch, &m->image, log, sizeof log);
    if (r != CUDA_SUCCESS) {
        jit_tell(j, log);
        free(m);
        return r;
    }
    object_add(&m->object, library ? KIND_LIBRARY : KIND_MODULE, c);
    m->library = library;
    for (unsigned i = 0; i < m->image.entry_count; i++) {
        struct entry *e = m->image.entries[i];
        e->module = m;
        e->max_dynamic = STATIC_MAX;
        object_add(&e->function, KIND_FUNCTION, c);
        object_add(&e->kernel, KIND_KERNEL, c);
    }
    r = variables_place(m, c);
    if (r != CUDA_SUCCESS) {
        module_drop(m);
        return r;
    }
    *ret_module = m;
    return CUDA_SUCCESS;
}

/* ---- modules --------------------------------------------------------------------------------- */

static CUresult load(CUmodule *ret, const void *image, const struct jit *j)
{
    struct module *m = NULL;
    CUresult r = context_linger(fake.script.load_us * NS_PER_US);
    r = r ? r : module_new(image, j, false, &m);
    if (r == CUDA_SUCCESS) {
        *ret = (CUmodule)(uintptr_t)m->object.handle;
    }
    return r;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    const struct jit none = {0};
    CUresult r = call_enter("cuModuleLoadData", NEED_CONTEXT);
    return call_leave(r ? r : load(module, image, &none));
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
                            CUjit_option *options, void **values)
{
    const struct jit j = {count, options, values};
    CUresult r = call_enter("cuModuleLoadDataEx", NEED_CONTEXT);
    return call_leave(r ? r : load(module, image, &j));
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    const struct jit none = {0};
    CUresult r = call_enter("cuModuleLoadFatBinary", NEED_CONTEXT);
    return call_leave(r ? r : load(module, image, &none));
}

/* Waits for all that the context does, as the driver may. */
static CUresult unload(struct module *m)
{
    for (unsigned i = 0; i < m->image.variable_count; i++) {
        const struct variable *v = m->image.variables[i];
        const char *pending = v->size ? memory_pending(v->address, v->size) : NULL;
        if (pending) {
            misuse("%s: variable %s is used by pending work (%s)", call_name(), v->name, pending);
        }
    }
    unsigned running = 0;
    for (unsigned i = 0; i < m->image.entry_count; i++) {
        running += m->image.entries[i]->running;
    }
    if (running > 0) {
        misuse("%s: %u launches of its kernels are pending", call_name(), running);
    }
    CUresult r = context_linger(fake.script.load_us * NS_PER_US);
    r = r ? r : context_wait(m->object.context);
    if (r == CUDA_SUCCESS) {
        module_drop(m);
    }
    return r;
}

CUresult cuModuleUnload(CUmodule handle)
{
    CUresult r = call_enter("cuModuleUnload", NEED_CONTEXT);
    struct module *m = r ? NULL : object_get(handle, KIND_MODULE);
    if (r == CUDA_SUCCESS) {
        r = m ? unload(m) : CUDA_ERROR_INVALID_HANDLE;
    }
    return call_leave(r);
}

/* A module, or the module of a library that cuLibraryGetModule gave. */
static struct module *module_of(CUmodule handle)
{
    struct module *m = object_peek(handle, KIND_LIBRARY);
    return m ? m : object_get(handle, KIND_MODULE);
}

static CUfunction function_handle(const struct entry *e)
{
    return (CUfunction)(uintptr_t)e->function.handle;
}

static CUkernel kernel_handle(const struct entry *e)
{
    return (CUkernel)(uintptr_t)e->kernel.handle;
}

CUresult cuModuleGetFunction(CUfunction *ret, CUmodule handle, const char *name)
{
    CUresult r = call_enter("cuModuleGetFunction", NEED_CONTEXT);
    const struct module *m = r ? NULL : module_of(handle);
    const struct entry *e = m && name ? image_find(&m->image, name) : NULL;
    if (r == CUDA_SUCCESS && !e) {
        r = !m ? CUDA_ERROR_INVALID_HANDLE : name ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
    }
    if (r == CUDA_SUCCESS) {
        *ret = function_handle(e);
    }
    return call_leave(r);
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule handle)
{
    CUresult r = call_enter("cuModuleGetFunctionCount", NEED_CONTEXT);
    const struct module *m = r ? NULL : module_of(handle);
    if (m) {
        *count = m->image.entry_count;
    }
    return call_leave(r == CUDA_SUCCESS && !m ? CUDA_ERROR_INVALID_HANDLE : r);
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int count, CUmodule handle)
{
    CUresult r = call_enter("cuModuleEnumerateFunctions", NEED_CONTEXT);
    const struct module *m = r ? NULL : module_of(handle);
    for (unsigned i = 0; m && i < count && i < m->image.entry_count; i++) {
        functions[i] = function_handle(m->image.entries[i]);
    }
    return call_leave(r == CUDA_SUCCESS && !m ? CUDA_ERROR_INVALID_HANDLE : r);
}

static const struct variable *variable_find(const struct module *m, const char *name)
{
    for (unsigned i = 0; i < m->image.variable_count; i++) {
        if (strcmp(m->image.variables[i]->name, name) == 0) {
            return m->image.variables[i];
        }
    }
    return NULL;
}

static CUresult global(const struct module *m, const char *name, CUdeviceptr *ret, size_t *ret_size)
{
    const struct variable *v = variable_find(m, name);
    if (!v) {
        return CUDA_ERROR_NOT_FOUND;
    }
    if (ret) {
        *ret = v->address;
    }
    if (ret_size) {
        *ret_size = v->size;
    }
    return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUmodule handle, const char *name)
{
    CUresult r = call_enter("cuModuleGetGlobal", NEED_CONTEXT);
    const struct module *m = r ? NULL : module_of(handle);
    if (r == CUDA_SUCCESS) {
        r = m ? global(m, name, dptr, bytes) : CUDA_ERROR_INVALID_HANDLE;
    }
    return call_leave(r);
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    CUresult r = call_enter("cuModuleGetLoadingMode", NEED_INIT);
    if (r == CUDA_SUCCESS) {
        *mode = CU_MODULE_EAGER_LOADING;
    }
    return call_leave(r);
}

/* ---- libraries ------------------------------------------------------------------------------- */

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options,
                           void **values, unsigned int count, CUlibraryOption *library_options,
                           void **library_values, unsigned int library_count)
{
    const struct jit j = {count, options, values};
    struct module *m = NULL;
    CUresult r = call_enter("cuLibraryLoadData", NEED_CONTEXT);
    (void)library_options;
    (void)library_values;
    (void)library_count;
    r = r ? r : module_new(code, &j, true, &m);
    if (r == CUDA_SUCCESS) {
        *library = (CUlibrary)(uintptr_t)m->object.handle;
    }
    return call_leave(r);
}

CUresult cuLibraryUnload(CUlibrary handle)
{
    CUresult r = call_enter("cuLibraryUnload", NEED_CONTEXT);
    struct module *m = r ? NULL : object_get(handle, KIND_LIBRARY);
    if (r == CUDA_SUCCESS) {
        r = m ? unload(m) : CUDA_ERROR_INVALID_HANDLE;
    }
    return call_leave(r);
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary handle)
{
    CUresult r = call_enter("cuLibraryGetModule", NEED_CONTEXT);
    const struct module *m = r ? NULL : object_get(handle, KIND_LIBRARY);
    if (m) {
        *module = (CUmodule)(uintptr_t)m->object.handle;
    }
    return call_leave(r == CUDA_SUCCESS && !m ? CUDA_ERROR_INVALID_HANDLE : r);
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary handle, const char *name)
{
    CUresult r = call_enter("cuLibraryGetKernel", NEED_INIT);
    const struct module *m = r ? NULL : object_get(handle, KIND_LIBRARY);
    const struct entry *e = m ? image_find(&m->image, name) : NULL;
    if (r == CUDA_SUCCESS && !e) {
        r = m ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
    }
    if (r == CUDA_SUCCESS) {
        *kernel = kernel_handle(e);
    }
    return call_leave(r);
}

CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary handle)
{
    CUresult r = call_enter("cuLibraryGetKernelCount", NEED_INIT);
    const struct module *m = r ? NULL : object_get(handle, KIND_LIBRARY);
    if (m) {
        *count = m->image.entry_count;
    }
    return call_leave(r == CUDA_SUCCESS && !m ? CUDA_ERROR_INVALID_HANDLE : r);
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int count, CUlibrary handle)
{
    CUresult r = call_enter("cuLibraryEnumerateKernels", NEED_INIT);
    const struct module *m = r ? NULL : object_get(handle, KIND_LIBRARY);
    for (unsigned i = 0; m && i < count && i < m->image.entry_count; i++) {
        kernels[i] = kernel_handle(m->image.entries[i]);
    }
    return call_leave(r == CUDA_SUCCESS && !m ? CUDA_ERROR_INVALID_HANDLE : r);
}

CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary handle, const char *name)
{
    CUresult r = call_enter("cuLibraryGetGlobal", NEED_CONTEXT);
    const struct module *m = r ? NULL : object_get(handle, KIND_LIBRARY);
    if (r == CUDA_SUCCESS) {
        r = m ? global(m, name, dptr, bytes) : CUDA_ERROR_INVALID_HANDLE;
    }
    return call_leave(r);
}

CUresult cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary handle, const char *name)
{
    CUresult r = call_enter("cuLibraryGetManaged", NEED_CONTEXT);
    const struct module *m = r ? NULL : object_get(handle, KIND_LIBRARY);
    if (r == CUDA_SUCCESS) {
        r = m ? global(m, name, dptr, bytes) : CUDA_ERROR_INVALID_HANDLE;
    }
    return call_leave(r);
}

static struct entry *kernel_of(CUkernel handle)
{
    struct object *o = object_get(handle, KIND_KERNEL);
    return o ? (struct entry *)((uint8_t *)o - offsetof(struct entry, kernel)) : NULL;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel handle)
{
    CUresult r = call_enter("cuKernelGetFunction", NEED_CONTEXT);
    const struct entry *e = r ? NULL : kernel_of(handle);
    if (e) {
        *function = function_handle(e);
    }
    return call_leave(r == CUDA_SUCCESS && !e ? CUDA_ERROR_INVALID_HANDLE : r);
}

CUresult cuKernelGetName(const char **name, CUkernel handle)
{
    CUresult r = call_enter("cuKernelGetName", NEED_INIT);
    const struct entry *e = r ? NULL : kernel_of(handle);
    if (e) {
        *name = e->name;
    }
    return call_leave(r == CUDA_SUCCESS && !e ? CUDA_ERROR_INVALID_HANDLE : r);
}

/* ---- functions ------------------------------------------------------------------------------- */

struct entry *entry_of(CUfunction handle)
{
    struct object *o = object_peek(handle, KIND_KERNEL);
    if (o) {
        return (struct entry *)((uint8_t *)o - offsetof(struct entry, kernel));
    }
    o = object_get(handle, KIND_FUNCTION);
    return o ? (struct entry *)((uint8_t *)o - offsetof(struct entry, function)) : NULL;
}

CUresult cuFuncGetName(const char **name, CUfunction handle)
{
    CUresult r = call_enter("cuFuncGetName", NEED_INIT);
    const struct entry *e = r ? NULL : entry_of(handle);
    if (e) {
        *name = e->name;
    }
    return call_leave(r == CUDA_SUCCESS && !e ? CUDA_ERROR_INVALID_HANDLE : r);
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction handle)
{
    CUresult r = call_enter("cuFuncGetModule", NEED_INIT);
    const struct entry *e = r ? NULL : entry_of(handle);
    if (e) {
        *module = (CUmodule)(uintptr_t)e->module->object.handle;
    }
    return call_leave(r == CUDA_SUCCESS && !e ? CUDA_ERROR_INVALID_HANDLE : r);
}

static CUresult param_info(const struct entry *e, size_t index, size_t *offset, size_t *size)
{
    if (!e) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (index >= e->param_count) {
        return CUDA_ERROR_INVALID_VALUE; /* how callers find the end: no misuse */
    }
    *offset = e->param[index].offset;
    if (size) {
        *size = e->param[index].size;
    }
    return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t *offset, size_t *size)
{
    CUresult r = call_enter("cuFuncGetParamInfo", NEED_INIT);
    return call_leave(r ? r : param_info(entry_of(handle), index, offset, size));
}

CUresult cuKernelGetParamInfo(CUkernel handle, size_t index, size_t *offset, size_t *size)
{
    CUresult r = call_enter("cuKernelGetParamInfo", NEED_INIT);
    return call_leave(r ? r : param_info(kernel_of(handle), index, offset, size));
}

static CUresult attribute_get(int *pi, CUfunction_attribute which, const struct entry *e)
{
    if (!e) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    const struct image *image = &e->module->image;
    switch (which) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *pi = (int)e->max_threads;
        break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *pi = (int)e->shared;
        break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        *pi = (int)e->constant;
        break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *pi = (int)e->local;
        break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *pi = (int)e->registers;
        break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *pi = image->arch;
        break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *pi = (int)e->max_dynamic;
        break;
    default:
        if (which < 0 || which >= CU_FUNC_ATTRIBUTE_MAX) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        *pi = 0;
    }
    return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction handle)
{
    CUresult r = call_enter("cuFuncGetAttribute", NEED_CONTEXT);
    return call_leave(r ? r : attribute_get(pi, attrib, entry_of(handle)));
}

CUresult cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel handle, CUdevice dev)
{
    CUresult r = call_enter_device("cuKernelGetAttribute", NEED_INIT, dev);
    return call_leave(r ? r : attribute_get(pi, attrib, kernel_of(handle)));
}

static CUresult attribute_set(CUfunction_attribute which, int value, struct entry *e)
{
    if (!e) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (which == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
        return value >= -1 && value <= 100 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    if (which != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
        (unsigned)value + e->shared > DYNAMIC_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    e->max_dynamic = (uint32_t)value;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attrib, int value)
{
    CUresult r = call_enter("cuFuncSetAttribute", NEED_CONTEXT);
    return call_leave(r ? r : attribute_set(attrib, value, entry_of(handle)));
}

CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int value, CUkernel handle, CUdevice dev)
{
    CUresult r = call_enter_device("cuKernelSetAttribute", NEED_INIT, dev);
    return call_leave(r ? r : attribute_set(attrib, value, kernel_of(handle)));
}

CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config)
{
    CUresult r = call_enter("cuFuncSetCacheConfig", NEED_CONTEXT);
    (void)config;
    return call_leave(r || entry_of(handle) ? r : CUDA_ERROR_INVALID_HANDLE);
}

CUresult cuFuncLoad(CUfunction handle)
{
    CUresult r = call_enter("cuFuncLoad", NEED_CONTEXT);
    return call_leave(r || entry_of(handle) ? r : CUDA_ERROR_INVALID_HANDLE);
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction handle)
{
    CUresult r = call_enter("cuFuncIsLoaded", NEED_CONTEXT);
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return call_leave(r || entry_of(handle) ? r : CUDA_ERROR_INVALID_HANDLE);
}
