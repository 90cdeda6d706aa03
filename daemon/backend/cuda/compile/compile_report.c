#include "daemon/backend/cuda/compile/compile_report.h"

#include <stdio.h>
#include <string.h>

#include "common/shape.h"
#include "daemon/backend/cuda/source/name.h"

/* Completes an argument. Its size in the image is correct, so a type of another size was
 * misread. */
static void arg_complete(struct backend_compiled_arg *arg,
                         const struct backend_compiled_arg *described)
{
    uint32_t bytes = arg->bytes;
    unsigned kind = described->kind;
    if ((kind == BACKEND_KIND_ARRAY && bytes != 8) ||
        (kind == BACKEND_KIND_SCALAR && described->bytes != bytes)) {
        return;
    }
    /* a type of 8 bytes with an unknown name may be a pointer */
    if (kind == BACKEND_KIND_UNKNOWN && bytes != 8) {
        kind = BACKEND_KIND_STRUCT;
    }
    arg->kind = kind;
    arg->access = described->access;
    arg->dtype = described->dtype;
    memcpy(arg->type, described->type, sizeof arg->type);
}

static void types_from_name(struct backend_compiled_kernel *k, const struct name_info *info)
{
    for (unsigned i = 0; i < k->arg_count; i++) {
        struct backend_compiled_arg described = {.kind = BACKEND_KIND_UNKNOWN};
        param_describe(&info->param[i], &described);
        arg_complete(&k->arg[i], &described);
    }
}

static void from_source(struct backend_compiled_kernel *k, const struct scan_kernel *s, bool types)
{
    for (unsigned i = 0; i < k->arg_count; i++) {
        if (types) {
            arg_complete(&k->arg[i], &s->param[i]);
        }
        memcpy(k->arg[i].name, s->param[i].name, sizeof k->arg[i].name);
    }
}

static void kernel_complete(struct backend_compiled_kernel *k, const struct scan *scan)
{
    struct name_info info;
    bool mangled = name_read(k->entry, &info);
    if (mangled && strlen(info.name) < sizeof k->name) {
        memcpy(k->name, info.name, strlen(info.name) + 1);
    }
    bool typed = info.typed && info.param_count == k->arg_count;
    if (typed) {
        types_from_name(k, &info);
    }
    const struct scan_kernel *s = scan != NULL ? scan_find(scan, info.plain) : NULL;
    if (s != NULL && s->param_count == k->arg_count) {
        from_source(k, s, !typed && !mangled);
    }
    for (unsigned i = 0; i < k->arg_count; i++) {
        if (k->arg[i].name[0] == '\0') {
            snprintf(k->arg[i].name, sizeof k->arg[i].name, "arg%u", i);
        }
        if (k->arg[i].kind == BACKEND_KIND_ARRAY) {
            k->arg[i].bytes = 0; /* the size of an address does not matter */
        }
    }
}

static bool shared_name(const struct image *image, unsigned index)
{
    const char *name = image->kernels[index].name;
    for (unsigned i = 0; i < image->kernel_count; i++) {
        if (i != index && strcmp(image->kernels[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Several kernels with the same name differ only in their mangled names. */
static void overloads_rename(struct image *image, const char *file, struct capbuf *log)
{
    bool shared[IMAGE_KERNELS_MAX];
    for (unsigned i = 0; i < image->kernel_count; i++) {
        shared[i] = image->kernels[i].name[0] != '\0' && shared_name(image, i);
    }
    for (unsigned i = 0; i < image->kernel_count; i++) {
        struct backend_compiled_kernel *k = &image->kernels[i];
        if (shared[i]) {
            (void)capbuf_printf(log, "%s: note: several kernels are called %s; this one is %s\n",
                                file, k->name, k->entry);
            k->name[0] = '\0';
        }
    }
}

static const char *called(const struct backend_compiled_kernel *k)
{
    return k->name[0] != '\0' ? k->name : k->entry;
}

/* Does another kernel have that name, or that name with template arguments? */
static bool plain_in_use(const struct image *image, unsigned index, const char *plain)
{
    for (unsigned i = 0; i < image->kernel_count; i++) {
        struct name_info info;
        (void)name_read(image->kernels[i].entry, &info);
        if (i != index &&
            (strcmp(called(&image->kernels[i]), plain) == 0 || strcmp(info.plain, plain) == 0)) {
            return true;
        }
    }
    return false;
}

/* If the name of a template's only instance is too long for a request, it gets the template's
 * name. */
static void long_names_shorten(struct image *image, const char *file, struct capbuf *log)
{
    for (unsigned i = 0; i < image->kernel_count; i++) {
        struct backend_compiled_kernel *k = &image->kernels[i];
        struct name_info info;
        if (strlen(called(k)) > BACKEND_NAME_MAX && name_read(k->entry, &info) &&
            info.plain[0] != '\0' && !plain_in_use(image, i, info.plain)) {
            (void)capbuf_printf(log, "%s: note: %s is called %s: names have at most %u bytes\n",
                                file, called(k), info.plain, BACKEND_NAME_MAX);
            memcpy(k->name, info.plain, strlen(info.plain) + 1);
        }
    }
}

/* Are the texts equal except for blanks? */
static bool same_words(const char *a, const char *b)
{
    for (;; a++, b++) {
        a += strspn(a, " ");
        b += strspn(b, " ");
        if (*a != *b || *a == '\0') {
            return *a == *b;
        }
    }
}

static bool alias_means(const struct report_alias *a, const struct backend_compiled_kernel *k)
{
    return a->entry[0] != '\0' ? strcmp(k->entry, a->entry) == 0 : same_words(k->name, a->name);
}

static void aliases_enter(struct image *image, const struct report_alias *alias, unsigned count)
{
    for (unsigned a = 0; a < count; a++) {
        for (unsigned i = 0; i < image->kernel_count; i++) {
            struct backend_compiled_kernel *k = &image->kernels[i];
            if (alias_means(&alias[a], k) && strlen(alias[a].name) < sizeof k->name) {
                memcpy(k->name, alias[a].name, strlen(alias[a].name) + 1);
            }
        }
    }
}

void report_complete(struct image *image, const struct scan *scan, const struct report_alias *alias,
                     unsigned alias_count, const char *file, struct capbuf *log)
{
    for (unsigned i = 0; i < image->kernel_count; i++) {
        if (image->kernels[i].unfit[0] == '\0') {
            kernel_complete(&image->kernels[i], scan);
        }
    }
    aliases_enter(image, alias, alias_count);
    overloads_rename(image, file, log);
    long_names_shorten(image, file, log);
    if (image->left_out > 0) {
        (void)capbuf_printf(
            log, "%s: note: %u kernels with names of over %zu bytes are left out: %s…\n", file,
            image->left_out, sizeof image->kernels->entry - 1, image->left_out_name);
    }
}
