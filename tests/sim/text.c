#include "tests/sim/text.h"

#include <check.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

/* ---- what text_read allocated ---------------------------------------------------------------- */

struct piece {
    struct piece *next;
    struct capbuf bytes;
};

static struct piece *pieces; /* newest first */

static struct capbuf *piece(void)
{
    struct piece *p = calloc(1, sizeof *p);
    ck_assert_ptr_nonnull(p);
    capbuf_init(&p->bytes, PROTO_MESSAGE_MAX);
    p->next = pieces;
    pieces = p;
    return &p->bytes;
}

void text_free(void)
{
    while (pieces != NULL) {
        struct piece *p = pieces;
        pieces = p->next;
        capbuf_finish(&p->bytes);
        free(p);
    }
}

/* ---- names ----------------------------------------------------------------------------------- */

const struct schema *text_schema(const char *name)
{
    static const struct schema *const all[] = {
#define X(NAME, name, value) &schema_msg_##name,
        PROTO_MESSAGES(X) PROTO_FRAMES(X)
#undef X
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(all[i]->name, name) == 0) {
            return all[i];
        }
    }
    return NULL;
}

static const struct schema_field *field_of(const struct schema *s, const char *name, size_t size)
{
    for (unsigned i = 0; i < s->count; i++) {
        if (strlen(s->fields[i].name) == size && memcmp(s->fields[i].name, name, size) == 0) {
            return &s->fields[i];
        }
    }
    ck_abort_msg("%s has no field %.*s", s->name, (int)size, name);
    return NULL;
}

/* ---- text to messages ------------------------------------------------------------------------ */

static void blanks(const char **at)
{
    *at += strspn(*at, " ");
}

static void expect(const char **at, char c)
{
    if (**at != c) {
        ck_abort_msg("'%c' is expected before '%.40s'", c, *at);
    }
    (*at)++;
}

static void quoted(const char **at, struct capbuf *out)
{
    expect(at, '"');
    while (**at != '"') {
        char c = *(*at)++;
        ck_assert_int_ne(c, '\0');
        if (c == '\\') {
            c = *(*at)++;
            c = c == 'n' ? '\n' : c;
        }
        ck_assert(capbuf_append(out, &c, 1));
    }
    expect(at, '"');
}

static void hexadecimal(const char **at, struct capbuf *out)
{
    expect(at, 'x');
    expect(at, '\'');
    while (**at != '\'') {
        unsigned byte = 0;
        ck_assert_int_eq(sscanf(*at, "%2x", &byte), 1);
        uint8_t value = (uint8_t)byte;
        ck_assert(capbuf_append(out, &value, 1));
        *at += 2;
    }
    expect(at, '\'');
}

struct bytes text_bytes(const char **at)
{
    struct capbuf *out = piece();
    if (**at == '"') {
        quoted(at, out);
        return capbuf_view(out);
    }
    hexadecimal(at, out);
    if (**at != '*') {
        return capbuf_view(out);
    }
    (*at)++;
    struct bytes once = capbuf_view(out);
    struct capbuf *all = piece();
    char *end = NULL;
    for (unsigned long n = strtoul(*at, &end, 10); n > 0; n--) {
        ck_assert(capbuf_append(all, once.data, once.size));
    }
    *at = end;
    return capbuf_view(all);
}

static void fields(const struct schema *s, const char **at, char last, void *msg);

static struct proto_list records(const struct schema *record, const char **at)
{
    struct err e = ERR_INIT;
    struct capbuf *out = piece();
    uint64_t count = 0;
    expect(at, '[');
    blanks(at);
    while (**at != ']') {
        void *value = capbuf_extend(piece(), record->size);
        ck_assert_ptr_nonnull(value);
        expect(at, '{');
        fields(record, at, '}', value);
        expect(at, '}');
        blanks(at);
        if (proto_list_add(record, value, out, &e) != 0) {
            ck_abort_msg("%s", e.text);
        }
        count++;
    }
    expect(at, ']');
    return proto_list_of(out, count);
}

static void value_of(const struct schema_field *field, const char **at, void *to)
{
    char *end = NULL;
    if (field->type == SCHEMA_S || field->type == SCHEMA_B) {
        *(struct bytes *)to = text_bytes(at);
    } else if (field->type == SCHEMA_L) {
        *(struct proto_list *)to = records(field->record, at);
    } else {
        *(uint64_t *)to =
            **at == '-' ? (uint64_t)strtoll(*at, &end, 0) : (uint64_t)strtoull(*at, &end, 0);
        if (end == *at) {
            ck_abort_msg("%s: '%.40s' is no number", field->name, *at);
        }
        *at = end;
    }
}

/* Up to `last`, which stays. */
static void fields(const struct schema *s, const char **at, char last, void *msg)
{
    memset(msg, 0, s->size);
    blanks(at);
    while (**at != last) {
        size_t size = strcspn(*at, "= ");
        const struct schema_field *field = field_of(s, *at, size);
        *at += size;
        expect(at, '=');
        value_of(field, at, (char *)msg + field->offset);
        blanks(at);
    }
}

void text_read(const struct schema *s, const char *text, void *ret_msg)
{
    fields(s, &text, '\0', ret_msg);
}

/* ---- messages to text ------------------------------------------------------------------------ */

static void print_text(FILE *out, struct bytes b)
{
    (void)fputc('"', out);
    for (size_t i = 0; i < b.size; i++) {
        if (b.data[i] == '\n') {
            (void)fputs("\\n", out);
        } else {
            (void)fprintf(out, b.data[i] == '"' || b.data[i] == '\\' ? "\\%c" : "%c", b.data[i]);
        }
    }
    (void)fputc('"', out);
}

static void print_bytes(FILE *out, struct bytes b)
{
    char text[HASH_TEXT_BYTES];
    if (b.size > TEXT_SHOWN_MAX) {
        (void)fprintf(out, "<%zu bytes %.16s>", b.size, hash_text(hash_of(b.data, b.size), text));
        return;
    }
    (void)fputs("x'", out);
    for (size_t i = 0; i < b.size; i++) {
        (void)fprintf(out, "%02x", b.data[i]);
    }
    (void)fputc('\'', out);
}

static void print_fields(FILE *out, const struct schema *s, const void *msg);

static void print_list(FILE *out, const struct schema *record, struct proto_list list)
{
    struct proto_iter it = proto_iter_of(list);
    void *value = calloc(1, record->size);
    ck_assert_ptr_nonnull(value);
    (void)fputc('[', out);
    for (bool first = true; proto_list_next(&it, record, value); first = false) {
        (void)fputs(first ? "{" : " {", out);
        print_fields(out, record, value);
        (void)fputc('}', out);
    }
    (void)fputc(']', out);
    free(value);
}

static void print_value(FILE *out, const struct schema_field *field, const void *from)
{
    switch (field->type) {
    case SCHEMA_S:
        print_text(out, *(const struct bytes *)from);
        break;
    case SCHEMA_B:
        print_bytes(out, *(const struct bytes *)from);
        break;
    case SCHEMA_L:
        print_list(out, field->record, *(const struct proto_list *)from);
        break;
    case SCHEMA_I:
        (void)fprintf(out, "%" PRId64, *(const int64_t *)from);
        break;
    case SCHEMA_U:
        (void)fprintf(out, "%" PRIu64, *(const uint64_t *)from);
        break;
    }
}

static bool is_empty(const struct schema_field *field, const void *from)
{
    return field->type == SCHEMA_L   ? ((const struct proto_list *)from)->count == 0
           : field->type == SCHEMA_S ? ((const struct bytes *)from)->size == 0
           : field->type == SCHEMA_B ? ((const struct bytes *)from)->size == 0
                                     : *(const uint64_t *)from == 0;
}

static void print_fields(FILE *out, const struct schema *s, const void *msg)
{
    bool first = s->kind == 0; /* a record has no name in front */
    for (unsigned i = 0; i < s->count; i++) {
        const void *from = (const char *)msg + s->fields[i].offset;
        if (!is_empty(&s->fields[i], from)) {
            (void)fprintf(out, first ? "%s=" : " %s=", s->fields[i].name);
            print_value(out, &s->fields[i], from);
            first = false;
        }
    }
}

void text_print(FILE *out, const struct schema *s, const void *msg)
{
    (void)fputs(s->name, out);
    print_fields(out, s, msg);
}
