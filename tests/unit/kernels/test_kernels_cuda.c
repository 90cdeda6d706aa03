/* All built-in kernels compile as CUDA C; skipped (77) where there is no nvcc. */
#include <check.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/builtin.h"
#include "kernels/dialect.h"
#include "language.h"

extern char **environ;

static void write_source(FILE *f, struct bytes source, const char *name)
{
    struct capbuf out;
    struct err e = ERR_INIT;
    capbuf_init(&out, 16u << 20);
    ck_assert_msg(dialect_translate(source, name, DIALECT_CUDA, true, &out, &e) == 0, "%s", e.text);
    ck_assert_uint_eq(fwrite(out.data, 1, out.size, f), out.size);
    capbuf_finish(&out);
}

static void write_all(const char *path)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    write_source(f, bytes_str(language_source), "language.gk");
    for (unsigned m = 0; m < builtin_module_count(); m++) {
        write_source(f, builtin_module_source(m), builtin_module_name(m));
    }
    ck_assert_int_eq(fclose(f), 0);
}

static char *text_of(const char *path)
{
    char *text = calloc(1, 8u << 20);
    FILE *f = fopen(path, "rb");
    ck_assert(f != NULL && text != NULL);
    ck_assert_uint_gt(fread(text, 1, (8u << 20) - 1, f), 0);
    fclose(f);
    return text;
}

static void check_entries(const char *ptx)
{
    unsigned module = 0;
    for (unsigned k = 0; k < builtin_kernel_count(); k++) {
        const struct signature *s = builtin_kernel(k, &module);
        for (unsigned t = 0; t < (s->type_count == 0 ? 1 : s->type_count); t++) {
            char entry[SIG_NAME + 8], line[128];
            ck_assert_int_eq(signature_entry(s, s->type[t], entry, sizeof(entry), NULL), 0);
            snprintf(line, sizeof(line), ".entry %s(", entry);
            ck_assert_msg(strstr(ptx, line) != NULL, "no entry %s", entry);
        }
    }
}

START_TEST(test_nvcc)
{
    char folder[] = "/tmp/gpud-cuda-XXXXXX", source[64], binary[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(source, sizeof(source), "%s/all.cu", folder);
    snprintf(binary, sizeof(binary), "%s/all.ptx", folder);
    write_all(source);
    char *argv[] = {(char[]){"nvcc"},
                    (char[]){"-ptx"},
                    (char[]){"-Werror"},
                    (char[]){"all-warnings"},
                    (char[]){"-o"},
                    binary,
                    source,
                    NULL};
    pid_t pid = 0;
    int status = 0;
    ck_assert_int_eq(posix_spawn(&pid, NVCC, NULL, NULL, argv, environ), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "nvcc failed");
    char *ptx = text_of(binary);
    check_entries(ptx);
    free(ptx);
    unlink(source);
    unlink(binary);
    rmdir(folder);
}
END_TEST

int main(void)
{
    if (access(NVCC, X_OK) != 0) {
        return 77;
    }
    Suite *s = suite_create("cuda");
    TCase *t = tcase_create("nvcc");
    tcase_set_timeout(t, 200);
    tcase_add_test(t, test_nvcc);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_set_fork_status(sr, CK_NOFORK);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
