#include "tests/torture/session.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBERS_MAX 4096u

static const char *const names[] = {"jobs",   "socket", "module", "control",
                                    "record", "death",  "adopt",  "start"};

const char *act_name(enum act act)
{
    return names[act];
}

void wrong(struct session *s, const char *format, ...)
{
    if (s->problem[0] == '\0') {
        va_list list;
        va_start(list, format);
        (void)vsnprintf(s->problem, sizeof s->problem, format, list);
        va_end(list);
    }
}

uint64_t patience_of(const struct session *s)
{
    return s->famine ? FAMINE_PATIENCE : SESSION_PATIENCE;
}

bool said(struct session *s, int code, const char *what)
{
    if (code >= 0) {
        return true;
    }
    s->failed++;
    if ((code == GPUD_ERR_TIMEOUT && !s->famine) || s->clean ||
        strcmp(gpud_err_name(code), "UNKNOWN") == 0) {
        wrong(s, "%s: %s: %s", what, gpud_err_name(code), gpud_last_error()->text);
    }
    return false;
}

bool session_open(struct session *s)
{
    gpud_options o = {.size = sizeof o,
                      .name = "torture",
                      .connect_timeout_ns = patience_of(s),
                      .timeout_ns = patience_of(s),
                      .reconnect_ns = patience_of(s) / 2};
    if (!said(s, gpud_open(s->h->d.url, &o, &s->c), "gpud_open")) {
        return false;
    }
    bool ok = said(s, gpud_kernel_find(s->c, "axpy", &s->axpy), "gpud_kernel_find axpy");
    ok = said(s, gpud_kernel_find(s->c, "add", &s->add), "gpud_kernel_find add") && ok;
    ok = said(s, gpud_kernel_find(s->c, "fill", &s->fill), "gpud_kernel_find fill") && ok;
    return ok;
}

void session_close(struct session *s)
{
    gpud_close(s->c);
    s->c = NULL;
}

bool numbers_make(struct session *s, unsigned count, float first, gpud_buffer *ret_buffer)
{
    static float value[NUMBERS_MAX];
    gpud_buffer b = {0};
    for (unsigned i = 0; i < count; i++) {
        value[i] = first + (float)i;
    }
    if (!said(s, gpud_buffer_create(s->c, gpud_shape_1d(GPUD_F32, count), 0, "numbers", &b),
              "gpud_buffer_create")) {
        return false;
    }
    if (!said(s, gpud_write(s->c, b, GPUD_F32, 0, GPUD_REST, value, NULL), "gpud_write")) {
        (void)said(s, gpud_buffer_free(s->c, b), "gpud_buffer_free");
        return false;
    }
    *ret_buffer = b;
    return true;
}

bool numbers_check(struct session *s, gpud_buffer b, unsigned count, float first, const char *what)
{
    static float value[NUMBERS_MAX];
    memset(value, 0, count * sizeof value[0]);
    if (!said(s, gpud_read(s->c, b, GPUD_F32, 0, GPUD_REST, value, NULL), what)) {
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        if (value[i] != first + (float)i) {
            wrong(s, "%s: element %u is %g, not %g", what, i, (double)value[i],
                  (double)(first + (float)i));
            return false;
        }
    }
    return true;
}

void session_play(struct session *s, enum act act)
{
    (void)setenv("GPUD_LANE", act == ACT_SOCKET ? "nng" : "auto", 1);
    if (session_open(s)) {
        switch (act) {
        case ACT_JOBS:
            play_jobs(s);
            play_memory(s);
            play_tables(s);
            break;
        case ACT_SOCKET:
            play_jobs(s);
            break;
        case ACT_MODULE:
            play_module(s);
            break;
        case ACT_CONTROL:
            play_control(s);
            break;
        case ACT_RECORD:
            play_record(s);
            break;
        case ACT_DEATH:
            play_death(s);
            break;
        default:
            play_adopt(s);
            break;
        }
    }
    session_close(s);
}
