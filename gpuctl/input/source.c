#include "gpuctl/input/source.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl/base/file.h"

#define LOG_MAX 65536u /* bytes of a compiler's output */

struct lang_row {
    const char *name;
    int lang;
};

static const struct lang_row langs[] = {
    {"dialect", GPUD_LANG_DIALECT}, {"gk", GPUD_LANG_DIALECT},   {"opencl", GPUD_LANG_OPENCL},
    {"cl", GPUD_LANG_OPENCL},       {"cuda", GPUD_LANG_CUDA},    {"cu", GPUD_LANG_CUDA},
    {"ptx", GPUD_LANG_PTX},         {"cubin", GPUD_LANG_CUBIN},  {"spirv", GPUD_LANG_SPIRV},
    {"spv", GPUD_LANG_SPIRV},       {"fatbin", GPUD_LANG_CUBIN},
};

static int lang_from_name(const char *name)
{
    for (size_t i = 0; i < sizeof langs / sizeof langs[0]; i++) {
        if (strcmp(langs[i].name, name) == 0) {
            return langs[i].lang;
        }
    }
    return 0;
}

int source_lang_from_file(const char *file)
{
    const char *dot = strrchr(file, '.');
    return dot != NULL && strchr(dot, '/') == NULL ? lang_from_name(dot + 1) : 0;
}

int source_lang(struct source *source, const char *name, struct ctl_err *e)
{
    source->lang = lang_from_name(name);
    return source->lang != 0
               ? 0
               : ctl_err_usage(e, "--lang %s: opencl, cuda, ptx, cubin, fatbin, spirv or dialect",
                               name);
}

static int add_option(struct source *source, const char *prefix, const char *text,
                      struct ctl_err *e)
{
    for (const char *at = text; *at != '\0'; at++) {
        if (isspace((unsigned char)*at) || iscntrl((unsigned char)*at)) {
            return ctl_err_usage(e, "'%s': compiler options with blanks are not possible", text);
        }
    }
    size_t used = strlen(source->options);
    int need = snprintf(source->options + used, sizeof source->options - used, "%s%s%s",
                        used > 0 ? " " : "", prefix, text);
    if (need < 0 || (size_t)need >= sizeof source->options - used) {
        source->options[used] = '\0';
        return ctl_err_usage(e, "more than %u bytes of compiler options", SOURCE_OPTIONS_MAX);
    }
    return 0;
}

int source_define(struct source *source, const char *text, struct ctl_err *e)
{
    if (!isalpha((unsigned char)text[0]) && text[0] != '_') {
        return ctl_err_usage(e, "--define %s: NAME or NAME=VALUE is expected", text);
    }
    return add_option(source, "-D", text, e);
}

int source_build_option(struct source *source, const char *text, struct ctl_err *e)
{
    if (text[0] == '\0') {
        return ctl_err_usage(e, "--build-option: empty");
    }
    return add_option(source, "", text, e);
}

int source_compiler(struct source *source, const char *name, struct ctl_err *e)
{
    if (strcmp(name, "auto") != 0 && strcmp(name, "nvrtc") != 0 && strcmp(name, "nvcc") != 0) {
        return ctl_err_usage(e, "--compiler %s: auto, nvrtc or nvcc", name);
    }
    return add_option(source, "--compiler=", name, e);
}

int source_include(struct source *source, const char *folder, struct ctl_err *e)
{
    if (source->include.count == INCLUDE_DIRS) {
        return ctl_err_usage(e, "more than %u folders of headers", INCLUDE_DIRS);
    }
    source->include.path[source->include.count++] = folder;
    return 0;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* The file's name; the end of a name that is longer than the daemon accepts. */
static const char *short_name(const char *path)
{
    const char *name = base_name(path);
    size_t size = strlen(name);
    return size < GPUD_NAME ? name : name + size - (GPUD_NAME - 1);
}

/* The language from --lang, otherwise from the file's suffix; "-" (standard input) has none. */
static int choose_lang(const struct source *source, int *ret_lang, struct ctl_err *e)
{
    int lang = source->lang != 0 ? source->lang : source_lang_from_file(source->file);
    if (lang == 0) {
        return ctl_err_usage(e, "%s: the suffix names no language; say --lang", source->file);
    }
    *ret_lang = lang;
    return 0;
}

int source_load(gpud_client *client, const struct source *source, gpud_module *ret_module,
                struct ctl_err *e)
{
    int lang = 0;
    struct file file = {.data = NULL};
    int rc = choose_lang(source, &lang, e);
    if (rc == 0) {
        rc = file_load(source->file, (struct file_limit){SOURCE_MAX, SOURCE_MAX}, &file, e);
    }
    if (rc == 0 && (lang == GPUD_LANG_CUDA || lang == GPUD_LANG_OPENCL)) {
        rc = include_files(source->file, &source->include, SOURCE_MAX, &file, e);
    }
    if (rc != 0) {
        file_finish(&file);
        return rc;
    }
    char *log = calloc(1, LOG_MAX);
    gpud_module_options o = {
        .size = sizeof o,
        .options = source->options[0] != '\0' ? source->options : NULL,
        .file = short_name(source->file),
        .log = log,
        .log_bytes = log != NULL ? LOG_MAX : 0,
    };
    rc = gpud_module_load(client, lang, file.data, file.size, &o, ret_module);
    file_finish(&file);
    bool said = log != NULL && log[0] != '\0';
    if (said) {
        fprintf(stderr, "%s%s", log, log[strlen(log) - 1] == '\n' ? "" : "\n");
    }
    if (rc == GPUD_ERR_COMPILE && said) {
        ctl_err_set(e, rc, "%s: %s", source->file, gpud_strerror(rc));
    } else if (rc != 0) {
        ctl_err_lib(e, rc, "%s", source->file);
    }
    free(log);
    return rc;
}
