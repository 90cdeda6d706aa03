#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/backend/opencl/module.h"
#include "daemon/backend/opencl/report.h"

#define NAMES_MAX 65536u /* bytes */

static void module_unload(struct backend_module *m)
{
    if (!m) {
        return;
    }
    for (unsigned i = 0; i < m->kernel_count; i++) {
        if (m->kernels[i].kernel) {
            m->device->cl.ReleaseKernel(m->kernels[i].kernel);
        }
    }
    if (m->program) {
        m->device->cl.ReleaseProgram(m->program);
    }
    free(m->kernels);
    free(m->names);
    free(m);
}

static int program_load(struct backend_module *m, struct bytes payload, struct err *e)
{
    struct backend_device *d = m->device;
    cl_int status = CL_SUCCESS;
    cl_int rc = CL_SUCCESS;
    m->program = d->cl.CreateProgramWithBinary(d->context, 1, &d->id.device, &payload.size,
                                               &payload.data, &status, &rc);
    if (rc != CL_SUCCESS) {
        m->program = NULL;
        return opencl_error(rc, "clCreateProgramWithBinary", e);
    }
    rc = d->cl.BuildProgram(m->program, 1, &d->id.device, "-cl-kernel-arg-info", NULL, NULL);
    return rc == CL_SUCCESS ? 0 : opencl_error(rc, "clBuildProgram", e);
}

static int kernel_compare(const void *a, const void *b)
{
    return strcmp(((const struct opencl_kernel *)a)->name, ((const struct opencl_kernel *)b)->name);
}

/* Splits "a;b;c" into names. */
static int names_split(struct backend_module *m, struct err *e)
{
    unsigned count = m->names[0] ? 1 : 0;
    for (const char *at = m->names; *at; at++) {
        count += *at == ';';
    }
    m->kernels = calloc(count ? count : 1, sizeof *m->kernels);
    if (!m->kernels) {
        return err_set(e, ERR_NOMEM, "no memory for a module's kernels");
    }
    char *rest = m->names;
    for (char *name = strsep(&rest, ";"); name && name[0]; name = strsep(&rest, ";")) {
        m->kernels[m->kernel_count++].name = name;
    }
    qsort(m->kernels, m->kernel_count, sizeof *m->kernels, kernel_compare);
    return 0;
}

static int names_read(struct backend_module *m, struct err *e)
{
    const struct opencl_api *cl = &m->device->cl;
    size_t size = 0;
    cl_int rc = cl->GetProgramInfo(m->program, CL_PROGRAM_KERNEL_NAMES, 0, NULL, &size);
    if (rc != CL_SUCCESS) {
        return opencl_error(rc, "clGetProgramInfo", e);
    }
    if (size > NAMES_MAX) {
        return err_set(e, ERR_LIMIT, "the names of the module's kernels take %zu bytes, %u at most",
                       size, NAMES_MAX);
    }
    m->names = calloc(1, size + 1);
    if (!m->names) {
        return err_set(e, ERR_NOMEM, "no memory for a module's names");
    }
    rc = cl->GetProgramInfo(m->program, CL_PROGRAM_KERNEL_NAMES, size, m->names, NULL);
    return rc == CL_SUCCESS ? names_split(m, e) : opencl_error(rc, "clGetProgramInfo", e);
}

static int module_load(struct backend_device *d, struct bytes binary,
                       struct backend_module **ret_module, struct err *e)
{
    struct bytes payload;
    int rc = opencl_binary_unwrap(d->info.arch, binary, &payload, e);
    if (rc != 0) {
        return rc;
    }
    struct backend_module *m = calloc(1, sizeof *m);
    if (!m) {
        return err_set(e, ERR_NOMEM, "no memory for a module");
    }
    m->device = d;
    rc = program_load(m, payload, e);
    if (rc == 0) {
        rc = names_read(m, e);
    }
    if (rc != 0) {
        module_unload(m);
        return rc;
    }
    *ret_module = m;
    return 0;
}

static unsigned module_kernel_count(struct backend_module *m)
{
    return m->kernel_count;
}

static int kernel_describe(struct backend_module *m, struct opencl_kernel *k, struct err *e)
{
    const struct opencl_api *cl = &m->device->cl;
    cl_int rc =
        cl->GetKernelInfo(k->kernel, CL_KERNEL_NUM_ARGS, sizeof k->arg_count, &k->arg_count, NULL);
    if (rc != CL_SUCCESS) {
        return opencl_error(rc, "clGetKernelInfo", e);
    }
    /* a kernel with more cannot be launched, but others of the module can */
    for (cl_uint i = 0; i < k->arg_count && i < OPENCL_ARGS_MAX; i++) {
        k->kind[i] = (uint8_t)opencl_arg_kind(cl, k->kernel, i);
    }
    cl_device_id device = m->device->id.device;
    rc = cl->GetKernelWorkGroupInfo(k->kernel, device, CL_KERNEL_WORK_GROUP_SIZE,
                                    sizeof k->max_group, &k->max_group, NULL);
    if (rc == CL_SUCCESS) {
        rc = cl->GetKernelWorkGroupInfo(k->kernel, device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                        sizeof k->required_local, k->required_local, NULL);
    }
    return rc == CL_SUCCESS ? 0 : opencl_error(rc, "clGetKernelWorkGroupInfo", e);
}

static int kernel_make(struct backend_module *m, struct opencl_kernel *k, struct err *e)
{
    if (k->kernel) {
        return 0;
    }
    cl_int status = CL_SUCCESS;
    k->kernel = m->device->cl.CreateKernel(m->program, k->name, &status);
    if (status != CL_SUCCESS) {
        k->kernel = NULL;
        return opencl_error(status, "clCreateKernel", e);
    }
    int rc = kernel_describe(m, k, e);
    if (rc != 0) {
        m->device->cl.ReleaseKernel(k->kernel);
        k->kernel = NULL;
    }
    return rc;
}

int opencl_kernel_find(struct backend_module *m, const char *entry,
                       struct opencl_kernel **ret_kernel, struct err *e)
{
    struct opencl_kernel key = {.name = entry};
    struct opencl_kernel *k =
        bsearch(&key, m->kernels, m->kernel_count, sizeof *m->kernels, kernel_compare);
    if (!k) {
        return err_set(e, ERR_NOT_FOUND, "the module has no kernel \"%s\"", entry);
    }
    int rc = kernel_make(m, k, e);
    if (rc != 0) {
        err_wrap(e, "kernel %s", entry);
        return rc;
    }
    if (k->arg_count > OPENCL_ARGS_MAX) {
        return err_set(e, ERR_LIMIT, "kernel %s takes %u arguments, %u at most can be given", entry,
                       k->arg_count, OPENCL_ARGS_MAX);
    }
    *ret_kernel = k;
    return 0;
}

static int module_kernel(struct backend_module *m, unsigned index,
                         struct backend_kernel *ret_kernel, struct err *e)
{
    if (index >= m->kernel_count) {
        return err_set(e, ERR_RANGE, "kernel %u of %u", index, m->kernel_count);
    }
    struct opencl_kernel *k = &m->kernels[index];
    int rc = kernel_make(m, k, e);
    if (rc != 0) {
        err_wrap(e, "kernel %s", k->name);
        return rc;
    }
    const struct opencl_api *cl = &m->device->cl;
    cl_device_id device = m->device->id.device;
    struct backend_kernel out = {.arg_count = k->arg_count};
    snprintf(out.entry, sizeof out.entry, "%s", k->name);
    out.local_bytes = opencl_group_number(cl, k->kernel, device, CL_KERNEL_PRIVATE_MEM_SIZE);
    out.shared_bytes = opencl_group_number(cl, k->kernel, device, CL_KERNEL_LOCAL_MEM_SIZE);
    out.max_group = opencl_group_number(cl, k->kernel, device, CL_KERNEL_WORK_GROUP_SIZE);
    for (unsigned i = 0; i < 3; i++) {
        out.required_local[i] = k->required_local[i];
    }
    out.preferred_multiple =
        opencl_group_number(cl, k->kernel, device, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE);
    *ret_kernel = out;
    return 0;
}

const struct backend_module_ops opencl_module_ops = {
    .load = module_load,
    .unload = module_unload,
    .kernel_count = module_kernel_count,
    .kernel = module_kernel,
};
