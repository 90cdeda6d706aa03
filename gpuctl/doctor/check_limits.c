/* Checks of limits: descriptors, locked memory, the cgroup, and what workers confine themselves by.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl/doctor/check.h"

#define DESCRIPTORS_RESERVED 512u                  /* by gpud: for workers and for connections */
#define CONNECTIONS          1024u                 /* the default of connections_max */
#define STAGING              (UINT64_C(512) << 20) /* bytes that a worker pins by default */
#define MEMORY_LOW           (UINT64_C(1) << 30)
#define MIB                  (UINT64_C(1) << 20)

/* A limit of a process, soft, from /proc; false if it cannot be read. */
static bool limit_of(const struct host *h, pid_t pid, const char *name, uint64_t *ret_limit)
{
    char path[PATH_MAX];
    char text[4096];
    if (pid == 0 ||
        !host_read(host_path(h, path, "/proc/%d/limits", (int)pid), text, sizeof text)) {
        return false;
    }
    const char *at = strstr(text, name);
    if (at == NULL) {
        return false;
    }
    at += strlen(name);
    at += strspn(at, " ");
    *ret_limit =
        strncmp(at, "unlimited", strlen("unlimited")) == 0 ? UINT64_MAX : strtoull(at, NULL, 10);
    return true;
}

/* The limit of the process, or where there are no units doctor's own, which a daemon that is
 * started by hand inherits. false: it is not known, and the finding says so. */
static bool limit_or_own(const struct doctor *d, pid_t pid, const char *name, uint64_t own,
                         const char *unknown, struct finding *f, uint64_t *ret_limit)
{
    if (limit_of(d->host, pid, name, ret_limit)) {
        return true;
    }
    if (host_has_units(d->host)) {
        finding_add(f, FINDING_SKIPPED, "", "%s", unknown);
        return false;
    }
    *ret_limit = own;
    return true;
}

void check_descriptors(const struct doctor *d, struct finding *f)
{
    uint64_t wanted = d->facts.connections_max > 0 ? d->facts.connections_max : CONNECTIONS;
    uint64_t limit = 0;
    bool units = host_has_units(d->host);
    const char *has = d->facts.pid > 0 ? "the daemon has" : "a daemon of this shell would have";
    wanted += DESCRIPTORS_RESERVED;
    if (!limit_or_own(d, d->facts.pid, "Max open files", d->host->descriptors,
                      "the daemon's limit is known only while it runs", f, &limit)) {
        return;
    }
    if (limit < wanted) {
        finding_add(f, FINDING_WARNING,
                    units ? "systemctl edit gpud, with: [Service] LimitNOFILE=65536; systemctl "
                            "restart gpud"
                          : "ulimit -n 65536, before gpud is started",
                    "%s %llu descriptors, connections_max wants %llu", has,
                    (unsigned long long)limit, (unsigned long long)wanted);
    }
    finding_add(f, FINDING_OK, "", "%s %llu descriptors", has, (unsigned long long)limit);
}

/* The first worker of the daemon; 0: none is known. */
static pid_t a_worker(const struct facts *facts)
{
    for (unsigned i = 0; i < facts->device_count; i++) {
        if (facts->device[i].worker != 0) {
            return facts->device[i].worker;
        }
    }
    return 0;
}

void check_memlock(const struct doctor *d, struct finding *f)
{
    uint64_t limit = 0;
    bool units = host_has_units(d->host);
    if (host_nvidia_gpus(d->host) == 0) {
        finding_add(f, FINDING_SKIPPED, "", "no GPU of NVIDIA, for which memory is locked");
        return;
    }
    if (!limit_or_own(d, a_worker(&d->facts), "Max locked memory", d->host->memlock,
                      "the workers' limit is known only while they run", f, &limit)) {
        return;
    }
    if (limit < STAGING) {
        finding_add(f, FINDING_WARNING,
                    units ? "systemctl edit gpud-launcher, with: [Service] LimitMEMLOCK=infinity; "
                            "systemctl restart gpud-launcher gpud"
                          : "ulimit -l unlimited, before gpud is started",
                    "workers may lock %llu MiB and want %llu: copies are slower",
                    (unsigned long long)(limit / MIB), (unsigned long long)(STAGING / MIB));
    }
    finding_add(f, FINDING_OK, "", "workers may lock enough memory");
}

/* ---- the cgroup ------------------------------------------------------------------------------ */

/* The process' group in the unified tree, "/system.slice/gpud.service"; false if it has none. */
static bool cgroup_of(const struct host *h, pid_t pid, char *out, size_t size)
{
    char path[PATH_MAX];
    char text[4096];
    char process[16] = "self";
    if (pid != 0) {
        (void)snprintf(process, sizeof process, "%d", (int)pid);
    }
    if (!host_read(host_path(h, path, "/proc/%s/cgroup", process), text, sizeof text)) {
        return false;
    }
    const char *at = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    if (at == NULL) {
        return false;
    }
    at += at == text ? 3 : 4;
    (void)snprintf(out, size, "%.*s", (int)strcspn(at, "\n"), at);
    return true;
}

/* A number of the group; UINT64_MAX for "max" and where there is no such file. key: NULL, or the
 * word before it in a file of several. */
static uint64_t cgroup_value(const struct host *h, const char *group, const char *file,
                             const char *key)
{
    char path[PATH_MAX];
    char text[1024];
    if (!host_read(host_path(h, path, "/sys/fs/cgroup%s/%s", group, file), text, sizeof text)) {
        return UINT64_MAX;
    }
    const char *at = key != NULL ? strstr(text, key) : text;
    at = at != NULL && key != NULL ? at + strlen(key) : at;
    return at == NULL || strncmp(at, "max", 3) == 0 ? UINT64_MAX : strtoull(at, NULL, 10);
}

static void look_at_group(const struct host *h, const char *unit, const char *group,
                          struct finding *f)
{
    uint64_t most = cgroup_value(h, group, "memory.max", NULL);
    uint64_t used = cgroup_value(h, group, "memory.current", NULL);
    uint64_t kills = cgroup_value(h, group, "memory.events", "\noom_kill ");
    uint64_t tasks = cgroup_value(h, group, "pids.current", NULL);
    uint64_t tasks_max = cgroup_value(h, group, "pids.max", NULL);
    if (kills != UINT64_MAX && kills > 0) {
        finding_add(f, FINDING_WARNING, "",
                    "%s: the kernel ended %llu process(es) for want of memory", group,
                    (unsigned long long)kills);
        finding_mend(f, "systemctl set-property %s MemoryMax=90%%", unit);
    }
    if (most != UINT64_MAX &&
        (most < MEMORY_LOW || (used != UINT64_MAX && used / 10 >= most / 11))) {
        finding_add(f, FINDING_WARNING, "", "%s: %llu of %llu MiB are in use", group,
                    (unsigned long long)(used != UINT64_MAX ? used / MIB : 0),
                    (unsigned long long)(most / MIB));
        finding_mend(f, "systemctl set-property %s MemoryMax=90%%", unit);
    }
    if (tasks_max != UINT64_MAX && tasks != UINT64_MAX && tasks / 10 >= tasks_max / 11) {
        finding_add(f, FINDING_WARNING, "", "%s: %llu of %llu tasks are in use", group,
                    (unsigned long long)tasks, (unsigned long long)tasks_max);
        finding_mend(f, "systemctl set-property %s TasksMax=%llu", unit,
                     (unsigned long long)tasks_max * 2);
    }
    finding_add(f, FINDING_OK, "", "%s: memory and tasks are within their limits", group);
}

void check_cgroup(const struct doctor *d, struct finding *f)
{
    char group[512];
    pid_t worker = a_worker(&d->facts);
    if (!cgroup_of(d->host, d->facts.pid, group, sizeof group)) {
        finding_add(f, FINDING_SKIPPED, "", "no unified cgroup");
        return;
    }
    look_at_group(d->host, "gpud", group, f);
    if (worker != 0 && cgroup_of(d->host, worker, group, sizeof group)) {
        look_at_group(d->host, "gpud-launcher", group, f);
    }
}

void check_confinement(const struct doctor *d, struct finding *f)
{
    if (!host_exists(d->host, "/proc/sys/kernel/seccomp")) {
        finding_add(f, FINDING_WARNING, "install a kernel with CONFIG_SECCOMP_FILTER",
                    "the kernel has no seccomp: kernels of users may make any system call");
    }
    if (d->host->landlock < 1) {
        finding_add(f, FINDING_WARNING,
                    "boot with lsm=landlock,… on the kernel's command line (Linux 5.13 or later)",
                    "the kernel has no Landlock: kernels of users may read the host's files");
    }
    finding_add(f, FINDING_OK, "", "workers confine themselves: Landlock %d and seccomp",
                d->host->landlock);
}
