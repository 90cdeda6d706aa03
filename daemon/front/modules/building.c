#include "daemon/front/modules/building.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/log.h"
#include "daemon/front/modules/compiler.h"
#include "daemon/front/sched/queue.h"
#include "daemon/front/workers/command.h"
#include "daemon/front/workers/worker_end.h"
#include "kernels/builtin.h"
#include "kernels/plan.h"

static struct kernel *enter_kernel(struct front *f, struct kernel *k)
{
    struct kernel *other = NULL;
    k->handle = idmap_add(&f->kernels, k);
    if (k->handle == 0) {
        return NULL;
    }
    HASH_FIND_STR(f->builtin_kernels, k->name, other);
    if (other == NULL) {
        HASH_ADD_STR(f->builtin_kernels, name, k);
        if (!HASH_ENTERED(k->hh)) {
            (void)idmap_remove(&f->kernels, k->handle);
            return NULL;
        }
    }
    return k;
}

static struct module *builtin_create(struct front *f, unsigned index)
{
    struct module *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return NULL;
    }
    m->text = builtin_module_source(index);
    m->lang = LANG_DIALECT;
    m->hash = hash_of(m->text.data, m->text.size);
    (void)snprintf(m->name, sizeof m->name, "%s", builtin_module_name(index));
    (void)snprintf(m->file, sizeof m->file, "%s.gk", m->name);
    m->id = idmap_add(&f->modules, m);
    if (m->id == 0) {
        free(m);
        return NULL;
    }
    return m;
}

static bool enter_operations(struct front *f)
{
    for (unsigned i = 0; i < plan_operation_count(); i++) {
        struct kernel *k = calloc(1, sizeof *k);
        if (k == NULL) {
            return false;
        }
        (void)snprintf(k->name, sizeof k->name, "%s", plan_operation_name(i));
        k->signature = plan_signature(plan_operation_name(i));
        if (k->signature == NULL || enter_kernel(f, k) == NULL) {
            free(k);
            return false;
        }
    }
    return true;
}

static bool enter_primitives(struct front *f)
{
    for (unsigned i = 0; i < builtin_kernel_count(); i++) {
        unsigned module = 0;
        const struct signature *sig = builtin_kernel(i, &module);
        if (plan_signature(sig->name) != NULL) {
            continue; /* users mean the operation of this name */
        }
        struct kernel *k = calloc(1, sizeof *k);
        if (k == NULL) {
            return false;
        }
        (void)snprintf(k->name, sizeof k->name, "%s", sig->name);
        k->signature = sig;
        k->module = f->builtin[module];
        if (enter_kernel(f, k) == NULL) {
            free(k);
            return false;
        }
    }
    return true;
}

int building_init(struct front *f, struct err *e)
{
    int rc = builtin_init(e);
    if (rc != 0) {
        return rc;
    }
    if (builtin_module_count() > BUILTIN_MODULES_MAX) {
        return err_set(e, ERR_INTERNAL, "too many built-in modules: %u", builtin_module_count());
    }
    for (; f->builtin_count < builtin_module_count(); f->builtin_count++) {
        f->builtin[f->builtin_count] = builtin_create(f, f->builtin_count);
        if (f->builtin[f->builtin_count] == NULL) {
            return err_set(e, ERR_NOMEM, "no memory for built-in kernels");
        }
    }
    return enter_operations(f) && enter_primitives(f)
               ? 0
               : err_set(e, ERR_NOMEM, "no memory for built-in kernels");
}

void building_finish(struct front *f)
{
    uint32_t cursor = 0;
    struct kernel *k;
    HASH_CLEAR(hh, f->builtin_kernels);
    while ((k = idmap_next(&f->kernels, &cursor, NULL)) != NULL) {
        if (k->module == NULL || k->module->tenant == NULL) {
            (void)idmap_remove(&f->kernels, k->handle);
            free(k);
        }
    }
    cursor = 0;
    struct module *m;
    while ((m = idmap_next(&f->modules, &cursor, NULL)) != NULL) {
        (void)idmap_remove(&f->modules, m->id);
        module_destroy(m);
    }
}

/* ---- compiling ------------------------------------------------------------------------------- */

static int keep_binary(struct build *b, struct bytes binary, struct hash key, struct err *e)
{
    struct memfd m = MEMFD_NONE;
    int rc = memfd_create_sealed("gpud-binary", binary.size > 0 ? binary.size : 1, &m, e);
    if (rc != 0) {
        return rc;
    }
    if (binary.size > 0) {
        memcpy(m.data, binary.data, binary.size);
    }
    if (b->binary_fd >= 0) { /* compiled before, but could not be loaded then */
        (void)close(b->binary_fd);
    }
    b->binary_fd = m.fd;
    b->binary_size = binary.size;
    b->hash = key;
    m.fd = -1;
    memfd_finish(&m);
    return 0;
}

struct compile_wait {
    struct front *f;
    struct build *build;
};

static void compiled(void *data, int code, const struct compile_response *response, struct hash key,
                     const struct err *e)
{
    struct compile_wait *w = data;
    struct front *f = w->f;
    struct build *b = w->build;
    free(w);
    if (code == 0) {
        resource_list_take(&b->needs, response->entries);
        resource_list_take_reads(&b->needs, response->entries);
        code = keep_binary(b, response->binary, key, &b->error);
    } else {
        b->error = *e;
    }
    b->state = code == 0 ? BUILD_DONE : BUILD_FAILED;
    b->failed_ns = front_now(f);
    b->module->users--; /* the compiler does not use it any more */
    if (f->life == FRONT_LEAVING) {
        return; /* unanswered requests come again, to the next front */
    }
    if (code != 0 && b->module->tenant == NULL) {
        log_say(LOG_BUILTIN_FAILED, "built-in kernels %s for %s: %s", b->module->name, b->arch,
                b->error.text);
    }
    struct module *m = b->module;
    m->users++; /* keeps the module alive until all hooks have returned */
    f->hooks.module_build_done(f, b, response);
    f->hooks.module_settled(f, m);
    m->users--;
    building_settle(f, m);
    (void)queue_offer_awaiting(f);
}

/* The back end's options for gpud-compile: those of its workers, and the choice of a compiler. */
static const char *compiler_options(const struct front *f, const struct device *d, char *out,
                                    size_t size)
{
    const struct config *c = &f->config;
    bool chosen = strcmp(d->backend, "cuda") == 0 && strcmp(c->compile_cuda, "auto") != 0;
    (void)snprintf(out, size, "%s%s%s%s", c->backend_options,
                   chosen && c->backend_options[0] != '\0' ? "," : "", chosen ? "compiler=" : "",
                   chosen ? c->compile_cuda : "");
    return out;
}

int building_compile(struct front *f, struct module *m, const struct device *d, struct err *e)
{
    struct build *b = module_build_obtain(m, d->backend, d->arch);
    struct compile_wait *w = malloc(sizeof *w);
    if (b == NULL || w == NULL) {
        free(w);
        return err_set(e, ERR_NOMEM, "no memory to compile %s", m->name);
    }
    *w = (struct compile_wait){.f = f, .build = b};
    char number[16];
    char options[sizeof f->config.backend_options + 24];
    (void)snprintf(number, sizeof number, "%u", d->number);
    struct compiler_request request = {
        .backend = d->backend,
        .device = number,
        .options = compiler_options(f, d, options, sizeof options),
        .arch = d->arch,
        .owner = m->tenant != NULL ? m->tenant->name : "builtin",
        .lang = m->lang,
        .f64 = d->f64,
        .source = m->text,
        .file = m->file,
        .build_options = m->options != NULL ? m->options : "",
        .signature = m->signature_text != NULL ? m->signature_text : "",
        .headers = m->headers,
    };
    int rc = f->io.compile(f->compiler, &request, compiled, w, e);
    if (rc != 0) {
        free(w);
        return rc;
    }
    b->state = BUILD_RUNNING;
    b->device = device_shown(d);
    m->users++;
    return 0;
}

bool building_runs(const struct front *f, const struct device *base)
{
    uint32_t cursor = 0;
    bool runs = false;
    for (const struct module *m; (m = idmap_next(&f->modules, &cursor, NULL)) != NULL && !runs;) {
        for (const struct build *b = m->builds; b != NULL && !runs; b = b->next) {
            runs = b->state == BUILD_RUNNING && b->device == base->index;
        }
    }
    return runs;
}

/* ---- loading -------------------------------------------------------------------------------- */

static void load(struct front *f, struct module *m, struct device *d, struct build *b)
{
    if (device_set_has(&m->loading, d->index) || d->link == NULL) {
        return;
    }
    struct err e = ERR_INIT;
    device_set_put(&m->loading, d->index);
    if (command_module_load(d, b, &e) != 0) {
        device_set_drop(&m->loading, d->index);
        worker_end(f, d, NULL, e.text);
    }
}

void building_need(struct front *f, struct module *m, struct device *d)
{
    struct build *b = module_build_obtain(m, d->backend, d->arch);
    struct err e = ERR_INIT;
    if (b == NULL) {
        return; /* the next turn tries again */
    }
    if (b->state == BUILD_NONE || b->state == BUILD_FAILED) {
        int rc = building_compile(f, m, d, &e);
        if (rc != 0 && rc != ERR_BUSY) {
            b->error = e;
            b->state = BUILD_FAILED;
            b->failed_ns = front_now(f);
        }
    } else if (b->state == BUILD_DONE) {
        load(f, m, d, b);
    }
}

void building_loaded(struct front *f, struct device *d, const struct msg_w_module *msg)
{
    struct module *m = idmap_get(&f->modules, msg->module);
    if (m == NULL) {
        if (msg->code == 0) { /* unloaded by its client while it was being loaded */
            command_module_unload(d, msg->module);
        }
        return;
    }
    device_set_drop(&m->loading, d->index);
    struct build *b = module_build_obtain(m, d->backend, d->arch);
    if (msg->code == 0) {
        device_set_put(&m->loaded, d->index);
        if (b != NULL) {
            resource_list_take(&b->needs, msg->kernels);
        }
    } else if (b != NULL) {
        (void)err_set_vendor(&b->error, (int)msg->code, (int)msg->vendor, "%.*s",
                             (int)msg->text.size, (const char *)msg->text.data);
        b->state = BUILD_FAILED;
        b->failed_ns = front_now(f);
    }
    m->users++;
    f->hooks.module_settled(f, m);
    m->users--;
    building_settle(f, m);
    (void)queue_offer_awaiting(f);
}

/* An adopted worker's modules are unloaded, because none belongs to a module of this front. Modules
 * are loaded again when jobs need them. */
void building_adopt_module(struct front *f, struct device *d,
                           const struct msg_w_inventory_module *msg)
{
    (void)f;
    command_module_unload(d, msg->module);
}

void building_device_lost(struct front *f, const struct device *d)
{
    uint32_t cursor = 0;
    struct module *m;
    while ((m = idmap_next(&f->modules, &cursor, NULL)) != NULL) {
        device_set_drop(&m->loaded, d->index);
        device_set_drop(&m->loading, d->index);
    }
}

void building_settle(struct front *f, struct module *m)
{
    if (!m->unloaded || m->users > 0) {
        return;
    }
    struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        if (device_set_has(&m->loaded, d->index)) {
            command_module_unload(d, m->id);
        }
    }
    for (unsigned i = 0; i < m->kernel_count; i++) {
        if (idmap_remove(&f->kernels, m->kernels[i].handle) != NULL) {
            m->tenant->held[TENANT_KERNELS]--;
        }
    }
    (void)idmap_remove(&f->modules, m->id);
    if (m->charged > 0) {
        m->tenant->message_bytes -= m->charged;
    }
    module_destroy(m);
}
