/* The table of kinds, and the journal's catalogue that belongs to it. */
#include "common/log.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/common/suite.h"

#define CATALOGUE_MAX 131072

struct row {
    const char *name;
    enum log_level level;
    const char *id;
    const char *hint;
    const char *subject;
    const char *what;
    const char *todo;
};

static const struct row rows[LOG_KINDS] = {
#define LOG_KIND(name, level, rate, id, hint, subject, what, todo)                                 \
    {#name, LOG_LEVEL_##level, id, hint, subject, what, todo},
#include "common/log_kinds.def"
#undef LOG_KIND
};

/* Appends the text in lines of at most 78 bytes. */
static size_t wrap(char *out, size_t used, const char *text)
{
    size_t column = 0;
    for (const char *word = text; *word != '\0';) {
        size_t size = strcspn(word, " ");
        if (column > 0) {
            out[used++] = column + 1 + size > 78 ? '\n' : ' ';
            column = out[used - 1] == '\n' ? 0 : column + 1;
        }
        memcpy(out + used, word, size);
        used += size;
        column += size;
        word += size + strspn(word + size, " ");
    }
    out[used++] = '\n';
    return used;
}

static size_t entry(char *out, size_t used, const struct row *r)
{
    char todo[1024];
    used += (size_t)snprintf(out + used, CATALOGUE_MAX - used,
                             "\n-- %s\nSubject: %s\nDefined-By: gpud\n"
                             "Documentation: man:gpuctl(1)\n\n",
                             r->id, r->subject);
    used = wrap(out, used, r->what);
    (void)snprintf(todo, sizeof todo, "What to do: %s", r->todo);
    out[used++] = '\n';
    return wrap(out, used, todo);
}

static size_t catalogue(char *out)
{
    size_t used =
        (size_t)snprintf(out, CATALOGUE_MAX,
                         "# What the lines of gpud's log mean; journalctl -x shows it. Written by\n"
                         "# common_log_kinds_test from common/log_kinds.def: change it there.\n");
    for (unsigned i = 0; i < LOG_KINDS; i++) {
        ck_assert_uint_lt(used + 4096, CATALOGUE_MAX);
        used = entry(out, used, &rows[i]);
    }
    return used;
}

static void record(const char *path, const char *text, size_t size)
{
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(the_catalogue_is_the_table)
{
    static const char path[] = GPUD_SOURCE_DIR "/packaging/gpud.catalog";
    static char want[CATALOGUE_MAX];
    static char got[CATALOGUE_MAX];
    size_t size = catalogue(want);
    if (getenv("GPUD_CATALOG_RECORD") != NULL) {
        record(path, want, size);
    }
    FILE *file = fopen(path, "re");
    ck_assert_msg(file != NULL, "%s: run this test with GPUD_CATALOG_RECORD=1", path);
    size_t n = fread(got, 1, sizeof got, file);
    (void)fclose(file);
    ck_assert_msg(n == size && memcmp(got, want, n) == 0,
                  "%s differs from common/log_kinds.def: run this test with GPUD_CATALOG_RECORD=1",
                  path);
}
END_TEST

START_TEST(each_kind_says_what_to_do)
{
    for (unsigned i = 0; i < LOG_KINDS; i++) {
        const struct row *r = &rows[i];
        bool bad = r->level <= LOG_LEVEL_WARN;
        ck_assert_msg(r->subject[0] != '\0' && r->what[0] != '\0' && r->todo[0] != '\0',
                      "%s has no text", r->name);
        ck_assert_msg(!bad || r->hint[0] != '\0', "%s: its lines do not say what to do", r->name);
        ck_assert_msg(r->level != LOG_LEVEL_ERROR || strncmp(r->todo, "Nothing", 7) != 0,
                      "%s: an error with nothing to do", r->name);
        ck_assert_uint_lt(strlen(r->hint), 128);
    }
}
END_TEST

START_TEST(each_id_is_one_of_its_own)
{
    for (unsigned i = 0; i < LOG_KINDS; i++) {
        ck_assert_uint_eq(strlen(rows[i].id), 32);
        ck_assert_uint_eq(strspn(rows[i].id, "0123456789abcdef"), 32);
        for (unsigned k = 0; k < i; k++) {
            ck_assert_str_ne(rows[i].id, rows[k].id);
            ck_assert_str_ne(rows[i].name, rows[k].name);
        }
    }
}
END_TEST

SUITE_MAIN("log_kinds", the_catalogue_is_the_table, each_kind_says_what_to_do,
           each_id_is_one_of_its_own)
