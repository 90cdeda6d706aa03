/* The recorder: its lines as gpuctl reads them, and what happens to a recording when its file
 * cannot be made or written, is full, or is slow. */
#include "daemon/front/record/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/model/job_state.h"
#include "gpuctl/run/recording.h"
#include "proto/codec.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/scratch.h"

#define BEGIN_NS (1000 * NS_PER_S)

static char dir[SCRATCH_PATH];
static struct recorder *r;
static struct recorder_options o;

static void begin(void)
{
    scratch_make(dir);
    log_set_level(LOG_LEVEL_ERROR - 1);
    o = (struct recorder_options){
        .fd = -1, .file_bytes = 1 << 20, .begin_ns = BEGIN_NS, .build = "test"};
    (void)snprintf(o.path, sizeof o.path, "%s", scratch_path(dir, "a"));
}

static void end(void)
{
    recorder_destroy(r);
    (void)unlink(scratch_path(dir, "a"));
    (void)unlink(scratch_path(dir, "b"));
    scratch_remove(dir);
}

static void start(void)
{
    ck_assert_int_eq(recorder_create(&o, &r, NULL), 0);
}

static enum recorder_state until_over(struct recorder_status *ret_status)
{
    while (!recorder_over(r)) { /* Check's time-out is the limit */
        (void)usleep(1000);
    }
    recorder_status(r, ret_status);
    return ret_status->state;
}

static struct entry *put(enum entry_kind kind, uint64_t id, size_t more)
{
    struct entry *x = recorder_put(r, sizeof *x + more, 0);
    ck_assert_ptr_nonnull(x);
    size_t size = x->size;
    *x = (struct entry){.kind = kind, .size = size, .id = id, .at_ns = BEGIN_NS + id};
    return x;
}

/* A job that reads buffer 0x20 and writes an array of its client there. */
static struct bytes message(uint8_t *room, size_t size, const char *label)
{
    static uint8_t list[2][4096];
    const float data[2] = {1, 2};
    struct capbuf out;
    struct capbuf args;
    struct capbuf steps;
    capbuf_init_in(&args, sizeof list[0], list[0], sizeof list[0]);
    capbuf_init_in(&steps, sizeof list[1], list[1], sizeof list[1]);
    capbuf_init_in(&out, size, room, size);
    const struct proto_arg to = {.tag = ARG_BUFFER, .handle = 0x20, .access = ACCESS_OUT};
    const struct proto_arg from = {.tag = ARG_INLINE,
                                   .access = ACCESS_IN,
                                   .dtype = DTYPE_F32,
                                   .ndim = 1,
                                   .d0 = 2,
                                   .data = bytes_of(data, sizeof data)};
    ck_assert_int_eq(proto_list_add(&schema_arg, &to, &args, NULL), 0);
    ck_assert_int_eq(proto_list_add(&schema_arg, &from, &args, NULL), 0);
    const struct proto_step step = {.op = OP_WRITE, .args = proto_list_of(&args, 2)};
    ck_assert_int_eq(proto_list_add(&schema_step, &step, &steps, NULL), 0);
    const struct msg_submit m = {
        .seq = 1, .label = bytes_str(label), .priority = -3, .steps = proto_list_of(&steps, 1)};
    ck_assert_int_eq(proto_encode(&schema_msg_submit, &m, &out, NULL), 0);
    return capbuf_view(&out);
}

static void put_job(uint64_t id, const char *label)
{
    uint8_t room[4096];
    struct bytes m = message(room, sizeof room, label);
    struct entry *x = put(ENTRY_JOB, id, entry_round(m.size));
    x->job.session = 5;
    x->job.job_class = CLASS_BATCH;
    x->job.bytes = m.size;
    (void)snprintf(x->job.tenant, sizeof x->job.tenant, "vision");
    memcpy(x + 1, m.data, m.size);
    recorder_put_end(r);
}

static void put_end(uint64_t id)
{
    const struct entry_chunk chunk = {.first = 3, .arg = 1, .size = 4};
    struct entry *x = put(ENTRY_END, id, sizeof chunk + entry_round(4));
    x->end.state = JOB_DONE;
    x->end.queued_ns = 11;
    x->end.executed_ns = 12;
    x->end.chunks = 1;
    memcpy(x + 1, &chunk, sizeof chunk);
    memcpy((uint8_t *)(x + 1) + sizeof chunk, "abcd", 4);
    recorder_put_end(r);
}

static void put_buffer(uint64_t handle)
{
    struct entry *x = put(ENTRY_BUFFER, handle, 0);
    x->buffer.shape = (struct shape){.dtype = DTYPE_F32, .ndim = 1, .dim = {2}};
    x->buffer.content = CONTENT_ZERO;
    (void)snprintf(x->buffer.label, sizeof x->buffer.label, "a \"b\"\n\\\x01\xff é");
    recorder_put_end(r);
}

static json_t *next(struct recording *f, enum recording_line wanted)
{
    struct ctl_err e;
    enum recording_line line;
    json_t *root = NULL;
    int rc = recording_next(f, &line, &root, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    ck_assert_int_eq(line, wanted);
    return root;
}

static const char *text(const json_t *root, const char *name)
{
    const char *value = json_string_value(json_object_get(root, name));
    return value != NULL ? value : "";
}

/* What the daemon writes is what gpuctl reads, whatever bytes texts have. */
START_TEST(lines_are_what_gpuctl_reads)
{
    struct recorder_status status;
    struct recording f;
    struct ctl_err e;
    o.data = _i == 1;
    start();
    put_buffer(0x20);
    put_job(7, "edges \"1\"");
    put_end(7);
    (void)put(ENTRY_FREE, 0x20, 0);
    recorder_put_end(r);
    recorder_stop(r, BEGIN_NS + 99);
    ck_assert_int_eq(until_over(&status), RECORDER_STOPPED);
    ck_assert_uint_eq(status.jobs, 1);
    ck_assert_uint_eq(status.lost, 0);
    ck_assert_msg(recording_open(o.path, &f, &e) == 0, "%s", e.text);
    json_t *root = next(&f, LINE_BUFFER);
    ck_assert_str_eq(text(root, "buffer"), "0x20");
    ck_assert_str_eq(text(root, "label"), "a \"b\"\n\\\x01? é");
    ck_assert_str_eq(text(root, "content"), "zero");
    json_decref(root);
    root = next(&f, LINE_JOB);
    const json_t *job = json_object_get(root, "job");
    const json_t *step = json_array_get(json_object_get(root, "steps"), 0);
    const json_t *array = json_array_get(json_object_get(step, "args"), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(root, "at_ns")), 7);
    ck_assert_str_eq(text(job, "tenant"), "vision");
    ck_assert_str_eq(text(job, "label"), "edges \"1\"");
    ck_assert_str_eq(text(job, "class"), "batch");
    ck_assert_int_eq(json_integer_value(json_object_get(job, "priority")), -3);
    ck_assert_str_eq(text(step, "op"), "write");
    ck_assert_str_eq(text(array, "what"), "array");
    ck_assert_uint_eq(strlen(text(array, "data_hash")), 32);
    ck_assert_str_eq(text(array, "data_base64"), o.data ? "AACAPwAAAEA=" : "");
    json_decref(root);
    root = next(&f, LINE_END);
    const json_t *result = json_array_get(json_object_get(root, "results"), 0);
    ck_assert_str_eq(text(root, "state"), "done");
    ck_assert_int_eq(json_integer_value(json_object_get(result, "step")), 3);
    ck_assert_uint_eq(strlen(text(result, "hash")), 32);
    json_decref(root);
    json_decref(next(&f, LINE_FREE));
    json_decref(next(&f, LINE_STOP));
    ck_assert_ptr_null(next(&f, LINE_NONE));
    ck_assert(!f.cut);
    recording_close(&f);
}
END_TEST

/* A recording overwrites nothing, and follows no link. */
START_TEST(an_existing_file_is_refused)
{
    struct recorder_status status;
    struct stat st;
    if (_i == 0) {
        scratch_write(o.path, "mine", 4);
    } else {
        scratch_write(scratch_path(dir, "b"), "mine", 4);
        ck_assert_int_eq(symlink(scratch_path(dir, "b"), o.path), 0);
    }
    start();
    ck_assert_int_eq(until_over(&status), RECORDER_FAILED);
    ck_assert_msg(strstr(status.why, "it exists") != NULL, "%s", status.why);
    ck_assert_int_eq(stat(o.path, &st), 0);
    ck_assert_int_eq(st.st_size, 4);
    ck_assert_ptr_null(recorder_put(r, sizeof(struct entry), 0));
    recorder_status(r, &status);
    ck_assert_uint_eq(status.lost, 0); /* it is over: nothing is missing from it */
}
END_TEST

/* The daemon's own folder: another user's, or a link, is none. */
START_TEST(a_strange_folder_is_refused)
{
    struct recorder_status status;
    (void)snprintf(o.dir, sizeof o.dir, "%s", scratch_path(dir, "d"));
    (void)snprintf(o.path, sizeof o.path, "%s", scratch_path(dir, "d/a"));
    if (_i == 0) {
        ck_assert_int_eq(symlink(dir, o.dir), 0);
    } else {
        ck_assert_int_eq(mkdir(o.dir, 0700), 0);
        ck_assert_int_eq(chmod(o.dir, 0777), 0);
    }
    start();
    ck_assert_int_eq(until_over(&status), RECORDER_FAILED);
    ck_assert_msg(strstr(status.why, "folder") != NULL, "%s", status.why);
    ck_assert_int_ne(access(o.path, F_OK), 0);
    (void)remove(o.dir);
}
END_TEST

/* Made with rights for the daemon's user alone. */
START_TEST(the_file_is_the_daemons)
{
    struct recorder_status status;
    struct stat st;
    (void)snprintf(o.dir, sizeof o.dir, "%s", scratch_path(dir, "d"));
    (void)snprintf(o.path, sizeof o.path, "%s", scratch_path(dir, "d/a"));
    start();
    recorder_stop(r, BEGIN_NS);
    ck_assert_int_eq(until_over(&status), RECORDER_STOPPED);
    ck_assert_int_eq(stat(o.path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    (void)unlink(o.path);
    (void)rmdir(o.dir);
}
END_TEST

static uint64_t put_until_over(void)
{
    uint64_t jobs = 0;
    while (!recorder_over(r)) {
        struct entry *x = recorder_put(r, sizeof *x, 0);
        if (x != NULL) {
            *x = (struct entry){
                .kind = ENTRY_FREE, .size = x->size, .id = ++jobs, .at_ns = BEGIN_NS + jobs};
            recorder_put_end(r);
        }
        if (jobs % 1000 == 0) {
            (void)usleep(1000);
        }
    }
    return jobs;
}

/* It ends before its file has more bytes than it may have, and says so in its last line. */
START_TEST(a_full_recording_ends)
{
    struct recorder_status status;
    struct recording f;
    struct stat st;
    struct ctl_err e;
    enum recording_line line = LINE_OTHER;
    enum recording_line last = LINE_NONE;
    o.file_bytes = RECORDER_LEAST;
    start();
    (void)put_until_over();
    ck_assert_int_eq(until_over(&status), RECORDER_FULL);
    ck_assert_int_eq(stat(o.path, &st), 0);
    ck_assert_uint_le((uint64_t)st.st_size, RECORDER_LEAST);
    ck_assert_uint_gt((uint64_t)st.st_size, RECORDER_LEAST / 2);
    ck_assert_uint_eq(status.bytes, (uint64_t)st.st_size);
    ck_assert_int_eq(recording_open(o.path, &f, &e), 0);
    while (line != LINE_NONE) {
        json_t *root = NULL;
        last = line;
        ck_assert_msg(recording_next(&f, &line, &root, &e) == 0, "%s", e.text);
        json_decref(root);
    }
    ck_assert_int_eq(last, LINE_STOP);
    recording_close(&f);
}
END_TEST

/* It ends the recording, and nothing else. */
START_TEST(a_full_disk_ends_it)
{
    struct recorder_status status;
    o.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(o.fd, 0);
    start();
    ck_assert_int_eq(until_over(&status), RECORDER_FAILED);
    ck_assert_msg(strstr(status.why, strerror(ENOSPC)) != NULL, "%s", status.why);
    ck_assert(!recorder_takes(r));
}
END_TEST

static json_t *read_line(int fd, char *room, size_t size)
{
    size_t used = 0;
    while (used + 1 < size && read(fd, room + used, 1) == 1 && room[used] != '\n') {
        used++;
    }
    return json_loadb(room, used, 0, NULL);
}

/* Nothing reads the pipe, so nothing is written. What finds no room is counted, and the recording
 * says where it is missing. */
START_TEST(a_slow_disk_costs_lines)
{
    static char line[65536];
    int pipes[2];
    uint64_t taken = 0;
    uint64_t lost = 0;
    uint64_t there = 0;
    uint64_t said = 0;
    const char *kind = "";
    ck_assert_int_eq(pipe(pipes), 0);
    o.fd = pipes[1];
    o.file_bytes = 1 << 30;
    start();
    for (uint64_t i = 0; lost < 100; i++) {
        struct entry *x = recorder_put(r, sizeof *x, 0);
        lost += x == NULL;
        if (x != NULL) {
            taken++;
            *x = (struct entry){.kind = ENTRY_FREE, .size = x->size, .id = i};
            recorder_put_end(r);
        }
    }
    recorder_stop(r, BEGIN_NS);
    while (strcmp(kind, "stop") != 0) {
        json_t *root = read_line(pipes[0], line, sizeof line);
        ck_assert_ptr_nonnull(root);
        there += strcmp(text(root, "line"), "free") == 0;
        said += strcmp(text(root, "line"), "gap") == 0
                    ? (uint64_t)json_integer_value(json_object_get(root, "lost"))
                    : 0;
        kind = strcmp(text(root, "line"), "stop") == 0 ? "stop" : "";
        json_decref(root);
    }
    (void)close(pipes[0]);
    ck_assert_uint_eq(there, taken);
    ck_assert_uint_eq(said, lost);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("recorder");
    TCase *tcase = tcase_create("recorder");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_loop_test(tcase, lines_are_what_gpuctl_reads, 0, 2);
    tcase_add_loop_test(tcase, an_existing_file_is_refused, 0, 2);
    tcase_add_loop_test(tcase, a_strange_folder_is_refused, 0, 2);
    tcase_add_test(tcase, the_file_is_the_daemons);
    tcase_add_test(tcase, a_full_recording_ends);
    tcase_add_test(tcase, a_full_disk_ends_it);
    tcase_add_test(tcase, a_slow_disk_costs_lines);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
