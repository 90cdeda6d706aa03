#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/backend/options.h"

#define VALUE_MAX 64

static bool word_in(const char *list, const char *word, size_t size)
{
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, " ");
        if (n == size && memcmp(at, word, n) == 0) {
            return true;
        }
        at += n + (at[n] == ' ');
    }
    return false;
}

int options_check(const char *options, const char *known, struct err *e)
{
    for (const char *at = options; *at;) {
        size_t n = strcspn(at, ",");
        size_t key = strcspn(at, "=,");
        if (key == n || !word_in(known, at, key)) {
            return err_set(e, ERR_INVALID, "option \"%.*s\" is not known; there are: %s", (int)n,
                           at, known);
        }
        at += n + (at[n] == ',');
    }
    return 0;
}

bool option_text(const char *options, const char *key, char *out, size_t size)
{
    size_t key_size = strlen(key);
    bool found = false;
    for (const char *at = options; *at;) {
        size_t n = strcspn(at, ",");
        if (n > key_size && at[key_size] == '=' && memcmp(at, key, key_size) == 0) {
            size_t value = n - key_size - 1;
            value = value < size ? value : size - 1;
            memcpy(out, at + key_size + 1, value);
            out[value] = '\0';
            found = true;
        }
        at += n + (at[n] == ',');
    }
    return found;
}

static unsigned suffix_shift(char **end)
{
    static const char suffix[] = "KMG";
    const char *at = **end ? strchr(suffix, **end) : NULL;
    if (!at) {
        return 0;
    }
    (*end)++;
    return 10u * (unsigned)(at - suffix + 1);
}

int option_u64(const char *options, const char *key, uint64_t min, uint64_t max,
               uint64_t *ret_value, struct err *e)
{
    char text[VALUE_MAX];
    if (!option_text(options, key, text, sizeof text)) {
        return 0;
    }
    char *end = text;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9') {
        return err_set(e, ERR_INVALID, "option %s=%s: not a number", key, text);
    }
    unsigned shift = suffix_shift(&end);
    if (*end != '\0') {
        return err_set(e, ERR_INVALID, "option %s=%s: not a number", key, text);
    }
    if (errno == ERANGE || value > UINT64_MAX >> shift || value << shift < min ||
        value << shift > max) {
        return err_set(e, ERR_RANGE, "option %s=%s: outside of %llu to %llu", key, text,
                       (unsigned long long)min, (unsigned long long)max);
    }
    *ret_value = value << shift;
    return 0;
}

int option_double(const char *options, const char *key, double min, double max, double *ret_value,
                  struct err *e)
{
    char text[VALUE_MAX];
    if (!option_text(options, key, text, sizeof text)) {
        return 0;
    }
    char *end = text;
    double value = strtod(text, &end);
    if (end == text || *end != '\0') {
        return err_set(e, ERR_INVALID, "option %s=%s: not a number", key, text);
    }
    if (!(value >= min && value <= max)) {
        return err_set(e, ERR_RANGE, "option %s=%s: outside of %g to %g", key, text, min, max);
    }
    *ret_value = value;
    return 0;
}

int option_bool(const char *options, const char *key, bool *ret_value, struct err *e)
{
    char text[VALUE_MAX];
    if (!option_text(options, key, text, sizeof text)) {
        return 0;
    }
    bool on = strcmp(text, "on") == 0;
    if (!on && strcmp(text, "off") != 0) {
        return err_set(e, ERR_INVALID, "option %s=%s: on or off", key, text);
    }
    *ret_value = on;
    return 0;
}
