/* Buffers that the tenants of two sockets grant each other: copies are for the tenant that was
 * named, and have the content of what was granted. The label of a buffer says which one it, or its
 * copy, is. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/front/sim.h"

#define NAMES 2u

static const char *tenant_name(unsigned socket)
{
    return socket % 2 == 0 ? "twin0" : "twin1";
}

/* The tenant of the other socket. */
static const char *other_of(const struct sim_client *c)
{
    return tenant_name(c->tenant - SIM_TWINS + 1);
}

void grants_label(const struct sim *s, char out[SIM_LABEL])
{
    (void)snprintf(out, SIM_LABEL, s->p.sockets != 0 ? "b%u" : "", s->buffers - 1);
}

static struct sim_buffer *labelled(struct sim *s, struct bytes label)
{
    char text[SIM_LABEL];
    char *end = NULL;
    if (!bytes_to_str(label, text, sizeof text) || text[0] != 'b') {
        return NULL;
    }
    unsigned long number = strtoul(text + 1, &end, 10);
    return *end == '\0' && number < s->buffers ? s->buffer[number] : NULL;
}

static void send_grant(struct sim *s, struct sim_client *c, struct sim_buffer *b, const char *name,
                       struct chance *r)
{
    struct msg_buffer_publish m = {.seq = ask_number(c),
                                   .handle = b->handle,
                                   .name = bytes_str(name),
                                   .rights = ACCESS_IN,
                                   .linger_ns = chance_below(r, 30) * NS_PER_S,
                                   .grants = bytes_str(other_of(c))};
    b->publishes += b->maker == c; /* others are refused */
    b->granted = true;
    client_send(s, c, &schema_msg_buffer_publish, &m)->buffer = b;
}

/* Grants a sealed buffer, else seals one, else makes one. */
static void ask_grant(struct sim *s, struct sim_client *c, const char *name, struct chance *r)
{
    struct sim_buffer *whole = NULL;
    for (unsigned i = 0; i < c->buffers; i++) {
        struct sim_buffer *b = c->buffer[i];
        bool own = b->maker == c && b->copy_of == NULL;
        if (own && b->sealed) {
            send_grant(s, c, b, name, r);
            return;
        }
        whole = own && !b->sealing && (b->zero || whole == NULL) ? b : whole;
    }
    if (whole == NULL) {
        ask_new(s, c, 1 + chance_below(r, SIM_CONTENT / 4), true, 0);
        return;
    }
    struct msg_buffer_seal m = {.seq = ask_number(c), .handle = whole->handle};
    whole->sealing = true;
    client_send(s, c, &schema_msg_buffer_seal, &m)->buffer = whole;
}

void ask_grants(struct sim *s, struct sim_client *c, struct chance *r)
{
    char name[32];
    (void)snprintf(name, sizeof name, "grant%u", (unsigned)chance_below(r, NAMES));
    if (client_twin(c) && chance_percent(r, 65)) {
        ask_grant(s, c, name, r);
        return;
    }
    bool other = client_twin(c) && chance_percent(r, 85);
    const char *owner = other ? other_of(c) : tenant_name((unsigned)chance_below(r, 2));
    struct msg_buffer_open m = {
        .seq = ask_number(c), .name = bytes_str(name), .owner = bytes_str(owner)};
    (void)client_send(s, c, &schema_msg_buffer_open, &m);
}

struct sim_buffer *grants_opened(struct sim *s, const struct sim_request *q,
                                 const struct msg_buffer *m)
{
    struct sim_client *c = q->client;
    struct sim_buffer *source = labelled(s, m->label);
    if (source == NULL || !source->granted || !client_twin(c) || !client_twin(source->maker) ||
        source->maker->tenant == c->tenant) {
        sim_fail(s, "grant: client %u opens buffer %.*s, which is not granted to it", c->index,
                 (int)m->label.size, (const char *)m->label.data);
    }
    if (model_find(s, m->handle) != NULL) {
        sim_fail(s, "grant: the copy %#" PRIx64 " of client %u is a buffer that was there",
                 m->handle, c->index);
    }
    struct sim_buffer *b = model_buffer(s);
    b->copy_of = source;
    b->bytes = source->bytes;
    b->zero = source->zero;
    b->maker = c;
    b->sealed = true;
    b->sealed_era = b->era = s->era;
    b->lied = source->lied;
    model_name(s, b, m->handle);
    buffer_find_worker(s, b);
    sim_log(s, "client %u: request %" PRIu64 " is buffer %#" PRIx64 ", a copy of %#" PRIx64,
            c->index, q->seq, m->handle, source->handle);
    return b;
}
