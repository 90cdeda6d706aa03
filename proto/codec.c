#include "proto/codec.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/utf8.h"
#include "proto/pack.h"

#define SMALL           0x80 /* an unsigned integer below this is encoded as that one byte */
#define LIST_SHORT      0x90 /* the first byte of a list of n elements is LIST_SHORT + n … */
#define LIST_SHORT_END  0xa0 /* … for n up to 15 */
#define PATH_MAX_LEVELS 8    /* schemas nest less deeply */

/* A problem with a field; the first values are those of enum pack_problem. */
enum problem {
    PROBLEM_NONE = PACK_OK,
    PROBLEM_CUT = PACK_CUT,
    PROBLEM_TYPE = PACK_TYPE,
    PROBLEM_RANGE = PACK_RANGE,
    PROBLEM_DEPTH = PACK_DEPTH,
    PROBLEM_VALUE,
    PROBLEM_SIZE,
    PROBLEM_COUNT,
    PROBLEM_NUL,
    PROBLEM_UTF8,
};

struct level {
    const struct schema_field *field; /* NULL: after the schema's last field */
    uint64_t index;                   /* of the record in the field's list */
    bool indexed;
};

/* The place and the reason of a decoding error; the path's innermost level is first. */
struct fault {
    enum problem problem;
    uint64_t value;
    size_t levels;
    struct level path[PATH_MAX_LEVELS];
};

struct decoder {
    struct cursor in;
    bool utf8;                   /* texts must be UTF-8 */
    const struct schema *record; /* the first record of the first list of these goes to `first` */
    uint8_t *first;              /* NULL: not wanted, or already written */
    struct fault fault;
};

static void decoder_init(struct decoder *d, struct bytes in)
{
    d->in = (struct cursor){.at = in.data, .end = in.data + in.size};
    d->utf8 = false;
    d->record = NULL;
    d->first = NULL;
}

static __attribute__((cold, noinline)) bool fail(struct decoder *d, enum problem problem,
                                                 uint64_t value)
{
    d->fault.problem = problem;
    d->fault.value = value;
    d->fault.levels = 0;
    return false;
}

static __attribute__((cold, noinline)) bool fail_in(struct decoder *d, struct level level)
{
    if (d->fault.levels < PATH_MAX_LEVELS) {
        d->fault.path[d->fault.levels++] = level;
    }
    return false;
}

/* Texts of requests are shown to other users, so they must be UTF-8. The daemon's own messages may
 * quote a kernel's source, which is any bytes. */
static bool is_request(const struct schema *s)
{
    return s->kind > 0 && s->kind < PROTO_REQUEST_KINDS;
}

static bool record_read(struct decoder *d, const struct schema *s, uint8_t *ret_value);

static bool uint_read(struct decoder *d, const struct schema_field *f, uint64_t *ret_value)
{
    uint64_t value = 0;
    enum pack_problem problem = pack_read_uint(&d->in, &value);
    if (problem != PACK_OK) {
        return fail(d, (enum problem)problem, 0);
    }
    if (value > f->max) {
        return fail(d, PROBLEM_VALUE, value);
    }
    *ret_value = value;
    return true;
}

static bool int_read(struct decoder *d, int64_t *ret_value)
{
    enum pack_problem problem = pack_read_int(&d->in, ret_value);
    return problem == PACK_OK || fail(d, (enum problem)problem, 0);
}

static bool bytes_read(struct decoder *d, const struct schema_field *f, struct bytes *ret_value)
{
    struct bytes value = {0};
    enum pack_problem problem =
        f->type == SCHEMA_S ? pack_read_text(&d->in, &value) : pack_read_bin(&d->in, &value);
    if (problem != PACK_OK) {
        return fail(d, (enum problem)problem, 0);
    }
    if (value.size > f->max) {
        return fail(d, PROBLEM_SIZE, value.size);
    }
    if (f->type == SCHEMA_S && value.size > 0 && memchr(value.data, 0, value.size) != NULL) {
        return fail(d, PROBLEM_NUL, 0);
    }
    if (f->type == SCHEMA_S && d->utf8 && !utf8_valid(value)) {
        return fail(d, PROBLEM_UTF8, 0);
    }
    *ret_value = value;
    return true;
}

/* The destination of a list's record; NULL: the record is only checked. */
static uint8_t *place_of(struct decoder *d, const struct schema *record)
{
    uint8_t *place = d->first;
    if (place == NULL || d->record != record) {
        return NULL;
    }
    d->first = NULL;
    return place;
}

static bool list_read(struct decoder *d, const struct schema_field *f, struct proto_list *ret_list)
{
    uint64_t count = 0;
    enum pack_problem problem = pack_read_array(&d->in, &count);
    if (problem != PACK_OK) {
        return fail(d, (enum problem)problem, 0);
    }
    if (count > f->max) {
        return fail(d, PROBLEM_COUNT, count);
    }
    const uint8_t *start = d->in.at;
    for (uint64_t i = 0; i < count; i++) {
        if (!record_read(d, f->record, place_of(d, f->record))) {
            return fail_in(d, (struct level){.field = f, .index = i, .indexed = true});
        }
    }
    ret_list->raw = bytes_of(start, (size_t)(d->in.at - start));
    ret_list->count = count;
    return true;
}

/* Reads one field. value: NULL if the field is only checked. */
static bool field_read(struct decoder *d, const struct schema_field *f, uint8_t *value)
{
    union {
        uint64_t u;
        int64_t i;
        struct bytes b;
        struct proto_list l;
    } own;
    void *at = value != NULL ? (void *)(value + f->offset) : (void *)&own;
    if (pack_read_nil(&d->in)) {
        return true;
    }
    switch (f->type) {
    case SCHEMA_U:
        return uint_read(d, f, at) || fail_in(d, (struct level){.field = f});
    case SCHEMA_I:
        return int_read(d, at) || fail_in(d, (struct level){.field = f});
    case SCHEMA_S:
    case SCHEMA_B:
        return bytes_read(d, f, at) || fail_in(d, (struct level){.field = f});
    case SCHEMA_L:
        /* a fault inside a record already has this level in its path */
        return list_read(d, f, at) ||
               (d->fault.levels == 0 ? fail_in(d, (struct level){.field = f}) : false);
    }
    return false;
}

/* Is a number below SMALL a value of the field? Signed and unsigned fields encode it alike. */
static bool small_fits(const struct schema_field *f, uint64_t small)
{
    return f->type <= SCHEMA_I && small <= f->max;
}

/* Reads `count` fields; the caller has zeroed `value`. */
static bool fields_read(struct decoder *d, const struct schema *s, uint64_t count, uint8_t *value)
{
    uint64_t known = count < s->count ? count : s->count;
    for (uint64_t i = 0; i < known; i++) {
        const struct schema_field *f = &s->fields[i];
        if (d->in.at < d->in.end && *d->in.at < SMALL && small_fits(f, *d->in.at)) { /* usual */
            uint64_t small = *d->in.at++;
            if (value != NULL) {
                memcpy(value + f->offset, &small, sizeof small);
            }
            continue;
        }
        if (!field_read(d, f, value)) {
            return false;
        }
    }
    if (count > known) {
        enum pack_problem problem = pack_skip(&d->in, count - known);
        if (problem != PACK_OK) {
            (void)fail(d, (enum problem)problem, 0);
            return fail_in(d, (struct level){0});
        }
    }
    return true;
}

static bool record_read(struct decoder *d, const struct schema *s, uint8_t *ret_value)
{
    uint64_t count = 0;
    enum pack_problem problem = pack_read_array(&d->in, &count);
    if (problem != PACK_OK) {
        return fail(d, (enum problem)problem, 0);
    }
    return fields_read(d, s, count, ret_value);
}

/* ---- texts of errors ---------------------------------------------------------------------- */

static const char *const type_names[] = {
    [SCHEMA_U] = "unsigned integer",
    [SCHEMA_I] = "integer",
    [SCHEMA_S] = "text",
    [SCHEMA_B] = "bytes",
    [SCHEMA_L] = "list",
};

static void put_path(const struct fault *fault, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = fault->levels; i > 0 && used < size; i--) {
        const struct level *level = &fault->path[i - 1];
        const char *name = level->field != NULL ? level->field->name : "surplus field";
        const char *dot = used > 0 ? "." : "";
        int n = level->indexed ? snprintf(out + used, size - used, "%s%s[%" PRIu64 "]", dot, name,
                                          level->index)
                               : snprintf(out + used, size - used, "%s%s", dot, name);
        used += n > 0 ? (size_t)n : 0;
    }
}

static void put_limit(const struct decoder *d, const char *unit, uint64_t max, char *out,
                      size_t size)
{
    (void)snprintf(out, size, "%" PRIu64 "%s, at most %" PRIu64, d->fault.value, unit, max);
}

/* The expected type, for an error's text. */
static const char *wanted_type(const struct level *level)
{
    if (level->field == NULL) {
        return "a msgpack value";
    }
    return level->indexed ? "record" : type_names[level->field->type];
}

static void put_problem(const struct decoder *d, char *out, size_t size)
{
    const struct level *level = &d->fault.path[0];
    const struct schema_field *f = level->field;
    switch (d->fault.problem) {
    case PROBLEM_CUT:
        (void)snprintf(out, size, "message ends early");
        break;
    case PROBLEM_TYPE:
        (void)snprintf(out, size, "value starts with 0x%02x, %s expected", *d->in.at,
                       wanted_type(level));
        break;
    case PROBLEM_RANGE:
        (void)snprintf(out, size, "value does not fit: %s expected",
                       f->type == SCHEMA_I ? "at most 2^63 - 1" : "at least 0");
        break;
    case PROBLEM_DEPTH:
        (void)snprintf(out, size, "nested deeper than %d", PACK_DEPTH_MAX);
        break;
    case PROBLEM_VALUE:
        put_limit(d, "", f->max, out, size);
        break;
    case PROBLEM_SIZE:
        put_limit(d, " bytes", f->max, out, size);
        break;
    case PROBLEM_COUNT:
        put_limit(d, " records", f->max, out, size);
        break;
    case PROBLEM_NUL:
        (void)snprintf(out, size, "text with a NUL byte");
        break;
    case PROBLEM_UTF8:
        (void)snprintf(out, size, "text is not UTF-8");
        break;
    case PROBLEM_NONE:
        out[0] = '\0';
        break;
    }
}

static __attribute__((cold, noinline)) int decode_error(const struct schema *s,
                                                        const struct decoder *d, struct err *e)
{
    char path[128];
    char problem[96];
    put_path(&d->fault, path, sizeof path);
    put_problem(d, problem, sizeof problem);
    return err_set(e, ERR_PROTOCOL, "%s: %s: %s", s->name, path, problem);
}

/* ---- decoding ----------------------------------------------------------------------------- */

/* Reads the header of a message: its kind and the number of its fields. */
static bool head_read(struct cursor *c, uint64_t *ret_kind, uint64_t *ret_fields)
{
    uint64_t count = 0;
    if (pack_read_array(c, &count) != PACK_OK || count == 0 ||
        pack_read_uint(c, ret_kind) != PACK_OK) {
        return false;
    }
    *ret_fields = count - 1;
    return true;
}

unsigned proto_kind(struct bytes message)
{
    if (message.size == 0) {
        return MSG_KIND_NONE;
    }
    if (message.size > 1 && message.data[0] > LIST_SHORT && message.data[0] < LIST_SHORT_END &&
        message.data[1] < SMALL) { /* the usual case */
        return message.data[1];
    }
    struct cursor c = {.at = message.data, .end = message.data + message.size};
    uint64_t kind = 0;
    uint64_t fields = 0;
    return head_read(&c, &kind, &fields) && kind <= UINT16_MAX ? (unsigned)kind : MSG_KIND_NONE;
}

bool proto_well_formed(struct bytes message)
{
    if (message.size == 0) {
        return false;
    }
    struct cursor c = {.at = message.data, .end = message.data + message.size};
    uint64_t kind = 0;
    uint64_t fields = 0;
    return head_read(&c, &kind, &fields) && pack_skip(&c, fields) == PACK_OK && c.at == c.end;
}

static int message_read(struct decoder *d, const struct schema *s, void *ret_msg, struct err *e)
{
    uint64_t kind = 0;
    uint64_t fields = 0;
    memset(ret_msg, 0, s->size);
    d->utf8 = is_request(s);
    if (d->in.at == d->in.end) {
        return err_set(e, ERR_PROTOCOL, "%s: empty message", s->name);
    }
    if (!head_read(&d->in, &kind, &fields)) {
        return err_set(e, ERR_PROTOCOL, "%s: not a list that starts with a kind", s->name);
    }
    if (kind != s->kind) {
        return err_set(e, ERR_PROTOCOL, "%s: message of kind %" PRIu64 ", expected %u", s->name,
                       kind, s->kind);
    }
    if (!fields_read(d, s, fields, ret_msg)) {
        return decode_error(s, d, e);
    }
    if (d->in.at != d->in.end) {
        return err_set(e, ERR_PROTOCOL, "%s: %zu bytes after the message", s->name,
                       (size_t)(d->in.end - d->in.at));
    }
    return 0;
}

int proto_decode(const struct schema *s, struct bytes message, void *ret_msg, struct err *e)
{
    struct decoder d;
    decoder_init(&d, message);
    return message_read(&d, s, ret_msg, e);
}

int proto_decode_first(const struct schema *s, struct bytes message, void *ret_msg,
                       const struct schema *record, void *ret_first, struct err *e)
{
    struct decoder d;
    decoder_init(&d, message);
    d.record = record;
    d.first = ret_first;
    memset(ret_first, 0, record->size);
    return message_read(&d, s, ret_msg, e);
}

struct proto_iter proto_iter_of(struct proto_list list)
{
    return (struct proto_iter){.rest = list.raw, .left = list.count};
}

bool proto_list_next(struct proto_iter *it, const struct schema *record, void *ret_value)
{
    if (it->left == 0 || it->rest.size == 0) {
        return false;
    }
    struct decoder d;
    decoder_init(&d, it->rest);
    memset(ret_value, 0, record->size);
    if (!record_read(&d, record, ret_value)) {
        it->left = 0;
        return false;
    }
    it->rest = bytes_of(d.in.at, (size_t)(d.in.end - d.in.at));
    it->left--;
    return true;
}

/* ---- encoding ----------------------------------------------------------------------------- */

/* A field of a struct that is encoded. */
union value {
    const void *at;
    const uint64_t *u;
    const int64_t *i;
    const struct bytes *b;
    const struct proto_list *l;
};

static union value value_of(const struct schema_field *f, const void *from)
{
    return (union value){.at = (const uint8_t *)from + f->offset};
}

static bool is_default(const struct schema_field *f, union value v)
{
    switch (f->type) {
    case SCHEMA_U:
        return *v.u == 0;
    case SCHEMA_I:
        return *v.i == 0;
    case SCHEMA_S:
    case SCHEMA_B:
        return v.b->size == 0;
    case SCHEMA_L:
        return v.l->count == 0;
    }
    return false;
}

static __attribute__((cold, noinline)) int too_much(const struct schema_field *f, uint64_t value,
                                                    const char *unit, struct err *e)
{
    return err_set(e, ERR_LIMIT, "%s: %" PRIu64 "%s, at most %" PRIu64, f->name, value, unit,
                   f->max);
}

static __attribute__((cold, noinline)) int nonsense(const struct schema_field *f, const char *what,
                                                    struct err *e)
{
    return err_set(e, ERR_INVALID, "%s: %s", f->name, what);
}

static int text_check(const struct schema *s, const struct schema_field *f, struct bytes text,
                      struct err *e)
{
    if (text.size > f->max) {
        return too_much(f, text.size, " bytes", e);
    }
    if (text.size > 0 && memchr(text.data, 0, text.size) != NULL) {
        return nonsense(f, "text with a NUL byte", e);
    }
    if (is_request(s) && !utf8_valid(text)) {
        return nonsense(f, "text is not UTF-8", e);
    }
    return 0;
}

static int list_check(const struct schema_field *f, const struct proto_list *l, struct err *e)
{
    if (l->count > f->max) {
        return too_much(f, l->count, " records", e);
    }
    return l->count <= l->raw.size ? 0 : nonsense(f, "list without its records", e);
}

static bool list_write(const struct proto_list *l, struct capbuf *out)
{
    return pack_array(out, l->count) &&
           (l->count == 0 || capbuf_append(out, l->raw.data, l->raw.size));
}

/* Checks a field, then writes it. ERR_NOMEM without a text: `out` had no room. */
static int field_write(const struct schema *s, const struct schema_field *f, union value v,
                       struct capbuf *out, struct err *e)
{
    int rc = 0;
    bool ok = false;
    switch (f->type) {
    case SCHEMA_U:
        rc = *v.u <= f->max ? 0 : too_much(f, *v.u, "", e);
        ok = rc == 0 && pack_uint(out, *v.u);
        break;
    case SCHEMA_I:
        ok = pack_int(out, *v.i);
        break;
    case SCHEMA_S:
        rc = text_check(s, f, *v.b, e);
        ok = rc == 0 && pack_text(out, *v.b);
        break;
    case SCHEMA_B:
        rc = v.b->size <= f->max ? 0 : too_much(f, v.b->size, " bytes", e);
        ok = rc == 0 && pack_bin(out, *v.b);
        break;
    case SCHEMA_L:
        rc = list_check(f, v.l, e);
        ok = rc == 0 && list_write(v.l, out);
        break;
    }
    return rc != 0 || ok ? rc : ERR_NOMEM;
}

static __attribute__((cold, noinline)) int not_written(const struct schema *s,
                                                       const struct schema_field *f, int rc,
                                                       const struct capbuf *out, struct err *e)
{
    if (rc != ERR_NOMEM) {
        (void)err_wrap(e, "%s", s->name);
        return rc;
    }
    return err_set(e, rc, "%s: %s: message over %zu bytes or out of memory", s->name, f->name,
                   out->limit);
}

static int fields_write(const struct schema *s, const void *from, size_t count, struct capbuf *out,
                        struct err *e)
{
    const struct schema_field *end = s->fields + count;
    for (const struct schema_field *f = s->fields; f < end; f++) {
        union value v = value_of(f, from);
        if (small_fits(f, *v.u) && *v.u < SMALL && out->size < out->capacity && !out->failed) {
            /* the usual case */
            out->data[out->size++] = (uint8_t)*v.u;
            continue;
        }
        int rc = field_write(s, f, v, out, e);
        if (rc != 0) {
            return not_written(s, f, rc, out, e);
        }
    }
    return 0;
}

/* The number of fields up to the last one that is not 0 or empty. */
static size_t fields_used(const struct schema *s, const void *from)
{
    size_t count = s->count;
    while (count > 0 && is_default(&s->fields[count - 1], value_of(&s->fields[count - 1], from))) {
        count--;
    }
    return count;
}

int proto_encode(const struct schema *s, const void *msg, struct capbuf *out, struct err *e)
{
    size_t start = out->size;
    size_t count = fields_used(s, msg);
    int rc = ERR_NOMEM;
    if (pack_array(out, count + 1) && pack_uint(out, s->kind)) {
        rc = fields_write(s, msg, count, out, e);
    } else {
        (void)err_set(e, rc, "%s: message over %zu bytes or out of memory", s->name, out->limit);
    }
    if (rc != 0) {
        out->size = start;
    }
    return rc;
}

int proto_list_add(const struct schema *record, const void *value, struct capbuf *out,
                   struct err *e)
{
    size_t start = out->size;
    size_t count = fields_used(record, value);
    int rc = ERR_NOMEM;
    if (pack_array(out, count)) {
        rc = fields_write(record, value, count, out, e);
    } else {
        (void)err_set(e, rc, "%s: list over %zu bytes or out of memory", record->name, out->limit);
    }
    if (rc != 0) {
        out->size = start;
    }
    return rc;
}

struct proto_list proto_list_of(const struct capbuf *records, uint64_t count)
{
    return (struct proto_list){.raw = capbuf_view(records), .count = count};
}
