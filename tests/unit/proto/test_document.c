/*
 * PROTOCOL.md agrees with the code: its example bytes are the encoder's, its tables list every
 * field, error and type. With --print it writes the examples as the document has them.
 */
#include <check.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/shape.h"
#include "proto/codec.h"
#include "tests/unit/proto/examples.h"

static char *document;

static char *document_read(const char *path)
{
    size_t limit = 1 << 20;
    char *text = malloc(limit);
    FILE *file = fopen(path, "rb");
    if (text == NULL || file == NULL) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    text[fread(text, 1, limit - 1, file)] = '\0';
    (void)fclose(file);
    return text;
}

/* The document's bytes of an example, as hex digits without spaces. */
static void digits_of(const char *name, char *out, size_t size)
{
    char head[64];
    (void)snprintf(head, sizeof head, "```hex %s\n", name);
    const char *at = strstr(document, head);
    ck_assert_msg(at != NULL, "no example %s", name);
    const char *end = strstr(at + strlen(head), "```");
    ck_assert_ptr_nonnull(end);
    size_t used = 0;
    for (at += strlen(head); at < end; at++) {
        if (isxdigit((unsigned char)*at)) {
            ck_assert_uint_lt(used + 1, size);
            out[used++] = *at;
        }
    }
    out[used] = '\0';
}

START_TEST(examples_are_what_the_encoder_gives)
{
    unsigned known = 0;
    struct capbuf out;
    capbuf_init(&out, 4096);
    for (const char *name; (name = example_make(known, &out)) != NULL; known++) {
        char wanted[8193] = "";
        char written[8193];
        for (size_t i = 0; i < out.size; i++) {
            (void)snprintf(wanted + 2 * i, 3, "%02x", out.data[i]);
        }
        digits_of(name, written, sizeof written);
        ck_assert_msg(strcmp(wanted, written) == 0, "%s: document\n%s\nencoder\n%s", name, written,
                      wanted);
        capbuf_reset(&out);
    }
    capbuf_finish(&out);
    unsigned found = 0;
    for (const char *at = document; (at = strstr(at, "```hex ")) != NULL; at++) {
        found++;
    }
    ck_assert_uint_eq(found, known);
}
END_TEST

static void upper(const char *name, char *out, size_t size)
{
    size_t used = 0;
    for (; *name != '\0' && used + 1 < size; name++) {
        out[used++] = (char)toupper((unsigned char)*name);
    }
    out[used] = '\0';
}

static void row_of(const struct schema_field *f, unsigned index, char *out, size_t size)
{
    static const char *const types[] = {"uint", "int", "text", "bytes", "list of"};
    char record[64] = "";
    char max[32] = "";
    if (f->type == SCHEMA_L) {
        record[0] = ' ';
        upper(f->record->name, record + 1, sizeof record - 1);
    }
    if (f->type != SCHEMA_I && f->max != UINT64_MAX) {
        (void)snprintf(max, sizeof max, " ≤ %llu", (unsigned long long)f->max);
    }
    (void)snprintf(out, size, "| %u | `%s` | %s%s%s |", index, f->name, types[f->type], record,
                   max);
}

static void check_table(const struct schema *s)
{
    char name[64];
    char head[96];
    upper(s->name, name, sizeof name);
    if (s->kind != 0) {
        (void)snprintf(head, sizeof head, "\n### %s (%u)\n", name, s->kind);
    } else {
        (void)snprintf(head, sizeof head, "\n### %s\n", name);
    }
    const char *at = strstr(document, head);
    ck_assert_msg(at != NULL, "no heading%s", head);
    const char *end = strstr(at + 1, "\n#");
    for (unsigned i = 0; i < s->count; i++) {
        char row[160];
        row_of(&s->fields[i], s->kind != 0 ? i + 1 : i, row, sizeof row);
        const char *found = strstr(at, row);
        ck_assert_msg(found != NULL && (end == NULL || found < end), "%s: no row %s", name, row);
        at = found;
    }
}

START_TEST(tables_list_every_field)
{
#define X(NAME, name, value) check_table(&schema_msg_##name);
    PROTO_MESSAGES(X)
#undef X
#define X(NAME, name) check_table(&schema_##name);
    PROTO_RECORDS(X)
#undef X
}
END_TEST

static void check_row(long long value, const char *name)
{
    char row[96];
    (void)snprintf(row, sizeof row, "\n| %lld | `%s` |", value, name);
    ck_assert_msg(strstr(document, row) != NULL, "no row%s", row);
}

START_TEST(errors_and_types_are_listed)
{
#define ERR(name, value, retriable, text) check_row(value, #name);
#include "common/errors.def"
#undef ERR
#define X(name, value, bytes) check_row(value, dtype_name(value));
    DTYPES(X)
#undef X
}
END_TEST

/* One version, wherever it stands. */
START_TEST(versions_agree)
{
    char text[64];
    (void)snprintf(text, sizeof text, "# The gpud protocol, version %d.%d\n", PROTO_MAJOR,
                   PROTO_MINOR);
    ck_assert_msg(strncmp(document, text, strlen(text)) == 0, "the title does not say %s", text);
    (void)snprintf(text, sizeof text, "\n| 3 | `major` | uint | %d |\n", PROTO_MAJOR);
    ck_assert_msg(strstr(document, text) != NULL, "HELLO: no%s", text);
    (void)snprintf(text, sizeof text, "\n| 4 | `minor` | uint | %d |\n", PROTO_MINOR);
    ck_assert_msg(strstr(document, text) != NULL, "HELLO: no%s", text);
}
END_TEST

static int print_examples(void)
{
    struct capbuf out;
    capbuf_init(&out, 4096);
    const char *name = NULL;
    for (unsigned i = 0; (name = example_make(i, &out)) != NULL; i++) {
        (void)printf("%s", name);
        for (size_t k = 0; k < out.size; k++) {
            (void)printf("%s%02x", k % 24 == 0 ? "\n" : " ", out.data[k]);
        }
        (void)printf("\n\n");
        capbuf_reset(&out);
    }
    capbuf_finish(&out);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--print") == 0) {
        return print_examples();
    }
    document = document_read(PROTOCOL_MD);
    Suite *suite = suite_create("document");
    TCase *tc = tcase_create("document");
    tcase_add_test(tc, examples_are_what_the_encoder_gives);
    tcase_add_test(tc, tables_list_every_field);
    tcase_add_test(tc, errors_and_types_are_listed);
    tcase_add_test(tc, versions_agree);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    free(document);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
