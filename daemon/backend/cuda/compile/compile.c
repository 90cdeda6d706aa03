#include "daemon/backend/cuda/compile/compile.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/backend/cuda/compile/compile_cuda.h"
#include "daemon/backend/cuda/compile/compile_report.h"
#include "daemon/backend/cuda/image/image.h"
#include "daemon/backend/cuda/run/binary.h"
#include "daemon/backend/cuda/source/lex.h"
#include "daemon/backend/messages.h"
#include "kernels/builtin_fatbin.h"

#define LOG_MAX (1024u * 1024u) /* bytes */

/* Reads the image's kernels, and copies the image. */
static int image_take(int lang, struct bytes image, const struct image_arch *device,
                      struct compile_output *out, struct err *e)
{
    int rc = image_read(lang, image, device, &out->image, e);
    if (rc != 0) {
        return rc;
    }
    out->data = malloc(image.size);
    if (out->data == NULL) {
        image_finish(&out->image);
        return err_set(e, ERR_NOMEM, "no memory for a module of %zu bytes", image.size);
    }
    memcpy(out->data, image.data, image.size);
    out->size = image.size;
    return 0;
}

static int given_take(const struct backend_source *source, const char *file,
                      const struct image_arch *device, struct compile_output *out,
                      struct capbuf *log, struct err *e)
{
    if (source->options != NULL && source->options[0] != '\0') {
        return err_set(e, ERR_INVALID, "%s is compiled already: it takes no options", file);
    }
    int rc = image_take(source->lang, source->text, device, out, e);
    if (rc != 0) {
        return rc;
    }
    report_complete(&out->image, NULL, NULL, 0, file, log);
    return out->image.kernel_count > 0 ? 0 : err_set(e, ERR_INVALID, "%s has no kernel", file);
}

/* Takes the binary that was compiled with gpud, if the source is a built-in module's. Returns
 * false if it is not, or if there is no code for such a device. */
static bool builtin_take(const struct backend_source *source, const char *file,
                         const struct image_arch *device, struct compile_output *out,
                         struct capbuf *log)
{
    struct bytes fat = builtin_fatbin_find(source->text);
    bool plain = source->options == NULL || source->options[0] == '\0';
    struct scan scan = {.kernel = NULL};
    char *text = NULL;
    if (!plain || fat.size == 0 || image_take(BACKEND_LANG_CUBIN, fat, device, out, NULL) != 0) {
        return false;
    }
    /* if the source cannot be read, kinds of arguments remain unknown: the front has the
     * signatures */
    if (lex_normalize(source->text, file, &text, NULL) == 0 &&
        scan_source(text, file, &scan, NULL) == 0) {
        report_complete(&out->image, &scan, NULL, 0, file, log);
        scan_finish(&scan);
    }
    free(text);
    return true;
}

static int output_make(const struct backend_source *source, const char *file,
                       struct compile_output *out, struct capbuf *log, struct err *e)
{
    struct image_arch device;
    if (source->arch == NULL || !image_arch_read(source->arch, &device)) {
        return err_set(e, ERR_NO_DEVICE, "no CUDA device has the architecture \"%.40s\"",
                       source->arch != NULL ? source->arch : "");
    }
    switch (source->lang) {
    case BACKEND_LANG_CUDA:
        return builtin_take(source, file, &device, out, log)
                   ? 0
                   : compile_cuda(source, file, &device, out, log, e);
    case BACKEND_LANG_PTX:
    case BACKEND_LANG_CUBIN:
        return given_take(source, file, &device, out, log, e);
    default:
        return err_set(e, ERR_UNSUPPORTED,
                       "the CUDA back end takes the dialect, CUDA C, PTX, cubin and fatbin");
    }
}

int cuda_compile(unsigned index, const struct backend_source *source,
                 struct backend_compiled *ret_compiled, struct err *e)
{
    struct err own = ERR_INIT;
    struct err *why = e != NULL ? e : &own;
    struct compile_output output = {.size = 0};
    struct backend_compiled out = {.binary = NULL};
    struct capbuf log;
    char file[BACKEND_FILE_MAX];
    (void)index; /* the architecture says everything about the device that a compiler needs */
    capbuf_init(&log, LOG_MAX);
    backend_file_name(source->file, source->lang == BACKEND_LANG_CUDA ? "source.cu" : "module",
                      file);
    int rc = output_make(source, file, &output, &log, why);
    if (rc == 0) {
        out.kernels = output.image.kernels;
        out.kernel_count = output.image.kernel_count;
        memcpy(out.compiler, output.compiler, sizeof out.compiler);
        rc = cuda_binary_wrap(source->arch, bytes_of(output.data, output.size), &out, why);
    }
    if (rc != 0) {
        free(output.image.kernels);
        out = (struct backend_compiled){.binary = NULL};
    }
    free(output.data);
    if (rc == 0 || rc == ERR_COMPILE) {
        out.log = backend_log_text(&log, rc, why);
        *ret_compiled = out;
    }
    capbuf_finish(&log);
    return rc;
}
