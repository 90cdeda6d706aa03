/* What a storm says at its end. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/storm/storm.h"

/* What a second, equal round may leave behind: of memory that is allocated, and of pages. Malloc
 * keeps free pieces between used ones, so a process keeps the pages of its fullest moment: four
 * clients at once that take none of 200 answers of 16 KiB are 13 MiB, and in which round they meet
 * is chance. */
#define HEAP_MAX  (64 << 10)
#define PAGES_MAX (32 << 20)

void report_drift(struct storm *s, const char *what, const struct usage *before,
                  const struct usage *after, bool same_process)
{
    int64_t pages = (int64_t)after->pages - (int64_t)before->pages;
    int64_t heap = (int64_t)after->heap - (int64_t)before->heap;
    (void)printf("%-44s descriptors %u, %+d; pages %" PRIu64 " KiB, %+" PRId64 " KiB", what,
                 after->descriptors, (int)(after->descriptors - before->descriptors),
                 after->pages / 1024, pages / 1024);
    if (after->heap > 0) {
        (void)printf("; heap %" PRIu64 " bytes, %+" PRId64, after->heap, heap);
    }
    (void)printf("\n");
    if (after->descriptors > before->descriptors) {
        ledger_break(s->l, BREACH_LEAK, "%s: %u descriptors, before %u", what, after->descriptors,
                     before->descriptors);
    }
#ifdef STORM_SANITIZED /* freed memory stays in quarantine */
    same_process = false;
#endif
    if (same_process && (heap > HEAP_MAX || pages > PAGES_MAX)) {
        ledger_break(s->l, BREACH_LEAK, "%s: %" PRId64 " bytes more heap, %" PRId64 " KiB of pages",
                     what, heap, pages / 1024);
    }
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void report_recoveries(struct storm *s)
{
    for (unsigned v = 0; v < VICTIM_COUNT; v++) {
        unsigned n = s->recoveries[v];
        uint64_t *ns = s->recovery[v];
        if (n == 0) {
            continue;
        }
        qsort(ns, n, sizeof *ns, by_size);
        (void)printf("recovery of %-9s %4u kills: p50 %.0f ms, p99 %.0f ms, max %.0f ms\n",
                     victim_name((enum victim)v), n, (double)ns[n / 2] / 1e6,
                     (double)ns[(uint64_t)n * 99 / 100] / 1e6, (double)ns[n - 1] / 1e6);
    }
}

static void report_deeds(const struct ledger *l)
{
    for (unsigned d = 0; d < DEED_COUNT; d++) {
        (void)printf("%-9s %" PRIu64 " times, longest quiet call %.1f s of %.1f s",
                     deed_name((enum deed)d), atomic_load(&l->tally[d].done),
                     (double)atomic_load(&l->longest_ns[d]) / 1e9,
                     (double)atomic_load(&l->hang_ns[d]) / 1e9);
        for (unsigned code = 0; code < CODES; code++) {
            uint64_t count = atomic_load(&l->tally[d].failed[code]);
            if (count > 0) {
                (void)printf(", %s %" PRIu64, gpud_err_name(-(int)code), count);
            }
        }
        (void)printf("\n");
    }
}

/* PoCL aborts where it cannot open a compiled kernel, and reads from a file that it could not open
 * (/proc/cpuinfo) where it opens a device: its worker ends as in any crash, and the jobs run
 * again. */
static bool driver_gave_up(const struct storm *s, const char *line)
{
    int pid = 0;
    const char *at = strstr(line, ": worker ");
    bool crashed =
        at != NULL && sscanf(at, ": worker %d", &pid) == 1 &&
        (strstr(at, "was ended by signal 6") != NULL ||
         (strstr(at, "was ended by signal 11") != NULL && strstr(at, "without a job") != NULL));
    for (unsigned i = 0; crashed && i < s->starved_count; i++) {
        if (s->starved[i] == pid) {
            return true;
        }
    }
    return false;
}

/* PoCL 3.1 counts the users of a compiled kernel in a table of its own, and sometimes (one worker
 * of several hundred) counts one too many as gone. Returns whether the line belongs to that. */
static bool driver_miscounted(unsigned *aborts, const char *line)
{
    if (strstr(line, "pocl_release_dlhandle_cache: Assertion") != NULL) {
        (*aborts)++;
        return true;
    }
    bool end = *aborts > 0 && strstr(line, "was ended by signal 6") != NULL;
    *aborts -= end;
    return end;
}

/* What the processes of the daemon say before they end by themselves. A line about a job repeats
 * how its worker ended, which has a line of its own. */
static void check_log(struct storm *s)
{
    static const char *const words[] = {"signal 6",  "signal 11",      "signal 7",  "signal 8",
                                        "Sanitizer", "runtime error:", "Assertion", "assert:"};
    char line[1024];
    unsigned aborts = 0;
    FILE *f = fopen(s->d.log, "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        bool ours = strncmp(line, "storm:", 6) == 0 || strncmp(line, "gpud: job ", 10) == 0;
        bool explained = driver_gave_up(s, line) || driver_miscounted(&aborts, line);
        s->driver_ends += explained;
        for (unsigned i = 0; !ours && !explained && i < sizeof words / sizeof words[0]; i++) {
            if (strstr(line, words[i]) != NULL) {
                line[strcspn(line, "\n")] = '\0';
                ledger_break(s->l, BREACH_CRASH, "the log: %s", line);
                break;
            }
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
}

void report_all(struct storm *s)
{
    const struct ledger *l = s->l;
    check_log(s);
    (void)printf("jobs done: %" PRIu64 "; sessions: %" PRIu64 "; quiet: %.0f s\n",
                 atomic_load(&l->jobs), atomic_load(&l->sessions),
                 (double)atomic_load(&l->quiet_ns) / 1e9);
    report_deeds(l);
    (void)printf("mishaps:");
    for (unsigned i = 0; i < MISHAP_COUNT; i++) {
        (void)printf("%s %s %" PRIu64, i > 0 ? "," : "", mishap_name((enum mishap_kind)i),
                     s->happened[i]);
    }
    (void)printf("\nevents: lost buffers %" PRIu64 ", restarted %" PRIu64 ", not restored %" PRIu64
                 "\n",
                 atomic_load(&l->events[GPUD_EVENT_BUFFER_LOST]),
                 atomic_load(&l->events[GPUD_EVENT_RESTARTED]),
                 atomic_load(&l->events[GPUD_EVENT_RESTORE_FAILED]));
    (void)printf("workers that their driver aborted, lines of the log: %u\n", s->driver_ends);
    report_recoveries(s);
    for (unsigned i = 0; i < BREACH_COUNT; i++) {
        (void)printf("%s: %" PRIu64 "\n", breach_name((enum breach)i),
                     atomic_load(&l->breaches[i]));
    }
    (void)fflush(stdout);
}
