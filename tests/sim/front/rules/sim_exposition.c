/*
 * Reads the text of metrics: Prometheus' text format 0.0.4, or OpenMetrics 1.0, without mercy. One
 * line that is wrong costs an operator the whole scrape.
 */
#include "tests/sim/front/rules/sim_exposition.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "daemon/front/metrics/render.h"

#define NAME_ROOM  128u
#define VALUE_ROOM 512u
#define LABELS_MAX 16u
#define LINE_SHOWN 160

struct series {
    struct hash key;
    UT_hash_handle hh;
};

struct sample {
    char name[NAME_ROOM];
    char label[LABELS_MAX][NAME_ROOM];
    char value[LABELS_MAX][VALUE_ROOM];
    unsigned labels;
    double number;
};

struct reader {
    struct sim *s;
    const char *line; /* that is read, for messages */
    const char *at;
    const char *end;
    bool openmetrics;
    char family[NAME_ROOM], type[NAME_ROOM];
    struct series *seen; /* owned */
    double bucket;       /* of a histogram: the count of the bucket before */
    uint64_t completed;  /* jobs of all tenants */
    unsigned tenants, devices;
};

static _Noreturn void blame(const struct reader *r, const char *why)
{
    size_t size = strcspn(r->line, "\n");
    sim_fail(r->s, "exposition: %s: %.*s", why, (int)(size < LINE_SHOWN ? size : LINE_SHOWN),
             r->line);
}

/* ---- parts of a line ------------------------------------------------------------------------- */

static void take(struct reader *r, char c)
{
    if (r->at == r->end || *r->at != c) {
        blame(r, "another character is to follow");
    }
    r->at++;
}

static void take_name(struct reader *r, char out[NAME_ROOM])
{
    size_t size = 0;
    while (r->at < r->end && (isalnum((unsigned char)*r->at) || *r->at == '_' || *r->at == ':')) {
        if (size + 1 == NAME_ROOM || (size == 0 && isdigit((unsigned char)*r->at))) {
            blame(r, "a name is wrong");
        }
        out[size++] = *r->at++;
    }
    out[size] = '\0';
    if (size == 0) {
        blame(r, "a name is missing");
    }
}

/* Between quotes: only three escapes exist. */
static void take_value(struct reader *r, char out[VALUE_ROOM])
{
    size_t size = 0;
    take(r, '"');
    while (r->at < r->end && *r->at != '"' && *r->at != '\n') {
        char c = *r->at++;
        if (c == '\\') {
            char e = r->at < r->end ? *r->at++ : '\0';
            if (e != '\\' && e != '"' && e != 'n') {
                blame(r, "an escape is unknown");
            }
            c = e == 'n' ? '\n' : e;
        }
        if (size + 1 == VALUE_ROOM) {
            blame(r, "a value of a label is long");
        }
        out[size++] = c;
    }
    out[size] = '\0';
    take(r, '"');
}

static void take_labels(struct reader *r, struct sample *x)
{
    x->labels = 0;
    if (r->at == r->end || *r->at != '{') {
        return;
    }
    do {
        r->at++;
        if (x->labels == LABELS_MAX) {
            blame(r, "too many labels");
        }
        take_name(r, x->label[x->labels]);
        take(r, '=');
        take_value(r, x->value[x->labels]);
        for (unsigned i = 0; i < x->labels; i++) {
            if (strcmp(x->label[i], x->label[x->labels]) == 0) {
                blame(r, "a label is there twice");
            }
        }
        x->labels++;
    } while (r->at < r->end && *r->at == ',');
    take(r, '}');
}

static const char *label_of(const struct sample *x, const char *name)
{
    for (unsigned i = 0; i < x->labels; i++) {
        if (strcmp(x->label[i], name) == 0) {
            return x->value[i];
        }
    }
    return NULL;
}

static double take_number(struct reader *r)
{
    char *after = NULL;
    double number = strtod(r->at, &after);
    if (after == r->at || !(number >= 0)) {
        blame(r, "a value is no number, or below 0");
    }
    r->at = after;
    return number;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text);
    return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

/* The samples of a family come together, and their names are its own. */
static void check_family(const struct reader *r, const struct sample *x)
{
    bool counter = strcmp(r->type, "counter") == 0;
    bool histogram = strcmp(r->type, "histogram") == 0;
    const char *suffix = x->name + strlen(r->family);
    bool own = strncmp(x->name, r->family, strlen(r->family)) == 0;
    bool good = histogram ? strcmp(suffix, "_bucket") == 0 || strcmp(suffix, "_sum") == 0 ||
                                strcmp(suffix, "_count") == 0
                : counter && r->openmetrics ? strcmp(suffix, "_total") == 0
                                            : suffix[0] == '\0';
    if (!own || !good || (counter && !ends_with(x->name, "_total"))) {
        blame(r, "a sample is of another family");
    }
}

static void check_once(struct reader *r, const char *begin)
{
    struct series *e = NULL;
    struct hash key = hash_of(begin, (size_t)(r->at - begin));
    HASH_FIND(hh, r->seen, &key, sizeof key, e);
    if (e != NULL) {
        blame(r, "a series is there twice");
    }
    e = malloc(sizeof *e);
    if (e == NULL) {
        abort();
    }
    e->key = key;
    HASH_ADD(hh, r->seen, key, sizeof e->key, e);
}

/* Buckets grow, and the last one has all. */
static void check_histogram(struct reader *r, const struct sample *x)
{
    if (ends_with(x->name, "_bucket")) {
        const char *le = label_of(x, "le");
        if (le == NULL || x->number < r->bucket) {
            blame(r, "buckets do not grow");
        }
        r->bucket = x->number;
    } else if (ends_with(x->name, "_count")) {
        if (x->number != r->bucket) {
            blame(r, "a histogram has another count");
        }
        r->bucket = 0;
    }
}

static void note(struct reader *r, const struct sample *x)
{
    if (strcmp(x->name, "gpud_tenant_jobs_completed_total") == 0) {
        r->completed += (uint64_t)x->number;
    }
    r->tenants += strcmp(x->name, "gpud_tenant_weight") == 0;
    r->devices += strcmp(x->name, "gpud_device_info") == 0;
}

static void take_sample(struct reader *r)
{
    struct sample x;
    const char *begin = r->at;
    take_name(r, x.name);
    take_labels(r, &x);
    check_family(r, &x);
    check_once(r, begin);
    take(r, ' ');
    x.number = take_number(r);
    if (strcmp(r->type, "histogram") == 0) {
        check_histogram(r, &x);
    }
    if (r->openmetrics && r->at < r->end && *r->at == ' ') { /* an exemplar */
        struct sample e;
        take(r, ' ');
        take(r, '#');
        take(r, ' ');
        take_labels(r, &e);
        take(r, ' ');
        (void)take_number(r);
        take(r, ' ');
        (void)take_number(r);
    }
    take(r, '\n');
    note(r, &x);
}

static void take_comment(struct reader *r)
{
    char word[NAME_ROOM];
    char name[NAME_ROOM];
    take(r, '#');
    take(r, ' ');
    take_name(r, word);
    if (r->openmetrics && strcmp(word, "EOF") == 0) {
        take(r, '\n');
        return;
    }
    take(r, ' ');
    take_name(r, name);
    take(r, ' ');
    if (strcmp(word, "TYPE") == 0) {
        take_name(r, r->type);
        (void)snprintf(r->family, sizeof r->family, "%s", name);
        r->bucket = 0;
    } else if (strcmp(word, "HELP") != 0) {
        blame(r, "a comment is unknown");
    }
    while (r->at < r->end && *r->at != '\n') {
        r->at++;
    }
    take(r, '\n');
}

/* ---- the text -------------------------------------------------------------------------------- */

/* Whether the second byte is one that may follow the first. */
static bool may_follow(unsigned char first, unsigned char second)
{
    unsigned char least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned char most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    return second >= least && second <= most;
}

/* Bytes of the character; 0: it is none of UTF-8. */
static size_t character(const unsigned char *c, size_t left)
{
    if (c[0] < 0x80) {
        return 1;
    }
    size_t size = c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;
    bool good = c[0] >= 0xc2 && c[0] < 0xf5 && size <= left && may_follow(c[0], c[1]);
    for (size_t i = 2; good && i < size; i++) {
        good = (c[i] & 0xc0) == 0x80;
    }
    return good ? size : 0;
}

static void check_utf8(struct reader *r)
{
    for (const char *c = r->at; c < r->end;) {
        size_t size = character((const unsigned char *)c, (size_t)(r->end - c));
        r->line = c[0] == '\n' ? c + 1 : r->line;
        if (size == 0) {
            blame(r, "it is not UTF-8");
        }
        c += size;
    }
}

static void read_all(struct reader *r)
{
    check_utf8(r);
    while (r->at < r->end) {
        r->line = r->at;
        if (*r->at == '#') {
            take_comment(r);
        } else {
            take_sample(r);
        }
    }
}

static void compare(const struct reader *r, const struct figures *n)
{
    uint64_t completed = 0;
    unsigned tenants = 0;
    for (unsigned row = 0; row < TENANT_ROWS; row++) {
        const struct tenant_figures *t = &n->tenant[row];
        tenants += t->name[0] != '\0';
        for (unsigned i = 0; i < ACCOUNT_RESULTS; i++) {
            completed += i != ACCOUNT_REFUSED ? t->jobs[i] : 0;
        }
    }
    if (r->completed != completed || r->tenants != tenants || r->devices != n->device_count) {
        sim_fail(r->s,
                 "exposition: %u devices, %u tenants, %" PRIu64 " jobs, instead of %u, %u, "
                 "%" PRIu64,
                 r->devices, r->tenants, r->completed, n->device_count, tenants, completed);
    }
}

void exposition_check(struct sim *s, const struct figures *n, bool openmetrics)
{
    struct exposition x;
    struct reader r = {.s = s, .openmetrics = openmetrics};
    struct series *e;
    struct series *next;
    exposition_init(&x, openmetrics);
    render(&x, n);
    if (!exposition_end(&x) || !capbuf_append(&x.text, "", 1)) {
        sim_fail(s, "exposition: the text is not whole");
    }
    r.at = r.line = (const char *)x.text.data;
    r.end = r.at + x.text.size - 1;
    read_all(&r);
    compare(&r, n);
    HASH_ITER(hh, r.seen, e, next)
    {
        HASH_DEL(r.seen, e);
        free(e);
    }
    exposition_finish(&x);
}
