/* gpud-compile as a process. Where there is no OpenCL only simulated devices are asked. */
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/shape.h"
#include "daemon/backend/backend.h"
#include "tests/unit/worker/fake_front.h"

static char tmpdir[] = "/tmp/gpud-test-compile.XXXXXX";

static const char DIALECT[] =
    "//@kernel twice<T: f32 f64>(in T x[n], out T y[n]) over n\n{\n    y[i] = x[i] + x[i];\n}\n";
static const char OPENCL[] =
    "kernel void half_of(global const float *x, global float *y, int n)\n"
    "{\n    int i = get_global_id(0);\n    if (i < n) y[i] = x[i] / 2;\n}\n";

static bool opencl_here(void)
{
    const struct backend *b = backend_find("opencl");
    unsigned count = 0;
    int pipe_fd[2];
    if (b == NULL || pipe(pipe_fd) != 0) {
        return false;
    }
    pid_t pid = fork(); /* a driver that was once asked does not outlive a fork */
    if (pid == 0) {
        _exit(b->enumerate("", &count, NULL) == 0 && count > 0 ? 0 : 1);
    }
    int status = 1;
    (void)waitpid(pid, &status, 0);
    return status == 0;
}

static struct bytes text(const char *t)
{
    return bytes_str(t);
}

static bool says(struct bytes b, const char *what)
{
    return memmem(b.data, b.size, what, strlen(what)) != NULL;
}

static unsigned entries_left(void)
{
    unsigned count = 0;
    DIR *d = opendir(tmpdir);
    const struct dirent *entry;
    ck_assert_ptr_nonnull(d);
    while ((entry = readdir(d)) != NULL) {
        count += entry->d_name[0] != '.';
    }
    (void)closedir(d);
    return count;
}

START_TEST(the_dialect_tells_its_signatures)
{
    struct compile_response r;
    struct memfd m = MEMFD_NONE;
    struct proto_ckernel k;
    fake_compile("opencl", "", LANG_DIALECT, "twice.gk", text(DIALECT), &r, &m);
    ck_assert_msg(r.code == 0, "%.*s", (int)r.text.size, r.text.data);
    ck_assert_uint_gt(r.binary.size, 0);
    ck_assert_uint_eq(r.kernels.count, 1);
    struct proto_iter it = proto_iter_of(r.kernels);
    ck_assert(proto_list_next(&it, &schema_ckernel, &k));
    ck_assert(bytes_equal_str(k.entry, "twice"));
    ck_assert(says(k.signature, "in T x[n]"));
    ck_assert_uint_eq(entries_left(), 0);
    memfd_finish(&m);
}
END_TEST

START_TEST(opencl_c_tells_its_arguments)
{
    struct compile_response r;
    struct memfd m = MEMFD_NONE;
    struct proto_ckernel k;
    struct proto_carg a;
    static const struct {
        const char *name;
        unsigned kind, access;
    } ARG[] = {{"x", 2, ACCESS_IN}, {"y", 2, ACCESS_INOUT}, {"n", 1, ACCESS_NONE}};
    fake_compile("opencl", "", LANG_OPENCL, "half.cl", text(OPENCL), &r, &m);
    ck_assert_msg(r.code == 0, "%.*s", (int)r.text.size, r.text.data);
    struct proto_iter it = proto_iter_of(r.kernels);
    ck_assert(proto_list_next(&it, &schema_ckernel, &k));
    ck_assert(bytes_equal_str(k.entry, "half_of"));
    ck_assert_uint_eq(k.args.count, 3);
    struct proto_iter args = proto_iter_of(k.args);
    for (unsigned i = 0; proto_list_next(&args, &schema_carg, &a); i++) {
        ck_assert(bytes_equal_str(a.name, ARG[i].name));
        ck_assert_uint_eq(a.kind, ARG[i].kind);
        ck_assert_uint_eq(a.access, ARG[i].access);
    }
    memfd_finish(&m);
}
END_TEST

static const char TILED[] =
    "//@kernel turn<T: f32 i32>(in T x[n], out T y[n]) over n group 256 local T tile[256]\n"
    "{\n    tile[lid] = x[i];\n    barrier();\n    y[i] = tile[255 - lid];\n}\n";

/* Of the dialect, too: one record for each member of the family. */
START_TEST(what_each_entry_takes_is_told)
{
    struct compile_response r;
    struct memfd m = MEMFD_NONE;
    struct proto_wkernel k;
    fake_compile("opencl", "", LANG_DIALECT, "turn.gk", text(TILED), &r, &m);
    ck_assert_msg(r.code == 0, "%.*s", (int)r.text.size, r.text.data);
    ck_assert_uint_eq(r.entries.count, 2);
    struct proto_iter it = proto_iter_of(r.entries);
    while (proto_list_next(&it, &schema_wkernel, &k)) {
        ck_assert(bytes_equal_str(k.entry, "turn_f32") || bytes_equal_str(k.entry, "turn_i32"));
        ck_assert_uint_ge(k.shared_bytes, 1024);
        ck_assert_uint_ge(k.max_group, 256);
        ck_assert_uint_gt(k.preferred_multiple, 0);
    }
    memfd_finish(&m);
}
END_TEST

static const struct {
    int lang;
    const char *file;
    const char *source;
    const char *says;
} WRONG[] = {
    {LANG_OPENCL, "bad.cl", "kernel void f(global float *x)\n{\n    x[0] = undefined_thing;\n}\n",
     "bad.cl:3:12"},
    {LANG_DIALECT, "bad.gk",
     "//@kernel f(inout f32 x[n]) over n\n{\n    x[i] = undefined_thing;\n}\n", "bad.gk:3"},
    {LANG_DIALECT, "sig.gk", "//@kernel f(inout f33 x[n]) over n\n{\n}\n", "sig.gk:1"},
    {LANG_OPENCL, "inc.cl", "\n#include \"/etc/passwd\"\n", "inc.cl:2:2"},
    {LANG_DIALECT, "inc.gk", "//@kernel f(inout f32 x[n]) over n\n{\n#include \"/etc/passwd\"\n}\n",
     "inc.gk:3:1"},
    {LANG_OPENCL, "none.cl", "#warning here\nint f(int x) { return x; }\n", "none.cl: no kernel"},
};

START_TEST(errors_tell_file_and_line)
{
    struct compile_response r;
    struct memfd m = MEMFD_NONE;
    fake_compile("opencl", "", WRONG[_i].lang, WRONG[_i].file, text(WRONG[_i].source), &r, &m);
    ck_assert_int_eq(r.code, ERR_COMPILE);
    ck_assert_msg(says(r.log, WRONG[_i].says), "log: %.*s", (int)r.log.size, r.log.data);
    ck_assert_uint_eq(r.binary.size, 0);
    ck_assert(!says(r.log, "root:"));
    memfd_finish(&m);
}
END_TEST

/* A kernel whose name cannot be requested does not keep the others from being used. */
START_TEST(long_names_are_left_out)
{
    struct compile_response r;
    struct memfd m = MEMFD_NONE;
    char source[512];
    char name[66];
    memset(name, 'k', 65);
    name[65] = '\0';
    (void)snprintf(source, sizeof source, "kernel void %s(global int *x) { *x = 1; }\n%s", name,
                   OPENCL);
    fake_compile("opencl", "", LANG_OPENCL, "k.cl", text(source), &r, &m);
    ck_assert_msg(r.code == 0, "%.*s", (int)r.text.size, r.text.data);
    ck_assert_uint_eq(r.kernels.count, 1);
    ck_assert(says(r.log, "over 64 bytes are left out: 1, first kkkk"));
    memfd_finish(&m);
    (void)snprintf(source, sizeof source, "kernel void %s(global int *x) { *x = 1; }\n", name);
    fake_compile("opencl", "", LANG_OPENCL, "k.cl", text(source), &r, &m);
    ck_assert_int_eq(r.code, ERR_LIMIT);
    ck_assert(says(r.text, "a name of 65 bytes, at most 64"));
    memfd_finish(&m);
}
END_TEST

/* Editors write it, compilers step over it at the begin of a file. */
START_TEST(a_byte_order_mark_is_no_text)
{
    static const struct {
        int lang;
        const char *file, *source;
    } AT[] = {{LANG_DIALECT, "twice.gk", DIALECT}, {LANG_OPENCL, "half.cl", OPENCL}};
    for (size_t i = 0; i < sizeof AT / sizeof AT[0]; i++) {
        struct compile_response r;
        struct memfd m = MEMFD_NONE;
        char marked[512];
        (void)snprintf(marked, sizeof marked, "\xEF\xBB\xBF%s", AT[i].source);
        fake_compile("opencl", "", AT[i].lang, AT[i].file, text(marked), &r, &m);
        ck_assert_msg(r.code == 0, "%s: %.*s", AT[i].file, (int)r.log.size, r.log.data);
        memfd_finish(&m);
    }
}
END_TEST

/* It is ended at its limit without an answer; the next one clears up behind it. */
START_TEST(a_bomb_ends_at_its_limit)
{
    struct err e = ERR_INIT;
    struct compile_response r;
    struct capbuf bomb;
    struct memfd in = MEMFD_NONE;
    struct memfd out = MEMFD_NONE;
    struct rlimit before;
    const char *args[] = {"--backend", "opencl", "--device", "0", NULL};
    int status = 0;
    capbuf_init(&bomb, 1 << 16);
    ck_assert(capbuf_printf(&bomb, "#define A0 x = x * y + 1.5f;\n"));
    for (unsigned i = 1; i < 9; i++) {
        ck_assert(capbuf_printf(&bomb, "#define A%u ", i));
        for (unsigned n = 0; n < 10; n++) {
            ck_assert(capbuf_printf(&bomb, "A%u ", i - 1));
        }
        ck_assert(capbuf_printf(&bomb, "\n"));
    }
    ck_assert(capbuf_printf(
        &bomb, "kernel void f(global float *p) { float x = p[0], y = p[1]; A8 p[0] = x; }\n"));
    const struct compile_request request = {.lang = LANG_OPENCL, .source = capbuf_view(&bomb)};
    ck_assert_int_eq(compile_request_write(&request, &in, &e), 0);
    ck_assert_int_eq(compile_response_create(&out, &e), 0);
    const int fds[] = {in.fd, out.fd};
    ck_assert_int_eq(getrlimit(RLIMIT_CPU, &before), 0);
    const struct rlimit limit = {.rlim_cur = 2, .rlim_max = before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_CPU, &limit), 0); /* the child inherits it */
    pid_t pid = fake_spawn("gpud-compile", args, fds, 2);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(compile_response_read(&out, &r, &e), ERR_COMPILE_LIMIT);
    ck_assert_uint_eq(entries_left(), 1);
    memfd_finish(&in);
    memfd_finish(&out);
    capbuf_finish(&bomb);

    ck_assert_int_eq(setrlimit(RLIMIT_CPU, &before), 0);
    fake_compile("opencl", "", LANG_DIALECT, "twice.gk", text(DIALECT), &r, &out);
    ck_assert_int_eq(r.code, 0);
    ck_assert_uint_eq(entries_left(), 0);
    memfd_finish(&out);
}
END_TEST

START_TEST(what_is_unknown_is_refused)
{
    struct compile_response r;
    struct memfd m = MEMFD_NONE;
    fake_compile("abacus", "", LANG_DIALECT, "twice.gk", text(DIALECT), &r, &m);
    ck_assert_int_eq(r.code, ERR_UNSUPPORTED);
    memfd_finish(&m);
    fake_compile("sim", "", LANG_PTX, "x.ptx", text("x"), &r, &m);
    ck_assert_int_lt(r.code, 0);
    memfd_finish(&m);
}
END_TEST

/* What a compiler left behind that was killed before it had a lock; a new one may be about to. */
START_TEST(old_folders_without_a_lock_are_removed)
{
    static const char *const NAME[] = {"gpud-compile.older1", "gpud-compile.newer1"};
    const struct timespec times[2] = {{.tv_sec = time(NULL) - 3600}, {.tv_sec = time(NULL) - 3600}};
    struct compile_response r;
    struct memfd m = MEMFD_NONE;
    int dir = open(tmpdir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(dir, 0);
    ck_assert_int_eq(mkdirat(dir, NAME[0], 0700), 0);
    ck_assert_int_eq(mkdirat(dir, NAME[1], 0700), 0);
    ck_assert_int_eq(utimensat(dir, NAME[0], times, 0), 0);
    fake_compile("sim", "", LANG_PTX, "x.ptx", text("x"), &r, &m);
    memfd_finish(&m);
    ck_assert_int_eq(faccessat(dir, NAME[0], F_OK, 0), -1);
    ck_assert_int_eq(faccessat(dir, NAME[1], F_OK, 0), 0);
    ck_assert_int_eq(unlinkat(dir, NAME[1], AT_REMOVEDIR), 0);
    (void)close(dir);
}
END_TEST

/* A request that is no message is answered, not obeyed. */
START_TEST(a_bad_request_is_answered)
{
    struct err e = ERR_INIT;
    struct compile_response r;
    struct memfd in = MEMFD_NONE;
    struct memfd out = MEMFD_NONE;
    const char *args[] = {"--backend", "sim", "--device", "0", NULL};
    const uint64_t length[] = {0, 3, 1000000};
    for (unsigned i = 0; i < 3; i++) {
        int status = 0;
        ck_assert_int_eq(memfd_create_sealed("request", 4096, &in, &e), 0);
        ck_assert_int_eq(compile_response_create(&out, &e), 0);
        memcpy(in.data, &length[i], sizeof length[i]);
        const int fds[] = {in.fd, out.fd};
        pid_t pid = fake_spawn("gpud-compile", args, fds, 2);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
        ck_assert_int_eq(compile_response_read(&out, &r, &e), 0);
        ck_assert_int_eq(r.code, ERR_PROTOCOL);
        memfd_finish(&in);
        memfd_finish(&out);
    }
}
END_TEST

int main(void)
{
    if (mkdtemp(tmpdir) == NULL || setenv("TMPDIR", tmpdir, 1) != 0) {
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("compile");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 90);
    if (opencl_here()) {
        tcase_add_test(all, the_dialect_tells_its_signatures);
        tcase_add_test(all, opencl_c_tells_its_arguments);
        tcase_add_test(all, what_each_entry_takes_is_told);
        tcase_add_loop_test(all, errors_tell_file_and_line, 0, sizeof WRONG / sizeof WRONG[0]);
        tcase_add_test(all, long_names_are_left_out);
        tcase_add_test(all, a_byte_order_mark_is_no_text);
        tcase_add_test(all, a_bomb_ends_at_its_limit);
    } else {
        fprintf(stderr, "no OpenCL device: its compiler is not tested\n");
    }
    tcase_add_test(all, what_is_unknown_is_refused);
    tcase_add_test(all, old_folders_without_a_lock_are_removed);
    tcase_add_test(all, a_bad_request_is_answered);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    (void)rmdir(tmpdir);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
