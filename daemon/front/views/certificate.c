#include "daemon/front/views/certificate.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/model/wake.h"

/* Seconds until the first certificate ends; 0: it has expired. */
static uint64_t left_s(const struct front *f)
{
    return tls_end_left_s(&f->tls_end, clock_wall_ns() / NS_PER_S);
}

/* how: "expires", "expired"; what: what follows from it. */
static void say(const struct front *f, const char *how, const char *what, char *out, size_t size)
{
    char why[TLS_END_TEXT];
    tls_end_text(&f->tls_end, how, why);
    (void)snprintf(out, size, "%s: %s", what, why);
}

bool certificate_expired(const struct front *f, char *out, size_t size)
{
    bool expired = f->tls_end.at_s != 0 && left_s(f) == 0;
    if (expired) {
        say(f, "expired", "clients of other hosts cannot connect", out, size);
    }
    return expired;
}

bool certificate_expires(const struct front *f, char *out, size_t size)
{
    bool near = left_s(f) > 0 && tls_end_near(&f->tls_end, clock_wall_ns() / NS_PER_S);
    if (near) {
        say(f, "expires", "clients of other hosts cannot connect any more soon", out, size);
    }
    return near;
}

/* The wall clock may be set, so the time is looked at once a day also where the end is far. */
static uint64_t next_look_s(uint64_t left)
{
    uint64_t warn = TLS_WARN_DAYS * DAY_S;
    uint64_t until = left > warn ? left - warn : left;
    return until == 0 || until > DAY_S ? DAY_S : until;
}

bool certificate_watch(struct front *f, uint64_t now_ns)
{
    char text[ERR_TEXT_MAX];
    if (f->tls_end.at_s == 0) {
        return false;
    }
    if (now_ns < f->tls_look_ns) {
        wake_at(f, f->tls_look_ns);
        return false;
    }
    f->tls_look_ns = ns_add(now_ns, next_look_s(left_s(f)) * NS_PER_S);
    wake_at(f, f->tls_look_ns);
    if (certificate_expired(f, text, sizeof text)) {
        log_say(LOG_CERTIFICATE_EXPIRED, "%s", text);
        return true;
    }
    if (certificate_expires(f, text, sizeof text)) {
        log_say(LOG_CERTIFICATE, "%s", text);
        return true;
    }
    return false;
}
