/*
 * Kernel files in the manner of public benchmark collections (Rodinia, SHOC, PolyBench, CUDA's
 * samples), through the real NVRTC and nvcc. The first lines of each file say the expected result:
 * "// kernels: NAME…", all of them and no others, or "// refused: TEXT", which the error or the log
 * must hold; "// options: …" before, "// noted: TEXT" in the log.
 */
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/backend/cuda/compile/compile.h"
#include "daemon/backend/cuda/compile/nvcc.h"
#include "daemon/backend/cuda/compile/nvrtc.h"

#define SKIPPED   77
#define FILES_MAX 64

static char name_of[FILES_MAX][64];
static int file_count;

static int name_compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void files_list(void)
{
    DIR *d = opendir(CUDA_FILES);
    const struct dirent *entry;
    while (d != NULL && file_count < FILES_MAX && (entry = readdir(d)) != NULL) {
        size_t size = strlen(entry->d_name);
        if (size > 3 && strcmp(entry->d_name + size - 3, ".cu") == 0) {
            (void)snprintf(name_of[file_count++], sizeof name_of[0], "%.63s", entry->d_name);
        }
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    qsort(name_of, (size_t)file_count, sizeof name_of[0], name_compare);
}

static char *file_read(const char *name)
{
    static char text[65536];
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", CUDA_FILES, name);
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    (void)fclose(f);
    text[n] = '\0';
    return text;
}

/* What stands behind "// WORD: " in one of the first lines; false: nothing does. */
static bool expectation(const char *text, const char *word, char *out, size_t size)
{
    char wanted[32];
    (void)snprintf(wanted, sizeof wanted, "// %s: ", word);
    for (int line = 0; line < 3; line++) {
        if (strncmp(text, wanted, strlen(wanted)) == 0) {
            text += strlen(wanted);
            (void)snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), text);
            return true;
        }
        text += strcspn(text, "\n") + 1;
    }
    out[0] = '\0';
    return false;
}

/* Names are separated by blanks outside of brackets. */
static size_t name_length(const char *names)
{
    int depth = 0;
    size_t n = 0;
    while (names[n] != '\0' && (names[n] != ' ' || depth > 0)) {
        depth += names[n] == '<';
        depth -= names[n] == '>';
        n++;
    }
    return n;
}

static void same_name(const char *file, const struct backend_compiled *c, const char *want,
                      size_t size)
{
    char plain[128];
    char told[128];
    for (unsigned i = 0; i < c->kernel_count; i++) {
        const struct backend_compiled_kernel *k = &c->kernels[i];
        const char *name = k->name[0] != '\0' ? k->name : k->entry;
        size_t used = 0;
        size_t kept = 0;
        for (size_t n = 0; n < size && used + 1 < sizeof plain; n++) {
            plain[used] = want[n];
            used += want[n] != ' ';
        }
        for (size_t n = 0; name[n] != '\0' && kept + 1 < sizeof told; n++) {
            told[kept] = name[n];
            kept += name[n] != ' ';
        }
        plain[used] = '\0';
        told[kept] = '\0';
        if (strcmp(plain, told) == 0) {
            ck_assert_msg(k->unfit[0] == '\0', "%s: %s: %s", file, name, k->unfit);
            return;
        }
    }
    ck_abort_msg("%s: no kernel %.*s", file, (int)size, want);
}

START_TEST(is_taken_or_refused)
{
    const char *name = name_of[_i];
    const char *text = file_read(name);
    char want[512];
    char options[512];
    struct backend_compiled c = {0};
    struct err e = ERR_INIT;
    (void)expectation(text, "options", options, sizeof options);
    const struct backend_source source = {.lang = BACKEND_LANG_CUDA,
                                          .text = bytes_str(text),
                                          .file = name,
                                          .options = options,
                                          .arch = "sm_90"};
    int rc = cuda_compile(0, &source, &c, &e);
    if (expectation(text, "refused", want, sizeof want)) {
        ck_assert_msg(rc == ERR_COMPILE, "%s: %d", name, rc);
        bool told = strstr(e.text, want) != NULL || (c.log != NULL && strstr(c.log, want) != NULL);
        ck_assert_msg(told, "%s: %s\n%s", name, e.text, c.log != NULL ? c.log : "");
        ck_assert_msg(strstr(e.text, name) != NULL, "%s: %s", name, e.text);
    } else {
        ck_assert_msg(rc == 0, "%s: %s\n%s", name, e.text, c.log != NULL ? c.log : "");
        ck_assert(expectation(text, "kernels", want, sizeof want));
        unsigned count = 0;
        for (const char *at = want; *at != '\0'; at += *at == ' ') {
            size_t size = name_length(at);
            same_name(name, &c, at, size);
            at += size;
            count++;
        }
        ck_assert_msg(c.kernel_count == count, "%s: %u kernels", name, c.kernel_count);
        bool noted = !expectation(text, "noted", want, sizeof want) ||
                     (c.log != NULL && strstr(c.log, want) != NULL);
        ck_assert_msg(noted, "%s: %s", name, c.log != NULL ? c.log : "");
    }
    backend_compiled_finish(&c);
}
END_TEST

/* ---- both compilers -------------------------------------------------------------------------- */

static int compile_by(const char *compiler, const char *name, const char *text,
                      struct backend_compiled *c)
{
    char options[600];
    char own[512];
    struct err e = ERR_INIT;
    (void)expectation(text, "options", own, sizeof own);
    (void)snprintf(options, sizeof options, "%s --compiler=%s", own, compiler);
    const struct backend_source source = {.lang = BACKEND_LANG_CUDA,
                                          .text = bytes_str(text),
                                          .file = name,
                                          .options = options,
                                          .arch = "sm_90"};
    return cuda_compile(0, &source, c, &e);
}

static const struct backend_compiled_kernel *entry_find(const struct backend_compiled *c,
                                                        const char *entry)
{
    for (unsigned i = 0; i < c->kernel_count; i++) {
        if (strcmp(c->kernels[i].entry, entry) == 0) {
            return &c->kernels[i];
        }
    }
    return NULL;
}

/* nvcc's has at least the kernels that NVRTC's has, with the same arguments. */
START_TEST(both_compilers_agree)
{
    const char *name = name_of[_i];
    const char *text = file_read(name);
    char unused[512];
    struct backend_compiled ours = {0};
    struct backend_compiled theirs = {0};
    bool taken = !expectation(text, "refused", unused, sizeof unused) &&
                 compile_by("nvrtc", name, text, &ours) == 0;
    if (taken) {
        ck_assert_msg(compile_by("nvcc", name, text, &theirs) == 0, "%s: nvcc refuses it", name);
    }
    for (unsigned i = 0; taken && i < ours.kernel_count; i++) {
        const struct backend_compiled_kernel *a = &ours.kernels[i];
        const struct backend_compiled_kernel *b = entry_find(&theirs, a->entry);
        ck_assert_msg(b != NULL, "%s: nvcc's has no %s", name, a->entry);
        ck_assert_str_eq(a->name, b->name);
        ck_assert_msg(a->arg_count == b->arg_count, "%s: %s: %u, %u", name, a->entry, a->arg_count,
                      b->arg_count);
        for (unsigned n = 0; n < a->arg_count; n++) {
            ck_assert_msg(a->arg[n].bytes == b->arg[n].bytes && a->arg[n].kind == b->arg[n].kind,
                          "%s: %s: argument %u", name, a->entry, n);
        }
    }
    backend_compiled_finish(&ours);
    backend_compiled_finish(&theirs);
}
END_TEST

int main(void)
{
    struct nvrtc nvrtc;
    struct err e = ERR_INIT;
    char nvcc[PATH_MAX];
    bool both = nvcc_find("", nvcc) && nvrtc_load("", &nvrtc, &e) == 0;
    if (!both) {
        (void)fprintf(stderr, "skipped: no nvcc or no NVRTC %s\n", e.text);
        return SKIPPED;
    }
    files_list();
    Suite *suite = suite_create("cuda files");
    TCase *all = tcase_create("files");
    tcase_set_timeout(all, 120);
    tcase_add_loop_test(all, is_taken_or_refused, 0, file_count);
    suite_add_tcase(suite, all);
    TCase *both_of = tcase_create("both");
    tcase_set_timeout(both_of, 120);
    tcase_add_loop_test(both_of, both_compilers_agree, 0, file_count);
    suite_add_tcase(suite, both_of);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    bool some = srunner_ntests_run(runner) >= 15;
    srunner_free(runner);
    return failed == 0 && some ? EXIT_SUCCESS : EXIT_FAILURE;
}
