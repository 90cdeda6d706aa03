#include "gpuctl/base/ctl_err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <gpud/gpud.h>

/* `tail` may point into e->text. */
static int fill(struct ctl_err *e, int code, const char *tail, const char *fmt, va_list ap)
{
    char head[sizeof e->text];
    vsnprintf(head, sizeof head, fmt, ap);
    char whole[sizeof e->text];
    snprintf(whole, sizeof whole, "%s%s%s", head, tail != NULL ? ": " : "",
             tail != NULL ? tail : "");
    memcpy(e->text, whole, sizeof whole);
    e->code = code;
    return code;
}

int ctl_err_set(struct ctl_err *e, int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fill(e, code, NULL, fmt, ap);
    va_end(ap);
    return code;
}

int ctl_err_usage(struct ctl_err *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fill(e, CTL_USAGE, NULL, fmt, ap);
    va_end(ap);
    return CTL_USAGE;
}

static int errno_code(int number)
{
    switch (number) {
    case ENOENT:
        return GPUD_ERR_NOT_FOUND;
    case ENOMEM:
        return GPUD_ERR_NOMEM;
    default:
        return GPUD_ERR_IO;
    }
}

int ctl_err_errno(struct ctl_err *e, const char *fmt, ...)
{
    int number = errno;
    va_list ap;
    va_start(ap, fmt);
    int code = fill(e, errno_code(number), strerror(number), fmt, ap);
    va_end(ap);
    return code;
}

int ctl_err_lib(struct ctl_err *e, int code, const char *fmt, ...)
{
    const gpud_error *last = gpud_last_error();
    const char *text =
        last->code == code && last->text[0] != '\0' ? last->text : gpud_strerror(code);
    va_list ap;
    va_start(ap, fmt);
    fill(e, code, text, fmt, ap);
    va_end(ap);
    return code;
}

int ctl_err_wrap(struct ctl_err *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fill(e, e->code, e->text, fmt, ap);
    va_end(ap);
    return e->code;
}

int ctl_exit_code(int code)
{
    switch (code) {
    case GPUD_OK:
        return EXIT_OK;
    case CTL_USAGE:
        return EXIT_USAGE;
    case CTL_INTERRUPTED:
        return EXIT_INTERRUPTED;
    case GPUD_ERR_CONNECT:
    case GPUD_ERR_VERSION:
        return EXIT_UNREACHABLE;
    case GPUD_ERR_PERMISSION:
        return EXIT_DENIED;
    case GPUD_ERR_BUSY:
    case GPUD_ERR_DRAINING:
        return EXIT_BUSY;
    case GPUD_ERR_TIMEOUT:
    case GPUD_ERR_TIME_LIMIT:
    case GPUD_ERR_DEADLINE:
        return EXIT_TIME;
    default:
        return EXIT_FAILED;
    }
}
