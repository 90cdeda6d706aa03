#include "daemon/compile/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/stamp.h"
#include "daemon/compile/headers.h"
#include "daemon/compile/source.h"
#include "kernels/dialect.h"

#define TRANSLATED_MAX (16u * 1024u * 1024u) /* bytes */
#define EXPANDED_MAX   (8u * 1024u * 1024u)  /* bytes of a source with its headers */
#define KERNELS_BYTES  (8u * 1024u * 1024u)

/* the request's texts, terminated */
struct texts {
    char file[PROTO_TEXT_MAX + 1];
    char options[PROTO_OPTIONS_MAX + 1];
    char arch[129];
};

/* ---- the report of kernels ------------------------------------------------------------------- */

static int kernel_add(struct compile_job *job, uint64_t *count,
                      const struct backend_compiled_kernel *k, const char *signature)
{
    struct capbuf args;
    int rc = 0;
    capbuf_init(&args, KERNELS_BYTES);
    for (unsigned i = 0; rc == 0 && i < k->arg_count; i++) {
        const struct backend_compiled_arg *a = &k->arg[i];
        struct proto_carg arg = {.name = bytes_str(a->name),
                                 .type = bytes_str(a->type),
                                 .kind = a->kind,
                                 .access = a->access,
                                 .dtype = (uint64_t)a->dtype,
                                 .bytes = a->bytes};
        rc = proto_list_add(&schema_carg, &arg, &args, &job->e);
    }
    if (rc == 0) {
        struct proto_ckernel kernel = {.entry = bytes_str(k->entry),
                                       .name = bytes_str(k->name),
                                       .signature = bytes_str(signature),
                                       .args = proto_list_of(&args, k->arg_count),
                                       .rx = k->required_local[0],
                                       .ry = k->required_local[1],
                                       .rz = k->required_local[2],
                                       .unfit = bytes_str(k->unfit)};
        rc = proto_list_add(&schema_ckernel, &kernel, &job->kernels, &job->e);
        (*count)++;
    }
    capbuf_finish(&args);
    return rc;
}

_Static_assert(BACKEND_ARGS_MAX <= PROTO_ARGS_MAX, "a bit for each argument");
_Static_assert(BACKEND_NAME_MAX == PROTO_NAME_MAX, "names that can be asked for");

/* Makes the bits of the arguments that the code only reads through, a bit for each argument. */
static struct bytes only_reads(const struct backend_compiled_kernel *k,
                               uint8_t ret_bits[PROTO_ARGS_MAX / 8])
{
    memset(ret_bits, 0, PROTO_ARGS_MAX / 8);
    for (unsigned i = 0; i < k->arg_count; i++) {
        ret_bits[i / 8] |= (uint8_t)((k->arg[i].only_reads ? 1 : 0) << i % 8);
    }
    return bytes_of(ret_bits, (k->arg_count + 7) / 8);
}

/* Adds what the compiler knows of each entry. Entries beyond the limit are left out. */
static int entries_add(struct compile_job *job)
{
    unsigned count = job->compiled.kernel_count;
    int rc = 0;
    count = count < PROTO_KERNELS_MAX ? count : PROTO_KERNELS_MAX;
    for (unsigned i = 0; rc == 0 && i < count; i++) {
        const struct backend_compiled_kernel *k = &job->compiled.kernels[i];
        uint8_t bits[PROTO_ARGS_MAX / 8];
        struct proto_wkernel entry = {.entry = bytes_str(k->entry),
                                      .registers = k->registers,
                                      .local_bytes = k->local_bytes,
                                      .shared_bytes = k->shared_bytes,
                                      .max_group = k->max_group,
                                      .preferred_multiple = k->preferred_multiple,
                                      .only_reads = only_reads(k, bits)};
        rc = proto_list_add(&schema_wkernel, &entry, &job->entries, &job->e);
    }
    job->response.entries = proto_list_of(&job->entries, count);
    return rc;
}

static int kernels_done(struct compile_job *job, uint64_t count)
{
    if (count > PROTO_KERNELS_MAX) {
        return err_set(&job->e, ERR_LIMIT, "%llu kernels, at most %u", (unsigned long long)count,
                       PROTO_KERNELS_MAX);
    }
    job->response.kernels = proto_list_of(&job->kernels, count);
    return entries_add(job);
}

static int kernels_of_dialect(struct compile_job *job, const struct signature *sigs, unsigned count)
{
    uint64_t added = 0;
    for (unsigned i = 0; i < count; i++) {
        struct backend_compiled_kernel k = {.arg_count = 0};
        memcpy(k.entry, sigs[i].name, sizeof sigs[i].name);
        int rc = kernel_add(job, &added, &k, sigs[i].text);
        if (rc != 0) {
            return rc;
        }
    }
    return kernels_done(job, added);
}

/* Does argument i of the code match the signature? Unknown facts match. For an array, the
 * signature alone decides on the type of its elements. */
static bool arg_fits(const struct signature *sig, unsigned i, const struct backend_compiled_arg *a)
{
    const struct sig_arg *want = i < sig->arg_count ? &sig->arg[i] : NULL;
    int dtype = want != NULL ? want->dtype : DTYPE_U64; /* beyond the arguments: a named size */
    if (a->kind == BACKEND_KIND_UNKNOWN) {
        return true;
    }
    if (want != NULL && want->kind == SIG_ARRAY) {
        return a->kind == BACKEND_KIND_ARRAY;
    }
    if (a->kind == BACKEND_KIND_ARRAY || a->kind == BACKEND_KIND_LOCAL) {
        return false;
    }
    return a->bytes == 0 || dtype == DTYPE_NONE || a->bytes == dtype_size(dtype);
}

/* The code may take the named sizes behind the arguments, or not at all. */
static int signature_fits(const struct signature *sig, const struct backend_compiled_kernel *k,
                          struct err *e)
{
    if (k->unfit[0] != '\0') {
        return err_set(e, ERR_COMPILE, "signature of %s: the kernel cannot be launched: %s",
                       sig->name, k->unfit);
    }
    if (k->arg_count != 0 && k->arg_count != sig->arg_count &&
        k->arg_count != sig->arg_count + sig->dim_count) {
        return err_set(e, ERR_COMPILE, "signature of %s has %u arguments, the code %u", sig->name,
                       sig->arg_count, k->arg_count);
    }
    for (unsigned i = 0; i < k->arg_count; i++) {
        const struct backend_compiled_arg *a = &k->arg[i];
        if (!arg_fits(sig, i, a)) {
            e->arg = (int)i;
            return err_set(e, ERR_COMPILE,
                           "signature of %s: argument %u is %s %s of %u bytes in the code, and "
                           "something else in the signature",
                           sig->name, i, a->type, a->name, a->bytes);
        }
    }
    return 0;
}

struct given {
    struct signature sig;
    bool used;
};

static int given_parse(struct bytes lines, struct given *ret_given, unsigned max,
                       unsigned *ret_count, struct err *e)
{
    unsigned count = 0;
    const char *at = (const char *)lines.data;
    const char *end = at + lines.size;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t size = (size_t)((stop != NULL ? stop : end) - at);
        if (size > 0) {
            int rc = count == max ? err_set(e, ERR_LIMIT, "over %u signatures", max)
                                  : signature_parse(bytes_of(at, size), &ret_given[count].sig, e);
            if (rc != 0) {
                return err_wrap(e, "signature %u", count + 1);
            }
            count++;
        }
        at = stop != NULL ? stop + 1 : end;
    }
    *ret_count = count;
    return 0;
}

static const char *kernel_name(const struct backend_compiled_kernel *k)
{
    return k->name[0] != '\0' ? k->name : k->entry;
}

static struct given *given_for(struct given *given, unsigned count,
                               const struct backend_compiled_kernel *k)
{
    const char *name = kernel_name(k);
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(given[i].sig.name, name) == 0) {
            given[i].used = true;
            return &given[i];
        }
    }
    return NULL;
}

/* The kernels of a module, counted for the response. */
struct tally {
    uint64_t count; /* kernels in the response */
    unsigned unfit; /* of these, kernels that cannot be launched */
    /* kernels not in the response, because their names are too long for a request */
    unsigned left_out;
    const struct backend_compiled_kernel *first_unfit, *first_left_out;
};

static int kernel_report(struct compile_job *job, struct given *given, unsigned count,
                         const struct backend_compiled_kernel *k, struct tally *tally)
{
    if (strlen(kernel_name(k)) > PROTO_NAME_MAX) {
        tally->first_left_out = tally->left_out++ == 0 ? k : tally->first_left_out;
        return 0;
    }
    if (k->unfit[0] != '\0') {
        tally->first_unfit = tally->unfit++ == 0 ? k : tally->first_unfit;
    }
    const struct given *g = given_for(given, count, k);
    int rc = g != NULL ? signature_fits(&g->sig, k, &job->e) : 0;
    return rc == 0 ? kernel_add(job, &tally->count, k, g != NULL ? g->sig.text : "") : rc;
}

/* Adds a note about kernels that are left out to the compiler's log. */
static int left_out_note(struct compile_job *job, const struct tally *tally)
{
    const char *log = job->compiled.log != NULL ? job->compiled.log : "";
    const char *end = log[0] != '\0' && log[strlen(log) - 1] != '\n' ? "\n" : "";
    char *all = NULL;
    if (asprintf(&all, "%s%snote: kernels with names of over %u bytes are left out: %u, first %s\n",
                 log, end, PROTO_NAME_MAX, tally->left_out,
                 kernel_name(tally->first_left_out)) < 0) {
        return err_set(&job->e, ERR_NOMEM, "no memory for a compiler's log");
    }
    free(job->compiled.log);
    job->compiled.log = all;
    return 0;
}

/* If no kernel of the module can be launched, that is an error. */
static int tally_check(struct compile_job *job, const struct tally *tally)
{
    if (tally->unfit > 0 && tally->unfit == tally->count) {
        return err_set(&job->e, ERR_UNSUPPORTED, "kernel %s: %s", tally->first_unfit->entry,
                       tally->first_unfit->unfit);
    }
    if (tally->left_out > 0 && tally->count == 0) {
        const char *name = kernel_name(tally->first_left_out);
        return err_set(&job->e, ERR_LIMIT, "kernel %s: a name of %zu bytes, at most %u", name,
                       strlen(name), PROTO_NAME_MAX);
    }
    return tally->left_out > 0 ? left_out_note(job, tally) : 0;
}

static int kernels_given(struct compile_job *job, struct given *given, unsigned count)
{
    struct tally tally = {.count = 0};
    for (unsigned i = 0; i < job->compiled.kernel_count; i++) {
        int rc = kernel_report(job, given, count, &job->compiled.kernels[i], &tally);
        if (rc != 0) {
            return rc;
        }
    }
    for (unsigned i = 0; i < count; i++) {
        if (!given[i].used) {
            return err_set(&job->e, ERR_COMPILE, "signature of %s: the source has no such kernel",
                           given[i].sig.name);
        }
    }
    int rc = tally_check(job, &tally);
    return rc == 0 ? kernels_done(job, tally.count) : rc;
}

/* ---- languages ------------------------------------------------------------------------------- */

static int back_end(struct compile_job *job, const struct backend *b, unsigned index, int lang,
                    struct bytes text, const struct texts *texts)
{
    struct backend_source source = {.lang = lang,
                                    .text = text,
                                    .file = texts->file,
                                    .options = texts->options,
                                    .arch = texts->arch,
                                    .backend_options = job->backend_options,
                                    .cache_dir = job->cache_dir,
                                    .confined = job->confined};
    return b->compile(index, &source, &job->compiled, &job->e);
}

static int translate(struct compile_job *job, const struct backend *b, unsigned index,
                     const struct compile_request *r, const struct texts *texts)
{
    struct capbuf out;
    enum dialect_target target = b->dialect == BACKEND_LANG_CUDA ? DIALECT_CUDA : DIALECT_OPENCL;
    if (b->dialect == BACKEND_LANG_DIALECT) {
        return back_end(job, b, index, BACKEND_LANG_DIALECT, r->source, texts);
    }
    capbuf_init(&out, TRANSLATED_MAX);
    int rc = dialect_translate(r->source, texts->file, target, r->f64, &out, &job->e);
    if (rc == 0) {
        rc = back_end(job, b, index, b->dialect, capbuf_view(&out), texts);
    }
    capbuf_finish(&out);
    return rc;
}

static int run_dialect(struct compile_job *job, const struct backend *b, unsigned index,
                       const struct compile_request *r, const struct texts *texts)
{
    unsigned count = 0;
    struct signature *sigs = calloc(DIALECT_KERNELS_MAX, sizeof *sigs);
    if (sigs == NULL) {
        return err_set(&job->e, ERR_NOMEM, "no memory for signatures");
    }
    int rc = source_check(r->source, texts->file, NULL, &job->e);
    rc = rc == 0 ? dialect_signatures(r->source, texts->file, sigs, DIALECT_KERNELS_MAX, &count,
                                      &job->e)
                 : rc;
    rc = rc == 0 ? translate(job, b, index, r, texts) : rc;
    rc = rc == 0 ? kernels_of_dialect(job, sigs, count) : rc;
    free(sigs);
    return rc;
}

static int run_foreign(struct compile_job *job, const struct backend *b, unsigned index,
                       const struct compile_request *r, const struct texts *texts)
{
    unsigned count = 0;
    struct given *given = calloc(DIALECT_KERNELS_MAX, sizeof *given);
    if (given == NULL) {
        return err_set(&job->e, ERR_NOMEM, "no memory for signatures");
    }
    struct capbuf safe;
    capbuf_init(&safe, TRANSLATED_MAX);
    int rc = given_parse(r->signature, given, DIALECT_KERNELS_MAX, &count, &job->e);
    if (rc == 0 && r->lang == LANG_OPENCL) { /* CUDA C may include the toolkit's headers */
        rc = source_check(r->source, texts->file, &safe, &job->e);
    }
    struct bytes source = safe.size > 0 ? capbuf_view(&safe) : r->source;
    rc = rc == 0 ? back_end(job, b, index, r->lang, source, texts) : rc;
    rc = rc == 0 ? kernels_given(job, given, count) : rc;
    capbuf_finish(&safe);
    free(given);
    return rc;
}

/* ---- the response ---------------------------------------------------------------------------- */

static int run_text(struct compile_job *job, const struct backend *b, unsigned index,
                    const struct compile_request *r, const struct texts *texts)
{
    return r->lang == LANG_DIALECT ? run_dialect(job, b, index, r, texts)
                                   : run_foreign(job, b, index, r, texts);
}

static int run(struct compile_job *job, const struct backend *b, unsigned index,
               const struct compile_request *r)
{
    struct texts texts;
    if (b->compile == NULL) {
        return err_set(&job->e, ERR_UNSUPPORTED, "back end %s has no compiler", b->name);
    }
    if (!bytes_to_str(r->file, texts.file, sizeof texts.file) ||
        !bytes_to_str(r->options, texts.options, sizeof texts.options) ||
        !bytes_to_str(r->arch, texts.arch, sizeof texts.arch)) {
        return err_set(&job->e, ERR_LIMIT, "file name, options or architecture are too long");
    }
    struct compile_request whole = *r;
    /* a byte order mark must be first, but back ends put lines of their own before the source */
    if (r->lang <= LANG_CUDA) {
        whole.source = bytes_without_bom(r->source);
    }
    if (r->headers.count == 0) {
        return run_text(job, b, index, &whole, &texts);
    }
    if (r->lang > LANG_CUDA) {
        return err_set(&job->e, ERR_INVALID, "headers are for sources, not for PTX or a binary");
    }
    struct capbuf out;
    capbuf_init(&out, EXPANDED_MAX);
    int rc = headers_expand(r, texts.file[0] != '\0' ? texts.file : "source", &out, &job->e);
    if (rc == 0) {
        whole.source = capbuf_view(&out);
        rc = run_text(job, b, index, &whole, &texts);
    }
    capbuf_finish(&out);
    return rc;
}

static struct bytes text_of(const char *text, size_t max)
{
    struct bytes b = bytes_str(text);
    b.size = b.size > max ? max : b.size;
    return b;
}

void compile_run(struct compile_job *job, const struct backend *b, unsigned index,
                 const char *options, const struct compile_request *request)
{
    *job = (struct compile_job){.e = ERR_INIT,
                                .backend_options = options,
                                .cache_dir = job->cache_dir,
                                .confined = job->confined};
    capbuf_init(&job->kernels, KERNELS_BYTES);
    capbuf_init(&job->entries, KERNELS_BYTES);
    int rc = run(job, b, index, request);
    if (rc == 0 && job->compiled.binary_size > FRAME_BINARY_MAX) {
        rc = err_set(&job->e, ERR_COMPILE_LIMIT, "the binary takes %zu bytes, at most %u",
                     job->compiled.binary_size, FRAME_BINARY_MAX);
    }
    if (rc == ERR_NOMEM) { /* the compiler's memory ran out, not the host's */
        rc = ERR_COMPILE_LIMIT;
    }
    job->response.code = rc;
    job->response.log = text_of(job->compiled.log, PROTO_LOG_MAX);
    if (rc == 0) {
        job->response.binary = bytes_of(job->compiled.binary, job->compiled.binary_size);
        job->response.compiler =
            bytes_str(stamp_make(job->compiled.compiler, job->stamp, sizeof job->stamp));
        return;
    }
    job->response.vendor = job->e.vendor;
    job->response.text = text_of(job->e.text, PROTO_TEXT_MAX);
    job->response.kernels = (struct proto_list){.count = 0};
    job->response.entries = (struct proto_list){.count = 0};
    if (job->response.log.size == 0 && rc == ERR_COMPILE) {
        job->response.log = job->response.text;
    }
}

void compile_finish(struct compile_job *job)
{
    backend_compiled_finish(&job->compiled);
    capbuf_finish(&job->kernels);
    capbuf_finish(&job->entries);
}
