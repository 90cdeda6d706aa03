/*
 * Runs at build time. kernels_gen text OUT.c FILE.gk… writes the sources as C data,
 * kernels_gen host OUT.c FILE.gk… writes the kernels as C functions,
 * kernels_gen cuda OUT.cu FILE.gk writes one source as CUDA C, as gpud-compile does,
 * kernels_gen fatbin OUT.c FILE.cu… embeds the fatbins that nvcc made, FILE.fatbin for each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "kernels/dialect.h"

#define SOURCE_MAX (1u << 20)
#define OUTPUT_MAX (64u << 20)

struct source {
    uint8_t *data;
    size_t size;
    char name[64]; /* of the module: the file's without folder and suffix */
    const char *path;
};

static int source_read(const char *path, struct source *ret_source, struct err *e)
{
    struct source s = {.path = path};
    const char *base = strrchr(path, '/');
    snprintf(s.name, sizeof(s.name), "%s", base != NULL ? base + 1 : path);
    s.name[strcspn(s.name, ".")] = 0;
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        return err_errno(e, ERR_IO, "%s", path);
    }
    s.data = malloc(SOURCE_MAX);
    s.size = s.data == NULL ? 0 : fread(s.data, 1, SOURCE_MAX, f);
    bool bad = s.data == NULL || ferror(f) != 0 || s.size == SOURCE_MAX;
    fclose(f);
    if (bad) {
        free(s.data);
        return err_set(e, ERR_IO, "%s: not read", path);
    }
    *ret_source = s;
    return 0;
}

static void text_module(const struct source *s, struct capbuf *out)
{
    capbuf_printf(out, "static const uint8_t text_%s[] = {", s->name);
    for (size_t b = 0; b < s->size; b++) {
        capbuf_printf(out, "%s%u,", b % 24 == 0 ? "\n" : "", s->data[b]);
    }
    capbuf_printf(out, "\n};\n");
}

static int text_write(const struct source *s, unsigned count, struct capbuf *out, struct err *e)
{
    (void)e;
    capbuf_printf(out, "#include \"kernels/builtin_text.h\"\n");
    for (unsigned m = 0; m < count; m++) {
        text_module(&s[m], out);
    }
    capbuf_printf(out, "const struct builtin_text builtin_texts[] = {\n");
    for (unsigned m = 0; m < count; m++) {
        capbuf_printf(out, "{\"%s\", text_%s, sizeof(text_%s)},\n", s[m].name, s[m].name,
                      s[m].name);
    }
    capbuf_printf(out, "};\nconst unsigned builtin_text_count = %u;\n", count);
    return 0;
}

static int host_rows(const struct source *s, struct capbuf *out, struct err *e)
{
    struct signature *sigs = calloc(DIALECT_KERNELS_MAX, sizeof(*sigs));
    char entry[SIG_NAME + 8];
    unsigned count = 0;
    if (sigs == NULL) {
        return err_set(e, ERR_NOMEM, "%s", s->name);
    }
    int r = dialect_signatures(bytes_of(s->data, s->size), s->name, sigs, DIALECT_KERNELS_MAX,
                               &count, e);
    for (unsigned k = 0; r == 0 && k < count; k++) {
        unsigned members = sigs[k].type_count == 0 ? 1 : sigs[k].type_count;
        for (unsigned t = 0; r == 0 && t < members; t++) {
            r = signature_entry(&sigs[k], sigs[k].type[t], entry, sizeof(entry), e);
            if (r == 0) {
                capbuf_printf(out, "HOST_ROW(%s, %u)\n", entry,
                              sigs[k].arg_count + sigs[k].dim_count);
            }
        }
    }
    free(sigs);
    return r;
}

static int host_write(const struct source *s, unsigned count, struct capbuf *out, struct err *e)
{
    int r = 0;
    char file[80];
    for (unsigned m = 0; r == 0 && m < count; m++) {
        snprintf(file, sizeof(file), "%s.gk", s[m].name);
        r = dialect_translate(bytes_of(s[m].data, s[m].size), file, DIALECT_HOST, true, out, e);
    }
    capbuf_printf(out, "const struct host_kernel host_table[] = {\n");
    for (unsigned m = 0; r == 0 && m < count; m++) {
        r = host_rows(&s[m], out, e);
    }
    capbuf_printf(out, "};\nconst unsigned host_table_count = sizeof(host_table) / "
                       "sizeof(host_table[0]);\n");
    return r;
}

static int cuda_write(const struct source *s, unsigned count, struct capbuf *out, struct err *e)
{
    char file[80];
    (void)count;
    snprintf(file, sizeof(file), "%s.gk", s->name);
    return dialect_translate(bytes_of(s->data, s->size), file, DIALECT_CUDA, true, out, e);
}

/* A fatbin is identified by the hash of its CUDA C, so it cannot be confused with another version.
 */
static void fatbin_module(const struct source *s, struct capbuf *out)
{
    capbuf_printf(out,
                  "__asm__(\".section .rodata\\n.balign 16\\nfatbin_%s:\\n\"\n"
                  "\".incbin \\\"%.*sfatbin\\\"\\nfatbin_%s_end:\\n.byte 0\\n.previous\\n\");\n"
                  "extern const uint8_t fatbin_%s[], fatbin_%s_end[];\n",
                  s->name, (int)(strlen(s->path) - 2), s->path, s->name, s->name, s->name);
}

static int fatbin_write(const struct source *s, unsigned count, struct capbuf *out, struct err *e)
{
    (void)e;
    capbuf_printf(out, "#include \"kernels/builtin_fatbin.h\"\n");
    for (unsigned m = 0; m < count; m++) {
        fatbin_module(&s[m], out);
    }
    capbuf_printf(out, "const struct builtin_fatbin builtin_fatbins[] = {\n");
    for (unsigned m = 0; m < count; m++) {
        struct hash h = hash_of(s[m].data, s[m].size);
        capbuf_printf(out, "{\"%s\", fatbin_%s, fatbin_%s_end, {{", s[m].name, s[m].name,
                      s[m].name);
        for (unsigned b = 0; b < HASH_BYTES; b++) {
            capbuf_printf(out, "%u,", h.byte[b]);
        }
        capbuf_printf(out, "}}},\n");
    }
    capbuf_printf(out, "{NULL, NULL, NULL, {{0}}}};\n");
    return 0;
}

/* Does the file already have this content? Then it is not written: its time remains, so the build
 * makes nothing from it again. */
static bool output_same(const char *path, const struct capbuf *out)
{
    FILE *f = fopen(path, "rb");
    uint8_t *old = f == NULL ? NULL : malloc(out->size + 1);
    bool same = old != NULL && fread(old, 1, out->size + 1, f) == out->size &&
                memcmp(old, out->data, out->size) == 0;
    free(old);
    if (f != NULL) {
        fclose(f);
    }
    return same;
}

static int output_write(const char *path, const struct capbuf *out, struct err *e)
{
    if (!out->failed && output_same(path, out)) {
        return 0;
    }
    FILE *f = fopen(path, "wb");
    if (f == NULL) {
        return err_errno(e, ERR_IO, "%s", path);
    }
    bool bad = fwrite(out->data, 1, out->size, f) != out->size;
    bad = fclose(f) != 0 || bad || out->failed;
    return bad ? err_set(e, ERR_IO, "%s: not written", path) : 0;
}

typedef int (*write_fn)(const struct source *s, unsigned count, struct capbuf *out, struct err *e);

static write_fn writer_of(const char *what)
{
    static const struct {
        const char *what;
        write_fn write;
    } writers[] = {
        {"text", text_write}, {"host", host_write}, {"cuda", cuda_write}, {"fatbin", fatbin_write}};
    for (unsigned i = 0; i < sizeof(writers) / sizeof(writers[0]); i++) {
        if (strcmp(writers[i].what, what) == 0) {
            return writers[i].write;
        }
    }
    return NULL;
}

static int run(int argc, char **argv, struct err *e)
{
    write_fn writer = writer_of(argv[1]);
    unsigned count = (unsigned)argc - 3, read = 0;
    struct source *sources = calloc(count + 1, sizeof(*sources));
    struct capbuf out;
    int r = sources == NULL ? err_set(e, ERR_NOMEM, "sources") : 0;
    capbuf_init(&out, OUTPUT_MAX);
    for (; r == 0 && read < count; read += r == 0) {
        r = source_read(argv[3 + read], &sources[read], e);
    }
    if (r == 0) {
        r = writer == NULL ? err_set(e, ERR_INVALID, "%s: not known", argv[1])
                           : writer(sources, count, &out, e);
    }
    if (r == 0) {
        r = output_write(argv[2], &out, e);
    }
    for (unsigned m = 0; m < read; m++) {
        free(sources[m].data);
    }
    free(sources);
    capbuf_finish(&out);
    return r;
}

int main(int argc, char **argv)
{
    struct err e = ERR_INIT;
    if (argc < 3) {
        fprintf(stderr, "usage: kernels_gen text|host|cuda|fatbin OUT FILE...\n");
        return 2;
    }
    if (run(argc, argv, &e) != 0) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    return 0;
}
