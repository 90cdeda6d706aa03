/* Checks of the daemon: its socket, its answers, its settings, the builds of its programs, and the
 * health of its devices. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gpuctl/doctor/check.h"

#define IPC "ipc://"
#define LOG "journalctl -u gpud -u gpud-launcher -n 50"

static const char *start_command(const struct host *h)
{
    return host_has_units(h) ? "systemctl start gpud"
                             : "d=$(mktemp -d); export GPUD_URL=ipc://$d/gpud.sock; "
                               "gpud --runtime-dir $d --cache-dir $d/cache --listen $GPUD_URL &";
}

static void report_rights(const struct doctor *d, const char *path, struct finding *f)
{
    struct stat st;
    char group[64] = "gpud";
    bool known = stat(path, &st) == 0;
    finding_add(f, FINDING_FAILURE, "", "%s: this user (%u) may not connect", path,
                (unsigned)d->host->caller.uid);
    if (known && st.st_gid == 0) { /* started by hand; root's group is no remedy */
        finding_mend(f,
                     "its daemon is for user %u alone: connect as that user, or run gpud as a "
                     "service",
                     (unsigned)st.st_uid);
        return;
    }
    if (known) {
        host_group_name(d->host, st.st_gid, group, sizeof group);
    }
    finding_mend(f, "adduser $USER %s, and log in again", group);
}

static void report_refusal(const struct doctor *d, const char *path, int number, struct finding *f)
{
    if (number == EACCES || number == EPERM) {
        report_rights(d, path, f);
    } else if (number == ECONNREFUSED) {
        finding_add(f, FINDING_FAILURE,
                    host_has_units(d->host) ? "systemctl restart gpud" : start_command(d->host),
                    "%s is left from a daemon that has ended: nothing listens there", path);
    } else if (number == EAGAIN) {
        finding_add(f, FINDING_FAILURE, "",
                    "%s: the daemon accepts no connections: it hangs, or too many wait", path);
        finding_mend(f, "%s",
                     host_has_units(d->host) ? "systemctl kill -s KILL gpud"
                                             : "end it: kill -KILL PID");
    } else {
        finding_add(f, FINDING_FAILURE, start_command(d->host), "%s: %s", path, strerror(number));
    }
}

void check_socket(const struct doctor *d, struct finding *f)
{
    const char *url = d->host->url;
    struct stat st;
    if (strncmp(url, IPC, strlen(IPC)) != 0) {
        finding_add(f, FINDING_SKIPPED, "", "%s is no socket of this host", url);
        return;
    }
    const char *path = url + strlen(IPC);
    if (stat(path, &st) != 0 && errno != EACCES) {
        finding_add(f, FINDING_FAILURE, start_command(d->host),
                    "%s: %s: no daemon has run there, or it has ended", path, strerror(errno));
        return;
    }
    int number = facts_connect(path, NULL);
    if (number != 0) {
        report_refusal(d, path, number, f);
    }
    finding_add(f, FINDING_OK, "", "%s accepts connections", path);
}

void check_daemon(const struct doctor *d, struct finding *f)
{
    const struct facts *a = &d->facts;
    bool units = host_has_units(d->host);
    if (a->reached && strcmp(a->state, "ready") == 0 && a->warning[0] != '\0') {
        finding_add(f, FINDING_WARNING, "correct it, then: gpuctl reload", "%s", a->warning);
    } else if (a->reached && strcmp(a->state, "ready") == 0) {
        finding_add(f, FINDING_OK, "", "build %s is ready", a->build);
    } else if (a->reached) {
        finding_add(f, strcmp(a->state, "degraded") == 0 ? FINDING_WARNING : FINDING_FAILURE,
                    "gpuctl status, which has a remedy for each problem", "%s: %s", a->state,
                    a->problem);
    } else if (a->code == GPUD_ERR_PERMISSION) {
        finding_add(f, FINDING_FAILURE,
                    units ? LOG : "gpuctl doctor, as the user that started gpud",
                    "it refuses this user: %s", a->error);
    } else if (a->code == GPUD_ERR_VERSION) {
        finding_add(f, FINDING_FAILURE, "apt-get install --only-upgrade gpud libgpud0 gpuctl",
                    "it speaks another version: %s", a->error);
    } else if (a->listening) {
        finding_add(f, FINDING_FAILURE,
                    units ? "systemctl kill -s KILL gpud; systemd starts the next one, jobs go on"
                          : "",
                    "process %d accepts connections and does not answer within %llu ms: it hangs",
                    (int)a->pid, (unsigned long long)d->host->timeout_ms);
        finding_mend(f, "kill -KILL %d, and start gpud again", (int)a->pid);
    } else {
        finding_add(f, FINDING_FAILURE, start_command(d->host), "it does not answer: %s", a->error);
    }
}

/* Only gpud knows its settings, so it reads them itself. */
void check_settings(const struct doctor *d, struct finding *f)
{
    char gpud[PATH_MAX];
    char text[1024];
    if (!host_program(d->host, "gpud", gpud)) {
        finding_add(f, FINDING_FAILURE, "apt-get install gpud", "the program gpud is not there");
    } else if (!host_run(d->host, gpud, "--check-config", NULL, text, sizeof text)) {
        finding_add(f, FINDING_FAILURE,
                    "correct the file, then: gpud --check-config && systemctl reload gpud", "%s",
                    text);
    } else {
        finding_add(f, FINDING_OK, "", "%s", text);
    }
}

/* ---- versions -------------------------------------------------------------------------------- */

/* The build in what a program says of itself: "gpud 0.2.0 (build 0.2.0+411b)", "gpud-worker 0.2.0".
 */
static void build_of(char *text, char *out, size_t size)
{
    text[strcspn(text, "\n")] = '\0';
    const char *space = strrchr(text, ' ');
    (void)snprintf(out, size, "%s", space != NULL ? space + 1 : text);
    out[strcspn(out, ")")] = '\0';
}

/* The build of a program; "" with a report if it has none. */
static void ask_program(const struct host *h, const char *name, char *out, size_t size,
                        struct finding *f)
{
    char path[PATH_MAX];
    char text[512];
    out[0] = '\0';
    if (!host_program(h, name, path)) {
        finding_add(f, FINDING_FAILURE, "apt-get install --reinstall gpud",
                    "the program %s is not there", name);
    } else if (!host_run(h, path, "--version", NULL, text, sizeof text)) {
        finding_add(f, FINDING_FAILURE, "apt-get install --reinstall gpud", "%s does not run: %s",
                    path, text);
    } else {
        build_of(text, out, size);
    }
}

void check_versions(const struct doctor *d, struct finding *f)
{
    static const char *const helpers[] = {"gpud-launcher", "gpud-worker", "gpud-compile",
                                          "gpud-monitor"};
    char front[GPUD_NAME];
    char build[GPUD_NAME];
    char compiled[32];
    ask_program(d->host, "gpud", front, sizeof front, f);
    for (size_t i = 0; i < sizeof helpers / sizeof helpers[0]; i++) {
        ask_program(d->host, helpers[i], build, sizeof build, f);
        if (front[0] != '\0' && build[0] != '\0' && strcmp(front, build) != 0) {
            finding_add(f, FINDING_FAILURE, "apt-get install --reinstall gpud",
                        "gpud is build %s, %s is %s: they refuse each other", front, helpers[i],
                        build);
        }
    }
    if (d->facts.reached && front[0] != '\0' && strcmp(d->facts.build, front) != 0) {
        finding_add(f, FINDING_WARNING, "systemctl restart gpud-launcher gpud",
                    "the daemon that runs is build %s, installed is %s", d->facts.build, front);
    }
    (void)snprintf(compiled, sizeof compiled, "%d.%d.%d", GPUD_VERSION_MAJOR, GPUD_VERSION_MINOR,
                   GPUD_VERSION_PATCH);
    if (strcmp(gpud_version(), compiled) != 0) {
        finding_add(f, FINDING_WARNING, "apt-get install --only-upgrade libgpud0 gpuctl",
                    "libgpud is %s, gpuctl was made for %s", gpud_version(), compiled);
    }
    finding_add(f, FINDING_OK, "", "all programs are build %s, libgpud %s", front, gpud_version());
}

/* ---- health ---------------------------------------------------------------------------------- */

/* A text that says that a value is not known. */
static bool unknown(const char *text)
{
    static const char *const texts[] = {"", "-", "unsupported", "not permitted", "failed"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strcmp(text, texts[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void look_at_device(const struct facts_device *v, struct finding *f)
{
    unsigned long long id = v->id;
    if (strcmp(v->state, "drained") == 0 || strcmp(v->state, "draining") == 0) {
        finding_add(f, FINDING_WARNING, "", "device %llu is %s: it takes no jobs", id, v->state);
        finding_mend(f, "gpuctl resume --device %llu, when the work on it is done", id);
    }
    if (!unknown(v->recovery) && strcmp(v->recovery, "none") != 0) {
        finding_add(f, FINDING_FAILURE, "", "device %llu: its driver asks: %s", id, v->recovery);
        if (strstr(v->recovery, "reboot") != NULL) {
            finding_mend(f, "gpuctl drain, then reboot");
        } else {
            finding_mend(f, "gpuctl drain --device %llu --wait 600, then nvidia-smi -r", id);
        }
    }
    if (v->ecc_errors > 0) {
        finding_add(f, FINDING_WARNING, "nvidia-smi -q -d ECC,PAGE_RETIREMENT,ROW_REMAPPER",
                    "device %llu: %llu uncorrected ECC errors since the driver was loaded", id,
                    (unsigned long long)v->ecc_errors);
    }
    if (strstr(v->throttled, "heat") != NULL || strstr(v->throttled, "hardware") != NULL ||
        strstr(v->throttled, "brake") != NULL) {
        finding_add(f, FINDING_WARNING, "nvidia-smi -q -d TEMPERATURE,POWER,PERFORMANCE",
                    "device %llu is slowed down: %s", id, v->throttled);
    }
}

/* Without the daemon, by NVIDIA's own program. */
static void ask_nvidia_smi(const struct host *h, struct finding *f)
{
    char path[PATH_MAX];
    char text[4096];
    if (host_nvidia_gpus(h) == 0) {
        finding_add(f, FINDING_SKIPPED, "",
                    "the daemon does not answer, and no GPU of NVIDIA is here");
        return;
    }
    if (!host_command(h, "nvidia-smi", path)) {
        finding_add(f, FINDING_SKIPPED, "",
                    "the daemon does not answer, and nvidia-smi is not here");
        return;
    }
    if (!host_run(h, path,
                  "--query-gpu=index,ecc.errors.uncorrected.volatile.total,"
                  "clocks_throttle_reasons.active",
                  "--format=csv,noheader,nounits", text, sizeof text)) {
        finding_add(f, FINDING_FAILURE, "dmesg | grep -i -e nvrm -e xid; reboot",
                    "nvidia-smi fails: the driver may hang: %s", text);
        return;
    }
    for (char *rest = NULL, *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        struct facts_device v = {.id = strtoull(line, NULL, 10)};
        const char *comma = strchr(line, ',');
        const char *last = strrchr(line, ',');
        if (comma != NULL) {
            v.ecc_errors = strtoull(comma + 1, NULL, 10); /* 0 for "[N/A]" */
            (void)snprintf(v.throttled, sizeof v.throttled, "%s",
                           (strtoull(last + 1, NULL, 16) & 0xe8u) != 0 ? "heat or power (hardware)"
                                                                       : "no");
        }
        look_at_device(&v, f);
    }
}

void check_health(const struct doctor *d, struct finding *f)
{
    unsigned known = 0;
    if (!d->facts.reached) {
        ask_nvidia_smi(d->host, f);
        finding_add(f, FINDING_OK, "", "nvidia-smi reports no ECC errors and no throttling");
        return;
    }
    for (unsigned i = 0; i < d->facts.device_count; i++) {
        look_at_device(&d->facts.device[i], f);
        known += !unknown(d->facts.device[i].throttled);
    }
    if (known == 0) {
        finding_add(f, FINDING_SKIPPED, "", "no device of the daemon reports its health");
    }
    finding_add(f, FINDING_OK, "", "%u device(s) without ECC errors, throttling or recovery",
                known);
}
