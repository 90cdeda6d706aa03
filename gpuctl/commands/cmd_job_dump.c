/* Writes what a job was submitted with as a file (JSON), which `gpuctl run --job` repeats.
 * gpuctl(1) describes its members. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base64.h"
#include "common/hash.h"
#include "common/utf8.h"
#include "gpuctl/ctl/ctl.h"
#include "gpuctl/sheet/json_value.h"

/* bytes of buffers; gpuctl run --job reads files of twice the size */
#define DATA_MOST (UINT64_C(32) << 20)

enum { OPT_DATA = 1 };

const struct option job_dump_option_list[] = {{"with-data", 0, false, OPT_DATA}, {0}};

struct dump {
    const gpud_table *table;
    json_t *root; /* owned */
    json_t *step; /* the last one; borrowed, as the next three */
    json_t *module;
    json_t *owner;    /* what the rows of a content are of */
    const char *what; /* the content: "source"; "": none */
    char *content;    /* owned: base64 so far */
    size_t used, room;
};

static const char *text_at(const struct dump *d, uint32_t row, const char *column)
{
    return table_text_of(d->table, row, column);
}

static uint64_t value_at(const struct dump *d, uint32_t row, const char *column)
{
    return table_value_of(d->table, row, column);
}

static void set_text(json_t *o, const char *name, const char *text)
{
    if (text[0] != '\0') {
        (void)json_object_set_new(o, name, json_of_text(text));
    }
}

static void set_number(json_t *o, const char *name, uint64_t value)
{
    if (value != 0) {
        (void)json_object_set_new(o, name, json_of_uint(value));
    }
}

static json_t *list_add(json_t *parent, const char *list)
{
    json_t *o = json_object();
    (void)json_array_append_new(json_object_get(parent, list), o);
    return o;
}

/* "4x16" as [4, 16] */
static void set_shape(json_t *o, const char *text)
{
    if (text[0] == '\0') {
        return;
    }
    json_t *shape = json_array();
    const char *at = text;
    while (*at != '\0') {
        char *end = NULL;
        (void)json_array_append_new(shape, json_of_uint(strtoull(at, &end, 10)));
        at = *end != '\0' ? end + 1 : end;
    }
    (void)json_object_set_new(o, "shape", shape);
}

static void set_grid(const struct dump *d, uint32_t row, const char *name,
                     const char *const axis[3])
{
    json_t *grid = json_array();
    for (unsigned i = 0; i < 3; i++) {
        (void)json_array_append_new(grid, json_of_uint(value_at(d, row, axis[i])));
    }
    (void)json_object_set_new(d->step, name, grid);
}

/* ---- contents -------------------------------------------------------------------------------- */

/* Text stays readable; other bytes are base64. */
static void content_set(struct dump *d, const char *bytes, size_t size, const char *encoded)
{
    char hash[HASH_TEXT_BYTES];
    char name[64];
    bool text = strcmp(d->what, "data") != 0 && memchr(bytes, '\0', size) == NULL &&
                utf8_valid(bytes_of(bytes, size));
    (void)hash_text(hash_of(bytes, size), hash);
    if (text) {
        (void)json_object_set_new(d->owner, d->what, json_stringn(bytes, size));
    } else {
        (void)snprintf(name, sizeof name, "%s_base64", d->what);
        (void)json_object_set_new(d->owner, name, json_string(encoded));
    }
    (void)snprintf(name, sizeof name, "%s_hash", d->what);
    (void)json_object_set_new(d->owner, name, json_string(hash));
}

static int content_end(struct dump *d, struct ctl_err *e)
{
    size_t bytes = 0;
    if (d->used == 0) {
        return 0;
    }
    char *decoded = malloc(d->used + 1);
    if (decoded == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    d->content[d->used] = '\0';
    memcpy(decoded, d->content, d->used);
    bool good = base64_decode(decoded, d->used, &bytes);
    if (good) {
        content_set(d, decoded, bytes, d->content);
    }
    free(decoded);
    d->used = 0;
    return good ? 0 : ctl_err_set(e, GPUD_ERR_PROTOCOL, "the daemon's content is no base64");
}

static int content_add(struct dump *d, const char *text, struct ctl_err *e)
{
    size_t size = strlen(text);
    if (d->used + size + 1 > d->room) {
        size_t room = 2 * (d->used + size + 1);
        char *grown = realloc(d->content, room);
        if (grown == NULL) {
            return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
        }
        d->content = grown;
        d->room = room;
    }
    memcpy(d->content + d->used, text, size);
    d->used += size;
    return 0;
}

/* What the content of the row is, if it has any, and where it goes. */
static void content_begin(struct dump *d, uint32_t row, json_t *owner, const char *what)
{
    const char *state = text_at(d, row, "content");
    char name[64];
    d->owner = owner;
    d->what = what;
    if (state[0] != '\0' && strcmp(state, "follows") != 0) {
        (void)snprintf(name, sizeof name, "%s_left_out", what);
        set_text(owner, name, state);
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Facts that this program does not know are texts. */
static bool is_number(const char *name)
{
    static const char *const numbers[] = {
        "id",     "session",      "priority",     "deadline_ns", "time_limit_ns",
        "device", "wants_device", "submitted_ns", "started_ns",  "now_ns"};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(name, numbers[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void add_fact(struct dump *d, uint32_t row)
{
    json_t *job = json_object_get(d->root, "job");
    const char *name = text_at(d, row, "name");
    const char *text = text_at(d, row, "text");
    json_t *value = strcmp(name, "trace_id") == 0 ? json_of_handle(strtoull(text, NULL, 10))
                    : !is_number(name)            ? json_of_text(text)
                    : text[0] == '-'              ? json_integer(strtoll(text, NULL, 10))
                                                  : json_of_uint(strtoull(text, NULL, 10));
    (void)json_object_set_new(job, name, value);
}

static void add_step(struct dump *d, uint32_t row)
{
    static const char *const global[] = {"global_x", "global_y", "global_z"};
    static const char *const local[] = {"local_x", "local_y", "local_z"};
    d->step = list_add(d->root, "steps");
    set_text(d->step, "op", text_at(d, row, "what"));
    set_text(d->step, "kernel", text_at(d, row, "name"));
    set_text(d->step, "module_hash", text_at(d, row, "hash"));
    if (value_at(d, row, "module") != 0) {
        (void)json_object_set_new(d->step, "module", json_of_handle(value_at(d, row, "module")));
    }
    if (value_at(d, row, "global_x") != 0) {
        set_grid(d, row, "global", global);
        set_grid(d, row, "local", local);
    }
    set_number(d->step, "shared", value_at(d, row, "shared"));
    (void)json_object_set_new(d->step, "args", json_array());
}

/* For people: the repetition uses the bits. */
static void set_value(json_t *o, int dtype, uint64_t bits)
{
    float f;
    double g;
    int unused = 64 - 8 * (int)gpud_dtype_size(dtype);
    uint32_t low = (uint32_t)bits;
    memcpy(&f, &low, sizeof f);
    memcpy(&g, &bits, sizeof g);
    bool is_signed =
        dtype == GPUD_I8 || dtype == GPUD_I16 || dtype == GPUD_I32 || dtype == GPUD_I64;
    if (dtype == GPUD_F32 || dtype == GPUD_F64) { /* NULL, and no member, if it is not finite */
        (void)json_object_set_new(o, "value", json_real(dtype == GPUD_F32 ? (double)f : g));
    } else if (is_signed) {
        (void)json_object_set_new(o, "value", json_integer((int64_t)(bits << unused) >> unused));
    } else if (dtype != GPUD_F16) {
        (void)json_object_set_new(o, "value", json_of_uint(bits));
    }
}

static void add_arg(struct dump *d, uint32_t row, json_t *o)
{
    const char *what = text_at(d, row, "what");
    bool listed = strcmp(what, "temp") == 0 || strcmp(what, "param") == 0;
    bool local = strcmp(what, "local") == 0;
    set_text(o, "what", what);
    if (strcmp(what, "buffer") == 0) {
        (void)json_object_set_new(o, "buffer", json_of_handle(value_at(d, row, "handle")));
    }
    if (listed) {
        (void)json_object_set_new(o, "index", json_of_uint(value_at(d, row, "handle")));
    }
    if (strcmp(what, "shared") != 0) { /* offsets in the client's memory mean nothing elsewhere */
        set_number(o, "first", value_at(d, row, "first"));
        set_number(o, local ? "bytes" : "count", value_at(d, row, "count"));
    }
    set_text(o, "access", text_at(d, row, "access"));
    set_text(o, "view", text_at(d, row, "view"));
    set_text(o, "type", text_at(d, row, "type"));
    set_shape(o, text_at(d, row, "shape"));
    if (strcmp(what, "scalar") == 0) {
        uint64_t bits = value_at(d, row, "value");
        (void)json_object_set_new(o, "bits", json_of_handle(bits));
        set_value(o, gpud_dtype_from_name(text_at(d, row, "type")), bits);
    }
    set_number(o, "bytes", value_at(d, row, "bytes"));
    content_begin(d, row, o, "data");
}

static void add_buffer(struct dump *d, uint32_t row)
{
    json_t *o = list_add(d->root, "buffers");
    (void)json_object_set_new(o, "buffer", json_of_handle(value_at(d, row, "handle")));
    set_text(o, "type", text_at(d, row, "type"));
    set_shape(o, text_at(d, row, "shape"));
    (void)json_object_set_new(o, "bytes", json_of_uint(value_at(d, row, "bytes")));
    set_text(o, "access", text_at(d, row, "access"));
    set_text(o, "state", text_at(d, row, "what"));
    set_number(o, "generation", value_at(d, row, "first"));
    (void)json_object_set_new(o, "device", json_of_uint(value_at(d, row, "count")));
    set_number(o, "flags", value_at(d, row, "value"));
    set_text(o, "label", text_at(d, row, "text"));
    set_text(o, "published", text_at(d, row, "name"));
}

static void add_module(struct dump *d, uint32_t row)
{
    d->module = list_add(d->root, "modules");
    (void)json_object_set_new(d->module, "module", json_of_handle(value_at(d, row, "module")));
    set_text(d->module, "what", text_at(d, row, "what"));
    set_text(d->module, "name", text_at(d, row, "name"));
    set_text(d->module, "hash", text_at(d, row, "hash"));
    set_number(d->module, "lang", value_at(d, row, "value"));
    set_number(d->module, "bytes", value_at(d, row, "bytes"));
    (void)json_object_set_new(d->module, "builds", json_array());
    (void)json_object_set_new(d->module, "headers", json_array());
}

static void add_build(struct dump *d, uint32_t row)
{
    json_t *o = list_add(d->module, "builds");
    set_text(o, "backend", text_at(d, row, "what"));
    set_text(o, "arch", text_at(d, row, "name"));
    set_text(o, "hash", text_at(d, row, "hash"));
    set_number(o, "bytes", value_at(d, row, "bytes"));
}

/* A text of the module before, whose content may follow. */
static void add_text(struct dump *d, uint32_t row)
{
    static const char *const texts[] = {"file", "options", "signature", "source", "header"};
    const char *what = text_at(d, row, "what");
    const char *known = "text";
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        known = strcmp(what, texts[i]) == 0 ? texts[i] : known;
    }
    json_t *owner = d->module;
    if (strcmp(known, "header") == 0) {
        owner = list_add(d->module, "headers");
        set_text(owner, "name", text_at(d, row, "name"));
    }
    if (text_at(d, row, "hash")[0] != '\0') {
        char name[64];
        (void)snprintf(name, sizeof name, "%s_hash", known);
        set_text(owner, name, text_at(d, row, "hash"));
    }
    content_begin(d, row, owner, known);
}

/* Rows that this program does not know are of newer daemons. */
static void add_row(struct dump *d, uint32_t row, const char *kind)
{
    json_t *o = NULL;
    if (strcmp(kind, "job") == 0) {
        add_fact(d, row);
    } else if (strcmp(kind, "param") == 0 || strcmp(kind, "temp") == 0) {
        o = list_add(d->root, kind[0] == 'p' ? "params" : "temps");
        set_text(o, "what", text_at(d, row, "what"));
        set_text(o, "name", text_at(d, row, "name"));
        set_text(o, "type", text_at(d, row, "type"));
        set_shape(o, text_at(d, row, "shape"));
    } else if (strcmp(kind, "step") == 0) {
        add_step(d, row);
    } else if (strcmp(kind, "arg") == 0) {
        add_arg(d, row, list_add(d->step, "args"));
    } else if (strcmp(kind, "value") == 0) {
        add_arg(d, row, list_add(d->root, "values"));
    } else if (strcmp(kind, "buffer") == 0) {
        add_buffer(d, row);
    } else if (strcmp(kind, "module") == 0) {
        add_module(d, row);
    } else if (strcmp(kind, "build") == 0) {
        add_build(d, row);
    } else if (strcmp(kind, "text") == 0) {
        add_text(d, row);
    }
}

static int add_rows(struct dump *d, struct ctl_err *e)
{
    static const char *const lists[] = {"params", "temps", "steps", "values", "buffers", "modules"};
    d->root = json_pack("{s:s, s:i, s:{}}", "format", "gpud-job", "version", 1, "job");
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        (void)json_object_set_new(d->root, lists[i], json_array());
    }
    int rc = 0;
    for (uint32_t r = 0; rc == 0 && r < gpud_table_rows(d->table); r++) {
        const char *kind = text_at(d, r, "row");
        if (strcmp(kind, "content") == 0) {
            rc = content_add(d, text_at(d, r, "text"), e);
        } else {
            rc = content_end(d, e);
            add_row(d, r, kind);
        }
    }
    return rc == 0 ? content_end(d, e) : rc;
}

/* ---- the command ------------------------------------------------------------------------------
 */

/* Reads one buffer into its entry. *io_room: bytes that the file takes yet. */
static int read_buffer(struct ctl *ctl, json_t *o, uint64_t *io_room, struct ctl_err *e)
{
    gpud_buffer buffer = {0};
    char name[32];
    char hash[HASH_TEXT_BYTES];
    uint64_t bytes = (uint64_t)json_integer_value(json_object_get(o, "bytes"));
    if (bytes > *io_room) {
        set_text(o, "data_left_out", "large");
        return 0;
    }
    uint8_t *data = malloc(bytes + 1);
    char *encoded = malloc(BASE64_BYTES(bytes));
    int rc = data != NULL && encoded != NULL ? 0 : ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    (void)snprintf(name, sizeof name, "#%s", json_string_value(json_object_get(o, "buffer")));
    int failed = rc == 0 ? gpud_buffer_open(ctl->client, name, &buffer) : rc;
    if (rc == 0 && failed == 0) {
        failed = gpud_read(ctl->client, buffer, GPUD_NONE, 0, GPUD_REST, data, NULL);
    }
    if (rc == 0 && failed != 0) {
        set_text(o, "data_left_out", gpud_last_error()->text);
        *io_room = failed == GPUD_ERR_TIMEOUT ? 0 : *io_room; /* the next ones wait as well */
    } else if (rc == 0) {
        base64_encode(bytes_of(data, bytes), encoded);
        (void)json_object_set_new(o, "data_base64", json_string(encoded));
        set_text(o, "data_hash", hash_text(hash_of(data, bytes), hash));
        *io_room -= bytes;
    }
    if (buffer.id != 0) {
        (void)gpud_buffer_free(ctl->client, buffer);
    }
    free(data);
    free(encoded);
    return rc;
}

/* What the job only reads is what it is to be run with. The rest it may have changed. */
static int add_data(struct ctl *ctl, struct dump *d, struct ctl_err *e)
{
    uint64_t room = DATA_MOST;
    size_t i;
    json_t *o;
    int rc = 0;
    json_array_foreach(json_object_get(d->root, "buffers"), i, o)
    {
        const char *access = json_string_value(json_object_get(o, "access"));
        bool reads = access != NULL && strcmp(access, "in") == 0;
        if (rc == 0 && reads) {
            rc = read_buffer(ctl, o, &room, e);
        } else if (access != NULL && strcmp(access, "out") != 0) {
            set_text(o, "data_left_out", "the job writes it");
        }
    }
    return rc;
}

static int dump_job(struct ctl *ctl, uint64_t job, const char *file, bool data, struct ctl_err *e)
{
    gpud_table *table = NULL;
    const gpud_query_options which = {.size = sizeof which, .job = job};
    int rc = gpud_query_with(ctl->client, "program", &which, &table);
    if (rc != 0) {
        return ctl_err_lib(e, rc, "job %llu", (unsigned long long)job);
    }
    struct dump d = {.table = table, .what = ""};
    rc = add_rows(&d, e);
    rc = rc == 0 && data ? add_data(ctl, &d, e) : rc;
    if (rc == 0) {
        rc = json_save(d.root, file, e);
    }
    free(d.content);
    json_decref(d.root);
    gpud_table_free(table);
    return rc;
}

int cmd_job_dump(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    const char *word[2] = {NULL, NULL};
    const char *value = NULL;
    unsigned words = 0;
    bool data = false;
    uint64_t job = 0;
    int id;
    while ((id = ctl_option(ctl, options, job_dump_option_list, &value, e)) != OPTION_END) {
        if (id == OPTION_BAD) {
            return e->code;
        }
        if (id == OPTION_WORD && words == 2) {
            return ctl_err_usage(e, "%s: JOB and FILE are enough", value);
        }
        if (id == OPTION_WORD) {
            word[words++] = value;
        }
        data = data || id == OPT_DATA;
    }
    if (words == 0) {
        return ctl_err_usage(e, "say which job: gpuctl job dump JOB [FILE]");
    }
    int rc = ctl_number("JOB", word[0], &job, e);
    rc = rc == 0 ? ctl_connect(ctl, e) : rc;
    return rc == 0 ? dump_job(ctl, job, word[1], data, e) : rc;
}
