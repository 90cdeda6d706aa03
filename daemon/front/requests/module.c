/* Requests for modules and kernels: load, unload, find. A load is answered when its compilation
 * ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "daemon/front/clients/reply.h"
#include "daemon/front/model/domain.h"
#include "daemon/front/model/op.h"
#include "daemon/front/modules/building.h"
#include "daemon/front/requests/requests.h"
#include "daemon/front/tenants/tenant_quota.h"

#define RETRY_NS (100 * NS_PER_MS) /* between tries while the compiler is full */

/* MODULE_LOAD compiles for the first device with a known architecture, even while its worker starts
 * anew. For other architectures a module is compiled when a job needs it there. A compiler may open
 * the device, so it is none that is drained. */
static struct device *compile_device(struct front *f)
{
    for (unsigned i = 0; i < f->device_count; i++) {
        struct device *d = f->device[i];
        if (d->arch[0] != '\0' && device_admits(d)) {
            return d;
        }
    }
    return NULL;
}

/* Whether a device may come. Loads wait for one as jobs do, because its architecture is known only
 * once it has opened. */
static bool device_may_come(const struct front *f)
{
    bool may = !f->listed;
    for (unsigned i = 0; i < f->device_count && !may; i++) {
        may = device_admits(f->device[i]);
    }
    return may;
}

static int no_device(const struct front *f, struct err *e)
{
    const struct device *drained = domain_drained(f, NULL, 0);
    return drained != NULL
               ? device_refuse_drained(drained, e)
               : err_set(e, ERR_NO_DEVICE, "no device to compile for: see gpuctl devices");
}

static char *text_of(struct bytes b)
{
    char *text = malloc(b.size + 1);
    if (text != NULL) {
        if (b.size > 0) {
            memcpy(text, b.data, b.size);
        }
        text[b.size] = '\0';
    }
    return text;
}

/* Copies the headers. Source and headers together may have PROTO_SOURCE_MAX bytes. */
static int fill_headers(struct module *m, const struct msg_module_load *msg, struct err *e)
{
    struct proto_iter it = proto_iter_of(msg->headers);
    struct proto_header h;
    uint64_t bytes = msg->source.size;
    while (proto_list_next(&it, &schema_header, &h)) {
        bytes += h.text.size;
        if (h.name.size == 0) {
            return err_set(e, ERR_INVALID, "a header without a name");
        }
    }
    if (bytes > PROTO_SOURCE_MAX) {
        return err_set(e, ERR_LIMIT, "%llu bytes of source and headers, at most %u",
                       (unsigned long long)bytes, PROTO_SOURCE_MAX);
    }
    if (msg->headers.count == 0) {
        return 0;
    }
    uint8_t *copy = malloc(msg->headers.raw.size);
    if (copy == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for headers of %llu bytes",
                       (unsigned long long)bytes);
    }
    memcpy(copy, msg->headers.raw.data, msg->headers.raw.size);
    m->headers = (struct proto_list){.raw = bytes_of(copy, msg->headers.raw.size),
                                     .count = msg->headers.count};
    return 0;
}

static int fill_module(struct module *m, const struct msg_module_load *msg, struct err *e)
{
    m->source = malloc(msg->source.size > 0 ? msg->source.size : 1);
    m->options = text_of(msg->options);
    m->signature_text = text_of(msg->signature);
    if (m->source == NULL || m->options == NULL || m->signature_text == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a module of %zu bytes", msg->source.size);
    }
    if (msg->source.size > 0) {
        memcpy(m->source, msg->source.data, msg->source.size);
    }
    m->text = bytes_of(m->source, msg->source.size);
    m->lang = (int)msg->lang;
    if (!bytes_to_str(msg->name, m->name, sizeof m->name) ||
        !bytes_to_str(msg->file, m->file, sizeof m->file)) {
        return err_set(e, ERR_INVALID, "name or file name is not a text");
    }
    int rc = fill_headers(m, msg, e);
    const struct hash_part parts[] = {{m->text.data, m->text.size},
                                      {m->headers.raw.data, m->headers.raw.size},
                                      {m->options, strlen(m->options)},
                                      {m->signature_text, strlen(m->signature_text)},
                                      {&m->lang, sizeof m->lang}};
    m->hash = hash_parts(parts, sizeof parts / sizeof parts[0]);
    return rc;
}

static int compile(struct front *f, struct module *m, const struct device *d, struct err *e)
{
    int rc = building_compile(f, m, d, e);
    if (rc == ERR_BUSY) {
        e->retry_after_ns = RETRY_NS;
    }
    return rc;
}

int request_module_load(struct request_context *c, struct err *e)
{
    struct front *f = c->f;
    const struct msg_module_load *msg = &c->r->msg.module_load;
    quota_place(f, c->s);
    if (!rights_loads(&f->rights, c->s)) {
        return rights_refuse_load(&f->rights, &f->config, c->s, e);
    }
    if (msg->source.size == 0) {
        return err_set(e, ERR_INVALID, "the source is empty");
    }
    if (c->s->modules >= MODULES_MAX) {
        return err_set(e, ERR_LIMIT, "this session has %u modules, the most possible: unload some",
                       c->s->modules);
    }
    int room = tenant_check(c->s->tenant, TENANT_MODULES, f->config.tenant_modules_max, e);
    room = room == 0
               ? tenant_check_messages(c->s->tenant, c->r->size, f->config.tenant_message_bytes, e)
               : room;
    if (room != 0) {
        return room;
    }
    struct device *d = compile_device(f);
    if (d == NULL && !device_may_come(f)) {
        return no_device(f, e);
    }
    struct module *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a module");
    }
    m->tenant = c->s->tenant; /* the compiler's cache keeps tenants apart by it */
    int rc = fill_module(m, msg, e);
    if (rc == 0) {
        rc = idmap_enter(&f->modules, m, "modules", "unload some", &m->id, e);
    }
    if (rc == 0 && d != NULL) {
        rc = compile(f, m, d, e);
    }
    if (rc != 0) {
        (void)idmap_remove(&f->modules, m->id);
        module_destroy(m);
        return rc;
    }
    module_own(m, c->s);
    m->charged = c->r->size;
    m->tenant->message_bytes += m->charged;
    m->pending = c->o;
    return 0;
}

/* false: the compiler is full, and the load waits. */
static bool begin(struct front *f, struct module *m, struct device *d)
{
    struct err e = ERR_INIT;
    int rc = d != NULL ? compile(f, m, d, &e) : no_device(f, &e);
    if (rc == ERR_BUSY) {
        return false;
    }
    if (rc != 0) {
        struct op *o = m->pending;
        m->pending = NULL;
        reply_answer_error(f, o, &e, (struct bytes){0});
        module_drop(f, m);
    }
    return true;
}

/* Whether the load still has to start at the compiler. */
static bool waits(const struct module *m)
{
    const struct build *b = m->builds;
    while (b != NULL && b->state == BUILD_NONE) {
        b = b->next;
    }
    return m->pending != NULL && b == NULL;
}

void module_begin_waiting(struct front *f)
{
    struct device *d = compile_device(f);
    uint32_t cursor = 0;
    struct module *m;
    const struct tenant *full = NULL; /* the compiler takes no more of this tenant now */
    bool room = !front_life_stops(f->life) && (d != NULL || !device_may_come(f));
    while (room && (m = idmap_next(&f->modules, &cursor, NULL)) != NULL) {
        bool begins = waits(m) && (full == NULL || m->tenant != full);
        full = begins && !begin(f, m, d) ? m->tenant : full;
    }
}

/* ---- what the compiler made --------------------------------------------------------------- */

/* b: the build that knows the needs of the kernel; NULL: none. */
static int add_kernel(const struct kernel *k, const struct build *b, struct capbuf *out,
                      struct err *e)
{
    struct capbuf args;
    struct resources needs = kernel_needs(k, b);
    capbuf_init(&args, 65536);
    uint64_t count = 0;
    int rc = 0;
    const struct signature *sig = k->signature;
    for (unsigned i = 0; sig != NULL && rc == 0 && i < sig->arg_count; i++, count++) {
        const struct sig_arg *a = &sig->arg[i];
        struct proto_karg karg = {.name = bytes_str(a->name),
                                  .kind = a->kind == SIG_ARRAY ? 2 : 1,
                                  .access = a->kind == SIG_ARRAY ? (uint64_t)a->access : 0,
                                  .dtype = (uint64_t)a->dtype,
                                  .bytes = dtype_size(a->dtype)};
        rc = proto_list_add(&schema_karg, &karg, &args, e);
    }
    for (unsigned i = 0; sig == NULL && rc == 0 && i < k->arg_count; i++, count++) {
        rc = proto_list_add(&schema_karg, &k->args[i], &args, e);
    }
    if (rc == 0) {
        struct proto_kernel record = {
            .handle = k->handle,
            .name = bytes_str(k->name),
            .version = 1,
            .auto_grid = sig != NULL && (sig->over_count > 0 || k->module == NULL),
            .signature = bytes_str(sig != NULL ? sig->text : ""),
            .args = proto_list_of(&args, count),
            .registers = needs.registers,
            .item_bytes = needs.item_bytes,
            .group_bytes = needs.group_bytes,
            .max_group = needs.max_group,
            .group_multiple = needs.group_multiple,
            .occupancy = needs.occupancy,
        };
        rc = proto_list_add(&schema_kernel, &record, out, e);
    }
    capbuf_finish(&args);
    return rc;
}

static int enter_kernels(struct front *f, struct module *m, struct err *e)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < m->kernel_count; i++) {
        turn_count(f, 1);
        rc = tenant_check(m->tenant, TENANT_KERNELS, f->config.tenant_kernels_max, e);
        rc = rc == 0 ? idmap_enter(&f->kernels, &m->kernels[i], "kernels", "unload modules",
                                   &m->kernels[i].handle, e)
                     : rc;
        m->tenant->held[TENANT_KERNELS] += rc == 0;
    }
    return rc;
}

/* Whether a client of this minor version can decode the kernel's record. */
static bool kernel_decodable(const struct kernel *k, uint64_t minor)
{
    return minor >= PROTO_MINOR_ARGS || k->arg_count <= PROTO_ARGS_OLD;
}

static int reply_module(const struct build *b, uint64_t minor, struct bytes log, struct capbuf *out,
                        struct err *e)
{
    const struct module *m = b->module;
    struct capbuf kernels;
    capbuf_init(&kernels, PROTO_MESSAGE_MAX);
    int rc = 0;
    uint64_t count = 0;
    for (unsigned i = 0; rc == 0 && i < m->kernel_count; i++) {
        if (m->kernels[i].unfit == NULL && kernel_decodable(&m->kernels[i], minor)) {
            rc = add_kernel(&m->kernels[i], b, &kernels, e);
            count++;
        }
    }
    if (rc == 0) {
        struct msg_module msg = {
            .module = m->id, .log = log, .kernels = proto_list_of(&kernels, count)};
        rc = proto_encode(&schema_msg_module, &msg, out, e);
    }
    capbuf_finish(&kernels);
    return rc;
}

static void answer_load(struct front *f, struct build *b, const struct compile_response *response)
{
    struct module *m = b->module;
    struct op *o = m->pending;
    m->pending = NULL;
    if (o == NULL) {
        building_settle(f, m);
        return;
    }
    struct err e = b->error;
    struct capbuf out;
    capbuf_init(&out, PROTO_MESSAGE_MAX);
    int rc = b->state == BUILD_DONE ? module_set_kernels(m, response, &e) : e.code;
    if (rc == 0) {
        rc = enter_kernels(f, m, &e);
    }
    if (rc == 0) {
        rc = reply_module(b, o->session->client.minor, response->log, &out, &e);
    }
    if (rc == 0) {
        reply_answer(f, o, capbuf_view(&out));
    } else {
        reply_answer_error(f, o, &e, response != NULL ? response->log : (struct bytes){0});
        module_drop(f, m);
    }
    capbuf_finish(&out);
}

void module_answered(struct front *f, struct build *b, const struct compile_response *response)
{
    answer_load(f, b, response);
    module_begin_waiting(f);
}

void module_drop(struct front *f, struct module *m)
{
    uint64_t owner = m->owner != NULL ? m->owner->id : UINT64_MAX;
    idmap_disown(&f->modules, m->id, owner);
    for (unsigned i = 0; i < m->kernel_count; i++) {
        idmap_disown(&f->kernels, m->kernels[i].handle, owner);
    }
    module_disown(m);
    m->unloaded = true;
    building_settle(f, m);
}

int request_module_unload(struct request_context *c, struct err *e)
{
    uint64_t id = c->r->msg.module_unload.module;
    struct module *m = idmap_get(&c->f->modules, id);
    if (m == NULL || m->unloaded || m->tenant == NULL || m->owner != c->s) {
        return session_lacks(c->s, &c->f->modules, id, "module", e);
    }
    module_drop(c->f, m);
    struct msg_done done = {0};
    return proto_encode(&schema_msg_done, &done, c->out, e);
}

/* A linear search: a module has at most PROTO_KERNELS_MAX kernels. */
static struct kernel *kernel_of(struct front *f, const struct session *s, const char *name,
                                uint64_t id)
{
    struct module *m = idmap_get(&f->modules, id);
    bool own = m != NULL && m->tenant != NULL && m->owner == s;
    for (unsigned i = 0; own && i < m->kernel_count; i++) {
        turn_count(f, 1);
        if (m->kernels[i].handle != 0 && strcmp(m->kernels[i].name, name) == 0) {
            return &m->kernels[i];
        }
    }
    return NULL;
}

static struct kernel *builtin_of(struct front *f, const char *name)
{
    struct kernel *k = NULL;
    HASH_FIND_STR(f->builtin_kernels, name, k);
    return k;
}

int request_kernel_find(struct request_context *c, struct err *e)
{
    const struct msg_kernel_find *m = &c->r->msg.kernel_find;
    char name[PROTO_NAME_MAX + 1];
    struct kernel *k = NULL;
    if (bytes_to_str(m->name, name, sizeof name)) {
        k = m->module == 0 ? builtin_of(c->f, name) : kernel_of(c->f, c->s, name, m->module);
    }
    if (k == NULL) {
        return err_set(e, ERR_NOT_FOUND, "there is no kernel %.*s: see gpuctl kernels",
                       (int)m->name.size, (const char *)m->name.data);
    }
    if (k->unfit != NULL) {
        return err_set(e, ERR_UNSUPPORTED, "kernel %s: %s", k->name, k->unfit);
    }
    if (!kernel_decodable(k, c->s->client.minor)) {
        return err_set(e, ERR_UNSUPPORTED,
                       "kernel %s takes %u arguments, this client (protocol %u.%llu) at most %u: "
                       "%u.%u is needed",
                       k->name, k->arg_count, PROTO_MAJOR, (unsigned long long)c->s->client.minor,
                       PROTO_ARGS_OLD, PROTO_MAJOR, PROTO_MINOR_ARGS);
    }
    struct capbuf kernels;
    capbuf_init(&kernels, 65536);
    int rc = add_kernel(k, module_build_made(k->module), &kernels, e);
    if (rc == 0) {
        struct msg_kernel_found found = {.kernels = proto_list_of(&kernels, 1)};
        rc = proto_encode(&schema_msg_kernel_found, &found, c->out, e);
    }
    capbuf_finish(&kernels);
    return rc;
}
