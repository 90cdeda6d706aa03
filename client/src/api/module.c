#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/src/base/enter.h"
#include "client/src/base/error.h"
#include "client/src/base/text.h"
#include "client/src/objects/handles.h"
#include "client/src/objects/objects.h"
#include "client/src/objects/post.h"
#include "client/src/session/call.h"
#include "client/src/wire/reply.h"
#include "common/utf8.h"

_Static_assert((int)GPUD_LANG_SPIRV == (int)LANG_SPIRV, "languages");
_Static_assert(GPUD_MAX_ARGS == PROTO_ARGS_MAX && GPUD_MAX_STEPS == PROTO_STEPS_MAX &&
                   GPUD_MAX_PARAMS == PROTO_PARAMS_MAX && GPUD_MAX_TEMPS == PROTO_TEMPS_MAX &&
                   GPUD_MAX_OUTPUTS == PROTO_OUTPUTS_MAX && GPUD_MAX_KERNELS == PROTO_KERNELS_MAX,
               "limits of what runs");
_Static_assert(GPUD_MAX_SOURCE == PROTO_SOURCE_MAX && GPUD_MAX_HEADERS == PROTO_HEADERS_MAX &&
                   GPUD_MAX_HEADER_NAME == PROTO_HEADER_NAME_MAX &&
                   GPUD_MAX_BUILD_OPTIONS == PROTO_OPTIONS_MAX &&
                   GPUD_MAX_SIGNATURE == PROTO_TEXT_MAX && GPUD_MAX_STRUCT == PROTO_TEXT_MAX &&
                   GPUD_MAX_LOG == PROTO_LOG_MAX && GPUD_MAX_TOKEN == PROTO_TOKEN_MAX &&
                   GPUD_MAX_INLINE == PROTO_INLINE_MAX,
               "limits of bytes");

/* ---- kernels ------------------------------------------------------------------------------- */

static void kernel_destroy(struct object *o)
{
    object_finish(o);
    free(o);
}

static void kernel_fill(struct kernel *k, const struct proto_kernel *reply)
{
    struct proto_karg arg;
    uint32_t count = 0;
    k->desc.version = reply->version;
    k->desc.auto_grid = reply->auto_grid != 0;
    k->desc.registers = reply->registers;
    k->desc.item_bytes = reply->item_bytes;
    k->desc.group_bytes = reply->group_bytes;
    k->desc.max_group = reply->max_group;
    k->desc.group_multiple = reply->group_multiple;
    k->desc.occupancy_ppm = reply->occupancy;
    text_copy(k->desc.name, sizeof k->desc.name, reply->name);
    text_copy(k->desc.signature, sizeof k->desc.signature, reply->signature);
    for (struct proto_iter it = proto_iter_of(reply->args);
         count < reply->args.count && proto_list_next(&it, &schema_karg, &arg); count++) {
        gpud_kernel_arg_desc *a = &k->args[count];
        a->kind = (uint32_t)arg.kind;
        a->access = (uint32_t)arg.access;
        a->dtype = (uint32_t)arg.dtype;
        a->bytes = arg.bytes;
        text_copy(a->name, sizeof a->name, arg.name);
        text_copy(a->type, sizeof a->type, arg.type);
    }
    k->desc.arg_count = count;
}

/* Keeps the request that finds the kernel again after a restart of the daemon. */
static int kernel_recipe(struct kernel *k, struct bytes name, uint64_t daemon_module, struct err *e)
{
    struct msg_kernel_find msg = {.seq = 1, .ack = 1, .name = name, .module = daemon_module};
    capbuf_init(&k->object.recipe, PROTO_MESSAGE_MAX);
    k->object.recipe_kind = MSG_KIND_KERNEL_FIND;
    return proto_encode(&schema_msg_kernel_find, &msg, &k->object.recipe, e);
}

static int kernel_add(struct gpud_client *c, const struct proto_kernel *reply, struct bytes name,
                      struct module *module, uint64_t *ret_id, struct err *e)
{
    struct kernel *k = calloc(1, sizeof *k + (size_t)reply->args.count * sizeof k->args[0]);
    if (k == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a kernel");
    }
    k->object.kind = OBJECT_KERNEL;
    k->object.daemon = reply->handle;
    k->object.destroy = kernel_destroy;
    k->module = module != NULL ? module->object.handle : 0;
    kernel_fill(k, reply);
    text_copy(k->asked, sizeof k->asked, name);
    int rc = kernel_recipe(k, name, module != NULL ? module->object.daemon : 0, e);
    if (rc == 0) {
        k->object.handle = idmap_add(&c->kernels, k);
        rc = k->object.handle != 0 ? 0 : err_set(e, ERR_NOMEM, "no memory for a kernel's handle");
    }
    if (rc != 0) {
        kernel_destroy(&k->object);
        return rc;
    }
    object_link(c, &k->object);
    *ret_id = k->object.handle;
    return 0;
}

/* The handle of a kernel that was found before by the same name; 0: none. */
static uint64_t kernel_known(struct gpud_client *c, const char *name)
{
    uint32_t cursor = 0;
    uint64_t id = 0;
    struct kernel *k;
    while ((k = idmap_next(&c->kernels, &cursor, &id)) != NULL) {
        if (k->module == 0 && k->object.unrestored == NULL && strcmp(k->asked, name) == 0) {
            return id;
        }
    }
    return 0;
}

static int kernel_find(struct gpud_client *c, const char *name, gpud_kernel *ret_kernel,
                       struct err *e)
{
    struct msg_kernel_find msg = {.name = bytes_str(name)};
    struct msg_kernel_found found;
    struct proto_kernel reply;
    struct message *m = NULL;
    uint64_t id = kernel_known(c, name);
    if (id != 0) {
        ret_kernel->id = id;
        return 0;
    }
    int rc = client_call(c, &schema_msg_kernel_find, &msg, CALL_SEQUENCED, &schema_msg_kernel_found,
                         &found, &m, e);
    if (rc != 0) {
        return rc;
    }
    struct proto_iter it = proto_iter_of(found.kernels);
    if (!proto_list_next(&it, &schema_kernel, &reply)) {
        rc = err_set(e, ERR_PROTOCOL, "answer without a kernel");
    } else if ((id = kernel_known(c, name)) == 0) { /* another thread may have added it meanwhile */
        rc = kernel_add(c, &reply, bytes_str(name), NULL, &id, e);
    }
    if (rc == 0) {
        ret_kernel->id = id;
    }
    message_unref(m);
    return rc;
}

int gpud_kernel_find(gpud_client *client, const char *name, gpud_kernel *ret_kernel)
{
    struct err e = ERR_INIT;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        rc = name != NULL && ret_kernel != NULL
                 ? kernel_find(client, name, ret_kernel, &e)
                 : err_set(&e, ERR_INVALID, "no name, or no pointer for the handle");
        if (rc != 0) {
            (void)err_wrap(&e, "kernel '%.64s'", name != NULL ? name : "");
        }
        client_leave(client);
    }
    return error_report(rc, &e);
}

int gpud_kernel_info(gpud_client *client, gpud_kernel kernel, gpud_kernel_desc *ret_desc)
{
    struct err e = ERR_INIT;
    struct kernel *k = NULL;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        rc = kernel_get(client, kernel, &k, &e);
        if (rc == 0) {
            rc = desc_return(ret_desc, &k->desc, sizeof k->desc, &e);
        }
        client_leave(client);
    }
    return error_report(rc, &e);
}

int gpud_kernel_arg(gpud_client *client, gpud_kernel kernel, uint32_t index,
                    gpud_kernel_arg_desc *ret_arg)
{
    struct err e = ERR_INIT;
    struct kernel *k = NULL;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        rc = kernel_get(client, kernel, &k, &e);
        if (rc == 0 && index >= k->desc.arg_count) {
            rc = err_set(&e, ERR_NOT_FOUND, "kernel %s has %u arguments", k->desc.name,
                         k->desc.arg_count);
        }
        if (rc == 0) {
            rc = desc_return(ret_arg, &k->args[index], sizeof k->args[index], &e);
        }
        client_leave(client);
    }
    return error_report(rc, &e);
}

/* ---- modules ------------------------------------------------------------------------------- */

static void module_destroy(struct object *o)
{
    struct module *module = (struct module *)o;
    object_finish(o);
    free(module->kernels);
    free(module);
}

static void module_kernels_drop(struct gpud_client *c, struct module *module, uint64_t freed_seq)
{
    for (uint32_t i = 0; i < module->kernel_count; i++) {
        struct kernel *k = idmap_remove(&c->kernels, module->kernels[i]);
        if (k != NULL) {
            object_give_up(c, &k->object, freed_seq);
        }
    }
}

static int module_kernels_add(struct gpud_client *c, struct module *module,
                              const struct msg_module *reply, struct err *e)
{
    struct proto_kernel kernel;
    int rc = 0;
    if (reply->kernels.count == 0) {
        return 0;
    }
    module->kernels = calloc((size_t)reply->kernels.count, sizeof *module->kernels);
    if (module->kernels == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for kernels of a module");
    }
    for (struct proto_iter it = proto_iter_of(reply->kernels);
         rc == 0 && proto_list_next(&it, &schema_kernel, &kernel);) {
        rc = kernel_add(c, &kernel, kernel.name, module, &module->kernels[module->kernel_count], e);
        if (rc == 0) {
            module->kernel_count++;
        }
    }
    return rc;
}

static void module_unload(struct gpud_client *c, struct module *module)
{
    struct msg_module_unload msg = {.module = module->object.daemon};
    uint64_t seq = 0;
    (void)idmap_remove(&c->modules, module->object.handle);
    if (client_post(c, &schema_msg_module_unload, &msg, &seq, NULL) != 0) {
        seq = requests_lowest(&c->requests); /* the daemon frees it with the session */
    }
    object_give_up(c, &module->object, seq);
    module_kernels_drop(c, module, seq);
}

/* recipe: belongs to the function, also on failure. */
static int module_add(struct gpud_client *c, const struct msg_module *reply, struct capbuf *recipe,
                      gpud_module *ret_module, struct err *e)
{
    struct module *module = calloc(1, sizeof *module);
    uint64_t id = module != NULL ? idmap_add(&c->modules, module) : 0;
    if (id == 0) {
        struct msg_module_unload msg = {.module = reply->module};
        uint64_t seq = 0;
        free(module);
        capbuf_finish(recipe);
        (void)client_post(c, &schema_msg_module_unload, &msg, &seq, NULL);
        return err_set(e, ERR_NOMEM, "no memory for a module's handle");
    }
    module->object.kind = OBJECT_MODULE;
    module->object.handle = id;
    module->object.daemon = reply->module;
    module->object.destroy = module_destroy;
    module->object.recipe = *recipe;
    module->object.recipe_kind = MSG_KIND_MODULE_LOAD;
    object_link(c, &module->object);
    int rc = module_kernels_add(c, module, reply, e);
    if (rc != 0) {
        module_unload(c, module);
        return rc;
    }
    ret_module->id = id;
    return 0;
}

static void log_return(const gpud_module_options *o, struct bytes log)
{
    if (o->log != NULL && o->log_bytes > 0) {
        text_copy(o->log, o->log_bytes, log);
    }
}

static int module_answer(struct gpud_client *c, const struct message *m,
                         const gpud_module_options *o, struct capbuf *recipe,
                         gpud_module *ret_module, struct err *e)
{
    struct msg_error failed;
    struct msg_module reply;
    struct bytes view = message_view(m);
    if (proto_kind(view) == MSG_KIND_ERROR &&
        proto_decode(&schema_msg_error, view, &failed, e) == 0) {
        log_return(o, failed.log);
    }
    int rc = reply_decode(m, &schema_msg_module, &reply, e);
    if (rc != 0) {
        capbuf_finish(recipe);
        return rc;
    }
    log_return(o, reply.log);
    return module_add(c, &reply, recipe, ret_module, e);
}

/* The last bytes of a long path, which identify the file better than the first. */
static struct bytes file_end(const char *file)
{
    struct bytes name = bytes_str(file);
    while (name.size > PROTO_LABEL_MAX || (name.size > 0 && (name.data[0] & 0xc0) == 0x80)) {
        name.data++; /* cut between characters only */
        name.size--;
    }
    return name;
}

static int headers_add(struct gpud_client *c, const gpud_module_options *o, struct capbuf *headers,
                       struct err *e)
{
    int rc = 0;
    if (o->header_count > 0 && c->session.minor < PROTO_MINOR_ARGS) {
        return err_set(e, ERR_UNSUPPORTED,
                       "headers: this daemon speaks protocol %u.%u, %u.%u is needed", PROTO_MAJOR,
                       (unsigned)c->session.minor, PROTO_MAJOR, PROTO_MINOR_ARGS);
    }
    if (o->header_count > PROTO_HEADERS_MAX || (o->header_count > 0 && o->headers == NULL)) {
        return err_set(e, o->headers == NULL ? ERR_INVALID : ERR_LIMIT, "%u headers, at most %u",
                       o->header_count, PROTO_HEADERS_MAX);
    }
    for (uint32_t i = 0; rc == 0 && i < o->header_count; i++) {
        const gpud_header *h = &o->headers[i];
        struct proto_header header = {.name = bytes_str(h->name),
                                      .text = bytes_of(h->text, h->text != NULL ? h->bytes : 0)};
        if (!utf8_valid(header.name)) {
            return err_set(e, ERR_INVALID, "header %u: its name is not UTF-8", i);
        }
        rc = proto_list_add(&schema_header, &header, headers, e);
    }
    return rc;
}

static int module_load(struct gpud_client *c, int lang, const void *source, size_t bytes,
                       const gpud_module_options *given, gpud_module *ret_module, struct err *e)
{
    gpud_module_options o = {0};
    if (given != NULL) {
        if (given->size < sizeof given->size || given->size > 4096) {
            return err_set(e, ERR_INVALID,
                           "gpud_module_options.size is %zu: set it to the struct's sizeof",
                           given->size);
        }
        memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
    }
    log_return(&o, (struct bytes){0});
    if (source == NULL || bytes == 0 || ret_module == NULL || lang < GPUD_LANG_DIALECT ||
        lang > GPUD_LANG_SPIRV) {
        return err_set(e, ERR_INVALID, "no source, no pointer for the handle, or no such language");
    }
    char room[PROTO_LABEL_MAX];
    struct msg_module_load msg = {
        .seq = 1,
        .ack = 1,
        .name = bytes_str(o.name),
        .lang = (uint64_t)lang,
        .source = bytes_of(source, bytes),
        .options = bytes_str(o.options),
        .signature = bytes_str(o.signature),
        .file = text_mended(file_end(o.file), room),
    };
    struct capbuf recipe;
    struct capbuf headers;
    struct message *m = NULL;
    capbuf_init(&recipe, PROTO_MESSAGE_MAX);
    capbuf_init(&headers, PROTO_MESSAGE_MAX);
    int rc = headers_add(c, &o, &headers, e);
    msg.headers = proto_list_of(&headers, o.header_count);
    rc = rc == 0 ? proto_encode(&schema_msg_module_load, &msg, &recipe, e) : rc;
    if (rc == 0) {
        rc = client_exchange(c, &schema_msg_module_load, &msg, CALL_SEQUENCED, &m, e);
    }
    capbuf_finish(&headers);
    if (rc != 0) {
        capbuf_finish(&recipe);
        return rc;
    }
    rc = module_answer(c, m, &o, &recipe, ret_module, e);
    message_unref(m);
    return rc;
}

int gpud_module_load(gpud_client *client, int lang, const void *source, size_t bytes,
                     const gpud_module_options *options, gpud_module *ret_module)
{
    struct err e = ERR_INIT;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        rc = module_load(client, lang, source, bytes, options, ret_module, &e);
        client_leave(client);
    }
    return error_report(rc, &e);
}

/* Writes "a, b, c", as many names as fit. */
static void kernel_names(const struct gpud_client *c, const struct module *mod, char *out,
                         size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < mod->kernel_count; i++) {
        const struct kernel *k = idmap_get(&c->kernels, mod->kernels[i]);
        const char *name = k != NULL ? k->desc.name : "";
        if (used + strlen(name) + sizeof ", …" >= size) {
            (void)snprintf(out + used, size - used, ", …");
            return;
        }
        used += (size_t)snprintf(out + used, size - used, "%s%s", i > 0 ? ", " : "", name);
    }
}

/* The error for a name that the module does not list: the daemon may know the reason. */
static int kernel_missing(struct gpud_client *c, const struct module *mod, const char *name,
                          struct err *e)
{
    struct msg_kernel_find msg = {.name = bytes_str(name), .module = mod->object.daemon};
    struct msg_kernel_found found;
    struct message *m = NULL;
    if (msg.name.size <= PROTO_NAME_MAX &&
        client_call(c, &schema_msg_kernel_find, &msg, CALL_SEQUENCED, &schema_msg_kernel_found,
                    &found, &m, e) == ERR_UNSUPPORTED) {
        return ERR_UNSUPPORTED;
    }
    message_unref(m);
    char names[512];
    kernel_names(c, mod, names, sizeof names);
    return err_set(e, ERR_NOT_FOUND, "the module has no kernel '%.64s'; it has %s", name,
                   names[0] != '\0' ? names : "none that can be launched");
}

static int module_kernel(struct gpud_client *c, gpud_module module, const char *name,
                         uint32_t index, gpud_kernel *ret_kernel, struct err *e)
{
    struct module *mod = NULL;
    int rc = module_get(c, module, &mod, e);
    if (rc != 0) {
        return rc;
    }
    for (uint32_t i = 0; i < mod->kernel_count; i++) {
        const struct kernel *k = idmap_get(&c->kernels, mod->kernels[i]);
        if (k != NULL && (name != NULL ? strcmp(k->desc.name, name) == 0 : i == index)) {
            ret_kernel->id = mod->kernels[i];
            return 0;
        }
    }
    return name != NULL ? kernel_missing(c, mod, name, e)
                        : err_set(e, ERR_NOT_FOUND, "the module has %u kernels", mod->kernel_count);
}

static int module_kernel_reported(gpud_client *client, gpud_module module, const char *name,
                                  uint32_t index, gpud_kernel *ret_kernel)
{
    struct err e = ERR_INIT;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        rc = ret_kernel != NULL ? module_kernel(client, module, name, index, ret_kernel, &e)
                                : err_set(&e, ERR_INVALID, "no pointer for the handle");
        client_leave(client);
    }
    return error_report(rc, &e);
}

int gpud_module_kernel(gpud_client *client, gpud_module module, const char *name,
                       gpud_kernel *ret_kernel)
{
    return module_kernel_reported(client, module, name != NULL ? name : "", 0, ret_kernel);
}

int gpud_module_kernel_at(gpud_client *client, gpud_module module, uint32_t index,
                          gpud_kernel *ret_kernel)
{
    return module_kernel_reported(client, module, NULL, index, ret_kernel);
}

int gpud_module_unload(gpud_client *client, gpud_module module)
{
    struct err e = ERR_INIT;
    struct module *mod = NULL;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        rc = module_get(client, module, &mod, &e);
        if (rc == 0) {
            module_unload(client, mod);
        }
        client_leave(client);
    }
    return error_report(rc, &e);
}
