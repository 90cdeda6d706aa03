#include "daemon/front/model/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "common/clock.h"
#include "daemon/front/model/session.h"
#include "daemon/front/model/tenant.h"
#include "proto/codec.h"

#define RETRY_NS NS_PER_S

struct build *module_build(struct module *m, const char *backend, const char *arch)
{
    struct build *b = m->builds;
    while (b != NULL && (strcmp(b->backend, backend) != 0 || strcmp(b->arch, arch) != 0)) {
        b = b->next;
    }
    return b;
}

struct build *module_build_made(struct module *m)
{
    struct build *made = NULL; /* the list is newest first */
    for (struct build *b = m != NULL ? m->builds : NULL; b != NULL; b = b->next) {
        made = b->state == BUILD_DONE ? b : made;
    }
    return made;
}

struct build *module_build_obtain(struct module *m, const char *backend, const char *arch)
{
    struct build *b = module_build(m, backend, arch);
    if (b != NULL) {
        return b;
    }
    b = calloc(1, sizeof *b);
    if (b == NULL) {
        return NULL;
    }
    b->module = m;
    b->binary_fd = -1;
    (void)snprintf(b->backend, sizeof b->backend, "%s", backend);
    (void)snprintf(b->arch, sizeof b->arch, "%s", arch);
    b->next = m->builds;
    m->builds = b;
    return b;
}

bool build_failed(const struct build *b, uint64_t now_ns)
{
    bool final = b->error.code == ERR_COMPILE || b->error.code == ERR_UNSUPPORTED;
    return b->state == BUILD_FAILED && (final || now_ns - b->failed_ns < RETRY_NS);
}

/* Copies a text into the block that the module owns, because texts of a response are freed with
 * it. */
static struct bytes keep(char **at, struct bytes text)
{
    struct bytes kept = bytes_of(*at, text.size);
    if (text.size > 0) {
        memcpy(*at, text.data, text.size);
    }
    *at += text.size;
    return kept;
}

/* Size of that block. ret_args: the number of arguments of all kernels. */
static size_t names_size(const struct compile_response *response, size_t *ret_args)
{
    size_t size = 1;
    size_t count = 0;
    struct proto_iter it = proto_iter_of(response->kernels);
    struct proto_ckernel k;
    while (proto_list_next(&it, &schema_ckernel, &k)) {
        struct proto_iter args = proto_iter_of(k.args);
        struct proto_carg a;
        while (proto_list_next(&args, &schema_carg, &a)) {
            size += a.name.size + a.type.size;
        }
        count += k.args.count;
        size += k.unfit.size + 1;
    }
    *ret_args = count;
    return size;
}

/* next: the next free arguments in the module's array */
static void reported_args(struct kernel *kernel, const struct proto_ckernel *k, char **at,
                          struct proto_karg **next)
{
    struct proto_iter args = proto_iter_of(k->args);
    struct proto_carg a;
    kernel->args = *next;
    while (proto_list_next(&args, &schema_carg, &a)) {
        kernel->args[kernel->arg_count++] = (struct proto_karg){.name = keep(at, a.name),
                                                                .kind = a.kind,
                                                                .access = a.access,
                                                                .dtype = a.dtype,
                                                                .bytes = a.bytes,
                                                                .type = keep(at, a.type)};
    }
    *next += kernel->arg_count;
}

static int set_kernel(struct module *m, unsigned index, const struct proto_ckernel *k, char **at,
                      struct proto_karg **next, struct err *e)
{
    struct kernel *kernel = &m->kernels[index];
    kernel->module = m;
    if (!bytes_to_str(k->entry, kernel->entry, sizeof kernel->entry)) {
        return err_set(e, ERR_COMPILE, "kernel name of %zu bytes", k->entry.size);
    }
    if (k->signature.size > 0) {
        int rc = signature_parse(k->signature, &m->signatures[index], e);
        if (rc != 0) {
            return rc;
        }
        kernel->signature = &m->signatures[index];
        (void)snprintf(kernel->name, sizeof kernel->name, "%s", m->signatures[index].name);
        return 0;
    }
    struct bytes name = k->name.size > 0 ? k->name : k->entry;
    if (!bytes_to_str(name, kernel->name, sizeof kernel->name)) {
        return err_set(e, ERR_LIMIT, "kernel name of %zu bytes, at most %u", name.size,
                       PROTO_NAME_MAX);
    }
    reported_args(kernel, k, at, next);
    if (k->unfit.size > 0) {
        kernel->unfit = (const char *)keep(at, k->unfit).data;
        *(*at)++ = '\0';
    }
    return 0;
}

int module_set_kernels(struct module *m, const struct compile_response *response, struct err *e)
{
    unsigned count = (unsigned)response->kernels.count;
    m->kernels = calloc(count + 1, sizeof *m->kernels);
    m->signatures = calloc(count + 1, sizeof *m->signatures);
    size_t args = 0;
    m->names = malloc(names_size(response, &args));
    m->args = calloc(args + 1, sizeof *m->args);
    if (m->kernels == NULL || m->signatures == NULL || m->names == NULL || m->args == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for %u kernels", count);
    }
    char *at = m->names;
    struct proto_karg *next = m->args;
    struct proto_iter it = proto_iter_of(response->kernels);
    struct proto_ckernel k;
    while (proto_list_next(&it, &schema_ckernel, &k)) {
        int rc = set_kernel(m, m->kernel_count, &k, &at, &next, e);
        if (rc != 0) {
            return rc;
        }
        m->kernel_count++;
    }
    return 0;
}

void module_own(struct module *m, struct session *s)
{
    m->tenant = s->tenant;
    m->owner = s;
    DL_APPEND2(s->own_modules, m, owned_prev, owned_next);
    s->modules++;
    s->tenant->held[TENANT_MODULES]++;
}

void module_disown(struct module *m)
{
    struct session *s = m->owner;
    if (s != NULL) {
        DL_DELETE2(s->own_modules, m, owned_prev, owned_next);
        s->modules--;
        s->tenant->held[TENANT_MODULES]--;
    }
    m->owner = NULL;
}

void module_destroy(struct module *m)
{
    if (m == NULL) {
        return;
    }
    while (m->builds != NULL) {
        struct build *b = m->builds;
        m->builds = b->next;
        if (b->binary_fd >= 0) {
            (void)close(b->binary_fd);
        }
        resource_list_finish(&b->needs);
        free(b);
    }
    free(m->source);
    free(m->options);
    free(m->signature_text);
    free((void *)(uintptr_t)m->headers.raw.data);
    free(m->kernels);
    free(m->signatures);
    free(m->names);
    free(m->args);
    free(m);
}

struct resources kernel_needs(const struct kernel *k, const struct build *b)
{
    struct resources all = {.registers = 0};
    char entry[2 * PROTO_NAME_MAX + 1];
    const struct signature *sig = k->signature;
    unsigned types = sig != NULL && sig->type_count > 0 ? sig->type_count : 1;
    for (unsigned t = 0; b != NULL && t < types; t++) {
        const char *name = k->entry;
        int dtype = sig != NULL && sig->type_count > 0 ? sig->type[t] : DTYPE_NONE;
        if (sig != NULL && signature_entry(sig, dtype, entry, sizeof entry, NULL) == 0) {
            name = entry;
        }
        const struct resources *one = resource_list_find(&b->needs, name);
        if (one != NULL) {
            resources_join(&all, one);
        }
    }
    return all;
}

void kernel_name_arg(const struct kernel *k, unsigned index, struct err *e)
{
    struct bytes name = {0};
    if (k->signature != NULL && index < k->signature->arg_count) {
        name = bytes_str(k->signature->arg[index].name);
    } else if (k->signature == NULL && index < k->arg_count) {
        name = k->args[index].name;
    }
    bool named = name.size > 0;
    (void)err_wrap(e, "argument %u%s%.*s%s", index, named ? " (" : "", (int)name.size,
                   named ? (const char *)name.data : "", named ? ")" : "");
    e->arg = (int)index;
}

int kernel_check(const struct tenant *t, const struct module *m, const char *entry, struct err *e)
{
    if (t == NULL || t->strikes == NULL || !tenant_quarantined(t, kernel_hash(m, entry))) {
        return 0;
    }
    return err_set(e, ERR_QUARANTINED,
                   "kernel %s ended its worker %d times and is not run again; load a corrected one",
                   entry, STRIKES_MAX);
}

struct hash kernel_hash(const struct module *m, const char *entry)
{
    const struct hash_part parts[] = {{m->hash.byte, sizeof m->hash.byte}, {entry, strlen(entry)}};
    return hash_parts(parts, 2);
}
