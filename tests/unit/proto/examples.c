#include "tests/unit/proto/examples.h"

#include <stdlib.h>

#include "common/shape.h"
#include "proto/codec.h"
#include "proto/lane.h"

static const uint8_t client_id[] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                                    0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};
static const uint8_t daemon_id[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

/* little endian, as elements of arrays are */
static const uint8_t x_data[] = {0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 0, 0, 0x40, 0x40};
static const uint8_t y_data[] = {0, 0, 0x20, 0x41, 0, 0, 0xa0, 0x41, 0, 0, 0xf0, 0x41};
static const uint8_t y_after[] = {0, 0, 0x40, 0x41, 0, 0, 0xc0, 0x41, 0, 0, 0x10, 0x42};

static void put(const struct schema *schema, const void *msg, struct capbuf *out)
{
    if (proto_encode(schema, msg, out, NULL) != 0) {
        abort();
    }
}

static void add(const struct schema *record, const void *value, struct capbuf *out)
{
    if (proto_list_add(record, value, out, NULL) != 0) {
        abort();
    }
}

static void hello(struct capbuf *out)
{
    struct msg_hello m = {.major = 0,
                          .minor = 4,
                          .client_id = bytes_of(client_id, sizeof client_id),
                          .resume = 1,
                          .name = bytes_str("demo")};
    put(&schema_msg_hello, &m, out);
}

static void welcome(struct capbuf *out)
{
    struct msg_welcome m = {.minor = PROTO_MINOR,
                            .daemon_id = bytes_of(daemon_id, sizeof daemon_id),
                            .expect = 1,
                            .max_message = PROTO_MESSAGE_MAX,
                            .max_inflight = 64,
                            .max_reorder = 256,
                            .linger_ns = 10000000000,
                            .build = bytes_str("0.1.0"),
                            .tenant = bytes_str("uid-1000"),
                            .may_load = 1,
                            .session = 7,
                            .shm = bytes_str("/run/gpud/shm.sock"),
                            .max_arena = 2147483648,
                            .max_unacked = 16384,
                            .max_kept = 67108864,
                            .max_early = 67108864,
                            .max_buffers = 4096,
                            .max_arenas = 64,
                            .max_modules = 1024,
                            .max_programs = 4096};
    put(&schema_msg_welcome, &m, out);
}

static void ping(struct capbuf *out)
{
    struct msg_ping m = {.value = 300};
    put(&schema_msg_ping, &m, out);
}

static void buffer_create(struct capbuf *out)
{
    struct msg_buffer_create m = {
        .seq = 1, .dtype = DTYPE_F32, .ndim = 2, .d0 = 480, .d1 = 640, .label = bytes_str("image")};
    put(&schema_msg_buffer_create, &m, out);
}

static void buffer(struct capbuf *out)
{
    struct msg_buffer m = {.handle = 0x100000001,
                           .dtype = DTYPE_F32,
                           .ndim = 2,
                           .d0 = 480,
                           .d1 = 640,
                           .label = bytes_str("image"),
                           .state = 2,
                           .device = 1,
                           .generation = 1};
    put(&schema_msg_buffer, &m, out);
}

static void kernel_find(struct capbuf *out)
{
    struct msg_kernel_find m = {.seq = 2, .ack = 1, .name = bytes_str("axpy")};
    put(&schema_msg_kernel_find, &m, out);
}

static void kernel_found(struct capbuf *out)
{
    struct capbuf args;
    struct capbuf kernels;
    capbuf_init(&args, 4096);
    capbuf_init(&kernels, 4096);
    static const char *const names[] = {"a", "x", "y"};
    static const uint64_t access[] = {ACCESS_IN, ACCESS_IN, ACCESS_INOUT};
    for (unsigned i = 0; i < 3; i++) {
        struct proto_karg arg = {
            .name = bytes_str(names[i]), .kind = i == 0 ? 1 : 2, .access = access[i]};
        add(&schema_karg, &arg, &args);
    }
    struct proto_kernel kernel = {
        .handle = 5,
        .name = bytes_str("axpy"),
        .version = 1,
        .auto_grid = 1,
        .signature = bytes_str("axpy<T: f32 f64>(T a, in T x[n], inout T y[n])  over n"),
        .args = proto_list_of(&args, 3)};
    add(&schema_kernel, &kernel, &kernels);
    struct msg_kernel_found m = {.kernels = proto_list_of(&kernels, 1)};
    put(&schema_msg_kernel_found, &m, out);
    capbuf_finish(&args);
    capbuf_finish(&kernels);
}

static void submit(struct capbuf *out)
{
    struct capbuf args;
    struct capbuf steps;
    capbuf_init(&args, 4096);
    capbuf_init(&steps, 4096);
    struct proto_arg a = {.tag = ARG_SCALAR, .dtype = DTYPE_F32, .bits = 0x40000000};
    struct proto_arg x = {.tag = ARG_INLINE,
                          .access = ACCESS_IN,
                          .dtype = DTYPE_F32,
                          .data = bytes_of(x_data, sizeof x_data),
                          .ndim = 1,
                          .d0 = 3};
    struct proto_arg y = x;
    y.access = ACCESS_INOUT;
    y.data = bytes_of(y_data, sizeof y_data);
    add(&schema_arg, &a, &args);
    add(&schema_arg, &x, &args);
    add(&schema_arg, &y, &args);
    struct proto_step step = {.op = OP_LAUNCH, .kernel = 5, .args = proto_list_of(&args, 3)};
    add(&schema_step, &step, &steps);
    struct msg_submit m = {
        .seq = 3, .ack = 2, .limit_ns = 1000000000, .steps = proto_list_of(&steps, 1)};
    put(&schema_msg_submit, &m, out);
    capbuf_finish(&args);
    capbuf_finish(&steps);
}

static void results(struct capbuf *out)
{
    struct capbuf outputs;
    struct capbuf records;
    capbuf_init(&outputs, 4096);
    capbuf_init(&records, 4096);
    struct proto_output output = {.arg = 2, .data = bytes_of(y_after, sizeof y_after)};
    add(&schema_output, &output, &outputs);
    struct proto_result result = {.job = 42,
                                  .step = -1,
                                  .arg = -1,
                                  .outputs = proto_list_of(&outputs, 1),
                                  .device = 1,
                                  .queued_ns = 15000,
                                  .executed_ns = 120000};
    add(&schema_result, &result, &records);
    struct msg_results m = {.results = proto_list_of(&records, 1)};
    put(&schema_msg_results, &m, out);
    capbuf_finish(&outputs);
    capbuf_finish(&records);
}

static void error(struct capbuf *out)
{
    struct msg_error m = {
        .code = ERR_STALE_HANDLE, .step = 0, .arg = 2, .text = bytes_str("step 0: argument y")};
    put(&schema_msg_error, &m, out);
}

static void wait(struct capbuf *out)
{
    struct msg_wait m = {.ack = 3, .timeout_ns = 5000000000, .taken = 1};
    put(&schema_msg_wait, &m, out);
}

static void events(struct capbuf *out)
{
    struct capbuf notices;
    capbuf_init(&notices, 4096);
    struct proto_notice notice = {.kind = NOTICE_BUFFER_LOST, .handle = 0x100000001};
    add(&schema_notice, &notice, &notices);
    struct msg_events m = {.number = 2, .notices = proto_list_of(&notices, 1)};
    put(&schema_msg_events, &m, out);
    capbuf_finish(&notices);
}

static const uint8_t nonce[] = {0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7,
                                0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf};

static void ring_open(struct capbuf *out)
{
    struct msg_ring_open m = {.version = LANE_VERSION};
    put(&schema_msg_ring_open, &m, out);
}

static void job_find(struct capbuf *out)
{
    struct msg_job_find m = {.ack = 6, .number = 8};
    put(&schema_msg_job_find, &m, out);
}

static void taken(struct capbuf *out)
{
    static const struct proto_span spans[] = {{.first = 8, .count = 4096},
                                              {.first = 4105, .count = 3}};
    struct capbuf list;
    capbuf_init(&list, 256);
    add(&schema_span, &spans[0], &list);
    add(&schema_span, &spans[1], &list);
    struct msg_taken m = {.ack = 6, .taken = proto_list_of(&list, 2)};
    put(&schema_msg_taken, &m, out);
    capbuf_finish(&list);
}

static void ring(struct capbuf *out)
{
    struct msg_ring m = {.nonce = bytes_of(nonce, sizeof nonce),
                         .memory = LANE_BYTES,
                         .submit = LANE_SUBMIT_BYTES,
                         .complete = LANE_COMPLETE_BYTES};
    put(&schema_msg_ring, &m, out);
}

static void elsewhere(struct capbuf *out)
{
    struct msg_elsewhere m = {0};
    put(&schema_msg_elsewhere, &m, out);
}

static void arena_create(struct capbuf *out)
{
    struct msg_arena_create m = {.seq = 4, .ack = 3, .bytes = 1048576};
    put(&schema_msg_arena_create, &m, out);
}

static void arena(struct capbuf *out)
{
    struct msg_arena m = {
        .arena = 0x100000002, .bytes = 1048576, .nonce = bytes_of(nonce, sizeof nonce)};
    put(&schema_msg_arena, &m, out);
}

static void submit_arena(struct capbuf *out)
{
    struct capbuf args;
    struct capbuf steps;
    capbuf_init(&args, 4096);
    capbuf_init(&steps, 4096);
    struct proto_arg a = {.tag = ARG_SCALAR, .dtype = DTYPE_F32, .bits = 0x40000000};
    struct proto_arg x = {.tag = ARG_ARENA,
                          .access = ACCESS_IN,
                          .handle = 0x100000002,
                          .dtype = DTYPE_F32,
                          .ndim = 1,
                          .d0 = 1000};
    struct proto_arg y = x;
    y.access = ACCESS_INOUT;
    y.first = 4096;
    add(&schema_arg, &a, &args);
    add(&schema_arg, &x, &args);
    add(&schema_arg, &y, &args);
    struct proto_step step = {.op = OP_LAUNCH, .kernel = 5, .args = proto_list_of(&args, 3)};
    add(&schema_step, &step, &steps);
    struct msg_submit m = {.seq = 5, .ack = 4, .steps = proto_list_of(&steps, 1)};
    put(&schema_msg_submit, &m, out);
    capbuf_finish(&args);
    capbuf_finish(&steps);
}

static void claim(struct capbuf *out)
{
    struct msg_claim m = {.nonce = bytes_of(nonce, sizeof nonce)};
    put(&schema_msg_claim, &m, out);
}

static void granted(struct capbuf *out)
{
    struct msg_granted m = {.fds = 1};
    put(&schema_msg_granted, &m, out);
}

static void bye(struct capbuf *out)
{
    struct msg_bye m = {.seq = 4, .ack = 3};
    put(&schema_msg_bye, &m, out);
}

static const struct {
    const char *name;
    void (*make)(struct capbuf *out);
} examples[] = {
    {"hello", hello},
    {"welcome", welcome},
    {"ping", ping},
    {"buffer_create", buffer_create},
    {"buffer", buffer},
    {"kernel_find", kernel_find},
    {"kernel_found", kernel_found},
    {"submit", submit},
    {"results", results},
    {"error", error},
    {"wait", wait},
    {"events", events},
    {"bye", bye},
    {"arena_create", arena_create},
    {"arena", arena},
    {"submit_arena", submit_arena},
    {"claim", claim},
    {"granted", granted},
    {"ring_open", ring_open},
    {"job_find", job_find},
    {"taken", taken},
    {"ring", ring},
    {"elsewhere", elsewhere},
};

const char *example_make(unsigned i, struct capbuf *out)
{
    if (i >= sizeof examples / sizeof examples[0]) {
        return NULL;
    }
    examples[i].make(out);
    return examples[i].name;
}
