/* Jobs as files: gpuctl job dump writes what an unfinished job does, gpuctl run --job does it
 * again. */
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/hash.h"
#include "tests/system/harness/harness.h"

#define N 1000u

static struct daemon d;
static bool on_sim; /* its back end runs built-in kernels only */
static char out[DAEMON_OUTPUT];
static char err[DAEMON_OUTPUT];
static char file[DAEMON_PATH + 32]; /* the dump */
static char far_url[64];
static char settings[DAEMON_PATH + 16];
static char gate[DAEMON_PATH + 16]; /* of the simulated device: once it is there, kernels end */
static const char *const backends[] = {"sim", "opencl"};

static const char twice[] = "//@kernel twice(in f32 x[n], out f32 y[n]) over n\n"
                            "{\n    y[i] = 2.0f * x[i];\n}\n";

static gpud_client *begin(const char *backend, const char *conf)
{
    tcp_url(far_url, sizeof far_url);
    on_sim = strcmp(backend, "sim") == 0;
    static char ipc_url[DAEMON_PATH];
    static char device[DAEMON_PATH + 32];
    daemon_prepare(&d, "--backend", backend, "--backend-options", device, "--set",
                   "compile.wall_ms=120000", "--config", settings, "--listen", ipc_url, "--listen",
                   far_url, NULL);
    (void)snprintf(gate, sizeof gate, "%s/gate", d.dir);
    (void)snprintf(device, sizeof device, on_sim ? "items=1,gate=%s" : "", gate);
    (void)snprintf(ipc_url, sizeof ipc_url, "%s", d.url);
    (void)snprintf(settings, sizeof settings, "%s/tenants.conf", d.dir);
    (void)snprintf(file, sizeof file, "%s/job.json", d.dir);
    file_write(settings, conf, strlen(conf));
    file_write(gate, "", 0); /* the daemon tries the device first */
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    return client_open(d.url);
}

/* A job of each kind of step and argument: to = 3 * 2 * data + 1, and some copies of it. */
struct work {
    gpud_buffer buffer;
    gpud_module module; /* id 0: the back end takes no sources */
    gpud_program *program;
    gpud_job *job;
    float data[N];
    float to[N];
    char id[24];
};

static void build(gpud_client *c, struct work *w)
{
    gpud_kernel kernel;
    gpud_program *p = NULL;
    float ones[N];
    const gpud_module_options o = {.size = sizeof o, .name = "doubling", .file = "twice.gk"};
    ck_gpud_ok(
        gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, N), GPUD_BUFFER_ZERO, "result", &w->buffer));
    if (on_sim) {
        kernel = kernel_find(c, "scale");
    } else {
        ck_gpud_ok(gpud_module_load(c, GPUD_LANG_DIALECT, twice, strlen(twice), &o, &w->module));
        ck_gpud_ok(gpud_module_kernel(c, w->module, "twice", &kernel));
    }
    for (unsigned i = 0; i < N; i++) {
        ones[i] = 1;
        w->data[i] = (float)i;
    }
    ck_gpud_ok(gpud_program_create(c, "all", &p));
    gpud_shape shape = gpud_shape_1d(GPUD_F32, N);
    gpud_arg scale =
        gpud_program_param(p, "scale", GPUD_PARAM_SCALAR, (gpud_shape){.dtype = GPUD_F32});
    gpud_arg in = gpud_program_param(p, "in", GPUD_PARAM_DATA, shape);
    gpud_arg into =
        gpud_program_param(p, "into", GPUD_PARAM_BUFFER, (gpud_shape){.dtype = GPUD_F32});
    gpud_arg a = gpud_program_temp(p, shape);
    gpud_arg b = gpud_program_temp(p, shape);
    gpud_arg launch[] = {gpud_f32(2), a, b}; /* a loaded kernel has no scale */
    gpud_arg axpy[] = {scale, b, into};
    ck_assert_int_eq(gpud_program_write(p, a, in), 0);
    ck_assert_int_eq(gpud_program_launch(p, kernel, launch + !on_sim, 3 - !on_sim, NULL), 1);
    ck_assert_int_eq(gpud_program_write(p, into, gpud_host_in(ones, N, GPUD_F32)), 2);
    ck_assert_int_eq(gpud_program_launch(p, kernel_find(c, "axpy"), axpy, 3, NULL), 3);
    ck_assert_int_eq(gpud_program_fill(p, gpud_arg_slice(into, 0, 1), gpud_f32(7)), 4);
    ck_assert_int_eq(gpud_program_copy(p, gpud_arg_slice(a, 0, 10), gpud_arg_slice(into, 10, 10)),
                     5);
    ck_assert_int_eq(gpud_program_read(p, gpud_slice(w->buffer, 0, GPUD_REST)), 6);
    ck_gpud_ok(gpud_program_seal(p));
    w->program = p;
}

/* Jobs do not end from now on: kernels of the simulated device take a quarter of an hour, and
 * another worker stands still. */
static void hold(void)
{
    if (on_sim) {
        (void)unlink(gate);
    } else {
        ck_assert_int_eq(kill(daemon_worker(&d, 0), SIGSTOP), 0);
    }
}

static void go_on(void)
{
    if (on_sim) {
        file_write(gate, "", 0);
    } else {
        (void)kill(daemon_worker(&d, 0), SIGCONT);
    }
}

static void await_id(gpud_client *c, struct work *w)
{
    ck_until(gpud_dispatch(c) == 0 && gpud_job_id(w->job) != 0);
    (void)snprintf(w->id, sizeof w->id, "%llu", (unsigned long long)gpud_job_id(w->job));
}

static void hang(gpud_client *c, struct work *w)
{
    gpud_arg values[] = {gpud_f32(3), gpud_host_in(w->data, N, GPUD_F32), gpud_inout(w->buffer)};
    const gpud_submit_options o = {
        .size = sizeof o, .label = "stuck", .trace_id = 0xabcdef, .job_class = GPUD_CLASS_BATCH};
    hold();
    ck_gpud_ok(gpud_submit(c, w->program, values, 3, &o, &w->job));
    await_id(c, w);
}

/* false: a worker that stands still is ended after 3 s, on a slow host before gpuctl asks, and its
 * jobs with it. */
static bool dump(const struct work *w)
{
    int rc = gpuctl(&d, out, err, "job", "dump", w->id, NULL);
    if (rc == 0) {
        ck_assert_msg(strstr(out, "\"gpud-job\"") != NULL, "%s", out);
        rc = gpuctl(&d, out, err, "job", "dump", w->id, file, NULL);
    }
    ck_assert_msg(rc == 0 || (!on_sim && strstr(err, "has ended") != NULL), "%d: %s", rc, err);
    go_on();
    return rc == 0;
}

static void drop(gpud_client *c, struct work *w)
{
    gpud_job_free(w->job);
    gpud_program_free(w->program);
    if (w->module.id != 0) {
        ck_gpud_ok(gpud_module_unload(c, w->module));
    }
    ck_gpud_ok(gpud_buffer_free(c, w->buffer));
}

/* The job is in `file`, and has ended. */
static void build_and_dump(gpud_client *c, struct work *w)
{
    for (;;) {
        build(c, w);
        hang(c, w);
        bool dumped = dump(w);
        int rc = gpud_wait(w->job, PATIENCE);
        if (dumped) {
            ck_gpud_ok(rc);
            return;
        }
        drop(c, w);
    }
}

static json_t *load(const char *path)
{
    json_error_t why;
    json_t *root = json_load_file(path, 0, &why);
    ck_assert_msg(root != NULL, "%s: %s", path, why.text);
    return root;
}

static void store(const json_t *root, const char *path)
{
    ck_assert_int_eq(json_dump_file(root, path, JSON_INDENT(1)), 0);
}

static const char *text_of(const json_t *o, const char *name)
{
    const char *text = json_string_value(json_object_get(o, name));
    ck_assert_msg(text != NULL, "no member %s", name);
    return text;
}

static json_t *entry(const json_t *root, const char *list, size_t index)
{
    json_t *o = json_array_get(json_object_get(root, list), index);
    ck_assert_msg(o != NULL, "no %s %zu", list, index);
    return o;
}

/* The module that the client loaded, and not those of the daemon. */
static json_t *loaded(const json_t *root)
{
    size_t i;
    json_t *o;
    json_array_foreach(json_object_get(root, "modules"), i, o)
    {
        if (strcmp(text_of(o, "what"), "loaded") == 0) {
            return o;
        }
    }
    ck_abort_msg("no loaded module");
    return NULL;
}

static void check_members(const json_t *root)
{
    const json_t *job = json_object_get(root, "job");
    ck_assert_str_eq(text_of(job, "label"), "stuck");
    ck_assert_str_eq(text_of(job, "class"), "batch");
    ck_assert_str_eq(text_of(job, "trace_id"), "0xabcdef");
    ck_assert_uint_eq(json_array_size(json_object_get(root, "steps")), 7);
    ck_assert_uint_eq(json_array_size(json_object_get(root, "params")), 3);
    ck_assert_uint_eq(json_array_size(json_object_get(root, "temps")), 2);
    ck_assert_str_eq(text_of(entry(root, "steps", 3), "kernel"), "axpy");
    ck_assert_str_eq(text_of(entry(root, "values", 0), "bits"), "0x40400000");
    ck_assert_str_eq(text_of(entry(root, "buffers", 0), "label"), "result");
    if (!on_sim) {
        const json_t *module = loaded(root);
        ck_assert_str_eq(text_of(entry(root, "steps", 1), "kernel"), "twice");
        ck_assert_str_eq(text_of(entry(root, "steps", 1), "module"), text_of(module, "module"));
        ck_assert_str_eq(text_of(module, "source"), twice);
        ck_assert_str_eq(text_of(module, "file"), "twice.gk");
        ck_assert_uint_ge(json_array_size(json_object_get(module, "builds")), 1);
    }
}

/* The repetition on a worker of its own process has the results of the job itself. */
START_TEST(a_job_is_dumped_and_run_again)
{
    struct work w = {.job = NULL};
    char again[DAEMON_PATH + 32];
    char hash[HASH_TEXT_BYTES];
    const void *data = NULL;
    size_t bytes = 0;
    gpud_client *c = begin(backends[_i], "");
    build_and_dump(c, &w);
    ck_gpud_ok(gpud_job_output(w.job, 6, 0, &data, &bytes));
    (void)hash_text(hash_of(data, bytes), hash);
    json_t *root = load(file);
    check_members(root);
    json_decref(root);

    (void)snprintf(again, sizeof again, "%s/again.json", d.dir);
    int rc = gpuctl(&d, out, err, "run", "--job", file, "--record", again, NULL);
    ck_assert_msg(rc == 0, "%d: %s", rc, err);
    ck_assert_msg(strstr(err, "executed") != NULL && strstr(err, "zeros") != NULL, "%s", err);
    root = load(again);
    json_t *results = json_object_get(root, "results");
    ck_assert_str_eq(text_of(results, "step 6"), hash);
    rc = gpuctl(&d, out, err, "run", "--job", again, "--class", "interactive", NULL);
    ck_assert_msg(rc == 0 && strstr(err, "2 of 2 results are as in the file") != NULL, "%d: %s", rc,
                  err);
    (void)json_object_set_new(results, "step 6", json_string("0123456789abcdef0123456789abcdef"));
    store(root, again);
    rc = gpuctl(&d, out, err, "run", "--job", again, "-o", "json", NULL);
    ck_assert_msg(rc == 1 && strstr(err, "1 of 2 results are as in the file") != NULL, "%d: %s", rc,
                  err);
    json_decref(root);
    drop(c, &w);
    daemon_end(&d, c);
}
END_TEST

/* A kernel with arrays of its client's memory: the repetition writes to memory of its own. */
START_TEST(arrays_travel_with_the_job)
{
    struct work w = {.job = NULL};
    gpud_client *c = begin(backends[_i], "");
    gpud_arg args[] = {gpud_f32(2), gpud_host_in(w.data, N, GPUD_F32),
                       gpud_host_inout(w.to, N, GPUD_F32)};
    char hash[HASH_TEXT_BYTES];
    bool dumped = false;
    while (!dumped) {
        for (unsigned i = 0; i < N; i++) {
            w.data[i] = (float)i;
            w.to[i] = 5;
        }
        hold();
        ck_gpud_ok(gpud_launch(c, kernel_find(c, "axpy"), args, 3, NULL, NULL, &w.job));
        await_id(c, &w);
        dumped = dump(&w);
        int rc = gpud_wait(w.job, PATIENCE);
        ck_assert(rc == 0 || !dumped);
        if (!dumped) {
            gpud_job_free(w.job);
        }
    }
    (void)hash_text(hash_of(w.to, sizeof w.to), hash);
    int rc = gpuctl(&d, out, err, "run", "--job", file, NULL);
    ck_assert_msg(rc == 0, "%d: %s", rc, err);
    ck_assert_msg(strstr(out, hash) != NULL, "no %s: %s", hash, out);
    ck_assert_msg(strstr(err, "zeros") == NULL, "%s", err);
    gpud_job_free(w.job);
    daemon_end(&d, c);
}
END_TEST

/* ---- users of one tenant --------------------------------------------------------------------- */

#define OTHER 54321u /* a user */

/* What is published is for the whole tenant; what is not is its user's. */
static int as_other(void *data)
{
    gpud_client *c = NULL;
    gpud_options o = {.size = sizeof o, .connect_timeout_ns = 10 * SECOND};
    gpud_buffer b = {0};
    if (setgid(OTHER) != 0 || setuid(OTHER) != 0 || gpud_open(d.url, &o, &c) != 0) {
        return 2;
    }
    if (gpud_buffer_open(c, "shared", &b) != 0) {
        return 3;
    }
    int rc = gpud_buffer_open(c, data, &b);
    gpud_close(c);
    return rc == GPUD_ERR_NOT_FOUND ? 0 : 4;
}

/* name: "#0x…", of a buffer that is not published. The test's user sees it. */
static void check_other(gpud_client *c, gpud_buffer published, char *name)
{
    char path[DAEMON_PATH + 16];
    if (geteuid() != 0) {
        printf("the_data_of_a_job_is_dumped: not tried as another user, which needs root\n");
        return;
    }
    (void)snprintf(path, sizeof path, "%s/gpud.sock", d.dir);
    ck_assert_int_eq(chmod(d.dir, 0755), 0);
    ck_assert_int_eq(chmod(path, 0666), 0);
    (void)snprintf(path, sizeof path, "%s/..", d.dir);
    ck_assert_int_eq(chmod(path, 0755), 0);
    ck_gpud_ok(gpud_buffer_publish(c, published, "shared", GPUD_IN, 0));
    ck_assert_int_eq(process_wait(process_start(as_other, name)), 0);
}

/* A job that waits reads a buffer of its client, which the dump then has: the repetition computes
 * with the same data. Another session of the user may read the buffer, and not write it; another
 * user of the tenant may not. */
START_TEST(the_data_of_a_job_is_dumped)
{
    float x[N];
    char hash[HASH_TEXT_BYTES];
    char id[24];
    gpud_buffer from = {0};
    gpud_buffer to = {0};
    gpud_buffer opened = {0};
    gpud_buffer slow = {0};
    gpud_job *gate_job = NULL;
    gpud_job *job = NULL;
    const void *data = NULL;
    size_t bytes = 0;
    char conf[64];
    (void)snprintf(conf, sizeof conf, "[tenant both]\nusers = %u, %u\n", (unsigned)getuid(), OTHER);
    gpud_client *c = begin("sim", conf);
    gpud_client *other = client_open(d.url);
    gpud_program *p = NULL;
    for (unsigned i = 0; i < N; i++) {
        x[i] = (float)i;
    }
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, N), 0, "x", &from));
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, N), GPUD_BUFFER_ZERO, "y", &to));
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, N), GPUD_BUFFER_ZERO, "z", &slow));
    ck_gpud_ok(gpud_write(c, from, GPUD_F32, 0, GPUD_REST, x, NULL));
    ck_gpud_ok(gpud_program_create(c, "reads", &p));
    gpud_arg scale[] = {gpud_f32(3), gpud_in(from), gpud_out(to)};
    ck_assert_int_eq(gpud_program_launch(p, kernel_find(c, "scale"), scale, 3, NULL), 0);
    ck_assert_int_eq(gpud_program_read(p, gpud_slice(to, 0, GPUD_REST)), 1);
    ck_gpud_ok(gpud_program_seal(p));
    gpud_arg before[] = {gpud_f32(3), gpud_in(slow), gpud_out(to)};
    hold(); /* it waits for a job that writes the same buffer */
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "scale"), before, 3, NULL, NULL, &gate_job));
    ck_gpud_ok(gpud_submit(c, p, NULL, 0, NULL, &job));
    ck_until(gpud_dispatch(c) == 0 && gpud_job_id(job) != 0);
    (void)snprintf(id, sizeof id, "%llu", (unsigned long long)gpud_job_id(job));
    int rc = gpuctl(&d, out, err, "job", "dump", id, file, "--with-data", NULL);
    ck_assert_msg(rc == 0, "%d: %s", rc, err);
    (void)snprintf(id, sizeof id, "#%#llx", (unsigned long long)from.id);
    ck_gpud_err(gpud_buffer_open(other, id, &opened), GPUD_ERR_NOT_FOUND); /* a library's handle */
    go_on();
    ck_gpud_ok(gpud_wait(job, PATIENCE));
    ck_gpud_ok(gpud_job_output(job, 1, 0, &data, &bytes));
    (void)hash_text(hash_of(data, bytes), hash);
    json_t *root = load(file);
    ck_assert_ptr_nonnull(json_object_get(entry(root, "buffers", 0), "data_base64"));
    (void)snprintf(id, sizeof id, "#%s", text_of(entry(root, "buffers", 0), "buffer"));
    rc = gpuctl(&d, out, err, "run", "--job", file, NULL);
    ck_assert_msg(rc == 0 && strstr(out, hash) != NULL, "%d, no %s: %s %s", rc, hash, out, err);
    ck_assert_msg(strstr(err, "1 buffers and arrays start as zeros") != NULL, "%s", err);
    (void)json_object_set_new(entry(root, "buffers", 0), "data_base64", json_string("AAAA"));
    (void)json_object_del(entry(root, "buffers", 0), "data_hash");
    store(root, file);
    rc = gpuctl(&d, out, err, "run", "--job", file, NULL);
    ck_assert_msg(rc == 1 && strstr(err, "data has 3 bytes") != NULL, "%d: %s", rc, err);
    ck_gpud_ok(gpud_buffer_open(other, id, &opened));
    ck_gpud_ok(gpud_read(other, opened, GPUD_F32, 0, GPUD_REST, x, NULL));
    ck_assert_float_eq(x[7], 7);
    ck_gpud_err(gpud_write(other, opened, GPUD_F32, 0, GPUD_REST, x, NULL), GPUD_ERR_PERMISSION);
    check_other(c, to, id);
    ck_gpud_ok(gpud_buffer_free(c, from)); /* it is its maker's to free */
    json_decref(root);
    gpud_job_free(gate_job);
    gpud_job_free(job);
    gpud_program_free(p);
    gpud_close(other);
    daemon_end(&d, c);
}
END_TEST

/* Runs the file again after one change. */
static void refuses(const json_t *root, const char *why)
{
    char bad[DAEMON_PATH + 32];
    (void)snprintf(bad, sizeof bad, "%s/bad.json", d.dir);
    store(root, bad);
    int rc = gpuctl(&d, out, err, "run", "--job", bad, NULL);
    ck_assert_msg(rc == 1 && strstr(err, why) != NULL, "%d, not \"%s\": %s", rc, why, err);
}

static void change(const json_t *root, json_t *o, const char *member, json_t *value,
                   const char *why)
{
    json_t *before = json_incref(json_object_get(o, member));
    ck_assert_int_eq(json_object_set_new(o, member, value), 0);
    refuses(root, why);
    if (before != NULL) {
        (void)json_object_set_new(o, member, before);
    } else {
        (void)json_object_del(o, member);
    }
}

static void check_bad_files(json_t *root)
{
    json_t *data = entry(entry(root, "steps", 2), "args", 1);
    json_t *buffer = entry(root, "buffers", 0);
    json_t *step = entry(root, "steps", 1);
    json_t *many = json_array();
    for (unsigned i = 0; i < 300; i++) {
        (void)json_array_append_new(many, json_object());
    }
    change(root, root, "version", json_integer(2), "version 2");
    change(root, root, "format", json_string("other"), "no file of gpuctl job dump");
    change(root, root, "steps", many, "steps has 300 entries, at most 256");
    change(root, root, "values", json_array(), "0 values for 3 parameters");
    change(root, data, "data_hash", json_string("00"), "data_hash has 00");
    change(root, data, "data_base64", json_string("!!!!"), "no base64");
    change(root, data, "shape", json_pack("[i]", 5), "data has 4000 bytes, its shape 20");
    change(root, data, "shape", json_pack("[I,I]", INT64_MAX, INT64_MAX), "shape");
    change(root, data, "shape", json_pack("[I]", (json_int_t)1 << 50), "may travel with a job");
    change(root, data, "shape", json_pack("[i]", -1), "no number");
    change(root, data, "type", json_string("f31"), "f31");
    change(root, data, "access", json_string("all"), "access \"all\"");
    change(root, buffer, "shape", json_pack("[I]", (json_int_t)1 << 55), "bytes");
    change(root, buffer, "buffer", json_string("0x1"), "the file has no buffer");
    change(root, buffer, "flags", json_integer(4), "variable of a module");
    change(root, step, "op", json_string("jump"), "there is no step \"jump\"");
    change(root, step, "kernel", json_string("thrice"), "thrice");
    change(root, step, "module", json_string("0x7"), "the file has no module 0x7");
    change(root, step, "args", json_pack("[{s:s,s:i}]", "what", "temp", "index", 9),
           "index 9 of 2");
    change(root, step, "args", json_pack("[{s:s}]", "what", "thing"), "no argument \"thing\"");
}

/* Numbers, hashes and names of the file are checked before anything is done with them. */
START_TEST(files_are_checked)
{
    static char text[DAEMON_OUTPUT];
    struct work w = {.job = NULL};
    gpud_client *c = begin("opencl", "");
    build_and_dump(c, &w);
    json_t *root = load(file);
    check_bad_files(root);
    json_decref(root);
    file_read(file, text, sizeof text);
    file_write(file, text, strlen(text) / 2);
    ck_assert_int_eq(gpuctl(&d, out, err, "run", "--job", file, NULL), 1);
    ck_assert_msg(strstr(err, "line") != NULL, "%s", err);
    ck_assert_int_eq(gpuctl(&d, out, err, "run", "--job", file, "--arg", "i32:1", NULL), 2);
    ck_assert_int_eq(gpuctl(&d, out, err, "run", "axpy", "--record", "x", NULL), 2);
    drop(c, &w);
    daemon_end(&d, c);
}
END_TEST

/* A source that the file does not have comes from the command line, and has the same hash. */
START_TEST(a_module_comes_from_a_file)
{
    struct work w = {.job = NULL};
    char source[DAEMON_PATH + 32];
    char option[2 * DAEMON_PATH];
    gpud_client *c = begin("opencl", "");
    build_and_dump(c, &w);
    json_t *root = load(file);
    json_t *module = loaded(root);
    (void)json_object_del(module, "source");
    store(root, file);
    (void)snprintf(source, sizeof source, "%s/twice.gk", d.dir);
    (void)snprintf(option, sizeof option, "%.8s=%s", text_of(module, "hash"), source);
    int rc = gpuctl(&d, out, err, "run", "--job", file, NULL);
    ck_assert_msg(rc == 1 && strstr(err, "--module") != NULL, "%d: %s", rc, err);
    file_write(source, twice, strlen(twice) - 1);
    rc = gpuctl(&d, out, err, "run", "--job", file, "--module", option, NULL);
    ck_assert_msg(rc == 1 && strstr(err, "source_hash") != NULL, "%d: %s", rc, err);
    file_write(source, twice, strlen(twice));
    rc = gpuctl(&d, out, err, "run", "--job", file, "--module", option, NULL);
    ck_assert_msg(rc == 0, "%d: %s", rc, err);
    rc = gpuctl(&d, out, err, "run", "--job", file, "--module", "12345678=x", NULL);
    ck_assert_msg(rc == 2 && strstr(err, "no module") != NULL, "%d: %s", rc, err);
    json_decref(root);
    drop(c, &w);
    daemon_end(&d, c);
}
END_TEST

/* PROTOCOL.md has the columns of the table. */
static void check_columns(const gpud_table *t)
{
    static char text[256 * 1024];
    file_read(SYSTEM_SOURCE "/../../proto/PROTOCOL.md", text, sizeof text);
    char *section = strstr(text, "#### `program`");
    ck_assert_ptr_nonnull(section);
    *strstr(section + 4, "\n#### ") = '\0';
    for (uint32_t i = 0; i < gpud_table_columns(t); i++) {
        char name[GPUD_NAME + 2];
        (void)snprintf(name, sizeof name, "`%s`", gpud_table_column_name(t, i));
        ck_assert_msg(strstr(section, name) != NULL, "PROTOCOL.md does not have %s", name);
    }
}

/* The program of a job is its tenant's. Without a role others get nothing of it, even if they see
 * the job; after its end nobody does. */
START_TEST(programs_are_their_tenants)
{
    char conf[256];
    struct work w = {.job = NULL};
    gpud_table *t = NULL;
    (void)snprintf(conf, sizeof conf, "%s[tenant near]\nusers = %u\n[tenant far]\ntcp = yes\n",
                   _i == 0 ? "" : "[daemon]\nlook = all\n", (unsigned)getuid());
    gpud_client *c = begin("sim", conf);
    gpud_client *far = client_open(far_url);
    build(c, &w);
    hang(c, &w);
    const gpud_query_options o = {.size = sizeof o, .job = gpud_job_id(w.job)};
    ck_gpud_ok(gpud_query_with(c, "program", &o, &t));
    check_columns(t);
    gpud_table_free(t);
    int code = _i == 0 ? GPUD_ERR_NOT_FOUND : GPUD_ERR_PERMISSION;
    ck_gpud_err(gpud_query_with(far, "program", &o, &t), code);
    int rc = gpuctl(&d, out, err, "--url", far_url, "job", "dump", w.id, file, NULL);
    ck_assert_msg(rc == (_i == 0 ? 1 : 4), "%d: %s", rc, err);
    ck_assert_int_ne(access(file, F_OK), 0);
    go_on();
    ck_gpud_ok(gpud_wait(w.job, PATIENCE));
    ck_until(gpuctl(&d, out, err, "job", "dump", w.id, NULL) == 1);
    ck_assert_msg(strstr(err, "has ended (done)") != NULL, "%s", err);
    ck_assert_int_eq(gpuctl(&d, out, err, "job", "dump", "987654", NULL), 1);
    ck_assert_msg(strstr(err, "there is no job 987654") != NULL, "%s", err);
    drop(c, &w);
    gpud_close(far);
    daemon_end(&d, c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("system_dump");
    suite_add_loop(suite, a_job_is_dumped_and_run_again, 2);
    suite_add_loop(suite, arrays_travel_with_the_job, 2);
    suite_add(suite, the_data_of_a_job_is_dumped);
    suite_add(suite, files_are_checked);
    suite_add(suite, a_module_comes_from_a_file);
    suite_add_loop(suite, programs_are_their_tenants, 2);
    return system_main(suite);
}
