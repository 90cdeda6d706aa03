#include "daemon/backend/cuda/compile/compile_cuda.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/backend/cuda/compile/compile_nvcc.h"
#include "daemon/backend/cuda/compile/compile_nvrtc.h"
#include "daemon/backend/cuda/compile/compile_types.h"
#include "daemon/backend/cuda/compile/nvcc.h"
#include "daemon/backend/cuda/image/image.h"
#include "daemon/backend/cuda/source/lex.h"
#include "daemon/backend/options.h"

/* limit in bytes of a source with the text that learns types */
#define TYPES_TEXT_MAX  (64u * 1024u)
#define COMPILE_LOG_MAX 65536u

/* One compilation, by one compiler or by both. */
struct task {
    struct compile_input in;
    struct cuda_options options;
    char nvrtc_path[PATH_MAX];
    char nvcc_path[PATH_MAX];
    struct scan scan; /* the kernels found in the text, as far as it can be read */
    struct compile_output out;
    struct capbuf *log;
    struct err *e;
};

/* nvcc is not installed here: explains how to compile elsewhere. */
static int elsewhere(struct task *t, int rc)
{
    const char *file = t->in.file;
    char said[ERR_TEXT_MAX];
    memcpy(said, t->e->text, sizeof said);
    (void)capbuf_printf(
        t->log,
        "%s: note: nvcc is not installed here, which takes whole programs. Where it "
        "is, run: nvcc -cubin -arch=sm_%u -o k.cubin %s (or -fatbin), and load "
        "k.cubin\n",
        file, t->in.device->number, file);
    return err_set(t->e, rc,
                   "%.200s (no nvcc here; elsewhere run nvcc -cubin -arch=sm_%u -o k.cubin %.40s "
                   "and load k.cubin)",
                   said, t->in.device->number, file);
}

/* ---- after ----------------------------------------------------------------------------------- */

static int no_kernel(const struct task *t)
{
    const char *file = t->in.file;
    for (unsigned i = 0; i < t->scan.kernel_count; i++) {
        const struct scan_kernel *k = &t->scan.kernel[i];
        if (k->is_template) {
            return err_set(t->e, ERR_COMPILE,
                           "%s:%u:%u: error: kernel %s is a template: name the instances you need "
                           "with the build option --name-expression=%s<float>",
                           file, k->place.line, k->place.column, k->name, k->name);
        }
    }
    return err_set(t->e, ERR_COMPILE, "%s: error: no kernel in it: nothing is __global__", file);
}

static int finish(struct task *t, int rc)
{
    struct compile_output *out = &t->out;
    rc = rc == 0 ? image_read(out->lang, bytes_of(out->data, out->size), t->in.device, &out->image,
                              t->e)
                 : rc;
    if (rc == 0) {
        report_complete(&out->image, &t->scan, out->alias, out->alias_count, t->in.file, t->log);
        rc = out->image.kernel_count > 0 ? 0 : no_kernel(t);
    }
    if (rc != 0) {
        free(out->data);
        image_finish(&out->image);
        *out = (struct compile_output){.size = 0};
    }
    return rc;
}

/* Learns what types of its own a source uses, by compiling it once more with the same compiler
 * (nvcc; NULL: NVRTC). A type that cannot be learned remains unknown, without a message. */
static int learn_types(struct task *t, const char *nvcc)
{
    struct compile_input in = t->in;
    struct scan scan = {.kernel_count = 0};
    struct compile_output *out = calloc(1, sizeof *out);
    struct capbuf text, said;
    struct err why = ERR_INIT;
    capbuf_init(&text, in.text.size + TYPES_TEXT_MAX);
    capbuf_init(&said, COMPILE_LOG_MAX);
    if (out != NULL && compile_types_source(&t->out.image, in.text, &text)) {
        in.text = capbuf_view(&text);
        int rc = nvcc != NULL ? compile_nvcc(&in, nvcc, out, &said, &why)
                              : compile_nvrtc(&in, &scan, out, &said, &why);
        rc = rc == 0 ? image_read(out->lang, bytes_of(out->data, out->size), in.device, &out->image,
                                  &why)
                     : rc;
        if (rc == 0) {
            compile_types_take(&out->image, &t->out.image);
        }
        free(out->data);
        image_finish(&out->image);
    }
    capbuf_finish(&said);
    capbuf_finish(&text);
    scan_finish(&scan);
    free(out);
    return 0;
}

/* ---- the choice ------------------------------------------------------------------------------ */

static int by_nvrtc(struct task *t)
{
    int rc = finish(t, compile_nvrtc(&t->in, &t->scan, &t->out, t->log, t->e));
    return rc == 0 && compile_types_wanted(&t->out.image) ? learn_types(t, NULL) : rc;
}

static void scan_alone(struct task *t)
{
    char *text = NULL;
    if (t->scan.kernel == NULL && lex_normalize(t->in.text, t->in.file, &text, NULL) == 0) {
        (void)scan_source(text, t->in.file, &t->scan, NULL);
    }
    free(text);
}

static int by_nvcc(struct task *t, const char *nvcc)
{
    scan_alone(t); /* for the names of arguments */
    int rc = finish(t, compile_nvcc(&t->in, nvcc, &t->out, t->log, t->e));
    return rc == 0 && compile_types_wanted(&t->out.image) ? learn_types(t, nvcc) : rc;
}

/* Could another compiler accept the source? */
static bool refused(int rc)
{
    return rc == ERR_COMPILE || rc == ERR_UNSUPPORTED;
}

static int by_either(struct task *t)
{
    char nvcc[PATH_MAX];
    char note[ERR_TEXT_MAX + 80];
    int rc = by_nvrtc(t);
    if (!refused(rc)) {
        return rc;
    }
    if (!nvcc_find(t->nvcc_path, nvcc)) {
        return elsewhere(t, rc);
    }
    (void)snprintf(note, sizeof note, "%s: note: NVRTC did not take it (%s), so nvcc compiles it\n",
                   t->in.file, t->e->text);
    capbuf_reset(t->log);
    rc = by_nvcc(t, nvcc);
    (void)capbuf_append(t->log, note, strlen(note));
    return rc;
}

static int by_nvcc_alone(struct task *t)
{
    char nvcc[PATH_MAX];
    if (nvcc_find(t->nvcc_path, nvcc)) {
        return by_nvcc(t, nvcc);
    }
    (void)err_set(t->e, ERR_UNSUPPORTED, "%s: nvcc is not installed%s%s", t->in.file,
                  t->nvcc_path[0] != '\0' ? " in " : "", t->nvcc_path);
    return elsewhere(t, ERR_UNSUPPORTED);
}

/* The source's option has precedence over the daemon's setting. An option that only one compiler
 * knows chooses that compiler. */
static int tool_choose(struct task *t, const char *backend_options, enum cuda_tool *ret_tool)
{
    const struct cuda_options *o = &t->options;
    enum cuda_tool tool = o->tool;
    char setting[16];
    if (tool == CUDA_TOOL_AUTO &&
        option_text(backend_options, "compiler", setting, sizeof setting) &&
        !cuda_tool_read(setting, &tool)) {
        return err_set(t->e, ERR_INVALID, "compiler=%s: it is auto, nvrtc or nvcc", setting);
    }
    if (tool == CUDA_TOOL_AUTO) {
        tool = o->nvcc_only != NULL    ? CUDA_TOOL_NVCC
               : o->nvrtc_only != NULL ? CUDA_TOOL_NVRTC
                                       : CUDA_TOOL_AUTO;
    }
    bool clash = (tool == CUDA_TOOL_NVCC && o->nvrtc_only != NULL) ||
                 (tool == CUDA_TOOL_NVRTC && o->nvcc_only != NULL);
    *ret_tool = tool;
    return !clash ? 0
                  : err_set(t->e, ERR_INVALID, "%s does not know the option %.64s",
                            tool == CUDA_TOOL_NVCC ? "nvcc" : "NVRTC",
                            tool == CUDA_TOOL_NVCC ? o->nvrtc_only : o->nvcc_only);
}

static int compile(struct task *t, enum cuda_tool tool)
{
    int rc = tool == CUDA_TOOL_NVRTC  ? by_nvrtc(t)
             : tool == CUDA_TOOL_NVCC ? by_nvcc_alone(t)
                                      : by_either(t);
    if (rc == 0) {
        (void)capbuf_printf(t->log, "%s: note: compiled by %s\n", t->in.file, t->out.tool);
    }
    return rc;
}

int compile_cuda(const struct backend_source *source, const char *file,
                 const struct image_arch *device, struct compile_output *ret_output,
                 struct capbuf *log, struct err *e)
{
    const char *settings = source->backend_options != NULL ? source->backend_options : "";
    enum cuda_tool tool = CUDA_TOOL_AUTO;
    struct task *t = calloc(1, sizeof *t);
    if (t == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a compiler");
    }
    t->log = log;
    t->e = e;
    (void)option_text(settings, "nvrtc", t->nvrtc_path, sizeof t->nvrtc_path);
    (void)option_text(settings, "nvcc", t->nvcc_path, sizeof t->nvcc_path);
    t->in = (struct compile_input){.text = source->text,
                                   .file = file,
                                   .device = device,
                                   .options = &t->options,
                                   .cache_dir = source->cache_dir,
                                   .nvrtc_path = t->nvrtc_path,
                                   .confined = source->confined};
    int rc = cuda_options_read(source->options != NULL ? source->options : "", &t->options, e);
    rc = rc == 0 ? tool_choose(t, settings, &tool) : rc;
    rc = rc == 0 ? compile(t, tool) : rc;
    if (rc == 0) {
        *ret_output = t->out;
    }
    cuda_options_finish(&t->options);
    scan_finish(&t->scan);
    free(t);
    return rc;
}
