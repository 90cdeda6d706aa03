/* All built-in kernels compile as CUDA C; skipped (77) where there is no nvcc. */
#include <check.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_text.h"

extern char **environ;

static void write_all(const char *path)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    for (unsigned i = 0; i < cuda_text_count(); i++) {
        struct capbuf out;
        capbuf_init(&out, 16u << 20);
        cuda_text_write(i, &out);
        ck_assert_uint_eq(fwrite(out.data, 1, out.size, f), out.size);
        capbuf_finish(&out);
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

START_TEST(test_nvcc)
{
    char folder[] = "/tmp/gpud-cuda-XXXXXX", source[64], binary[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(source, sizeof(source), "%s/all.cu", folder);
    snprintf(binary, sizeof(binary), "%s/all.ptx", folder);
    write_all(source);
    // nvcc looks for its headers beside its argv[0], in PATH where that has no folder
    char *argv[] = {(char[]){NVCC},
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
    for (unsigned i = 0; i < cuda_text_count(); i++) {
        cuda_text_check(i, ptx);
    }
    free(ptx);
    unlink(source);
    unlink(binary);
    rmdir(folder);
}
END_TEST

int main(void)
{
    if (access(NVCC, X_OK) != 0) {
        fprintf(stderr, "skipped: no nvcc\n");
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
