/*
 * gpu-compile GPUD_COMPILE COMPILER ARCH SOURCE BINARY: has gpud-compile make device code of a CUDA
 * C source, by nvcc or nvrtc alone, as the daemon would have it. On the machine that builds the
 * suite. Exit status: 0 BINARY was written; 77 there is no such compiler here; 1 the compiler
 * refused it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/backend/cuda/run/binary.h"
#include "proto/compile.h"

#define SOURCE_BYTES (1u << 20)
#define SKIPPED      77

static int fail(const struct err *e)
{
    (void)fprintf(stderr, "gpu-compile: %s\n", e->text);
    return 1;
}

static int source_read(const char *path, char *text, struct bytes *ret_source, struct err *e)
{
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return err_errno(e, ERR_IO, "%s", path);
    }
    size_t size = fread(text, 1, SOURCE_BYTES, f);
    bool whole = size < SOURCE_BYTES && ferror(f) == 0;
    (void)fclose(f);
    if (!whole) {
        return err_set(e, ERR_IO, "%s cannot be read, or is larger than %u bytes", path,
                       SOURCE_BYTES);
    }
    *ret_source = bytes_of(text, size);
    return 0;
}

/* Descriptors 3 and 4 are what gpud-compile reads and writes. */
static void become(const char *program, const char *options, int in, int out)
{
    int from = dup(in); /* neither of them is 3 or 4 then */
    int to = dup(out);
    from = from < 5 ? dup(from) : from;
    to = to < 5 ? dup(to) : to;
    if (from >= 0 && to >= 0 && dup2(from, 3) == 3 && dup2(to, 4) == 4) {
        (void)execl(program, program, "--backend", "cuda", "--device", "0", "--options", options,
                    (char *)NULL);
    }
    perror(program);
    _exit(1);
}

static int compiler_run(const char *program, const char *compiler, const struct memfd *in,
                        const struct memfd *out, struct err *e)
{
    char options[64];
    int status = 0;
    (void)snprintf(options, sizeof options, "compiler=%s", compiler);
    pid_t pid = fork();
    if (pid == 0) {
        become(program, options, in->fd, out->fd);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        return err_errno(e, ERR_IO, "%s", program);
    }
    return status == 0 ? 0
                       : err_set(e, ERR_IO, "%s ended with status %x", program, (unsigned)status);
}

static int binary_write(const char *path, struct bytes binary, struct err *e)
{
    FILE *f = fopen(path, "we");
    if (f == NULL) {
        return err_errno(e, ERR_IO, "%s", path);
    }
    bool written = fwrite(binary.data, 1, binary.size, f) == binary.size;
    return fclose(f) == 0 && written ? 0 : err_set(e, ERR_IO, "%s cannot be written", path);
}

/* What gpud adds to the driver's bytes is its own: the binary is loaded as one of a user's. */
static int answer_take(const struct memfd *out, const char *arch, const char *path, struct err *e)
{
    struct compile_response r;
    struct cuda_binary parts;
    int rc = compile_response_read(out, &r, e);
    if (rc == 0 && r.code != 0) {
        (void)fprintf(stderr, "%.*s\n", (int)r.log.size, (const char *)r.log.data);
        return err_set(e, r.code, "%.*s", (int)r.text.size, (const char *)r.text.data);
    }
    rc = rc == 0 ? cuda_binary_unwrap(arch, r.binary, &parts, e) : rc;
    return rc == 0 ? binary_write(path, parts.payload, e) : rc;
}

int main(int argc, char **argv)
{
    static char text[SOURCE_BYTES];
    struct err e = ERR_INIT;
    struct memfd in = MEMFD_NONE;
    struct memfd out = MEMFD_NONE;
    if (argc != 6) {
        (void)fputs("usage: gpu-compile GPUD_COMPILE nvcc|nvrtc ARCH SOURCE BINARY\n", stderr);
        return 2;
    }
    const char *name = strrchr(argv[4], '/');
    struct compile_request request = {.lang = LANG_CUDA,
                                      .f64 = true,
                                      .file = bytes_str(name != NULL ? name + 1 : argv[4]),
                                      .arch = bytes_str(argv[3])};
    int rc = source_read(argv[4], text, &request.source, &e);
    rc = rc == 0 ? compile_request_write(&request, &in, &e) : rc;
    rc = rc == 0 ? compile_response_create(&out, &e) : rc;
    rc = rc == 0 ? compiler_run(argv[1], argv[2], &in, &out, &e) : rc;
    rc = rc == 0 ? answer_take(&out, argv[3], argv[5], &e) : rc;
    memfd_finish(&in);
    memfd_finish(&out);
    if (rc == 0) {
        return 0;
    }
    (void)fail(&e);
    return rc == ERR_UNSUPPORTED ? SKIPPED : 1;
}
