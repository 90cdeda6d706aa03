#include "daemon/backend/cuda/compile/compile_nvcc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/utf8.h"
#include "daemon/backend/cuda/compile/compile_failed.h"
#include "daemon/backend/cuda/compile/nvcc.h"
#include "daemon/backend/cuda/compile/nvrtc_log.h"

#define SAID_BYTES (1024u * 1024u)
/* from this architecture on, code may use instructions of one architecture alone: sm_90a */
#define SPECIFIC_SINCE 90u
#define CUBIN          "out.cubin"
#define PTX            "out.ptx"

struct work {
    const struct compile_input *in;
    char folder[PATH_MAX];
    char arch[24];
    struct nvcc_run run;
    struct capbuf said;
    bool ptx; /* nvcc does not know the device, so it makes PTX, which the driver compiles */
    struct err *e;
};

/* ---- the folder ------------------------------------------------------------------------------ */

static int folder_make(struct work *w)
{
    char made[] = "nvcc.XXXXXX";
    if (mkdtemp(made) == NULL || realpath(made, w->folder) == NULL) {
        return err_errno(w->e, ERR_IO, "a folder for nvcc");
    }
    return 0;
}

static void folder_remove(const char *folder)
{
    DIR *d = folder[0] != '\0' ? opendir(folder) : NULL;
    const struct dirent *entry;
    while (d != NULL && (entry = readdir(d)) != NULL) {
        (void)unlinkat(dirfd(d), entry->d_name, 0);
    }
    if (d != NULL) {
        (void)closedir(d);
        (void)rmdir(folder);
    }
}

/* ---- the text -------------------------------------------------------------------------------- */

/* Writes "-DNAME=VALUE" as a compiler understands it. */
static void macro_write(FILE *f, const char *macro)
{
    const char *name = macro + 2;
    const char *equals = strchr(name, '=');
    if (macro[1] == 'U') {
        (void)fprintf(f, "#undef %s\n", name);
    } else if (equals == NULL) {
        (void)fprintf(f, "#define %s 1\n", name);
    } else {
        (void)fprintf(f, "#define %.*s %s\n", (int)(equals - name), name, equals + 1);
    }
}

/* Instantiates the named templates: a pointer to an instance makes the compiler generate it. The
 * pointer is the host's and costs nothing. */
static void expressions_write(FILE *f, const struct cuda_options *o)
{
    for (unsigned i = 0; i < o->expression_count; i++) {
        (void)fprintf(f,
                      "\n#line 1 \"name expression\"\n"
                      "static void *gpud_name_%u __attribute__((used)) = (void *)%s;\n",
                      i, o->expression[i]);
    }
}

static int source_write(struct work *w)
{
    char path[PATH_MAX + 32];
    (void)snprintf(path, sizeof path, "%s/" NVCC_PROGRAM, w->folder);
    FILE *f = fopen(path, "wxe");
    if (f == NULL) {
        return err_errno(w->e, ERR_IO, "%s", path);
    }
    const struct cuda_options *o = w->in->options;
    for (unsigned i = 0; i < o->macro_count; i++) {
        macro_write(f, o->macro[i]);
    }
    (void)fprintf(f, "#line 1 \"%s\"\n", w->in->file);
    (void)fwrite(w->in->text.data, 1, w->in->text.size, f);
    expressions_write(f, o);
    bool failed = ferror(f) != 0;
    return fclose(f) == 0 && !failed ? 0 : err_errno(w->e, ERR_IO, "%s", path);
}

/* ---- running --------------------------------------------------------------------------------- */

static void arguments_make(struct work *w)
{
    const struct cuda_options *o = w->in->options;
    const char **out = w->run.argument;
    unsigned count = 0;
    if (w->ptx) {
        out[count++] = "-ptx"; /* for the oldest architecture that nvcc knows */
    } else {
        (void)snprintf(w->arch, sizeof w->arch, "-arch=sm_%u%s", w->in->device->number,
                       w->in->device->number >= SPECIFIC_SINCE ? "a" : "");
        out[count++] = "-cubin";
        out[count++] = w->arch;
    }
    out[count++] = "-keep";
    /* a kernel that nothing refers to is launched by its name */
    out[count++] = "-diag-suppress=177";
    for (unsigned i = 0; i < o->option_count; i++) {
        out[count++] = o->option[i];
    }
    out[count++] = "-o";
    out[count++] = w->ptx ? PTX : CUBIN;
    out[count++] = NVCC_PROGRAM;
    out[count] = NULL;
}
_Static_assert(CUDA_OPTIONS_MAX + 8 < NVCC_ARGUMENTS_MAX, "room for all options");

static int run(struct work *w, bool *ret_done)
{
    arguments_make(w);
    capbuf_reset(&w->said);
    return nvcc_run(&w->run, &w->said, ret_done, w->e);
}

/* The output of nvcc as a log may contain it: as UTF-8. */
static char *said_text(const struct work *w)
{
    size_t size = w->said.size;
    char *text = malloc(size + 1);
    if (text != NULL) {
        memcpy(text, size > 0 ? (const char *)w->said.data : "", size);
        text[size] = '\0';
        utf8_mend(text, size);
    }
    return text;
}

/* Takes the output of nvcc as the log. The output could show files that nvcc read. If nvcc was
 * not confined, the output is therefore withheld unless nvcc read headers only. */
static int log_take(struct work *w, struct capbuf *log)
{
    if (!w->in->confined) {
        (void)capbuf_printf(log,
                            "%s: note: this kernel has no Landlock to confine nvcc; what it read "
                            "was checked afterwards\n",
                            w->in->file);
    }
    if (!w->in->confined && !nvcc_read_only_headers(&w->run)) {
        (void)capbuf_printf(log,
                            "%s: error: nvcc read other files than headers, or none to its end; "
                            "its output is withheld\n",
                            w->in->file);
        return compile_failed(w->in->file, log, w->e);
    }
    char *text = said_text(w);
    if (text == NULL) {
        return err_set(w->e, ERR_NOMEM, "no memory for a compiler's log");
    }
    nvrtc_log_rewrite(text, NVCC_PROGRAM, w->in->file, log);
    free(text);
    return 0;
}

static int compile(struct work *w, struct capbuf *log)
{
    static const char unknown[] = "Unsupported gpu architecture";
    bool done = false;
    int rc = run(w, &done);
    if (rc == 0 && !done && w->said.size > 0 &&
        memmem(w->said.data, w->said.size, unknown, strlen(unknown)) != NULL) {
        w->ptx = true;
        rc = run(w, &done);
    }
    rc = rc == 0 ? log_take(w, log) : rc;
    return rc == 0 && !done ? compile_failed(w->in->file, log, w->e) : rc;
}

/* ---- after ----------------------------------------------------------------------------------- */

static int output_read(struct work *w, struct compile_output *out)
{
    char path[PATH_MAX + 32];
    struct stat st;
    (void)snprintf(path, sizeof path, "%s/%s", w->folder, w->ptx ? PTX : CUBIN);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) != 0) {
        int rc = err_errno(w->e, ERR_IO, "what nvcc made");
        if (fd >= 0) {
            (void)close(fd);
        }
        return rc;
    }
    size_t size = (size_t)st.st_size;
    int rc = size == 0 || size > IMAGE_BYTES_MAX
                 ? err_set(w->e, ERR_COMPILE_LIMIT, "a binary of %zu bytes", size)
                 : 0;
    out->data = rc == 0 ? calloc(1, size + 1) : NULL;
    if (rc == 0 && out->data == NULL) {
        rc = err_set(w->e, ERR_NOMEM, "no memory for a binary of %zu bytes", size);
    } else if (rc == 0 && pread(fd, out->data, size, 0) != (ssize_t)size) {
        rc = err_errno(w->e, ERR_IO, "what nvcc made");
    }
    (void)close(fd);
    out->size = size + (w->ptx ? 1 : 0); /* the driver requires a NUL after PTX */
    out->lang = w->ptx ? BACKEND_LANG_PTX : BACKEND_LANG_CUBIN;
    if (rc != 0) {
        free(out->data);
        out->data = NULL;
    }
    return rc;
}

int compile_nvcc(const struct compile_input *in, const char *nvcc, struct compile_output *out,
                 struct capbuf *log, struct err *e)
{
    struct work *w = calloc(1, sizeof *w);
    if (w == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a compiler");
    }
    w->in = in;
    w->e = e;
    w->run.program = nvcc;
    w->run.folder = w->folder;
    capbuf_init(&w->said, SAID_BYTES);
    int rc = folder_make(w);
    rc = rc == 0 ? source_write(w) : rc;
    rc = rc == 0 ? compile(w, log) : rc;
    rc = rc == 0 ? output_read(w, out) : rc;
    (void)snprintf(out->compiler, sizeof out->compiler, "%s",
                   strlen(nvcc) < sizeof out->compiler ? nvcc : "");
    (void)snprintf(out->tool, sizeof out->tool, "nvcc (%.54s)", nvcc);
    for (unsigned i = 0; i < in->options->expression_count; i++) {
        out->alias[i] = (struct report_alias){.name = in->options->expression[i]};
    }
    out->alias_count = in->options->expression_count;
    folder_remove(w->folder);
    capbuf_finish(&w->said);
    free(w);
    return rc;
}
