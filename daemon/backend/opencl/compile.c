#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/backend/messages.h"
#include "daemon/backend/opencl/bitcode.h"
#include "daemon/backend/opencl/report.h"
#include "daemon/backend/opencl/types.h"

#define BINARY_MAX (256u * 1024u * 1024u) /* bytes */

/* One compilation, from the choice of the device to the binary. */
struct compiler {
    struct opencl_api cl;
    struct opencl_choice id;
    struct backend_info info;
    cl_context context;
    cl_program program;
    char file[BACKEND_FILE_MAX];       /* safe in a #line directive */
    char head[BACKEND_FILE_MAX + 256]; /* opencl_source_head and the #line directive */
    struct capbuf log;
};

/* Chooses a device that has the wanted arch, device `index` if possible. */
static int device_choose(struct compiler *c, unsigned index, const char *arch, struct err *e)
{
    struct opencl_choice choice[OPENCL_DEVICES_MAX];
    unsigned count = 0;
    int rc = opencl_devices(&c->cl, "", choice, &count, e);
    if (rc != 0) {
        return rc;
    }
    for (unsigned i = 0; i <= count; i++) {
        unsigned n = i == 0 ? index : i - 1;
        if (n >= count) {
            continue;
        }
        opencl_describe(&c->cl, choice[n], &c->info);
        if (!arch || !arch[0] || strcmp(arch, c->info.arch) == 0) {
            c->id = choice[n];
            return 0;
        }
    }
    return err_set(e, ERR_NO_DEVICE, "no OpenCL device %s",
                   arch && arch[0] ? arch : "of that index");
}

static int compiler_init(struct compiler *c, unsigned index, const struct backend_source *source,
                         struct err *e)
{
    capbuf_init(&c->log, OPENCL_LOG_MAX);
    backend_file_name(source->file, "source.cl", c->file);
    int rc = opencl_load(&c->cl, e);
    if (rc == 0) {
        rc = device_choose(c, index, source->arch, e);
    }
    if (rc != 0) {
        return rc;
    }
    cl_int status = CL_SUCCESS;
    c->context = c->cl.CreateContext(NULL, 1, &c->id.device, NULL, NULL, &status);
    if (status != CL_SUCCESS) {
        c->context = NULL;
        return opencl_error(status, "clCreateContext", e);
    }
    return 0;
}

static void compiler_finish(struct compiler *c)
{
    if (c->program) {
        c->cl.ReleaseProgram(c->program);
    }
    if (c->context) {
        c->cl.ReleaseContext(c->context);
    }
    capbuf_finish(&c->log);
}

static int program_create(struct compiler *c, struct bytes text, struct err *e)
{
    snprintf(c->head, sizeof c->head, "%s#line 1 \"%s\"\n", opencl_source_head, c->file);
    const char *strings[] = {c->head, (const char *)text.data};
    size_t sizes[] = {strlen(c->head), text.size};
    cl_int status = CL_SUCCESS;
    c->program = c->cl.CreateProgramWithSource(c->context, 2, strings, sizes, &status);
    if (status != CL_SUCCESS) {
        c->program = NULL;
        return opencl_error(status, "clCreateProgramWithSource", e);
    }
    return 0;
}

/* Takes the error's text from the log's first line with an error. */
static int compile_error(const struct compiler *c, struct err *e)
{
    struct bytes log = capbuf_view(&c->log);
    const char *at = (const char *)log.data;
    const char *end = at + log.size;
    while (at && at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((stop ? stop : end) - at);
        if (memmem(at, n, "error: ", 7)) {
            return err_set(e, ERR_COMPILE, "%.*s", (int)(n < 300 ? n : 300), at);
        }
        at = stop ? stop + 1 : end;
    }
    return err_set(e, ERR_COMPILE, "%s: the compiler refused it", c->file);
}

static int program_build(struct compiler *c, const char *options, struct err *e)
{
    static const char info[] = "-cl-kernel-arg-info ";
    size_t size = sizeof info + strlen(options);
    char *all = malloc(size);
    if (!all) {
        return err_set(e, ERR_NOMEM, "no memory for compiler options");
    }
    snprintf(all, size, "%s%s", info, options);
    cl_int status = c->cl.BuildProgram(c->program, 1, &c->id.device, all, NULL, NULL);
    free(all);
    int rc = opencl_report_log(&c->cl, c->program, c->id.device, &c->log, e);
    if (rc != 0) {
        return rc;
    }
    if (status == CL_BUILD_PROGRAM_FAILURE || status == CL_INVALID_BUILD_OPTIONS) {
        return compile_error(c, e);
    }
    return status == CL_SUCCESS ? 0 : opencl_error(status, "clBuildProgram", e);
}

static int binary_take(struct compiler *c, struct backend_compiled *out, struct err *e)
{
    size_t size = 0;
    cl_int rc = c->cl.GetProgramInfo(c->program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL);
    if (rc != CL_SUCCESS || size == 0 || size > BINARY_MAX) {
        return rc != CL_SUCCESS ? opencl_error(rc, "clGetProgramInfo", e)
                                : err_set(e, ERR_COMPILE_LIMIT, "a binary of %zu bytes", size);
    }
    unsigned char *data = malloc(size);
    if (!data) {
        return err_set(e, ERR_NOMEM, "no memory for a binary of %zu bytes", size);
    }
    rc = c->cl.GetProgramInfo(c->program, CL_PROGRAM_BINARIES, sizeof data, &data, NULL);
    if (rc == CL_SUCCESS) {
        opencl_bitcode_learn(bytes_of(data, size), out);
    }
    int result = rc == CL_SUCCESS ? opencl_binary_wrap(c->info.arch, bytes_of(data, size), out, e)
                                  : opencl_error(rc, "clGetProgramInfo", e);
    free(data);
    return result;
}

static int source_accept(const struct backend_source *source, const struct compiler *c,
                         struct err *e)
{
    if (source->lang != BACKEND_LANG_OPENCL) {
        return err_set(e, ERR_UNSUPPORTED, "the OpenCL back end compiles OpenCL C and the dialect");
    }
    int rc = opencl_options_check(source->options ? source->options : "", e);
    return rc != 0 ? rc : opencl_source_check(source->text, c->file, e);
}

static int compile_all(struct compiler *c, const struct backend_source *source,
                       struct backend_compiled *out, struct err *e)
{
    int rc = program_create(c, source->text, e);
    if (rc == 0) {
        rc = program_build(c, source->options ? source->options : "", e);
    }
    if (rc == 0) {
        rc = opencl_report_kernels(&c->cl, c->program, c->id.device, out, &c->log, e);
    }
    if (rc == 0 && out->kernel_count == 0) {
        rc = err_set(e, ERR_COMPILE, "%s: no kernel in it", c->file);
    }
    if (rc == 0) {
        const struct opencl_text text = {source->text, c->head,
                                         source->options ? source->options : ""};
        opencl_types_learn(&c->cl, c->context, c->id.device, &text, out);
    }
    return rc != 0 ? rc : binary_take(c, out, e);
}

int opencl_compile(unsigned index, const struct backend_source *source,
                   struct backend_compiled *ret_compiled, struct err *e)
{
    struct compiler c = {0};
    struct backend_compiled out = {0};
    int rc = compiler_init(&c, index, source, e);
    if (rc == 0) {
        rc = source_accept(source, &c, e);
    }
    if (rc == 0) {
        rc = compile_all(&c, source, &out, e);
    }
    if (rc == 0 || rc == ERR_COMPILE) {
        char *log = backend_log_text(&c.log, rc, e);
        if (rc == ERR_COMPILE) {
            backend_compiled_finish(&out);
        }
        out.log = log;
        *ret_compiled = out;
    } else {
        backend_compiled_finish(&out);
    }
    compiler_finish(&c);
    return rc;
}
