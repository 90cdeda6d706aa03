#include "daemon/backend/cuda/compile_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/backend/cuda/compile_report.h"
#include "daemon/backend/cuda/nvrtc.h"
#include "daemon/backend/cuda/nvrtc_log.h"
#include "daemon/backend/cuda/nvrtc_option.h"
#include "daemon/backend/cuda/nvrtc_pch.h"
#include "daemon/backend/cuda/source/attribute.h"
#include "daemon/backend/cuda/source/cut.h"
#include "daemon/backend/cuda/source/header.h"
#include "daemon/backend/cuda/source/lex.h"
#include "daemon/backend/cuda/source/name.h"
#include "daemon/backend/cuda/source/predefined.h"
#include "daemon/backend/options.h"

#define HOST_PRELUDE   HEADER_NVCC "#define " CONSTANT_COMPUTED " constexpr\n" INSTANCE_PRELUDE
#define LOG_BYTES_MAX  (4u * 1024u * 1024u)
#define GLOBALS_MAX    1024u
#define STATIC_MAX     32u
#define ARGUMENTS_MAX  (PREDEFINED_MAX + NVRTC_OPTIONS_MAX + 16)
#define SPECIFIC_SINCE 90u /* architectures from here on have instructions of their own: sm_90a */
#define ALIASES_MAX    (NVRTC_EXPRESSIONS_MAX + INSTANCES_MAX)

/* One compilation. */
struct compiler {
    struct nvrtc nvrtc;
    const char *file;
    const struct image_arch *device;
    char *text; /* normalized, as the scan saw it */
    char *program_text;
    struct scan scan;
    struct nvrtc_options options;
    char arch[40];
    char include[2][PATH_MAX + 8];
    char pch[PATH_MAX];              /* the option that names the precompiled header */
    const char *cache_dir;           /* may be NULL */
    bool as_nvcc;                    /* with what nvcc brings to every source */
    bool library;                    /* with what of the C++ library is for devices */
    bool ptx;                        /* NVRTC does not know the device: PTX for an older one */
    const char *statics[STATIC_MAX]; /* kernels that nothing refers to: named, else they vanish */
    unsigned static_count;
    struct host_cut cut;       /* text NULL: nothing was */
    bool probes;               /* with what tells the instances that calls deduce */
    bool named[INSTANCES_MAX]; /* instances that are asked for */
    nvrtc_program program;
    const char *argument[ARGUMENTS_MAX];
    unsigned argument_count;
    int result; /* the last run's, NVRTC's */
    char *said; /* owned: what NVRTC said in it, as it said it; NULL: too much */
    struct capbuf *log;
    struct err *e;
};

/* ---- before ---------------------------------------------------------------------------------- */

static void statics_find(struct compiler *c)
{
    c->static_count = 0;
    for (unsigned i = 0; i < c->scan.kernel_count && c->static_count < STATIC_MAX; i++) {
        const struct scan_kernel *k = &c->scan.kernel[i];
        if (k->is_static && !k->is_template) {
            c->statics[c->static_count++] = k->name;
        }
    }
}

static int source_read(struct compiler *c, struct bytes source)
{
    int rc = lex_normalize(source, c->file, &c->text, c->e);
    rc = rc == 0 ? scan_source(c->text, c->file, &c->scan, c->e) : rc;
    if (rc == 0 && c->scan.globals > GLOBALS_MAX) {
        rc = err_set(c->e, ERR_LIMIT, "%s: %u kernels in a module, at most %u: split it", c->file,
                     c->scan.globals, IMAGE_KERNELS_MAX);
    }
    if (rc != 0) {
        return rc;
    }
    statics_find(c);
    for (unsigned i = 0; i < c->options.option_count; i++) {
        char *option = c->options.text + (c->options.option[i] - c->options.text);
        bool macro = option[1] == 'D' || option[1] == 'U'; /* its name follows at once */
        (void)predefined_rename(option + (macro ? 2 : 0), c->file, NULL);
    }
    rc = predefined_rename(c->text, c->file, c->e);
    return rc == 0 ? attributes_move(c->text, c->file, c->e) : rc;
}

/* The device's own architecture, or the newest that NVRTC knows below it, as PTX for the driver. */
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
        best = arch <= c->device->number && arch > best ? arch : best;
    }
    if (best == 0) {
        return err_set(c->e, ERR_UNSUPPORTED,
                       "NVRTC %d.%d does not compile for sm_%u any more, the oldest is sm_%d",
                       c->nvrtc.major, c->nvrtc.minor, c->device->number, archs[0]);
    }
    c->ptx = best != c->device->number;
    /* code for this device alone may use what no later one has: its tensor cores' instructions */
    bool specific = !c->ptx && best >= SPECIFIC_SINCE;
    snprintf(c->arch, sizeof c->arch, "--gpu-architecture=%s_%u%s", c->ptx ? "compute" : "sm", best,
             specific ? "a" : "");
    return 0;
}

static void arguments_make(struct compiler *c)
{
    const char **out = c->argument;
    unsigned count = 0;
    out[count++] = c->arch;
    for (const char *const *option = predefined_options; *option != NULL; option++) {
        out[count++] = *option;
    }
    for (unsigned i = 0; i < c->options.option_count; i++) {
        out[count++] = c->options.option[i];
    }
    if (c->as_nvcc) { /* what it brings is read with an older -std, too */
        out[count++] = "-DCCCL_IGNORE_DEPRECATED_CPP_DIALECT";
    }
    if ((c->scan.includes || c->as_nvcc) && c->nvrtc.include[0] != '\0') {
        snprintf(c->include[0], sizeof c->include[0], "-I%s", c->nvrtc.include);
        snprintf(c->include[1], sizeof c->include[1], "-I%s/cccl", c->nvrtc.include);
        out[count++] = c->include[0];
        out[count++] = c->include[1];
    }
    c->argument_count = count;
}

/* ---- compiling ------------------------------------------------------------------------------- */

/* The text as NVRTC gets it: what was precompiled first, then the user's under his file's name. */
static int text_compose(struct compiler *c, bool pch)
{
    const char *library = c->library ? HEADER_LIBRARY : "";
    const char *nvcc = !c->as_nvcc ? ""
                       : c->probes ? HOST_PRELUDE INSTANCE_PROBES
                                   : HOST_PRELUDE INSTANCE_NO_PROBES;
    free(c->program_text);
    if (asprintf(&c->program_text, "%s%s%s#line 1 \"%s\"\n%s", pch ? NVRTC_PCH_PREFIX : "", library,
                 nvcc, c->file, c->cut.text != NULL ? c->cut.text : c->text) < 0) {
        c->program_text = NULL;
        return err_set(c->e, ERR_NOMEM, "a source of %zu bytes", strlen(c->text));
    }
    return 0;
}

static int program_create(struct compiler *c)
{
    const char *name[HEADERS_MAX];
    const char *text[HEADERS_MAX];
    unsigned headers =
        c->scan.includes || c->as_nvcc ? headers_given(c->nvrtc.include[0] != '\0', name, text) : 0;
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
    for (unsigned i = 0; rc == NVRTC_SUCCESS && i < c->options.expression_count; i++) {
        rc = c->nvrtc.AddNameExpression(c->program, c->options.expression[i]);
    }
    for (unsigned i = 0; rc == NVRTC_SUCCESS && i < c->static_count; i++) {
        rc = c->nvrtc.AddNameExpression(c->program, c->statics[i]);
    }
    for (unsigned i = 0; rc == NVRTC_SUCCESS && i < c->cut.instances.count; i++) {
        rc = c->named[i]
                 ? c->nvrtc.AddNameExpression(c->program, c->cut.instances.list[i].expression)
                 : rc;
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
        return err_set(c->e, ERR_NOMEM, "a compiler's log");
    }
    if (c->nvrtc.GetProgramLog(c->program, c->said) != NVRTC_SUCCESS) {
        c->said[0] = '\0';
    }
    return 0;
}

static int log_take(struct compiler *c)
{
    if (c->said == NULL) {
        return err_set(c->e, ERR_COMPILE_LIMIT, "the compiler's log takes over %u bytes",
                       LOG_BYTES_MAX);
    }
    nvrtc_log_rewrite(c->said, NVRTC_PCH_PROGRAM, c->file, c->log);
    return 0;
}

/* Does it fail for the precompiled header, and not for what the user wrote? */
static bool pch_failed(const struct compiler *c)
{
    return c->said == NULL || strstr(c->said, "recompiled header") != NULL ||
           strstr(c->said, "PCH") != NULL || strstr(c->said, "error") == NULL;
}

/* Where the source holds what only a host program can and it could not be told apart: said first,
 * since the compiler's words for it lead astray. */
static void advice_add(const struct compiler *c, struct capbuf *out)
{
    const struct scan_place *place = c->scan.launch.line > 0 ? &c->scan.launch
                                     : c->scan.main.line > 0 ? &c->scan.main
                                                             : &c->scan.runtime;
    char shown[LEX_PLACE];
    lex_place(c->text, c->file, place->line, shown, sizeof shown);
    if (place->line > 0 && c->cut.text == NULL) {
        (void)capbuf_printf(out,
                            "%s:%u: error: %shost code, which could not be told from the "
                            "kernels': put it between #ifndef __CUDACC_RTC__ and #endif, or load "
                            "the kernels and __device__ functions alone\n",
                            shown, place->column, place == &c->scan.launch ? "<<<>>> is " : "");
    }
}

static bool log_says(struct bytes log, const char *words)
{
    return words == NULL || memmem(log.data, log.size, words, strlen(words)) != NULL;
}

static const char *hint_for(struct bytes log)
{
    static const char left[] = "is left out"; /* our own note: host code was told apart */
    static const struct {
        const char *said, *also, *hint;
    } hints[] = {
        {"required runtime APIs are not declared", NULL,
         "kernels that launch kernels need the device's runtime, which is not linked here: launch "
         "the inner one from the host, as a job or a step of its own"},
        {"error: identifier \"__shfl", NULL,
         "the shuffles and votes without _sync are gone from CUDA: __shfl_down(x, d) is "
         "__shfl_down_sync(0xffffffff, x, d)"},
        {"function \"tex", "<error-type>",
         "texture references (texture<float, 1> name;) are gone since CUDA 12: kernels read such "
         "data through a const pointer"},
        {"error: identifier \"__typeof", NULL,
         "__typeof__ and ({ ... }) are other compilers': decltype and a function do the same"},
        {"thrust/complex.h", NULL,
         "thrust::complex is a host's, too, and not read here: cuda::std::complex of "
         "<cuda/std/complex> does the same"},
        {"error: identifier \"cuda", left,
         "kernels cannot call the runtime (cudaMalloc, cudaDeviceSynchronize): the device's is "
         "not linked here"},
        {left, NULL,
         "what kernels call of it is to be __device__, what they read __device__ or __constant__"},
        {"dynamic initialization is not supported", NULL,
         "the value of a constant that kernels use is to be computed by the compiler: constexpr, "
         "of numbers and constexpr functions"},
        {"considered a host function", NULL,
         "functions for the device are __device__; the option -default-device makes all so"},
        {"considered a host variable", NULL,
         "variables of the device are __device__ or __constant__; those of the host are to be left "
         "out"},
        {"#error directive: \"", NULL,
         "a header's name there: files are not read but the toolkit's own headers; put the text of "
         "yours into the source"},
        {"open source file", NULL,
         "files are not read but the toolkit's own headers; put the text of yours into the source"},
    };
    for (size_t i = 0; log.size > 0 && i < sizeof hints / sizeof hints[0]; i++) {
        if (log_says(log, hints[i].said) && log_says(log, hints[i].also)) {
            return hints[i].hint;
        }
    }
    return NULL;
}

/* The log as it came, with our words in front and behind. */
static int compile_failed(struct compiler *c)
{
    struct capbuf advice;
    struct bytes log = capbuf_view(c->log);
    const char *hint = hint_for(log);
    capbuf_init(&advice, 4096 + log.size);
    advice_add(c, &advice);
    (void)capbuf_append(&advice, log.data, log.size);
    if (hint != NULL) {
        (void)capbuf_printf(&advice, "%s: note: %s\n", c->file, hint);
    }
    if (!advice.failed) {
        capbuf_reset(c->log);
        (void)capbuf_append(c->log, advice.data, advice.size);
    }
    capbuf_finish(&advice);
    struct bytes first = nvrtc_log_error(capbuf_view(c->log));
    if (first.size == 0) {
        return err_set(c->e, ERR_COMPILE, "%s: the compiler refused it", c->file);
    }
    return err_set(c->e, ERR_COMPILE, "%.*s", (int)(first.size < 300 ? first.size : 300),
                   (const char *)first.data);
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

/* The option that takes CUB in precompiled; only where nothing of the user's comes before it. */
static bool pch_find(struct compiler *c)
{
    const struct nvrtc_pch pch = {
        .cache_dir = c->cache_dir, .options = c->argument, .option_count = c->argument_count};
    return c->scan.cub && c->options.option_count == 0 && c->nvrtc.include[0] != '\0' &&
           nvrtc_pch_obtain(&c->nvrtc, &pch, c->pch);
}

/* Are they one but for blanks? `log` ends with a quote. */
static bool expression_is(const char *log, const char *expression)
{
    for (;; log++) {
        expression += strspn(expression, " ");
        if (*log != ' ' && *log != *expression) {
            return *log == '"' && *expression == '\0';
        }
        if (*log == '\0') {
            return false;
        }
        expression += *log != ' ';
    }
}

/* Takes back the name, which was none. */
static bool name_leave(struct compiler *c, const char *log)
{
    for (unsigned i = 0; i < c->cut.instances.count; i++) {
        if (c->named[i] && expression_is(log, c->cut.instances.list[i].expression)) {
            c->named[i] = false;
            return true;
        }
    }
    for (unsigned i = 0; i < c->static_count; i++) {
        if (expression_is(log, c->statics[i])) {
            c->statics[i] = c->statics[--c->static_count];
            return true;
        }
    }
    return false;
}

/* Those that calls deduce, or else all of them. false: there were none. */
static bool instances_leave(struct compiler *c)
{
    bool left = c->probes;
    for (unsigned i = 0; i < c->cut.instances.count; i++) {
        bool goes = c->named[i] && (!c->probes || !c->cut.instances.list[i].spelled);
        c->named[i] = c->named[i] && !goes;
        left = left || goes;
    }
    c->probes = false;
    return left;
}

/* Names of kernels may be spelled in words that only the host's part knew, or be cut out by the
 * preprocessor: with fewer of them where it fails for one; with the library where it lacks some of
 * that. false: it fails for something else. */
static bool names_leave(struct compiler *c)
{
    static const char mark[] = "Input name expression was: \"";
    bool left = false;
    if (c->said == NULL) {
        return false;
    }
    for (const char *at = c->said; (at = strstr(at, mark)) != NULL;) {
        at += sizeof mark - 1;
        left = name_leave(c, at) || left;
    }
    bool lacks = !left && !c->library && c->as_nvcc && c->nvrtc.include[0] != '\0' &&
                 strstr(c->said, "namespace \"std\" has no member") != NULL;
    c->library = c->library || lacks;
    bool inside = strstr(c->said, "__gpud_") != NULL || strstr(c->said, "instantiation of") != NULL;
    return left || lacks || (inside && instances_leave(c));
}

static int run_named(struct compiler *c)
{
    int rc = 0;
    do {
        rc = run(c, false);
    } while (rc == 0 && c->result == NVRTC_FAILED && names_leave(c));
    return rc;
}

/* The source without what is the host's, if that can be told and is as harmless as the whole. */
static void host_leave(struct compiler *c)
{
    struct scan scan = {.kernel = NULL};
    if (host_cut(c->text, c->options.expression, c->options.expression_count, &c->cut) &&
        scan_source(c->cut.text, c->file, &scan, NULL) != 0) {
        host_cut_finish(&c->cut);
    }
    scan_finish(&scan);
}

/* Once more as nvcc's device side sees it: without what is the host's, and with what nvcc brings.
 * What is left of classes and says nothing of itself may be the device's: no body is there. */
static int run_as_nvcc(struct compiler *c)
{
    c->as_nvcc = true;
    arguments_make(c);
    host_leave(c);
    if (c->cut.functions + c->cut.others > 0) {
        char place[LEX_PLACE];
        lex_place(c->text, c->file, c->cut.line, place, sizeof place);
        (void)capbuf_printf(c->log,
                            "%s:1: note: host code from here on is left out: %u functions and "
                            "%u other declarations that no kernel mentions\n",
                            place, c->cut.functions, c->cut.others);
    }
    int rc = 0;
    for (int i = 0; rc == 0 && c->result == NVRTC_FAILED && i <= (c->cut.text != NULL); i++) {
        c->probes = true;
        memset(c->named, 1, sizeof c->named);
        statics_find(c);
        if (i > 0) {
            c->argument[c->argument_count++] = "-default-device";
        }
        rc = run_named(c);
    }
    return rc;
}

/* Does the source choose by what nvcc brings? */
static bool asks(const struct compiler *c)
{
    bool asks = c->scan.asks;
    for (unsigned i = 0; !asks && i < c->options.option_count; i++) {
        asks = scan_option_asks(&c->scan, c->options.option[i]);
    }
    return asks;
}

static int program_compile(struct compiler *c)
{
    c->as_nvcc = asks(c);
    int rc = 0;
    arguments_make(c);
    bool pch = pch_find(c);
    if (pch) {
        c->argument[c->argument_count++] = c->pch;
        c->argument[c->argument_count++] = "--pch-messages=false";
        rc = run(c, true);
        c->argument_count -= 2;
    }
    bool again = pch && c->result != NVRTC_SUCCESS && (c->static_count > 0 || pch_failed(c));
    if (rc == 0 && (!pch || again)) {
        rc = run_named(c);
    }
    if (rc == 0 && c->result == NVRTC_FAILED && !c->options.default_device) {
        rc = run_as_nvcc(c);
    }
    rc = rc == 0 ? log_take(c) : rc;
    if (rc != 0 || c->result == NVRTC_SUCCESS) {
        return rc;
    }
    return c->result == NVRTC_FAILED
               ? compile_failed(c)
               : nvrtc_error(&c->nvrtc, c->result, "nvrtcCompileProgram", c->e);
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
        return err_set(c->e, ERR_NOMEM, "a binary of %zu bytes", size);
    }
    out->size = size;
    rc = (c->ptx ? n->GetPTX : n->GetCUBIN)(c->program, (char *)out->data);
    return rc == NVRTC_SUCCESS ? 0 : nvrtc_error(n, rc, call, c->e);
}

static int no_kernel(const struct compiler *c)
{
    for (unsigned i = 0; i < c->scan.kernel_count; i++) {
        const struct scan_kernel *k = &c->scan.kernel[i];
        if (k->is_template) {
            char place[LEX_PLACE];
            lex_place(c->text, c->file, k->place.line, place, sizeof place);
            return err_set(c->e, ERR_COMPILE,
                           "%s:%u: error: kernel %s is a template: name the instances you need "
                           "with the build option --name-expression=%s<float>",
                           place, k->place.column, k->name, k->name);
        }
    }
    return err_set(c->e, ERR_COMPILE, "%s: error: no kernel in it: nothing is __global__", c->file);
}

/* Of templates that the host launches without all of their instances here: what their user can do.
 */
static void templates_tell(const struct compiler *c, const struct image *image)
{
    for (unsigned i = 0; i < c->cut.instances.asked_count; i++) {
        const struct instance_template *asked = &c->cut.instances.asked[i];
        size_t size = strlen(asked->name);
        bool made = false;
        for (unsigned k = 0; !made && k < image->kernel_count; k++) {
            struct name_info info;
            made = name_read(image->kernels[k].entry, &info) &&
                   strncmp(info.name, asked->name, size) == 0 && info.name[size] == '<';
        }
        char place[LEX_PLACE];
        lex_place(c->text, c->file, asked->line, place, sizeof place);
        if (!made || asked->untold) {
            (void)capbuf_printf(c->log,
                                "%s:1: note: of which %stypes the host launches the template %s "
                                "cannot be told: name them with the build option "
                                "--name-expression=%s<float>\n",
                                place, made ? "other " : "", asked->name, asked->name);
        }
    }
}

static int alias_add(struct compiler *c, const char *name, struct report_alias *alias,
                     unsigned *count)
{
    struct report_alias *a = &alias[*count];
    int rc = c->nvrtc.GetLoweredName(c->program, name, &a->entry);
    a->name = name;
    *count += rc == NVRTC_SUCCESS;
    return rc == NVRTC_SUCCESS ? 0 : nvrtc_error(&c->nvrtc, rc, "nvrtcGetLoweredName", c->e);
}

static int report(struct compiler *c, struct compile_output *out)
{
    struct report_alias alias[ALIASES_MAX];
    unsigned count = 0;
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < c->options.expression_count; i++) {
        rc = alias_add(c, c->options.expression[i], alias, &count);
    }
    for (unsigned i = 0; rc == 0 && i < c->cut.instances.count; i++) {
        const struct instance *own = &c->cut.instances.list[i];
        rc = c->named[i] && own->spelled ? alias_add(c, own->expression, alias, &count) : 0;
    }
    if (rc != 0) {
        return rc;
    }
    report_complete(&out->image, &c->scan, alias, count, c->file, c->log);
    templates_tell(c, &out->image);
    if (out->image.kernel_count > 0) {
        return 0;
    }
    rc = no_kernel(c);
    (void)capbuf_printf(c->log, "%s\n", c->e->text);
    return rc;
}

static void compiler_finish(struct compiler *c)
{
    if (c->program != NULL) {
        (void)c->nvrtc.DestroyProgram(&c->program);
    }
    host_cut_finish(&c->cut);
    nvrtc_options_finish(&c->options);
    scan_finish(&c->scan);
    free(c->text);
    free(c->program_text);
    free(c->said);
    free(c);
}

int compile_cuda(const struct backend_source *source, const char *file,
                 const struct image_arch *device, struct compile_output *ret_output,
                 struct capbuf *log, struct err *e)
{
    struct compile_output out = {.size = 0};
    char path[PATH_MAX] = "";
    struct compiler *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return err_set(e, ERR_NOMEM, "a compiler");
    }
    *c = (struct compiler){
        .file = file, .cache_dir = source->cache_dir, .device = device, .log = log, .e = e};
    int rc = nvrtc_options_read(source->options != NULL ? source->options : "", &c->options, e);
    rc = rc == 0 ? source_read(c, source->text) : rc;
    (void)option_text(source->backend_options != NULL ? source->backend_options : "", "nvrtc", path,
                      sizeof path);
    rc = rc == 0 ? nvrtc_load(path, &c->nvrtc, e) : rc;
    rc = rc == 0 ? arch_choose(c) : rc;
    rc = rc == 0 ? program_compile(c) : rc;
    rc = rc == 0 ? output_take(c, &out) : rc;
    rc = rc == 0 ? image_read(c->ptx ? BACKEND_LANG_PTX : BACKEND_LANG_CUBIN,
                              bytes_of(out.data, out.size), device, &out.image, e)
                 : rc;
    rc = rc == 0 ? report(c, &out) : rc;
    memcpy(out.compiler, c->nvrtc.file, sizeof out.compiler);
    compiler_finish(c);
    if (rc != 0) {
        free(out.data);
        image_finish(&out.image);
        return rc;
    }
    *ret_output = out;
    return 0;
}
