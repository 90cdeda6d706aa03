/* All built-in kernels compile with NVRTC, which is what CUDA C goes through in the daemon: without
 * the toolkit's headers, each module by itself. Skipped (77) where there is no libnvrtc. */
#include <check.h>
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_text.h"

#define SKIPPED 77

typedef void *nvrtc_program;

/* The functions called of the library, by the signatures in its documentation. */
static struct {
    int (*version)(int *major, int *minor);
    int (*arch_count)(int *count);
    int (*archs)(int *archs);
    int (*create)(nvrtc_program *program, const char *source, const char *name, int headers,
                  const char *const *header, const char *const *include);
    int (*compile)(nvrtc_program program, int options, const char *const *option);
    int (*log_size)(nvrtc_program program, size_t *size);
    int (*log)(nvrtc_program program, char *log);
    int (*ptx_size)(nvrtc_program program, size_t *size);
    int (*ptx)(nvrtc_program program, char *ptx);
    int (*destroy)(nvrtc_program *program);
} nvrtc;

static void *library_at(const char *pattern)
{
    void *library = NULL;
    glob_t found = {0};
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; library == NULL && i < found.gl_pathc; i++) {
            library = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
        }
    }
    globfree(&found);
    return library;
}

static void *library_open(void)
{
    static const char *const names[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12",
                                        "libnvrtc.so.11.2"};
    static const char *const places[] = {"/usr/local/cuda/lib64/libnvrtc.so*",
                                         "/usr/local/cuda*/lib64/libnvrtc.so*",
                                         "/usr/local/cuda*/lib/libnvrtc.so*"};
    void *library = NULL;
    for (size_t i = 0; library == NULL && i < sizeof names / sizeof names[0]; i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    for (size_t i = 0; library == NULL && i < sizeof places / sizeof places[0]; i++) {
        library = library_at(places[i]);
    }
    return library;
}

static bool entries_take(void *library)
{
    const struct {
        const char *name;
        void *to;
    } entries[] = {
        {"nvrtcVersion", &nvrtc.version},
        {"nvrtcGetNumSupportedArchs", &nvrtc.arch_count},
        {"nvrtcGetSupportedArchs", &nvrtc.archs},
        {"nvrtcCreateProgram", &nvrtc.create},
        {"nvrtcCompileProgram", &nvrtc.compile},
        {"nvrtcGetProgramLogSize", &nvrtc.log_size},
        {"nvrtcGetProgramLog", &nvrtc.log},
        {"nvrtcGetPTXSize", &nvrtc.ptx_size},
        {"nvrtcGetPTX", &nvrtc.ptx},
        {"nvrtcDestroyProgram", &nvrtc.destroy},
    };
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        void *entry = dlsym(library, entries[i].name);
        if (entry == NULL) {
            fprintf(stderr, "libnvrtc has no %s\n", entries[i].name);
            return false;
        }
        memcpy(entries[i].to, &entry, sizeof entry);
    }
    return true;
}

static char *log_of(nvrtc_program program)
{
    size_t size = 0;
    ck_assert_int_eq(nvrtc.log_size(program, &size), 0);
    char *log = calloc(1, size + 1);
    ck_assert_ptr_nonnull(log);
    ck_assert_int_eq(nvrtc.log(program, log), 0);
    return log;
}

static void check_module(unsigned index, const char *arch)
{
    struct capbuf text;
    nvrtc_program program = NULL;
    size_t size = 0;
    const char *const options[] = {arch};
    capbuf_init(&text, 16u << 20);
    cuda_text_write(index, &text);
    ck_assert(capbuf_append(&text, "", 1)); /* the terminator */
    ck_assert_int_eq(
        nvrtc.create(&program, (const char *)text.data, cuda_text_name(index), 0, NULL, NULL), 0);
    int rc = nvrtc.compile(program, 1, options);
    char *log = log_of(program);
    ck_assert_msg(rc == 0, "%s for %s: %s", cuda_text_name(index), arch, log);
    ck_assert_msg(strstr(log, "warning") == NULL, "%s for %s: %s", cuda_text_name(index), arch,
                  log);
    free(log);
    ck_assert_int_eq(nvrtc.ptx_size(program, &size), 0);
    char *ptx = calloc(1, size + 1);
    ck_assert_ptr_nonnull(ptx);
    ck_assert_int_eq(nvrtc.ptx(program, ptx), 0);
    cuda_text_check(index, ptx);
    free(ptx);
    capbuf_finish(&text);
    ck_assert_int_eq(nvrtc.destroy(&program), 0);
}

/* The oldest and the newest architecture that this compiler knows. */
START_TEST(test_nvrtc)
{
    int count = 0;
    int archs[64] = {0};
    ck_assert_int_eq(nvrtc.arch_count(&count), 0);
    ck_assert(count > 0 && count <= 64);
    ck_assert_int_eq(nvrtc.archs(archs), 0);
    const int ends[] = {archs[0], archs[count - 1]};
    for (unsigned a = 0; a < 2; a++) {
        char arch[64];
        snprintf(arch, sizeof arch, "--gpu-architecture=compute_%d", ends[a]);
        for (unsigned i = 0; i < cuda_text_count(); i++) {
            check_module(i, arch);
        }
    }
}
END_TEST

/* The check can fail: the line of a mistake is the source's. */
START_TEST(test_mistake)
{
    nvrtc_program program = NULL;
    const char *const options[] = {"--gpu-architecture=compute_90"};
    const char source[] = "#line 7 \"wrong.gk\"\nextern \"C\" __global__ void f(float *x) { x[0] = "
                          "nothing; }\n";
    ck_assert_int_eq(nvrtc.create(&program, source, "program", 0, NULL, NULL), 0);
    ck_assert_int_ne(nvrtc.compile(program, 1, options), 0);
    char *log = log_of(program);
    ck_assert_msg(strstr(log, "wrong.gk(7)") != NULL, "%s", log);
    free(log);
    ck_assert_int_eq(nvrtc.destroy(&program), 0);
}
END_TEST

int main(void)
{
    void *library = library_open();
    if (library == NULL) {
        fprintf(stderr, "skipped: no libnvrtc.so\n");
        return SKIPPED;
    }
    if (!entries_take(library)) {
        return EXIT_FAILURE;
    }
    Suite *s = suite_create("nvrtc");
    TCase *t = tcase_create("nvrtc");
    tcase_set_timeout(t, 200);
    tcase_add_test(t, test_nvrtc);
    tcase_add_test(t, test_mistake);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_set_fork_status(sr, CK_NOFORK);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
