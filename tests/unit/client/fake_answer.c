/* What the fake daemon answers. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/client/fake_int.h"

/* A sequence of numbers that looks like chance and is the same for the same seed (SplitMix64). */
static uint64_t next_random(struct fake *f)
{
    uint64_t z = f->seed += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void encode(const struct schema *schema, const void *msg, struct capbuf *out)
{
    struct err e = ERR_INIT;
    capbuf_init(out, 64u << 20);
    if (proto_encode(schema, msg, out, &e) != 0) {
        (void)fprintf(stderr, "fake daemon: %s\n", e.text);
        exit(1);
    }
}

static void garble(struct fake *f, const struct schema *schema, struct capbuf *out)
{
    static const int64_t codes[] = {0, 5, -999, INT64_MIN, INT64_MAX};
    struct msg_error error = {.step = INT64_MIN, .arg = INT64_MAX, .text = bytes_str("?")};
    struct msg_pong pong = {.value = 1};
    struct msg_done done = {0};
    switch (f->garble) {
    case FAKE_GARBLE_NOT:
        break;
    case FAKE_GARBLE_KIND:
        capbuf_finish(out);
        if (schema == &schema_msg_pong) {
            encode(&schema_msg_done, &done, out);
        } else {
            encode(&schema_msg_pong, &pong, out);
        }
        break;
    case FAKE_GARBLE_SHORT:
        out->size /= 2;
        break;
    case FAKE_GARBLE_LONG:
        (void)capbuf_append(out, "behind", 6);
        break;
    case FAKE_GARBLE_ERROR:
        capbuf_finish(out);
        error.code = codes[f->seed % (sizeof codes / sizeof codes[0])];
        encode(&schema_msg_error, &error, out);
        break;
    case FAKE_GARBLE_RANDOM:
        for (uint64_t i = 0, n = 1 + next_random(f) % 4; i < n && out->size > 0; i++) {
            uint64_t at = next_random(f) % out->size;
            out->data[at] = (uint8_t)next_random(f);
        }
        break;
    }
}

void fake_answer(struct slot *s, const struct schema *schema, const void *msg)
{
    struct capbuf out;
    nng_msg *reply = NULL;
    encode(schema, msg, &out);
    if (schema != &schema_msg_welcome) {
        garble(s->fake, schema, &out);
    }
    if (nng_msg_alloc(&reply, 0) != 0 || nng_msg_append(reply, out.data, out.size) != 0) {
        (void)fprintf(stderr, "fake daemon: no memory for an answer\n");
        exit(1);
    }
    capbuf_finish(&out);
    s->state = SLOT_SEND;
    nng_aio_set_msg(s->aio, reply);
    nng_ctx_send(s->ctx, s->aio);
}

void fake_answer_error(struct slot *s, int code, const char *text)
{
    struct msg_error msg = {
        .code = code,
        .step = -1,
        .arg = -1,
        .text = bytes_str(text),
        .retry_after_ns = code == ERR_BUSY ? 1000000 : 0,
    };
    fake_answer(s, &schema_msg_error, &msg);
}

void fake_answer_open(struct slot *s, int code)
{
    struct msg_error msg = {.code = code,
                            .step = -1,
                            .arg = -1,
                            .text = bytes_str("not admitted"),
                            .retry_after_ns = 1000000,
                            .open = 1};
    fake_answer(s, &schema_msg_error, &msg);
}

bool fake_fresh(struct fake *f, uint64_t handle)
{
    bool good = handle >> 16 == f->life;
    f->stale += good ? 0 : 1;
    return good;
}

void fake_hello(struct slot *s, struct bytes message)
{
    struct fake *f = s->fake;
    struct msg_hello msg;
    struct proto_span span;
    uint8_t id[PROTO_CLIENT_ID_BYTES] = {0};
    if (f->mode == FAKE_REFUSE) {
        fake_answer_error(s, ERR_PERMISSION, "not you");
        return;
    }
    if (proto_decode(&schema_msg_hello, message, &msg, NULL) != 0) {
        fake_answer_error(s, ERR_PROTOCOL, "bad hello");
        return;
    }
    for (uint64_t i = 1; !f->knows_session && i < msg.resume && i < SEQS; i++) {
        f->seen[i] |= 2;
    }
    for (struct proto_iter it = proto_iter_of(msg.taken);
         proto_list_next(&it, &schema_span, &span);) {
        for (uint64_t i = 0; i < span.count && span.first + i < SEQS; i++) {
            f->seen[span.first + i] |= 2;
        }
    }
    id[0] = (uint8_t)f->life;
    struct msg_welcome welcome = {
        .major = PROTO_MAJOR,
        .minor = f->minor,
        .daemon_id = bytes_of(id, sizeof id),
        .resumed = f->knows_session,
        .expect = f->knows_session ? f->highest + 1 : msg.resume,
        .max_message = f->max_message,
        .max_inflight = f->max_inflight,
        .max_reorder = 1024,
        .max_kept = 64 << 20,
        .linger_ns = f->linger_ns,
        .build = bytes_str("fake"),
        .tenant = bytes_str("tester"),
        .may_load = 1,
        .session = 7,
        .shm = bytes_str(f->shares ? "/nowhere" : ""),
        .lineage = f->lineage,
        .up_ns = f->up_ns,
    };
    f->knows_session = true;
    fake_answer(s, &schema_msg_welcome, &welcome);
}

static void kernel_answer(struct slot *s, struct bytes name)
{
    struct capbuf args;
    struct capbuf list;
    capbuf_init(&args, 4096);
    capbuf_init(&list, 4096);
    if (bytes_equal_str(name, "missing")) {
        fake_answer_error(s, ERR_NOT_FOUND, "no kernel 'missing'");
        return;
    }
    struct proto_karg a = {.name = bytes_str("a"), .kind = 1, .dtype = DTYPE_F32, .bytes = 4};
    struct proto_karg x = {.name = bytes_str("x"), .kind = 2, .access = ACCESS_INOUT};
    (void)proto_list_add(&schema_karg, &a, &args, NULL);
    (void)proto_list_add(&schema_karg, &x, &args, NULL);
    struct proto_kernel kernel = {
        .handle = s->fake->life << 16 | ++s->fake->next,
        .name = name,
        .version = 1,
        .auto_grid = 1,
        .signature = bytes_str("touch(f32 a, inout T x[n])"),
        .args = proto_list_of(&args, 2),
        .registers = 40,
        .item_bytes = 16,
        .group_bytes = 1024,
        .max_group = 512,
        .group_multiple = 32,
        .occupancy = 750000,
    };
    (void)proto_list_add(&schema_kernel, &kernel, &list, NULL);
    struct msg_kernel_found found = {.kernels = proto_list_of(&list, 1)};
    fake_answer(s, &schema_msg_kernel_found, &found);
    capbuf_finish(&args);
    capbuf_finish(&list);
}

static void module_answer(struct slot *s, struct bytes source)
{
    struct capbuf list;
    if (s->fake->refuses_loads != 0) {
        fake_answer_error(s, s->fake->refuses_loads, "no more modules");
        return;
    }
    if (source.size > 0 && source.data[0] == '!') {
        struct msg_error failed = {
            .code = ERR_COMPILE,
            .step = -1,
            .arg = -1,
            .text = bytes_str("k.cl:1:1: expected expression"),
            .log = bytes_str("k.cl:1:1: error: expected expression\n1 error"),
        };
        fake_answer(s, &schema_msg_error, &failed);
        return;
    }
    capbuf_init(&list, 4096);
    struct proto_kernel kernel = {
        .handle = s->fake->life << 16 | ++s->fake->next,
        .name = bytes_str("mine"),
    };
    (void)proto_list_add(&schema_kernel, &kernel, &list, NULL);
    struct msg_module msg = {
        .module = s->fake->life << 16 | ++s->fake->next,
        .log = bytes_str("warning: none"),
        .kernels = proto_list_of(&list, 1),
    };
    fake_answer(s, &schema_msg_module, &msg);
    capbuf_finish(&list);
}

/* One device, the third. */
static void table_answer(struct slot *s)
{
    static const struct {
        const char *name;
        enum proto_column_kind kind;
        uint64_t value;
        const char *text;
    } column[] = {
        {"device", COLUMN_UINT, 3, ""},     {"name", COLUMN_TEXT, 0, "a device"},
        {"backend", COLUMN_TEXT, 0, "sim"}, {"kind", COLUMN_TEXT, 0, "simulated"},
        {"memory", COLUMN_BYTES, 4096, ""}, {"buffers", COLUMN_BYTES, 64, ""},
        {"state", COLUMN_TEXT, 0, "ready"},
    };
    const size_t count = sizeof column / sizeof column[0];
    struct capbuf columns, cells, rows;
    capbuf_init(&columns, 4096);
    capbuf_init(&cells, 4096);
    capbuf_init(&rows, 4096);
    for (size_t i = 0; i < count; i++) {
        struct proto_column c = {
            .name = bytes_str(column[i].name),
            .kind = column[i].kind,
            .wide = i == 1,
        };
        struct proto_cell cell = {.value = column[i].value, .text = bytes_str(column[i].text)};
        (void)proto_list_add(&schema_column, &c, &columns, NULL);
        (void)proto_list_add(&schema_cell, &cell, &cells, NULL);
    }
    struct proto_row row = {.cells = proto_list_of(&cells, count)};
    (void)proto_list_add(&schema_row, &row, &rows, NULL);
    struct msg_table table = {
        .name = bytes_str("devices"),
        .columns = proto_list_of(&columns, count),
        .rows = proto_list_of(&rows, 1),
    };
    fake_answer(s, &schema_msg_table, &table);
    capbuf_finish(&columns);
    capbuf_finish(&cells);
    capbuf_finish(&rows);
}

static void program_answer(struct slot *s, const struct msg_program_create *msg)
{
    struct proto_step step;
    for (struct proto_iter it = proto_iter_of(msg->steps);
         proto_list_next(&it, &schema_step, &step);) {
        if (step.op == OP_LAUNCH && !fake_fresh(s->fake, step.kernel)) {
            fake_answer_error(s, ERR_STALE_HANDLE, "kernel");
            return;
        }
    }
    struct msg_program reply = {.program = s->fake->life << 16 | ++s->fake->next};
    fake_answer(s, &schema_msg_program, &reply);
}

static void arena_answer(struct slot *s, uint64_t bytes)
{
    static const uint8_t nonce[PROTO_NONCE_BYTES];
    struct msg_arena reply = {
        .arena = s->fake->life << 16 | ++s->fake->next,
        .bytes = bytes,
        .nonce = bytes_of(nonce, sizeof nonce),
    };
    s->fake->arenas++;
    fake_answer(s, &schema_msg_arena, &reply);
}

static void export_answer(struct slot *s)
{
    static const uint8_t nonce[PROTO_NONCE_BYTES];
    struct msg_exported reply = {
        .nonce = bytes_of(nonce, sizeof nonce),
        .bytes = 4096,
        .device = bytes_str("uuid=0"),
    };
    fake_answer(s, &schema_msg_exported, &reply);
}

static void cancel_answer(struct slot *s, uint64_t number)
{
    struct msg_done done = {0};
    if (number != 0 && (number >= SEQS || (s->fake->seen[number] & 1) == 0)) {
        fake_answer_error(s, ERR_NOT_FOUND, "that request did not come yet");
        return;
    }
    if (number == 0 && s->fake->forgets_jobs) {
        s->fake->forgets_jobs = false;
        fake_answer_error(s, ERR_NOT_FOUND, "there is no such job");
        fake_events(s->fake);
        return;
    }
    fake_answer(s, &schema_msg_done, &done);
}

void fake_serve(struct slot *s, unsigned kind, const union any *msg)
{
    struct msg_done done = {0};
    struct msg_pong pong = {0};
    switch (kind) {
    case MSG_KIND_PING:
        pong.value = msg->ping.value;
        fake_answer(s, &schema_msg_pong, &pong);
        break;
    case MSG_KIND_BUFFER_CREATE:
        fake_buffer_create(s, &msg->buffer_create);
        break;
    case MSG_KIND_BUFFER_FREE:
        fake_buffer_free(s, msg->buffer_free.handle);
        break;
    case MSG_KIND_BUFFER_INFO:
        fake_buffer_info(s, msg->buffer_info.handle);
        break;
    case MSG_KIND_KERNEL_FIND:
        kernel_answer(s, msg->kernel_find.name);
        break;
    case MSG_KIND_MODULE_LOAD:
        module_answer(s, msg->module_load.source);
        break;
    case MSG_KIND_PROGRAM_CREATE:
        program_answer(s, &msg->program_create);
        break;
    case MSG_KIND_SUBMIT:
        fake_submit(s, &msg->submit);
        break;
    case MSG_KIND_ARENA_CREATE:
        arena_answer(s, msg->arena_create.bytes);
        break;
    case MSG_KIND_ARENA_FREE:
        s->fake->arenas--;
        fake_answer(s, &schema_msg_done, &done);
        break;
    case MSG_KIND_BUFFER_EXPORT:
        export_answer(s);
        break;
    case MSG_KIND_CANCEL:
        cancel_answer(s, msg->cancel.number);
        break;
    case MSG_KIND_QUERY:
        table_answer(s);
        break;
    default:
        fake_answer(s, &schema_msg_done, &done);
        break;
    }
}
