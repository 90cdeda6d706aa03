#include "bench/common/machine.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "common/clock.h"

const char *placement_name(enum placement p)
{
    static const char *const names[PLACEMENTS] = {"one cpu", "apart", "unpinned"};
    return names[p];
}

/* The CPUs that this process was allowed to use at its start. */
static const cpu_set_t *allowed(void)
{
    static cpu_set_t set;
    static bool known;
    if (!known) {
        known = true;
        if (sched_getaffinity(0, sizeof set, &set) != 0) {
            CPU_ZERO(&set);
            CPU_SET(0, &set);
        }
    }
    return &set;
}

unsigned machine_cpus(void)
{
    return (unsigned)CPU_COUNT(allowed());
}

/* The first of the allowed CPUs, or all others. */
static cpu_set_t choose(bool first)
{
    cpu_set_t chosen;
    CPU_ZERO(&chosen);
    bool found = false;
    for (unsigned i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, allowed()) && (first ? !found : found)) {
            CPU_SET(i, &chosen);
        }
        found = found || CPU_ISSET(i, allowed());
    }
    return CPU_COUNT(&chosen) > 0 ? chosen : *allowed();
}

static void pin(pid_t pid, const cpu_set_t *set)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    const struct dirent *entry;
    while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid > 0) {
            (void)sched_setaffinity(tid, sizeof *set, set);
        }
    }
    if (tasks != NULL) {
        (void)closedir(tasks);
    }
}

void machine_pin_client(enum placement p, pid_t pid)
{
    cpu_set_t set = p == PLACE_ANY ? *allowed() : choose(true);
    pin(pid, &set);
}

void machine_pin_server(enum placement p, pid_t pid)
{
    cpu_set_t set = p == PLACE_ANY ? *allowed() : choose(p == PLACE_ONE);
    pin(pid, &set);
}

void machine_unpin(pid_t pid)
{
    pin(pid, allowed());
}

uint64_t process_cpu_ns(pid_t pid)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0) {
        return 0;
    }
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* The number after a label in a file of /proc; 0: none. */
static uint64_t labelled(const char *path, const char *label)
{
    char line[256];
    uint64_t value = 0;
    FILE *f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, label, strlen(label)) == 0) {
            value = strtoull(line + strlen(label), NULL, 10);
            break;
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return value;
}

uint64_t process_switches(pid_t pid)
{
    char path[300];
    uint64_t sum = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    const struct dirent *entry;
    while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
        (void)snprintf(path, sizeof path, "/proc/%d/task/%s/status", (int)pid, entry->d_name);
        sum += labelled(path, "voluntary_ctxt_switches:");
    }
    if (tasks != NULL) {
        (void)closedir(tasks);
    }
    return sum;
}

uint64_t process_memory_bytes(pid_t pid)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
    return (labelled(path, "Private_Clean:") + labelled(path, "Private_Dirty:")) * 1024;
}

pid_t process_parent(pid_t pid)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    return (pid_t)labelled(path, "PPid:");
}

const char *machine_name(void)
{
    static char name[256];
    char model[128] = "unknown processor";
    char line[256];
    struct utsname system;
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        const char *colon = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;
        if (colon != NULL) {
            (void)snprintf(model, sizeof model, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            break;
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    bool known = uname(&system) == 0;
    (void)snprintf(name, sizeof name, "%s, %u CPUs, Linux %s", model, machine_cpus(),
                   known ? system.release : "?");
    return name;
}

double machine_load(void)
{
    double load = 0;
    return getloadavg(&load, 1) == 1 ? load : 0;
}
