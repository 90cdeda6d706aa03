/* CUDA C through the program gpud-compile with the toolkit's nvcc: whole programs, what nvcc may
 * see of a source and of the host, and the error where nvcc is missing. */
#include <check.h>
#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/shape.h"
#include "daemon/backend/cuda/compile/nvcc.h"
#include "daemon/backend/cuda/compile/nvrtc.h"
#include "proto/compile.h"
#include "proto/messages.h"
#include "tests/unit/worker/fake_front.h"

#define SKIPPED 77

static bool says(struct bytes text, const char *what)
{
    return text.size > 0 && memmem(text.data, text.size, what, strlen(what)) != NULL;
}

struct asked {
    const char *settings; /* the back end's options */
    const char *options;  /* the source's */
    const char *source;
    int lang; /* 0: CUDA C */
    const char *backend;
};

/* The answer's code. */
static int compile(const struct asked *a, struct compile_response *r, struct memfd *out)
{
    struct err e = ERR_INIT;
    struct memfd in = MEMFD_NONE;
    int status = 0;
    const char *args[] = {"--backend", a->backend != NULL ? a->backend : "cuda", "--device", "0",
                          "--options", a->settings != NULL ? a->settings : "",   NULL};
    const struct compile_request request = {.lang = a->lang != 0 ? a->lang : LANG_CUDA,
                                            .source = bytes_str(a->source),
                                            .file = bytes_str("k.cu"),
                                            .options =
                                                bytes_str(a->options != NULL ? a->options : ""),
                                            .arch = bytes_str("sm_90")};
    ck_assert_int_eq(compile_request_write(&request, &in, &e), 0);
    ck_assert_int_eq(compile_response_create(out, &e), 0);
    const int fds[] = {in.fd, out->fd};
    pid_t pid = fake_spawn("gpud-compile", args, fds, 2);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    int rc = compile_response_read(out, r, &e);
    memfd_finish(&in);
    return rc != 0 ? rc : (int)r->code;
}

static struct proto_ckernel kernel_find(const struct compile_response *r, const char *name)
{
    struct proto_ckernel k;
    struct proto_iter it = proto_iter_of(r->kernels);
    while (proto_list_next(&it, &schema_ckernel, &k)) {
        if (bytes_equal_str(k.name, name)) {
            return k;
        }
    }
    ck_abort_msg("no kernel %s", name);
    return k;
}

/* ---- what it takes ------------------------------------------------------------------------ */

static const char program[] =
    "#include <cstdio>\n#include <vector>\n"
    "struct Pair { float a; int b; };\n"
    "typedef double real;\n"
    "namespace deep { __global__ void scale(const real *x, real *y, Pair p, unsigned n) "
    "{ y[n] = x[n] * p.a; } }\n"
    "static __global__ void hidden(int *p) { *p = SIZE; }\n"
    "template <class T, int N> __global__ void fill(T *x) { *x = N; }\n"
    "int main()\n{\n    std::vector<float> v(4);\n    fill<short, 3><<<1, 1>>>((short *)0);\n"
    "    printf(\"%zu\\n\", v.size());\n}\n";

START_TEST(a_whole_program_is_taken)
{
    struct compile_response r;
    struct memfd m = MEMFD_NONE;
    struct proto_carg arg;
    static const struct {
        uint64_t kind, access;
        int dtype;
    } want[] = {{2, ACCESS_IN, DTYPE_F64},
                {2, ACCESS_INOUT, DTYPE_F64},
                {3, 0, DTYPE_NONE},
                {1, 0, DTYPE_U32}};
    const struct asked a = {.source = program,
                            .options = "-DSIZE=5 --name-expression='fill<float, 2>'"};
    ck_assert_int_eq(compile(&a, &r, &m), 0);
    ck_assert_msg(r.code == 0, "%.*s\n%.*s", (int)r.text.size, r.text.data, (int)r.log.size,
                  r.log.data);
    ck_assert_uint_eq(r.kernels.count, 4);
    ck_assert(bytes_equal_str(kernel_find(&r, "hidden").entry, "_Z6hiddenPi"));
    ck_assert_uint_eq(kernel_find(&r, "fill<short,3>").args.count, 1);
    ck_assert_uint_eq(kernel_find(&r, "fill<float, 2>").args.count, 1);
    struct proto_iter it = proto_iter_of(kernel_find(&r, "deep::scale").args);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert(proto_list_next(&it, &schema_carg, &arg));
        ck_assert_uint_eq(arg.kind, want[i].kind);
        ck_assert_uint_eq(arg.access, want[i].access);
        ck_assert_int_eq((int)arg.dtype, want[i].dtype);
    }
    ck_assert(says(r.log, "NVRTC did not take it"));
    ck_assert(says(r.log, "compiled by nvcc"));
    ck_assert(says(r.compiler, "nvcc"));
    memfd_finish(&m);
}
END_TEST

START_TEST(the_compiler_can_be_chosen)
{
    static const char both[] = "__global__ void k(float *x) { *x = 1; }\n";
    static const struct {
        struct asked asked;
        const char *by;
    } chosen[] = {
        {{.source = both}, "compiled by NVRTC"},
        {{.source = both, .options = "--compiler=nvcc"}, "compiled by nvcc"},
        {{.source = both, .settings = "compiler=nvcc"}, "compiled by nvcc"},
        {{.source = both, .settings = "compiler=nvcc", .options = "--compiler=nvrtc"},
         "compiled by NVRTC"},
        {{.source = both, .options = "--expt-relaxed-constexpr"}, "compiled by nvcc"},
        {{.source = both, .settings = "nvrtc=/nonexistent"}, "compiled by nvcc"},
    };
    struct compile_response r;
    struct memfd m = MEMFD_NONE;
    ck_assert_int_eq(compile(&chosen[_i].asked, &r, &m), 0);
    ck_assert_msg(r.code == 0, "%.*s", (int)r.text.size, r.text.data);
    ck_assert_msg(says(r.log, chosen[_i].by), "%.*s", (int)r.log.size, r.log.data);
    memfd_finish(&m);
}
END_TEST

START_TEST(without_nvcc_the_error_says_what_to_do)
{
    struct compile_response r;
    struct memfd m = MEMFD_NONE;
    const struct asked a = {.source = program, .settings = "nvcc=/nonexistent"};
    const struct asked b = {
        .source = program, .settings = "nvcc=/nonexistent", .options = "--compiler=nvcc"};
    ck_assert_int_eq(compile(&a, &r, &m), ERR_COMPILE);
    ck_assert_msg(says(r.text, "nvcc -cubin -arch=sm_90 -o k.cubin k.cu"), "%.*s", (int)r.text.size,
                  r.text.data);
    ck_assert(says(r.log, "-fatbin"));
    memfd_finish(&m);
    ck_assert_int_eq(compile(&b, &r, &m), ERR_UNSUPPORTED);
    ck_assert(says(r.text, "nvcc is not installed in /nonexistent"));
    memfd_finish(&m);
}
END_TEST

/* ---- what it may not ---------------------------------------------------------------------- */

/* nvcc gives its options to a shell; in a text they mean themselves. */
START_TEST(no_shell_reads_macros)
{
    static const char source[] =
        "#define S(x) #x\n#define T(x) S(x)\n"
        "static_assert(sizeof T(X) == sizeof \"$(echo 7)\", \"X\");\n"
        "static_assert(sizeof T(Y) == sizeof \"`id`;id&&id|id>z\", \"Y\");\n"
        "__global__ void k(int *p) { *p = Z; }\n";
    struct compile_response r;
    struct memfd m = MEMFD_NONE;
    const struct asked a = {.source = source,
                            .options = "--compiler=nvcc '-DX=$(echo 7)' '-DY=`id`;id&&id|id>z' "
                                       "-DZ='(1 + 2)' -D M -UM"};
    ck_assert_int_eq(compile(&a, &r, &m), 0);
    ck_assert_msg(r.code == 0, "%.*s", (int)r.text.size, r.text.data);
    memfd_finish(&m);
}
END_TEST

static const char *const reaching[] = {
    "#include \"%s\"\n",
    "#include <%s>\n",
    "#define H \"%s\"\n#include H\n",
    "#ifdef __CUDA_ARCH__\n#include \"%s\"\n#endif\n",
    "#if __has_include(\"%s\")\nint found = \"SECRET\";\n#endif\n",
};

static const struct {
    const char *options, *backend;
    int lang;
} readers[] = {
    {"--compiler=nvcc", "cuda", LANG_CUDA},
    {"--compiler=nvrtc", "cuda", LANG_CUDA},
    {"", "cuda", LANG_CUDA},
    {"", "opencl", LANG_OPENCL},
};

/* Errors show the lines that a compiler does not understand. */
START_TEST(no_compiler_shows_a_file_of_the_host)
{
    char folder[] = "/tmp/gpud-test-secret.XXXXXX";
    char path[PATH_MAX];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/secret", folder);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_gt(fputs("SECRET word of the host\n#SECRET directive\n", f), 0);
    ck_assert_int_eq(fclose(f), 0);
    for (size_t i = 0; i < sizeof reaching / sizeof reaching[0]; i++) {
        char source[1024];
        struct compile_response r;
        struct memfd m = MEMFD_NONE;
        int used = snprintf(source, sizeof source, reaching[i], path); /* NOLINT: of the table */
        (void)snprintf(source + used, sizeof source - (size_t)used,
                       "__global__ void k(int *p) { *p = 1; }\n");
        const struct asked a = {.source = source,
                                .options = readers[_i].options,
                                .backend = readers[_i].backend,
                                .lang = readers[_i].lang};
        int rc = compile(&a, &r, &m);
        bool asks = strstr(reaching[i], "has_include") != NULL;
        ck_assert_msg(asks || rc != 0, "%s: taken", source);
        ck_assert_msg(!says(r.log, "SECRET") && !says(r.text, "SECRET"), "%.*s", (int)r.log.size,
                      r.log.data);
        memfd_finish(&m);
    }
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

/* As an older kernel of the operating system answers, for this process and its children. */
static void landlock_refuse(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_landlock_create_ruleset, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog all = {.len = sizeof code / sizeof code[0], .filter = code};
    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all), 0);
}

/* What nvcc says of a file that it must not read is kept back, and why is said. */
START_TEST(without_landlock_words_are_kept_back)
{
    static const char source[] = "#define H \"/etc/passwd\"\n#include H\n"
                                 "__global__ void k(int *p) { *p = 1; }\n";
    const struct asked a = {.source = source, .options = "--compiler=nvcc"};
    struct compile_response r;
    struct memfd m = MEMFD_NONE;
    landlock_refuse();
    ck_assert_int_ne(compile(&a, &r, &m), 0);
    ck_assert_msg(says(r.log, "no Landlock") && says(r.log, "withheld") && !says(r.log, "root:"),
                  "%.*s", (int)r.log.size, r.log.data);
    memfd_finish(&m);
}
END_TEST

START_TEST(a_bomb_ends_at_its_limit)
{
    static const char bomb[] =
        "template <int N, int M> struct F {\n"
        "  static constexpr long v = F<N - 1, M * 2>::v + F<N - 1, M * 2 + 1>::v; };\n"
        "template <int M> struct F<0, M> { static constexpr long v = M; };\n"
        "extern \"C\" __global__ void k(long *x) { *x = F<40, 1>::v; }\n";
    struct compile_response r;
    struct memfd m = MEMFD_NONE;
    struct rlimit limit = {.rlim_cur = 3, .rlim_max = 8};
    const struct asked a = {.source = bomb, .options = "--compiler=nvcc"};
    ck_assert_int_eq(setrlimit(RLIMIT_CPU, &limit), 0); /* the child inherits it */
    ck_assert_int_eq(compile(&a, &r, &m), ERR_COMPILE_LIMIT);
    ck_assert_msg(says(r.text, "compile.cpu_s"), "%.*s", (int)r.text.size, r.text.data);
    memfd_finish(&m);
}
END_TEST

int main(void)
{
    struct nvrtc n;
    struct err e = ERR_INIT;
    char nvcc[PATH_MAX];
    if (!nvcc_find("", nvcc) || nvrtc_load("", &n, &e) != 0) {
        fprintf(stderr, "skipped: no nvcc, or no NVRTC %s\n", e.text);
        return SKIPPED;
    }
    Suite *suite = suite_create("cuda nvcc");
    TCase *t = tcase_create("nvcc");
    tcase_set_timeout(t, 200);
    tcase_add_test(t, a_whole_program_is_taken);
    tcase_add_loop_test(t, the_compiler_can_be_chosen, 0, 6);
    tcase_add_test(t, without_nvcc_the_error_says_what_to_do);
    tcase_add_test(t, no_shell_reads_macros);
    tcase_add_loop_test(t, no_compiler_shows_a_file_of_the_host, 0,
                        sizeof readers / sizeof readers[0]);
    tcase_add_test(t, without_landlock_words_are_kept_back);
    tcase_add_test(t, a_bomb_ends_at_its_limit);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
