/*
 * gpud-monitor: asks NVIDIA's management library for the state of the GPUs periodically, and writes
 * it to a page of shared memory, descriptor 3. It may hang in the driver for ever, and be killed at
 * any time. No process waits for it.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "build.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/memfd.h"
#include "daemon/monitor/sample.h"

#define PAGE_FD       3
#define PERIOD_MS     2000u
#define PERIOD_MS_MAX 3600000u

static int usage(void)
{
    fprintf(stderr, "usage: gpud-monitor [--period MILLISECONDS] [--version]\n"
                    "started by gpud-launcher only\n");
    return 2;
}

/* Returns 0 to go on, else the exit code + 1. */
static int options_parse(int argc, char **argv, unsigned *period_ms)
{
    static const struct option LONG[] = {{"period", required_argument, NULL, 'p'},
                                         {"version", no_argument, NULL, 'V'},
                                         {NULL, 0, NULL, 0}};
    int c;
    while ((c = getopt_long(argc, argv, "", LONG, NULL)) != -1) {
        char *end = NULL;
        errno = 0;
        unsigned long value = c == 'p' ? strtoul(optarg, &end, 10) : 0;
        if (c == 'V') {
            printf("gpud-monitor %s\n", GPUD_BUILD);
            return 1;
        }
        if (c != 'p' || errno != 0 || *end != '\0' || value == 0 || value > PERIOD_MS_MAX) {
            return usage() + 1;
        }
        *period_ms = (unsigned)value;
    }
    return optind == argc ? 0 : usage() + 1;
}

static void pause_ms(unsigned ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    (void)nanosleep(&t, NULL);
}

static void publish(struct health_page *page, struct health_report *report)
{
    report->taken_ns = clock_now_ns();
    health_write(page, report);
    atomic_store(&page->asking_ns, 0);
}

static int watch(struct health_page *page, unsigned period_ms)
{
    static struct health_report report;
    struct nvml nvml;
    struct err e = ERR_INIT;
    atomic_store(&page->asking_ns, clock_now_ns());
    if (nvml_load(&nvml, &e) != 0) {
        (void)snprintf(report.error, sizeof report.error, "%s", e.text);
        publish(page, &report);
        return 1;
    }
    for (;;) {
        sample_take(&nvml, &page->asking_ns, &report);
        publish(page, &report);
        pause_ms(period_ms);
        atomic_store(&page->asking_ns, clock_now_ns());
    }
}

int main(int argc, char **argv)
{
    struct memfd memory = MEMFD_NONE;
    struct err e = ERR_INIT;
    unsigned period_ms = PERIOD_MS;
    log_open("gpud-monitor", LOG_LEVEL_INFO);
    int rc = options_parse(argc, argv, &period_ms);
    if (rc != 0) {
        return rc - 1;
    }
    log_environment_warn();
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (memfd_adopt(PAGE_FD, sizeof(struct health_page), true, &memory, &e) != 0) {
        log_say(LOG_START_FAILED, "descriptor %d: %s", PAGE_FD, e.text);
        return 1;
    }
    return watch((struct health_page *)(void *)memory.data, period_ms);
}
