/* CUDA C through the program gpud-compile, as the daemon runs it. */
#include <check.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "daemon/backend/cuda/compile/nvrtc.h"
#include "proto/compile.h"
#include "proto/messages.h"
#include "tests/unit/worker/fake_front.h"

#define SKIPPED 77

static bool says(struct bytes text, const char *what)
{
    return text.size > 0 && memmem(text.data, text.size, what, strlen(what)) != NULL;
}

START_TEST(kernels_are_reported)
{
    struct compile_response r;
    struct memfd m = MEMFD_NONE;
    struct proto_ckernel k;
    fake_compile("cuda", "sm_90", LANG_CUDA, "k.cu",
                 bytes_str("template <class T> __global__ void f(T *x, int n) { *x = n; }\n"
                           "template __global__ void f<float>(float *, int);\n"),
                 &r, &m);
    ck_assert_msg(r.code == 0, "%.*s", (int)r.text.size, r.text.data);
    ck_assert_uint_eq(r.kernels.count, 1);
    struct proto_iter it = proto_iter_of(r.kernels);
    ck_assert(proto_list_next(&it, &schema_ckernel, &k));
    ck_assert(bytes_equal_str(k.entry, "_Z1fIfEvPT_i"));
    ck_assert(bytes_equal_str(k.name, "f<float>"));
    ck_assert_uint_eq(k.args.count, 2);
    ck_assert(says(r.compiler, "libnvrtc"));
    memfd_finish(&m);
}
END_TEST

static const struct {
    int lang;
    const char *file, *source, *says;
    int code;
} wrong[] = {
    {LANG_CUDA, "bad.cu", "__global__ void f(float *x)\n{\n    x[0] = undefined_thing;\n}\n",
     "bad.cu:3:12: error", ERR_COMPILE},
    {LANG_DIALECT, "bad.gk",
     "//@kernel f(inout f32 x[n]) over n\n{\n    x[i] = undefined_thing;\n}\n",
     "bad.gk:3:12: error", ERR_COMPILE},
    {LANG_CUDA, "inc.cu", "\n#include \"/etc/passwd\"\n",
     "inc.cu:2:10: fatal error: /etc/passwd: Permission denied", ERR_COMPILE},
    {LANG_DIALECT, "inc.gk", "//@kernel f(inout f32 x[n]) over n\n{\n#include <stdio.h>\n}\n",
     "inc.gk:3:1", ERR_COMPILE},
    {LANG_PTX, "a.ptx", "no PTX", "this is no PTX", ERR_INVALID},
    {LANG_CUBIN, "a.cubin", "no cubin", "neither a cubin nor a fatbin", ERR_INVALID},
    {LANG_SPIRV, "a.spv", "x", "takes the dialect, CUDA C", ERR_UNSUPPORTED},
};

START_TEST(errors_are_typed_and_have_a_place)
{
    struct compile_response r;
    struct memfd m = MEMFD_NONE;
    fake_compile("cuda", "sm_90", wrong[_i].lang, wrong[_i].file, bytes_str(wrong[_i].source), &r,
                 &m);
    ck_assert_int_eq(r.code, wrong[_i].code);
    ck_assert_msg(says(r.text, wrong[_i].says), "%.*s", (int)r.text.size, r.text.data);
    ck_assert(!says(r.log, "root:"));
    ck_assert_uint_eq(r.binary.size, 0);
    memfd_finish(&m);
}
END_TEST

/* Templates that need years end with their process. */
START_TEST(a_bomb_ends_at_its_limit)
{
    static const char bomb[] =
        "template <int N, int M> struct F {\n"
        "  static constexpr long v = F<N - 1, M * 2>::v + F<N - 1, M * 2 + 1>::v; };\n"
        "template <int M> struct F<0, M> { static constexpr long v = M; };\n"
        "extern \"C\" __global__ void k(long *x) { *x = F<40, 1>::v; }\n";
    struct err e = ERR_INIT;
    struct compile_response r;
    struct memfd in = MEMFD_NONE;
    struct memfd out = MEMFD_NONE;
    struct rlimit limit = {.rlim_cur = 3, .rlim_max = 3};
    const char *args[] = {"--backend", "cuda", "--device", "0", NULL};
    int status = 0;
    const struct compile_request request = {
        .lang = LANG_CUDA, .source = bytes_str(bomb), .arch = bytes_str("sm_90")};
    ck_assert_int_eq(compile_request_write(&request, &in, &e), 0);
    ck_assert_int_eq(compile_response_create(&out, &e), 0);
    const int fds[] = {in.fd, out.fd};
    ck_assert_int_eq(setrlimit(RLIMIT_CPU, &limit), 0); /* the child inherits it */
    pid_t pid = fake_spawn("gpud-compile", args, fds, 2);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(compile_response_read(&out, &r, &e), ERR_COMPILE_LIMIT);
    memfd_finish(&in);
    memfd_finish(&out);
}
END_TEST

/* ---- the precompiled header of CUB -------------------------------------------------------- */

static const char cub_source[] =
    "#include <cub/block/block_reduce.cuh>\n"
    "extern \"C\" __global__ void sum(const float *x, float *y) {\n"
    "  typedef cub::BlockReduce<float, 128> R; __shared__ typename R::TempStorage t;\n"
    "  float s = R(t).Sum(x[blockIdx.x * 128 + threadIdx.x]);\n"
    "  if (threadIdx.x == 0) y[blockIdx.x] = s; }\n";

static void compile_in(const char *cache, const char *source, struct compile_response *r,
                       struct memfd *out)
{
    struct err e = ERR_INIT;
    struct memfd in = MEMFD_NONE;
    int status = 0;
    const char *args[] = {"--backend", "cuda", "--device", "0", "--cache", cache, NULL};
    const struct compile_request request = {.lang = LANG_CUDA,
                                            .source = bytes_str(source),
                                            .file = bytes_str("sum.cu"),
                                            .arch = bytes_str("sm_90")};
    ck_assert_int_eq(compile_request_write(&request, &in, &e), 0);
    ck_assert_int_eq(compile_response_create(out, &e), 0);
    const int fds[] = {in.fd, out->fd};
    pid_t pid = fake_spawn("gpud-compile", args, fds, 2);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(compile_response_read(out, r, &e), 0);
    memfd_finish(&in);
}

/* The one header in the folder; its path in `out`. */
static struct stat header_find(const char *cache, char *out, size_t size)
{
    struct stat st = {.st_size = 0};
    char folder[256];
    unsigned count = 0;
    snprintf(folder, sizeof folder, "%s/pch", cache);
    DIR *d = opendir(folder);
    const struct dirent *entry;
    ck_assert_ptr_nonnull(d);
    while ((entry = readdir(d)) != NULL) {
        if (strstr(entry->d_name, ".pch") != NULL) {
            snprintf(out, size, "%s/%s", folder, entry->d_name);
            count++;
        }
        ck_assert_msg(strncmp(entry->d_name, "new.", 4) != 0, "%s is left", entry->d_name);
    }
    (void)closedir(d);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(stat(out, &st), 0);
    return st;
}

START_TEST(cub_is_precompiled_once_and_again_when_damaged)
{
    char cache[] = "/tmp/gpud-test-pch.XXXXXX";
    char path[512] = "";
    char command[64];
    struct compile_response r;
    struct memfd m = MEMFD_NONE;
    struct stat made[4];
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return; /* they place memory themselves */
#endif
    ck_assert_ptr_nonnull(mkdtemp(cache));
    for (unsigned i = 0; i < 4; i++) {
        if (i == 2) { /* a byte in the middle */
            FILE *f = fopen(path, "r+b");
            ck_assert_ptr_nonnull(f);
            ck_assert_int_eq(fseek(f, made[1].st_size / 2, SEEK_SET), 0);
            int c = fgetc(f);
            ck_assert_int_eq(fseek(f, made[1].st_size / 2, SEEK_SET), 0);
            ck_assert_int_ne(fputc(c ^ 1, f), EOF);
            ck_assert_int_eq(fclose(f), 0);
        }
        compile_in(cache, i < 3 ? cub_source : "#include <cub/cub.cuh>\n__global__ void f() { x; }",
                   &r, &m);
        if (i < 3) {
            ck_assert_msg(r.code == 0, "%.*s", (int)r.text.size, r.text.data);
            ck_assert_msg(says(r.log, "compiled by NVRTC"), "%.*s", (int)r.log.size, r.log.data);
            ck_assert(!says(r.log, "warning"));
            ck_assert_uint_eq(r.kernels.count, 1);
        } else {
            ck_assert_int_eq(r.code, ERR_COMPILE);
            ck_assert_msg(says(r.text, "sum.cu:2:"), "%.*s", (int)r.text.size, r.text.data);
        }
        made[i] = header_find(cache, path, sizeof path);
        memfd_finish(&m);
    }
    ck_assert_uint_eq(made[0].st_ino, made[1].st_ino);
    ck_assert_int_gt(made[2].st_mtim.tv_sec * 1000 + made[2].st_mtim.tv_nsec / 1000000,
                     made[1].st_mtim.tv_sec * 1000 + made[1].st_mtim.tv_nsec / 1000000);
    ck_assert_uint_eq(made[2].st_ino, made[3].st_ino);
    snprintf(command, sizeof command, "rm -r %s", cache);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

int main(void)
{
    struct nvrtc n;
    struct err e = ERR_INIT;
    if (nvrtc_load("", &n, &e) != 0) {
        fprintf(stderr, "skipped: %s\n", e.text);
        return SKIPPED;
    }
    Suite *suite = suite_create("cuda process");
    TCase *t = tcase_create("process");
    tcase_set_timeout(t, 100);
    tcase_add_test(t, kernels_are_reported);
    tcase_add_loop_test(t, errors_are_typed_and_have_a_place, 0, sizeof wrong / sizeof wrong[0]);
    tcase_add_test(t, a_bomb_ends_at_its_limit);
    if (n.include[0] != '\0' && n.GetPCHCreateStatus != NULL) {
        tcase_add_test(t, cub_is_precompiled_once_and_again_when_damaged);
    }
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
