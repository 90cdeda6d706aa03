#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl/base/file.h"
#include "gpuctl/input/source.h"
#include "gpuctl/run/dumped.h"

#define LOG_MAX     65536u /* bytes of a compiler's output */
#define HASH_DIGITS 4u     /* the fewest of --module */

/* What a module is loaded from. */
struct code {
    char *source; /* owned */
    size_t size;
    gpud_header header[GPUD_MAX_HEADERS]; /* texts are owned */
    uint32_t headers;
    gpud_module_options options; /* texts are the file's */
    uint64_t lang;
};

/* The file of --module for this hash; NULL: none. */
static const char *given_file(const struct run_options *o, const char *hash)
{
    for (uint32_t i = 0; o != NULL && i < o->module_count; i++) {
        const struct run_module *m = &o->module[i];
        if (m->digits >= HASH_DIGITS && strncmp(m->hash, hash, m->digits) == 0) {
            return m->file;
        }
    }
    return NULL;
}

static int read_source(const struct dumped *d, const json_t *o, struct code *code,
                       struct ctl_err *e)
{
    const char *hash = "";
    int rc = dumped_text(o, "hash", 64, &hash, e);
    const char *path = rc == 0 ? given_file(d->options, hash) : NULL;
    if (rc != 0) {
        return rc;
    }
    if (path == NULL) {
        rc = dumped_content(o, "source", SOURCE_MAX, &code->source, &code->size, e);
        return rc != 0 || code->source != NULL
                   ? rc
                   : ctl_err_set(e, GPUD_ERR_NOT_FOUND,
                                 "the file does not have its source: say --module %.8s=FILE", hash);
    }
    struct file file = {.data = NULL};
    rc = file_load(path, (struct file_limit){SOURCE_MAX, SOURCE_MAX}, &file, e);
    rc = rc == 0 ? dumped_check(o, "source", file.data, file.size, e) : rc;
    if (rc != 0) {
        file_finish(&file);
        return ctl_err_wrap(e, "%s", path);
    }
    code->source = file.data;
    code->size = file.size;
    return 0;
}

static int read_headers(const json_t *o, struct code *code, struct ctl_err *e)
{
    const json_t *list = NULL;
    size_t most = SOURCE_MAX - code->size;
    int rc = dumped_list(o, "headers", GPUD_MAX_HEADERS, &list, e);
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        const json_t *h = json_array_get(list, i);
        gpud_header *header = &code->header[code->headers];
        char *text = NULL;
        rc = dumped_text(h, "name", GPUD_MAX_HEADER_NAME, &header->name, e);
        rc = rc == 0 ? dumped_content(h, "header", most, &text, &header->bytes, e) : rc;
        if (rc == 0 && text == NULL && json_object_get(h, "header_left_out") != NULL) {
            rc = ctl_err_set(e, GPUD_ERR_NOT_FOUND, "the file does not have its header %s",
                             header->name);
        }
        if (rc == 0) {
            header->text = text != NULL ? text : calloc(1, 1);
            code->headers++;
            most -= header->bytes;
        }
    }
    return rc;
}

static int read_code(const struct dumped *d, const json_t *o, struct code *code, struct ctl_err *e)
{
    gpud_module_options *m = &code->options;
    m->size = sizeof *m;
    int rc = dumped_number(o, "lang", GPUD_LANG_SPIRV, &code->lang, e);
    rc = rc == 0 ? dumped_text(o, "name", GPUD_NAME - 1, &m->name, e) : rc;
    rc = rc == 0 ? dumped_text(o, "file", GPUD_NAME - 1, &m->file, e) : rc;
    rc = rc == 0 ? dumped_text(o, "options", GPUD_MAX_BUILD_OPTIONS, &m->options, e) : rc;
    rc = rc == 0 ? dumped_text(o, "signature", GPUD_MAX_SIGNATURE, &m->signature, e) : rc;
    rc = rc == 0 ? read_source(d, o, code, e) : rc;
    rc = rc == 0 ? read_headers(o, code, e) : rc;
    m->headers = code->headers > 0 ? code->header : NULL;
    m->header_count = code->headers;
    return rc;
}

static void code_finish(struct code *code)
{
    for (uint32_t i = 0; i < code->headers; i++) {
        free((void *)code->header[i].text);
    }
    free(code->source);
}

int dumped_load_module(struct dumped *d, const json_t *o, struct ctl_err *e)
{
    struct code code = {.source = NULL};
    struct dumped_module *m = &d->module[d->module_count];
    char *log = calloc(1, LOG_MAX);
    int rc = dumped_number(o, "module", UINT64_MAX, &m->handle, e);
    rc = rc == 0 ? read_code(d, o, &code, e) : rc;
    if (rc == 0) {
        code.options.log = log;
        code.options.log_bytes = log != NULL ? LOG_MAX : 0;
        rc = gpud_module_load(d->client, (int)code.lang, code.source, code.size, &code.options,
                              &m->module);
        rc = rc == 0 ? 0 : ctl_err_lib(e, rc, "load");
        if (log != NULL && log[0] != '\0') {
            (void)fprintf(stderr, "%s%s", log, log[strlen(log) - 1] == '\n' ? "" : "\n");
        }
    }
    d->module_count += rc == 0;
    code_finish(&code);
    free(log);
    return rc;
}

/* Each --module is for a module of the job. */
static int check_given(const struct dumped *d, const json_t *list, struct ctl_err *e)
{
    for (uint32_t i = 0; i < d->options->module_count; i++) {
        const struct run_module *m = &d->options->module[i];
        bool known = false;
        for (size_t k = 0; k < json_array_size(list); k++) {
            const char *hash = json_string_value(json_object_get(json_array_get(list, k), "hash"));
            known = known || (hash != NULL && m->digits >= HASH_DIGITS &&
                              strncmp(m->hash, hash, m->digits) == 0);
        }
        if (!known) {
            return ctl_err_usage(e,
                                 "--module %s: the job has no module of that hash (at least %u "
                                 "digits)",
                                 m->hash, HASH_DIGITS);
        }
    }
    return 0;
}

int dumped_modules(struct dumped *d, struct ctl_err *e)
{
    const json_t *list = NULL;
    int rc = dumped_list(d->root, "modules", DUMPED_MODULES, &list, e);
    rc = rc == 0 ? check_given(d, list, e) : rc;
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i);
        const char *what = "";
        rc = dumped_text(o, "what", 64, &what, e);
        if (rc == 0 && strcmp(what, "built-in") != 0) {
            rc = dumped_load_module(d, o, e);
        }
        rc = rc == 0 ? 0 : ctl_err_wrap(e, "module %zu", i);
    }
    return rc;
}

int dumped_kernel(const struct dumped *d, const json_t *step, gpud_kernel *ret_kernel,
                  struct ctl_err *e)
{
    uint64_t module = 0;
    const char *name = "";
    int rc = dumped_text(step, "kernel", GPUD_NAME - 1, &name, e);
    rc = rc == 0 ? dumped_number(step, "module", UINT64_MAX, &module, e) : rc;
    if (rc != 0) {
        return rc;
    }
    if (module == 0) {
        rc = gpud_kernel_find(d->client, name, ret_kernel);
        return rc == 0 ? 0 : ctl_err_lib(e, rc, "%s", name);
    }
    for (uint32_t i = 0; i < d->module_count; i++) {
        if (d->module[i].handle == module) {
            rc = gpud_module_kernel(d->client, d->module[i].module, name, ret_kernel);
            return rc == 0 ? 0 : ctl_err_lib(e, rc, "%s", name);
        }
    }
    return ctl_err_set(e, GPUD_ERR_INVALID, "the file has no module %#" PRIx64, module);
}
