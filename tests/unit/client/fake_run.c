/* Jobs of the fake daemon, and what WAIT tells of them. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/client/fake_int.h"

struct run {
    struct capbuf outputs;
    uint64_t output_count;
    uint8_t *scratch[PROTO_ARGS_MAX];
    unsigned scratch_count;
    int code;
};

static void output_add(struct run *run, uint64_t step, uint64_t arg, struct bytes data)
{
    struct proto_output out = {.step = step, .arg = arg, .data = data};
    if (proto_list_add(&schema_output, &out, &run->outputs, NULL) != 0) {
        run->code = ERR_NOMEM;
    }
    run->output_count++;
}

static void run_launch(struct fake *f, const struct proto_step *step, uint64_t index,
                       struct run *run)
{
    struct proto_arg arg;
    uint64_t i = 0;
    if (!fake_fresh(f, step->kernel)) {
        run->code = ERR_STALE_HANDLE;
    }
    for (struct proto_iter it = proto_iter_of(step->args); proto_list_next(&it, &schema_arg, &arg);
         i++) {
        struct fake_buffer *b = arg.tag == ARG_BUFFER ? fake_buffer_find(f, arg.handle) : NULL;
        for (size_t k = 0; b != NULL && (arg.access & ACCESS_OUT) != 0 && k < b->size; k++) {
            b->data[k]++;
        }
        if (arg.tag == ARG_INLINE && (arg.access & ACCESS_OUT) != 0) {
            size_t size = arg.access == ACCESS_INOUT ? arg.data.size : (size_t)arg.d0 * 4;
            uint8_t *data = calloc(1, size + 1);
            for (size_t k = 0; k < size; k++) {
                data[k] = (uint8_t)((arg.data.size > k ? arg.data.data[k] : 0) + 1);
            }
            output_add(run, index, i, bytes_of(data, size));
            free(data);
        }
    }
}

static void run_transfer(struct fake *f, const struct proto_step *step, uint64_t index,
                         struct run *run)
{
    struct proto_arg args[2] = {0};
    struct proto_iter it = proto_iter_of(step->args);
    (void)proto_list_next(&it, &schema_arg, &args[0]);
    (void)proto_list_next(&it, &schema_arg, &args[1]);
    struct fake_buffer *b = fake_buffer_find(f, args[0].handle);
    if (b == NULL) {
        run->code = ERR_BAD_HANDLE;
        return;
    }
    size_t element = b->size / (size_t)(b->shape.d0 > 0 ? b->shape.d0 : 1);
    size_t at = (size_t)args[0].first * element;
    size_t size = args[0].count > 0 ? (size_t)args[0].count * element : b->size - at;
    if (at + size > b->size) {
        run->code = ERR_RANGE;
    } else if (step->op == OP_READ) {
        output_add(run, index, 0, bytes_of(b->data + at, size));
    } else if (step->op == OP_WRITE && args[1].data.size == size) {
        memcpy(b->data + at, args[1].data.data, size);
    } else if (step->op == OP_FILL) {
        memset(b->data + at, (int)(args[1].bits & 0xff), size);
    } else {
        run->code = ERR_ARG_SHAPE;
    }
}

static void run_steps(struct fake *f, const struct msg_submit *msg, struct run *run)
{
    struct proto_step step;
    uint64_t index = 0;
    f->executed++;
    if (msg->program != 0 && !fake_fresh(f, msg->program)) {
        run->code = ERR_STALE_HANDLE;
    }
    for (struct proto_iter it = proto_iter_of(msg->steps);
         run->code == 0 && proto_list_next(&it, &schema_step, &step); index++) {
        if (step.op == OP_LAUNCH) {
            run_launch(f, &step, index, run);
        } else {
            run_transfer(f, &step, index, run);
        }
    }
}

static void submit_answer(struct slot *s, const struct msg_submit *msg)
{
    struct fake *f = s->fake;
    struct run run = {0};
    uint64_t job = ++f->next_job;
    capbuf_init(&run.outputs, 64u << 20);
    run_steps(f, msg, &run);
    bool on_device = f->fails == 0 || f->fails_on_device;
    run.code = f->fails != 0 ? f->fails : run.code;
    f->fails = 0;
    struct proto_result result = {
        .job = job,
        .code = run.code,
        .step = -1,
        .arg = -1,
        .outputs = proto_list_of(&run.outputs, run.output_count),
        .device = on_device ? 1 : 0,
        .executed_ns = 1000,
    };
    if ((msg->flags & SUBMIT_ASYNC) != 0) {
        struct msg_accepted accepted = {.job = job};
        f->done[f->done_count++ % 4096] = job;
        if (f->results_first) {
            fake_events(f);
        }
        fake_answer(s, &schema_msg_accepted, &accepted);
        fake_events(f);
    } else {
        struct capbuf list;
        capbuf_init(&list, 64u << 20);
        (void)proto_list_add(&schema_result, &result, &list, NULL);
        struct msg_results results = {.results = proto_list_of(&list, 1)};
        fake_answer(s, &schema_msg_results, &results);
        capbuf_finish(&list);
    }
    capbuf_finish(&run.outputs);
}

void fake_events(struct fake *f)
{
    struct capbuf results, notices;
    uint64_t count = 0;
    if (f->waiting == NULL || f->forgets_jobs || (f->done_count == 0 && f->lost_count == 0)) {
        return;
    }
    capbuf_init(&results, 1u << 20);
    capbuf_init(&notices, 1u << 20);
    for (; count < f->done_count && count < PROTO_EVENTS_MAX; count++) {
        struct proto_result result = {.job = f->done[count], .step = -1, .arg = -1};
        (void)proto_list_add(&schema_result, &result, &results, NULL);
    }
    f->told = (unsigned)count;
    for (unsigned i = 0; i < f->lost_count; i++) {
        struct proto_notice notice = {
            .kind = NOTICE_BUFFER_LOST,
            .handle = f->lost[i],
            .text = bytes_str("its worker ended"),
        };
        (void)proto_list_add(&schema_notice, &notice, &notices, NULL);
    }
    struct msg_events events = {
        .number = ++f->event_number,
        .results = proto_list_of(&results, count),
        .notices = proto_list_of(&notices, f->lost_count),
    };
    f->lost_count = 0;
    struct slot *s = f->waiting;
    f->waiting = NULL;
    fake_answer(s, &schema_msg_events, &events);
    capbuf_finish(&results);
    capbuf_finish(&notices);
}

void fake_submit(struct slot *s, const struct msg_submit *msg)
{
    if (s->fake->mode == FAKE_BUSY) {
        s->fake->mode = FAKE_SERVE;
        fake_answer_error(s, ERR_BUSY, "full");
    } else {
        submit_answer(s, msg);
    }
}
