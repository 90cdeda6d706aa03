#include "common/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct entry {
    int code;
    bool retriable;
    const char *name;
    const char *text;
};

static const struct entry entries[] = {
#define ERR(name, value, retriable, text) {(value), (retriable) != 0, #name, (text)},
#include "common/errors.def"
#undef ERR
};

static const struct entry *find(int code)
{
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        if (entries[i].code == code) {
            return &entries[i];
        }
    }
    return NULL;
}

static void fill(struct err *e, int code, int vendor, const char *fmt, va_list ap)
{
    *e = ERR_INIT;
    e->code = code;
    e->vendor = vendor;
    (void)vsnprintf(e->text, sizeof e->text, fmt, ap);
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
    if (e != NULL) {
        va_list ap;
        va_start(ap, fmt);
        fill(e, code, 0, fmt, ap);
        va_end(ap);
    }
    return code;
}

int err_set_vendor(struct err *e, int code, int vendor, const char *fmt, ...)
{
    if (e != NULL) {
        va_list ap;
        va_start(ap, fmt);
        fill(e, code, vendor, fmt, ap);
        va_end(ap);
    }
    return code;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    if (e == NULL) {
        return ERR_INTERNAL;
    }
    char text[ERR_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0) {
        return e->code;
    }
    size_t used = (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    (void)snprintf(text + used, sizeof text - used, ": %s", e->text);
    memcpy(e->text, text, sizeof text);
    return e->code;
}

int err_errno(struct err *e, int code, const char *fmt, ...)
{
    int number = errno;
    if (e != NULL) {
        va_list ap;
        va_start(ap, fmt);
        fill(e, code, number, fmt, ap);
        va_end(ap);
        size_t used = strlen(e->text);
        (void)snprintf(e->text + used, sizeof e->text - used, ": %s", strerror(number));
    }
    return code;
}

const char *err_name(int code)
{
    const struct entry *entry = find(code);
    return code == 0 ? "OK" : entry != NULL ? entry->name : "UNKNOWN";
}

const char *err_text(int code)
{
    const struct entry *entry = find(code);
    return code == 0 ? "success" : entry != NULL ? entry->text : "unknown error";
}

bool err_retriable(int code)
{
    const struct entry *entry = find(code);
    return entry != NULL && entry->retriable;
}

int err_from_name(const char *name)
{
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        if (strcmp(entries[i].name, name) == 0) {
            return entries[i].code;
        }
    }
    return 0;
}
