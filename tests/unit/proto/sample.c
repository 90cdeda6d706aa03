#include "tests/unit/proto/sample.h"

#include <stdlib.h>
#include <string.h>

const struct schema *const sample_schemas[] = {
#define X(NAME, name, value) &schema_msg_##name,
    PROTO_MESSAGES(X) PROTO_FRAMES(X)
#undef X
        NULL};

#define X(NAME, name, value)                                                                       \
    _Static_assert(sizeof(struct msg_##name) <= sizeof(struct sample_value), #name);
PROTO_MESSAGES(X)
PROTO_FRAMES(X)
#undef X
#define X(NAME, name)                                                                              \
    _Static_assert(sizeof(struct proto_##name) <= sizeof(struct sample_value), #name);
PROTO_RECORDS(X)
FRAME_RECORDS(X)
#undef X

void sample_init(struct sample *s, uint64_t seed, bool small)
{
    *s = (struct sample){.state = seed * 0x9e3779b97f4a7c15u + 1, .small = small};
}

void sample_finish(struct sample *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free(s->owned[i]);
    }
    free(s->owned);
    *s = (struct sample){0};
}

/* splitmix64 */
uint64_t sample_next(struct sample *s)
{
    uint64_t z = s->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void *keep(struct sample *s, void *data)
{
    void **owned = realloc(s->owned, (s->count + 1) * sizeof *owned);
    if (owned == NULL || data == NULL) {
        abort();
    }
    s->owned = owned;
    s->owned[s->count++] = data;
    return data;
}

/* 0 … max, all magnitudes and the ends about as often as each other */
static uint64_t number(struct sample *s, uint64_t max)
{
    uint64_t pick = sample_next(s) % 8;
    if (pick == 0) {
        return max;
    }
    uint64_t value = sample_next(s) >> (sample_next(s) % 64);
    return max == UINT64_MAX ? value : value % (max + 1);
}

static struct bytes content(struct sample *s, uint64_t max, bool text)
{
    uint64_t most = s->small ? 12 : sample_next(s) % 16 == 0 ? 70000 : 300;
    uint64_t size = number(s, max < most ? max : most);
    uint8_t *data = keep(s, malloc(size + 1));
    for (uint64_t i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)sample_next(s);
        data[i] = text ? byte % 0x7f + 1 : byte;
        if (text && byte < 16 && i + 1 < size) { /* a character of two bytes */
            data[i++] = 0xc3;
            data[i] = (uint8_t)(0x80 + byte);
        }
    }
    return bytes_of(data, size);
}

static struct proto_list list(struct sample *s, const struct schema_field *f)
{
    uint64_t most = s->small ? 2 : 20;
    uint64_t count = sample_next(s) % ((f->max < most ? f->max : most) + 1);
    struct capbuf out;
    capbuf_init(&out, (size_t)64 << 20);
    for (uint64_t i = 0; i < count; i++) {
        struct sample_value value;
        sample_make(s, f->record, &value);
        if (proto_list_add(f->record, &value, &out, NULL) != 0) {
            abort();
        }
    }
    struct proto_list made = proto_list_of(&out, count);
    if (out.data != NULL) {
        (void)keep(s, out.data);
    }
    return made;
}

void sample_make(struct sample *s, const struct schema *schema, struct sample_value *ret_value)
{
    memset(ret_value, 0, sizeof *ret_value);
    for (size_t i = 0; i < schema->count; i++) {
        const struct schema_field *f = &schema->fields[i];
        void *at = (uint8_t *)ret_value + f->offset;
        if (sample_next(s) % 3 == 0) {
            continue;
        }
        switch (f->type) {
        case SCHEMA_U:
            *(uint64_t *)at = number(s, f->max);
            break;
        case SCHEMA_I:
            *(int64_t *)at = (int64_t)(number(s, UINT64_MAX));
            break;
        case SCHEMA_S:
            *(struct bytes *)at = content(s, f->max, true);
            break;
        case SCHEMA_B:
            *(struct bytes *)at = content(s, f->max, false);
            break;
        case SCHEMA_L:
            *(struct proto_list *)at = list(s, f);
            break;
        }
    }
}

static bool list_equal(const struct schema *record, struct proto_list a, struct proto_list b)
{
    struct proto_iter ia = proto_iter_of(a);
    struct proto_iter ib = proto_iter_of(b);
    struct sample_value va;
    struct sample_value vb;
    for (uint64_t i = 0; i < a.count; i++) {
        memset(&va, 0, sizeof va);
        memset(&vb, 0, sizeof vb);
        if (!proto_list_next(&ia, record, &va) || !proto_list_next(&ib, record, &vb) ||
            !sample_equal(record, &va, &vb)) {
            return false;
        }
    }
    return a.count == b.count && !proto_list_next(&ia, record, &va) &&
           !proto_list_next(&ib, record, &vb);
}

bool sample_equal(const struct schema *schema, const struct sample_value *a,
                  const struct sample_value *b)
{
    for (size_t i = 0; i < schema->count; i++) {
        const struct schema_field *f = &schema->fields[i];
        const void *pa = (const uint8_t *)a + f->offset;
        const void *pb = (const uint8_t *)b + f->offset;
        bool same = false;
        switch (f->type) {
        case SCHEMA_U:
        case SCHEMA_I:
            same = memcmp(pa, pb, sizeof(uint64_t)) == 0;
            break;
        case SCHEMA_S:
        case SCHEMA_B:
            same = bytes_equal(*(const struct bytes *)pa, *(const struct bytes *)pb);
            break;
        case SCHEMA_L:
            same = list_equal(f->record, *(const struct proto_list *)pa,
                              *(const struct proto_list *)pb);
            break;
        }
        if (!same) {
            return false;
        }
    }
    return true;
}

static const char *check_again(const struct schema *schema, const struct sample_value *first,
                               struct capbuf *one, struct capbuf *two)
{
    struct sample_value second;
    memset(&second, 0, sizeof second);
    if (proto_encode(schema, first, one, NULL) != 0) {
        return "what was decoded cannot be encoded";
    }
    if (proto_decode(schema, capbuf_view(one), &second, NULL) != 0) {
        return "what was encoded cannot be decoded";
    }
    if (!sample_equal(schema, first, &second)) {
        return "decoded again it is another message";
    }
    if (proto_encode(schema, &second, two, NULL) != 0 ||
        !bytes_equal(capbuf_view(one), capbuf_view(two))) {
        return "encoded again it has other bytes";
    }
    return NULL;
}

const char *sample_check(const struct schema *schema, struct bytes message, bool *ret_accepted)
{
    struct sample_value first;
    memset(&first, 0, sizeof first);
    struct err e = ERR_INIT;
    int rc = proto_decode(schema, message, &first, &e);
    if (ret_accepted != NULL) {
        *ret_accepted = rc == 0;
    }
    if (rc != 0) {
        bool named = strncmp(e.text, schema->name, strlen(schema->name)) == 0;
        return rc == ERR_PROTOCOL && named ? NULL : "refused without its name or with another code";
    }
    struct capbuf one;
    struct capbuf two;
    /* an omitted field between others takes 2 bytes at most */
    capbuf_init(&one, 2 * message.size + 128);
    capbuf_init(&two, 2 * message.size + 128);
    const char *wrong = check_again(schema, &first, &one, &two);
    capbuf_finish(&one);
    capbuf_finish(&two);
    return wrong;
}
