#include <stdlib.h>

#include "client/src/base/enter.h"
#include "client/src/base/error.h"
#include "client/src/base/text.h"
#include "client/src/objects/handles.h"
#include "client/src/objects/post.h"
#include "client/src/session/call.h"
#include "client/src/session/wait.h"
#include "client/src/wire/shm.h"
#include "common/clock.h"
#include "common/shape.h"

/* Makes the public handle for a buffer of the daemon. On failure it frees the daemon's buffer. */
static int buffer_add(struct gpud_client *c, const struct msg_buffer *reply,
                      gpud_buffer *ret_buffer, struct err *e)
{
    struct buffer *buffer = calloc(1, sizeof *buffer);
    uint64_t id = 0;
    if (buffer != NULL) {
        buffer->daemon = reply->handle;
        buffer->shape = (gpud_shape){
            .dtype = (uint32_t)reply->dtype,
            .ndim = (uint32_t)reply->ndim,
            .dim = {reply->d0, reply->d1, reply->d2, reply->d3},
        };
        id = idmap_add(&c->buffers, buffer);
    }
    if (id == 0) {
        uint64_t seq = 0;
        struct msg_buffer_free msg = {.handle = reply->handle};
        free(buffer);
        (void)client_post(c, &schema_msg_buffer_free, &msg, &seq, NULL);
        return err_set(e, ERR_NOMEM, "no memory for a buffer's handle");
    }
    buffer->id = id;
    ret_buffer->id = id;
    buffer_check_early(c, buffer);
    return 0;
}

/* msg: complete but for the shape. */
static int create(struct gpud_client *c, struct msg_buffer_create msg, gpud_shape shape,
                  gpud_buffer *ret_buffer, struct err *e)
{
    msg.dtype = shape.dtype;
    msg.ndim = shape.ndim;
    msg.d0 = shape.dim[0];
    msg.d1 = shape.dim[1];
    msg.d2 = shape.dim[2];
    msg.d3 = shape.dim[3];
    struct shape checked;
    struct msg_buffer reply;
    struct message *m = NULL;
    if (shape.dtype > INT8_MAX || shape.ndim > GPUD_MAX_DIMS) {
        return err_set(e, ERR_ARG_SHAPE, "type %u, %u dimensions", shape.dtype, shape.ndim);
    }
    int rc = shape_make((int)shape.dtype, shape.ndim, shape.dim, &checked, e);
    if (rc != 0) {
        return rc;
    }
    buffer_coming(c);
    rc = client_call(c, &schema_msg_buffer_create, &msg, CALL_SEQUENCED, &schema_msg_buffer, &reply,
                     &m, e);
    if (rc == 0) {
        rc = buffer_add(c, &reply, ret_buffer, e);
        message_unref(m);
    }
    buffer_came(c);
    return rc;
}

static int create_reported(gpud_client *client, uint64_t device, gpud_shape shape, uint32_t flags,
                           const char *label, gpud_buffer *ret_buffer)
{
    char room[PROTO_LABEL_MAX];
    const struct msg_buffer_create msg = {
        .flags = flags, .label = text_mended(bytes_str(label), room), .device = device};
    struct err e = ERR_INIT;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        rc = ret_buffer != NULL ? create(client, msg, shape, ret_buffer, &e)
                                : err_set(&e, ERR_INVALID, "no pointer for the buffer's handle");
        if (rc != 0) {
            (void)err_wrap(&e, "create buffer%s%s", label != NULL ? " " : "",
                           label != NULL ? label : "");
        }
        client_leave(client);
    }
    return error_report(rc, &e);
}

int gpud_buffer_create(gpud_client *client, gpud_shape shape, uint32_t flags, const char *label,
                       gpud_buffer *ret_buffer)
{
    return create_reported(client, 0, shape, flags, label, ret_buffer);
}

int gpud_buffer_create_on(gpud_client *client, uint64_t device, gpud_shape shape, uint32_t flags,
                          const char *label, gpud_buffer *ret_buffer)
{
    if (device == GPUD_NO_DEVICE) {
        struct err e = ERR_INIT;
        return error_report(err_set(&e, ERR_RANGE, "GPUD_NO_DEVICE is no device's number"), &e);
    }
    return create_reported(client, device + 1, shape, flags, label, ret_buffer);
}

int gpud_module_variable(gpud_client *client, gpud_module module, const char *name,
                         gpud_shape shape, int kernels, uint64_t device, gpud_buffer *ret_buffer)
{
    struct err e = ERR_INIT;
    struct module *m = NULL;
    int rc = client_enter(client, &e);
    if (rc != 0) {
        return error_report(rc, &e);
    }
    bool sensible = name != NULL && ret_buffer != NULL;
    rc = !sensible ? err_set(&e, ERR_INVALID, "no name, or no pointer for the buffer's handle")
         : kernels != GPUD_IN && kernels != GPUD_INOUT
             ? err_set(&e, ERR_INVALID, "kernels use it as GPUD_IN or GPUD_INOUT, not %d", kernels)
             : module_get(client, module, &m, &e);
    rc = rc == 0 ? object_check(&m->object, &e) : rc;
    if (rc == 0) {
        const struct msg_buffer_create msg = {.label = bytes_str(name),
                                              .device = device,
                                              .module = m->object.daemon,
                                              .variable = bytes_str(name),
                                              .kernels = (uint64_t)kernels};
        rc = create(client, msg, shape, ret_buffer, &e);
    }
    if (rc != 0) {
        (void)err_wrap(&e, "variable '%.64s'", name != NULL ? name : "");
    }
    client_leave(client);
    return error_report(rc, &e);
}

static int free_buffer(struct gpud_client *c, gpud_buffer buffer, struct err *e)
{
    struct buffer *b = NULL;
    uint64_t seq = 0;
    int rc = buffer_get(c, buffer, &b, e);
    if (rc == 0) {
        struct msg_buffer_free msg = {.handle = b->daemon};
        rc = client_post(c, &schema_msg_buffer_free, &msg, &seq, e);
    }
    if (rc == 0) {
        (void)idmap_remove(&c->buffers, buffer.id);
        buffer_gone(c, b);
        free(b);
    }
    return rc;
}

int gpud_buffer_free(gpud_client *client, gpud_buffer buffer)
{
    struct err e = ERR_INIT;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        client_make_room(client);
        rc = free_buffer(client, buffer, &e);
        client_leave(client);
    }
    return error_report(rc, &e);
}

static void desc_fill(const struct msg_buffer *reply, gpud_buffer_desc *desc)
{
    *desc = (gpud_buffer_desc){
        .shape = {.dtype = (uint32_t)reply->dtype,
                  .ndim = (uint32_t)reply->ndim,
                  .dim = {reply->d0, reply->d1, reply->d2, reply->d3}},
        .flags = (uint32_t)reply->flags,
        .state = (uint32_t)reply->state,
        .device = reply->device > 0 ? reply->device - 1 : 0,
        .generation = reply->generation,
    };
    text_copy(desc->label, sizeof desc->label, reply->label);
    text_copy(desc->name, sizeof desc->name, reply->name);
}

static int info(struct gpud_client *c, gpud_buffer buffer, gpud_buffer_desc *ret_desc,
                struct err *e)
{
    struct buffer *b = NULL;
    struct msg_buffer reply;
    struct message *m = NULL;
    int rc = buffer_get(c, buffer, &b, e);
    if (rc == 0) {
        struct msg_buffer_info msg = {.handle = b->daemon};
        rc = client_call(c, &schema_msg_buffer_info, &msg, CALL_SEQUENCED, &schema_msg_buffer,
                         &reply, &m, e);
        rc = rc != 0 ? buffer_explain(c, buffer, e) : 0;
    }
    if (rc == 0) {
        gpud_buffer_desc desc;
        desc_fill(&reply, &desc);
        message_unref(m);
        rc = desc_return(ret_desc, &desc, sizeof desc, e);
    }
    return rc;
}

int gpud_buffer_info(gpud_client *client, gpud_buffer buffer, gpud_buffer_desc *ret_desc)
{
    struct err e = ERR_INIT;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        rc = info(client, buffer, ret_desc, &e);
        client_leave(client);
    }
    return error_report(rc, &e);
}

int gpud_buffer_seal(gpud_client *client, gpud_buffer buffer)
{
    struct err e = ERR_INIT;
    struct buffer *b = NULL;
    int rc = client_enter(client, &e);
    if (rc != 0) {
        return error_report(rc, &e);
    }
    rc = buffer_get(client, buffer, &b, &e);
    if (rc == 0) {
        struct msg_buffer_seal msg = {.handle = b->daemon};
        rc = client_call_done(client, &schema_msg_buffer_seal, &msg, CALL_SEQUENCED,
                              &schema_msg_buffer, &e);
        rc = rc != 0 ? buffer_explain(client, buffer, &e) : 0;
    }
    client_leave(client);
    return error_report(rc, &e);
}

#define CLAIM_NS (10 * NS_PER_S)

/* Copies of the data that fetching the descriptor needs, so that it runs without the lock. */
struct export
{
    gpud_export_desc desc;
    uint8_t nonce[PROTO_NONCE_BYTES];
    char path[PROTO_SOCKET_MAX + 1];
};

static int export_ask(struct gpud_client *c, gpud_buffer buffer, struct export *ret_export,
                      struct err *e)
{
    struct buffer *b = NULL;
    struct msg_exported reply;
    struct message *m = NULL;
    int rc = buffer_get(c, buffer, &b, e);
    if (rc == 0) {
        struct msg_buffer_export msg = {.handle = b->daemon};
        rc = client_call(c, &schema_msg_buffer_export, &msg, CALL_SEQUENCED, &schema_msg_exported,
                         &reply, &m, e);
        rc = rc != 0 ? buffer_explain(c, buffer, e) : 0;
    }
    if (rc != 0) {
        return rc;
    }
    if (reply.nonce.size != PROTO_NONCE_BYTES) {
        rc = err_set(e, ERR_PROTOCOL, "a nonce of %zu bytes", reply.nonce.size);
    } else {
        memcpy(ret_export->nonce, reply.nonce.data, PROTO_NONCE_BYTES);
        memcpy(ret_export->path, c->session.shm, sizeof ret_export->path);
        ret_export->desc = (gpud_export_desc){.fd = -1, .bytes = reply.bytes};
        text_copy(ret_export->desc.device, sizeof ret_export->desc.device, reply.device);
    }
    message_unref(m);
    return rc;
}

int gpud_buffer_export(gpud_client *client, gpud_buffer buffer, gpud_export_desc *ret_export)
{
    struct err e = ERR_INIT;
    struct export x;
    struct frame_fds fds = {.count = 0};
    uint64_t deadline_ns = 0;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        deadline_ns = client_deadline(client);
        rc = export_ask(client, buffer, &x, &e);
        client_leave(client);
    }
    if (rc == 0) {
        rc = shm_claim(x.path, bytes_of(x.nonce, sizeof x.nonce), NULL, 1,
                       client_sooner(deadline_ns, CLAIM_NS), &fds, &e);
    }
    if (rc == 0) {
        x.desc.fd = fds.fd[0];
        rc = desc_return(ret_export, &x.desc, sizeof x.desc, &e);
        if (rc != 0) {
            frame_fds_close(&fds);
        }
    }
    return error_report(rc, &e);
}

/* A daemon that knows no grants would leave them out, and open a buffer of the client's own tenant.
 */
static int check_grants(const struct gpud_client *c, const char *tenants, struct err *e)
{
    if (c->session.minor < PROTO_MINOR_GRANTS) {
        return err_set(e, ERR_UNSUPPORTED, "this daemon knows no buffers for other tenants");
    }
    return strlen(tenants) <= PROTO_GRANTS_MAX
               ? 0
               : err_set(e, ERR_INVALID, "names of tenants of over %u bytes", PROTO_GRANTS_MAX);
}

/* tenants: to which it is granted; NULL: to none. */
static int publish(gpud_client *client, gpud_buffer buffer, const char *name, int rights,
                   uint64_t linger_ns, const char *tenants)
{
    struct err e = ERR_INIT;
    struct buffer *b = NULL;
    int rc = client_enter(client, &e);
    if (rc != 0) {
        return error_report(rc, &e);
    }
    rc = buffer_get(client, buffer, &b, &e);
    rc = rc == 0 && tenants != NULL ? check_grants(client, tenants, &e) : rc;
    if (rc == 0 && name == NULL) {
        rc =
            err_set(&e, ERR_INVALID, "%s: a name is needed", tenants != NULL ? "grant" : "publish");
    }
    if (rc == 0 && rights != GPUD_IN && rights != GPUD_INOUT) {
        rc = err_set(&e, ERR_INVALID, "publish: rights are GPUD_IN or GPUD_INOUT");
    }
    if (rc == 0) {
        struct msg_buffer_publish msg = {
            .handle = b->daemon,
            .name = bytes_str(name),
            .rights = (uint64_t)rights,
            .linger_ns = linger_ns,
            .grants = bytes_str(tenants != NULL ? tenants : ""),
        };
        rc = client_call_done(client, &schema_msg_buffer_publish, &msg, CALL_SEQUENCED,
                              &schema_msg_buffer, &e);
        rc = rc != 0 ? buffer_explain(client, buffer, &e) : 0;
    }
    client_leave(client);
    return error_report(rc, &e);
}

int gpud_buffer_publish(gpud_client *client, gpud_buffer buffer, const char *name, int rights,
                        uint64_t linger_ns)
{
    return publish(client, buffer, name, rights, linger_ns, NULL);
}

int gpud_buffer_grant(gpud_client *client, gpud_buffer buffer, const char *name,
                      const char *tenants, uint64_t linger_ns)
{
    return publish(client, buffer, name, GPUD_IN, linger_ns, tenants != NULL ? tenants : "");
}

/* owner: the tenant that granted it; "": the client's own. */
static int open_named(struct gpud_client *c, const char *owner, const char *name,
                      gpud_buffer *ret_buffer, struct err *e)
{
    struct msg_buffer_open msg = {.name = bytes_str(name), .owner = bytes_str(owner)};
    struct msg_buffer reply;
    struct message *m = NULL;
    if (name == NULL || ret_buffer == NULL) {
        return err_set(e, ERR_INVALID, "open buffer: no name, or no pointer for the handle");
    }
    buffer_coming(c);
    int rc = client_call(c, &schema_msg_buffer_open, &msg, CALL_SEQUENCED, &schema_msg_buffer,
                         &reply, &m, e);
    if (rc == 0) {
        rc = buffer_add(c, &reply, ret_buffer, e);
        message_unref(m);
    }
    buffer_came(c);
    return rc;
}

int gpud_buffer_open(gpud_client *client, const char *name, gpud_buffer *ret_buffer)
{
    struct err e = ERR_INIT;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        rc = open_named(client, "", name, ret_buffer, &e);
        client_leave(client);
    }
    return error_report(rc, &e);
}

int gpud_buffer_open_granted(gpud_client *client, const char *tenant, const char *name,
                             gpud_buffer *ret_buffer)
{
    struct err e = ERR_INIT;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        bool named = tenant != NULL && tenant[0] != '\0';
        rc = named ? check_grants(client, tenant, &e)
                   : err_set(&e, ERR_INVALID,
                             "open buffer: the name of the tenant that granted it is needed");
        rc = rc == 0 ? open_named(client, tenant, name, ret_buffer, &e) : rc;
        client_leave(client);
    }
    return error_report(rc, &e);
}
