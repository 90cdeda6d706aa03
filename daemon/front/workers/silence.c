#include "daemon/front/workers/silence.h"

#include <stdio.h>

#include "common/saturate.h"

/* A thread in a system's frozen control group counts as one that waits for a disk, too: both are
 * in state D. */
enum thread_lack silence_lack(char state)
{
    switch (state) {
    case 'R':
        return LACKS_PROCESSOR;
    case 'D':
        return LACKS_DISK;
    default:
        return LACKS_NOTHING;
    }
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

bool silence_judge(struct silence *s, uint64_t beat_ns, uint64_t limit_ns, uint64_t now_ns,
                   const struct thread_look *look)
{
    enum thread_lack lack = look != NULL ? look->lack : LACKS_NOTHING;
    uint64_t ran_ns = look != NULL ? look->ran_ns : 0;
    if (s->beat_ns != beat_ns || s->looked_ns == 0) {
        *s = (struct silence){.beat_ns = beat_ns, .looked_ns = beat_ns, .ran_ns = ran_ns};
    }
    uint64_t span_ns = sat_sub(now_ns, s->looked_ns);
    s->counted_ns += lack == LACKS_NOTHING ? span_ns : least(span_ns, sat_sub(ran_ns, s->ran_ns));
    s->looked_ns = now_ns;
    s->ran_ns = ran_ns;
    s->lack = lack;
    if (s->counted_ns >= limit_ns) {
        s->lack = LACKS_NOTHING; /* it had what it needed */
        return true;
    }
    return sat_sub(now_ns, beat_ns) >= ns_add(limit_ns, SILENCE_EXCUSED_MAX_NS);
}

bool silence_excused(const struct device *d)
{
    return d->worker != 0 && d->killed_ns == 0 && d->silence.looked_ns != 0 &&
           d->silence.beat_ns == d->beat_ns && d->silence.lack != LACKS_NOTHING;
}

void silence_text(const struct device *d, uint64_t now_ns, char *out, size_t size)
{
    static const char *const lacks[] = {
        [LACKS_NOTHING] = "",
        [LACKS_PROCESSOR] = ": its thread waits for a processor",
        [LACKS_DISK] = ": its thread waits for a disk or for memory on one, or is frozen",
    };
    (void)snprintf(out, size, "no heartbeat for %.1f s%s",
                   (double)sat_sub(now_ns, d->beat_ns) / 1e9, lacks[d->silence.lack]);
}

void silence_note(const struct device *d, uint64_t now_ns, char *out, size_t size)
{
    (void)snprintf(out, size, "silent for %.0f s: waits for a %s",
                   (double)sat_sub(now_ns, d->beat_ns) / 1e9,
                   d->silence.lack == LACKS_DISK ? "disk" : "processor");
}
