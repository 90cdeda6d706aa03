/*
 * Runs at build time: kernels_gen text OUT.c FILE.gk… writes the sources as C data,
 * kernels_gen host OUT.c FILE.gk… writes the kernels as C functions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/dialect.h"

#define SOURCE_MAX (1u << 20)
#define OUTPUT_MAX (64u << 20)

struct source {
    uint8_t *data;
    size_t size;
    char name[64]; /* of the module: the file's without folder and suffix */
};

static int source_read(const char *path, struct source *ret_source, struct err *e)
{
    struct source s = {0};
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

static int output_write(const char *path, const struct capbuf *out, struct err *e)
{
    FILE *f = fopen(path, "wb");
    if (f == NULL) {
        return err_errno(e, ERR_IO, "%s", path);
    }
    bool bad = fwrite(out->data, 1, out->size, f) != out->size;
    bad = fclose(f) != 0 || bad || out->failed;
    return bad ? err_set(e, ERR_IO, "%s: not written", path) : 0;
}

static int run(int argc, char **argv, struct err *e)
{
    bool host = strcmp(argv[1], "host") == 0;
    unsigned count = (unsigned)argc - 3, read = 0;
    struct source *sources = calloc(count, sizeof(*sources));
    struct capbuf out;
    int r = sources == NULL ? err_set(e, ERR_NOMEM, "sources") : 0;
    capbuf_init(&out, OUTPUT_MAX);
    for (; r == 0 && read < count; read += r == 0) {
        r = source_read(argv[3 + read], &sources[read], e);
    }
    if (r == 0) {
        r = host ? host_write(sources, count, &out, e) : text_write(sources, count, &out, e);
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
    if (argc < 4) {
        fprintf(stderr, "usage: kernels_gen text|host OUT.c FILE.gk...\n");
        return 2;
    }
    if (run(argc, argv, &e) != 0) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    return 0;
}
