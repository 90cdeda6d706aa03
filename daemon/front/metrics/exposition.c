#include "daemon/front/metrics/exposition.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/utf8.h"

#define NUMBER_ROOM 40

void exposition_init(struct exposition *x, bool openmetrics)
{
    *x = (struct exposition){.openmetrics = openmetrics};
    capbuf_init(&x->text, EXPOSITION_MAX);
}

void exposition_finish(struct exposition *x)
{
    capbuf_finish(&x->text);
}

static void put(struct exposition *x, const char *text)
{
    (void)capbuf_append(&x->text, text, strlen(text)); /* a failure is in text.failed */
}

/* OpenMetrics names a family of counters without the suffix that its samples have. */
void exposition_family(struct exposition *x, const char *name, enum family_type type,
                       const char *help)
{
    static const char total[] = "_total";
    static const char *const types[] = {"counter", "gauge", "histogram"};
    size_t length = strlen(name);
    if (x->openmetrics && type == FAMILY_COUNTER) {
        length -= sizeof total - 1;
    }
    x->family = name;
    (void)capbuf_printf(&x->text, "# HELP %.*s %s\n# TYPE %.*s %s\n", (int)length, name, help,
                        (int)length, name, types[type]);
}

/* Writes the value of a label: quotes, backslashes and line feeds are escaped, and bytes that are
 * not UTF-8, with which a scrape would fail as a whole, become '?'. */
static void put_escaped(struct exposition *x, const char *value)
{
    size_t left = strlen(value);
    while (left > 0) {
        size_t plain = strcspn(value, "\"\\\n");
        size_t size = 0;
        while (size < plain) {
            size_t n = utf8_size((const uint8_t *)value + size, plain - size);
            if (n == 0) {
                break;
            }
            size += n;
        }
        (void)capbuf_append(&x->text, value, size);
        if (size < plain) {
            put(x, "?");
            size++;
        } else if (size < left) {
            put(x, value[size] == '\n' ? "\\n" : value[size] == '"' ? "\\\"" : "\\\\");
            size++;
        }
        value += size;
        left -= size;
    }
}

/* le NULL: the sample has no bound. */
static void put_labels(struct exposition *x, const struct label *labels, unsigned count,
                       const char *le)
{
    const char *before = "{";
    for (unsigned i = 0; i < count; i++) {
        put(x, before);
        put(x, labels[i].name);
        put(x, "=\"");
        put_escaped(x, labels[i].value);
        put(x, "\"");
        before = ",";
    }
    if (le != NULL) {
        put(x, before);
        put(x, "le=\"");
        put(x, le);
        put(x, "\"");
    }
    put(x, count > 0 || le != NULL ? "} " : " ");
}

/* The value with all its digits, and without zeros at the end. */
static void number(uint64_t value, enum family_unit unit, char out[NUMBER_ROOM])
{
    static const struct {
        int digits;
        uint64_t scale;
    } parts[] = {[UNIT_ONE] = {0, 1},
                 [UNIT_MILLI] = {3, 1000},
                 [UNIT_MICRO] = {6, 1000000},
                 [UNIT_NS] = {9, 1000000000}};
    uint64_t scale = parts[unit].scale;
    int n = snprintf(out, NUMBER_ROOM, "%" PRIu64, value / scale);
    if (value % scale == 0 || n <= 0) {
        return;
    }
    n += snprintf(out + n, NUMBER_ROOM - (size_t)n, ".%0*" PRIu64, parts[unit].digits,
                  value % scale);
    while (out[n - 1] == '0') {
        out[--n] = '\0';
    }
}

static void put_number(struct exposition *x, uint64_t value, enum family_unit unit)
{
    char text[NUMBER_ROOM];
    number(value, unit, text);
    put(x, text);
}

void exposition_sample(struct exposition *x, const struct label *labels, unsigned count,
                       uint64_t value, enum family_unit unit)
{
    put(x, x->family);
    put_labels(x, labels, count, NULL);
    put_number(x, value, unit);
    put(x, "\n");
}

static void put_exemplar(struct exposition *x, const struct exemplar *e)
{
    if (!x->openmetrics || e->trace == 0) {
        return;
    }
    (void)capbuf_printf(&x->text, " # {trace_id=\"%016" PRIx64 "\"} ", e->trace);
    put_number(x, e->ns, UNIT_NS);
    put(x, " ");
    put_number(x, e->wall_ns, UNIT_NS);
}

/* OpenMetrics writes bounds as numbers with a point. */
static void bound(const struct exposition *x, unsigned at, char out[NUMBER_ROOM])
{
    if (at == HISTOGRAM_BOUNDS) {
        (void)snprintf(out, NUMBER_ROOM, "+Inf");
        return;
    }
    number(histogram_bounds[at], UNIT_NS, out);
    if (x->openmetrics && strchr(out, '.') == NULL) {
        size_t used = strlen(out);
        (void)snprintf(out + used, NUMBER_ROOM - used, ".0");
    }
}

void exposition_histogram(struct exposition *x, const struct label *labels, unsigned count,
                          const struct histogram *h)
{
    char le[NUMBER_ROOM];
    uint64_t sum = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        sum += h->count[i];
        bound(x, i, le);
        put(x, x->family);
        put(x, "_bucket");
        put_labels(x, labels, count, le);
        put_number(x, sum, UNIT_ONE);
        put_exemplar(x, &h->last[i]);
        put(x, "\n");
    }
    put(x, x->family);
    put(x, "_sum");
    put_labels(x, labels, count, NULL);
    put_number(x, h->sum_ns, UNIT_NS);
    put(x, "\n");
    put(x, x->family);
    put(x, "_count");
    put_labels(x, labels, count, NULL);
    put_number(x, sum, UNIT_ONE);
    put(x, "\n");
}

bool exposition_end(struct exposition *x)
{
    if (x->openmetrics) {
        put(x, "# EOF\n");
    }
    return !x->text.failed;
}
