#include "daemon/backend/cuda/compile/compile_nvrtc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/backend/cuda/compile/compile_failed.h"
#include "daemon/backend/cuda/compile/nvrtc.h"
#include "daemon/backend/cuda/compile/nvrtc_log.h"
#include "daemon/backend/cuda/compile/nvrtc_pch.h"
#include "daemon/backend/cuda/source/header.h"
#include "daemon/backend/cuda/source/lex.h"

#define LOG_BYTES_MAX (4u * 1024u * 1024u)
#define GLOBALS_MAX   1024u
#define STATIC_MAX    32u
#define ARGUMENTS_MAX (2 * CUDA_OPTIONS_MAX + 16)
/* from this architecture on, code may use instructions of one architecture alone: sm_90a */
#define SPECIFIC_SINCE 90u

/* One compilation. */
struct compiler {
    struct nvrtc nvrtc;
    const struct compile_input *in;
    char *text; /* owned: normalized, as scan_source read it */
    char *program_text;
    struct scan *scan;
    char arch[40];
    char include[2][PATH_MAX + 8];
    char pch[PATH_MAX]; /* the option that loads the precompiled header */
    bool ptx;           /* NVRTC does not know the device, so it makes PTX for an older one */
    /* kernels to name to NVRTC, because it drops a static kernel that nothing refers to */
    const char *statics[STATIC_MAX];
    unsigned static_count;
    nvrtc_program program;
    const char *argument[ARGUMENTS_MAX];
    unsigned argument_count;
    int result; /* NVRTC's result of the last run */
    char *said; /* owned: NVRTC's log of the last run; NULL: it was too large */
    struct capbuf *log;
    struct err *e;
};

/* ---- before ---------------------------------------------------------------------------------- */

static int source_read(struct compiler *c)
{
    int rc = lex_normalize(c->in->text, c->in->file, &c->text, c->e);
    rc = rc == 0 ? scan_source(c->text, c->in->file, c->scan, c->e) : rc;
    if (rc == 0 && c->scan->globals > GLOBALS_MAX) {
        rc = err_set(c->e, ERR_LIMIT, "%s: %u kernels in a module, at most %u: split it",
                     c->in->file, c->scan->globals, IMAGE_KERNELS_MAX);
    }
    for (unsigned i = 0; rc == 0 && i < c->scan->kernel_count; i++) {
        const struct scan_kernel *k = &c->scan->kernel[i];
        if (k->is_static && !k->is_template && c->static_count < STATIC_MAX) {
            c->statics[c->static_count++] = k->name;
        }
    }
    return rc;
}

/* Chooses the device's own architecture, or the newest one below it that NVRTC knows: then NVRTC
 * makes PTX for the driver. */
static int arch_choose(struct compiler *c)
{
    int archs[256];
    int count = 0;
    unsigned best = 0;
    int rc = c->nvrtc.GetNumSupportedArchs(&count);
    if (rc != NVRTC_SUCCESS || count < 1 || count > 256 ||
        c->nvrtc.GetSupportedArchs(archs) != NVRTC_SUCCESS) {
        return nvrtc_error(&c->nvrtc, rc, "nvrtcGetSupportedArchs", c->e);
    }
    for (int i = 0; i < count; i++) {
        unsigned arch = (unsigned)archs[i];
        best = arch <= c->in->device->number && arch > best ? arch : best;
    }
    if (best == 0) {
        return err_set(c->e, ERR_UNSUPPORTED,
                       "NVRTC %d.%d does not compile for sm_%u any more, the oldest is sm_%d",
                       c->nvrtc.major, c->nvrtc.minor, c->in->device->number, archs[0]);
    }
    c->ptx = best != c->in->device->number;
    /* code for exactly this architecture may use what later ones lack, such as its tensor
     * instructions */
    bool specific = !c->ptx && best >= SPECIFIC_SINCE;
    snprintf(c->arch, sizeof c->arch, "--gpu-architecture=%s_%u%s", c->ptx ? "compute" : "sm", best,
             specific ? "a" : "");
    return 0;
}

static void arguments_make(struct compiler *c)
{
    const struct cuda_options *o = c->in->options;
    const char **out = c->argument;
    unsigned count = 0;
    out[count++] = c->arch;
    for (unsigned i = 0; i < o->macro_count; i++) {
        out[count++] = o->macro[i];
    }
    for (unsigned i = 0; i < o->option_count; i++) {
        out[count++] = o->option[i];
    }
    if (c->scan->includes && c->nvrtc.include[0] != '\0') {
        snprintf(c->include[0], sizeof c->include[0], "-I%s", c->nvrtc.include);
        snprintf(c->include[1], sizeof c->include[1], "-I%s/cccl", c->nvrtc.include);
        out[count++] = c->include[0];
        out[count++] = c->include[1];
    }
    c->argument_count = count;
}

/* ---- compiling ------------------------------------------------------------------------------- */

/* The text as NVRTC gets it: first what was precompiled, then the user's text under its file's
 * name. */
static int text_compose(struct compiler *c, bool pch)
{
    free(c->program_text);
    if (asprintf(&c->program_text, "%s#line 1 \"%s\"\n%s", pch ? NVRTC_PCH_PREFIX : "", c->in->file,
                 c->text) < 0) {
        c->program_text = NULL;
        return err_set(c->e, ERR_NOMEM, "no memory for a source of %zu bytes", c->in->text.size);
    }
    return 0;
}

static int program_create(struct compiler *c)
{
    const struct cuda_options *o = c->in->options;
    const char *name[HEADERS_MAX];
    const char *text[HEADERS_MAX];
    unsigned headers =
        c->scan->includes ? headers_given(c->nvrtc.include[0] != '\0', name, text) : 0;
    if (c->program != NULL) {
        (void)c->nvrtc.DestroyProgram(&c->program);
        c->program = NULL;
    }
    int rc = c->nvrtc.CreateProgram(&c->program, c->program_text, NVRTC_PCH_PROGRAM, (int)headers,
                                    text, name);
    if (rc != NVRTC_SUCCESS) {
        c->program = NULL;
        return nvrtc_error(&c->nvrtc, rc, "nvrtcCreateProgram", c->e);
    }
    for (unsigned i = 0; rc == NVRTC_SUCCESS && i < o->expression_count; i++) {
        rc = c->nvrtc.AddNameExpression(c->program, o->expression[i]);
    }
    for (unsigned i = 0; rc == NVRTC_SUCCESS && i < c->static_count; i++) {
        rc = c->nvrtc.AddNameExpression(c->program, c->statics[i]);
    }
    return rc == NVRTC_SUCCESS ? 0 : nvrtc_error(&c->nvrtc, rc, "nvrtcAddNameExpression", c->e);
}

static int log_read(struct compiler *c)
{
    size_t size = 0;
    free(c->said);
    c->said = NULL;
    if (c->nvrtc.GetProgramLogSize(c->program, &size) != NVRTC_SUCCESS || size > LOG_BYTES_MAX) {
        return 0;
    }
    c->said = calloc(1, size + 1);
    if (c->said == NULL) {
        return err_set(c->e, ERR_NOMEM, "no memory for a compiler's log");
    }
    if (c->nvrtc.GetProgramLog(c->program, c->said) != NVRTC_SUCCESS) {
        c->said[0] = '\0';
    }
    return 0;
}

/* One run of NVRTC. */
static int run(struct compiler *c, bool pch)
{
    int rc = text_compose(c, pch);
    rc = rc == 0 ? program_create(c) : rc;
    if (rc == 0) {
        c->result = c->nvrtc.CompileProgram(c->program, (int)c->argument_count, c->argument);
        rc = log_read(c);
    }
    return rc;
}

/* Finds the option that loads a precompiled CUB. Only possible if no option or macro of the
 * user's precedes it. */
static bool pch_find(struct compiler *c)
{
    const struct nvrtc_pch pch = {
        .cache_dir = c->in->cache_dir, .options = c->argument, .option_count = c->argument_count};
    return c->scan->cub && c->in->options->option_count + c->in->options->macro_count == 0 &&
           c->nvrtc.include[0] != '\0' && nvrtc_pch_obtain(&c->nvrtc, &pch, c->pch);
}

/* Did the run fail because of the precompiled header, rather than the user's text? */
static bool pch_failed(const struct compiler *c)
{
    return c->said == NULL || strstr(c->said, "recompiled header") != NULL ||
           strstr(c->said, "PCH") != NULL || strstr(c->said, "error") == NULL;
}

static int run_with_pch(struct compiler *c)
{
    c->argument[c->argument_count++] = c->pch;
    c->argument[c->argument_count++] = "--pch-messages=false";
    int rc = run(c, true);
    c->argument_count -= 2;
    return rc;
}

static int program_compile(struct compiler *c)
{
    arguments_make(c);
    bool pch = pch_find(c);
    int rc = pch ? run_with_pch(c) : 0;
    if (rc == 0 && (!pch || (c->result != NVRTC_SUCCESS && pch_failed(c)))) {
        rc = run(c, false);
    }
    if (rc == 0 && c->result == NVRTC_FAILED && c->static_count > 0) {
        c->static_count = 0; /* the preprocessor may have removed one of them */
        rc = run(c, false);
    }
    if (rc != 0 || (c->result != NVRTC_SUCCESS && c->result != NVRTC_FAILED)) {
        return rc != 0 ? rc : nvrtc_error(&c->nvrtc, c->result, "nvrtcCompileProgram", c->e);
    }
    if (c->said == NULL) {
        return err_set(c->e, ERR_COMPILE_LIMIT, "the compiler's log takes over %u bytes",
                       LOG_BYTES_MAX);
    }
    nvrtc_log_rewrite(c->said, NVRTC_PCH_PROGRAM, c->in->file, c->log);
    return c->result == NVRTC_SUCCESS ? 0 : compile_failed(c->in->file, c->log, c->e);
}

/* ---- after ----------------------------------------------------------------------------------- */

static int output_take(struct compiler *c, struct compile_output *out)
{
    const struct nvrtc *n = &c->nvrtc;
    const char *call = c->ptx ? "nvrtcGetPTX" : "nvrtcGetCUBIN";
    size_t size = 0;
    int rc = (c->ptx ? n->GetPTXSize : n->GetCUBINSize)(c->program, &size);
    if (rc != NVRTC_SUCCESS) {
        return nvrtc_error(n, rc, call, c->e);
    }
    if (size == 0 || size > IMAGE_BYTES_MAX) {
        return err_set(c->e, ERR_COMPILE_LIMIT, "a binary of %zu bytes", size);
    }
    out->data = malloc(size);
    if (out->data == NULL) {
        return err_set(c->e, ERR_NOMEM, "no memory for a binary of %zu bytes", size);
    }
    out->size = size;
    rc = (c->ptx ? n->GetPTX : n->GetCUBIN)(c->program, (char *)out->data);
    return rc == NVRTC_SUCCESS ? 0 : nvrtc_error(n, rc, call, c->e);
}

/* Takes the compiler's names of the instances that the user asked for. */
static int aliases_take(struct compiler *c, struct compile_output *out)
{
    const struct cuda_options *o = c->in->options;
    int rc = NVRTC_SUCCESS;
    for (unsigned i = 0; rc == NVRTC_SUCCESS && i < o->expression_count; i++) {
        const char *entry = "";
        rc = c->nvrtc.GetLoweredName(c->program, o->expression[i], &entry);
        struct report_alias *a = &out->alias[out->alias_count];
        if (rc == NVRTC_SUCCESS && strlen(entry) < sizeof a->entry) {
            a->name = o->expression[i];
            memcpy(a->entry, entry, strlen(entry) + 1);
            out->alias_count++;
        }
    }
    return rc == NVRTC_SUCCESS ? 0 : nvrtc_error(&c->nvrtc, rc, "nvrtcGetLoweredName", c->e);
}

static void compiler_finish(struct compiler *c)
{
    if (c->program != NULL) {
        (void)c->nvrtc.DestroyProgram(&c->program);
    }
    free(c->text);
    free(c->program_text);
    free(c->said);
    free(c);
}

int compile_nvrtc(const struct compile_input *in, struct scan *scan, struct compile_output *out,
                  struct capbuf *log, struct err *e)
{
    struct compiler *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a compiler");
    }
    *c = (struct compiler){.in = in, .scan = scan, .log = log, .e = e};
    int rc = source_read(c);
    rc = rc == 0 ? nvrtc_load(in->nvrtc_path, &c->nvrtc, e) : rc;
    rc = rc == 0 ? arch_choose(c) : rc;
    rc = rc == 0 ? program_compile(c) : rc;
    rc = rc == 0 ? aliases_take(c, out) : rc;
    rc = rc == 0 ? output_take(c, out) : rc;
    out->lang = c->ptx ? BACKEND_LANG_PTX : BACKEND_LANG_CUBIN;
    memcpy(out->compiler, c->nvrtc.file, sizeof out->compiler);
    (void)snprintf(out->tool, sizeof out->tool, "NVRTC %d.%d", c->nvrtc.major, c->nvrtc.minor);
    compiler_finish(c);
    return rc;
}
