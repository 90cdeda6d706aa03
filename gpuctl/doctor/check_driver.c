/* Checks of the driver and its device files. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl/doctor/check.h"

#define NVIDIA "/proc/driver/nvidia"

/* The version in a file's name, libcuda.so.535.183.01. */
static bool library_version(const char *path, struct version *ret_version)
{
    const char *name = strrchr(path, '/');
    const char *so = name != NULL ? strstr(name, ".so.") : NULL;
    return so != NULL && version_read(so + strlen(".so."), ret_version);
}

/* The version of the driver's module; false if no module is loaded. */
static bool module_version(const struct host *h, char *out, size_t size,
                           struct version *ret_version)
{
    char path[PATH_MAX];
    char text[1024];
    if (!host_read(host_path(h, path, NVIDIA "/version"), text, sizeof text)) {
        return false;
    }
    text[strcspn(text, "\n")] = '\0';
    const char *module =
        strstr(text, "Kernel Module"); /* before it is x86_64, behind it the version */
    (void)snprintf(out, size, "%s", text);
    return version_read(module != NULL ? module : text, ret_version);
}

void check_driver(const struct doctor *d, struct finding *f)
{
    char text[1024];
    char library[PATH_MAX];
    struct version module;
    struct version user;
    if (!module_version(d->host, text, sizeof text, &module)) {
        finding_add(f, FINDING_FAILURE, "apt-get install nvidia-driver && modprobe nvidia",
                    "%u GPU(s) of NVIDIA, and the driver's module is not loaded",
                    host_nvidia_gpus(d->host));
        return;
    }
    if (!host_library(d->host, "libcuda.so.1", library)) {
        finding_add(f, FINDING_FAILURE, "apt-get install libcuda1",
                    "the driver's module is loaded, and libcuda.so.1 is missing");
        return;
    }
    if (library_version(library, &user) && version_compare(&module, &user) != 0) {
        finding_add(f, FINDING_FAILURE, "reboot",
                    "the driver's module is %u.%u.%u, its library %u.%u.%u (%s): a new driver was "
                    "installed while the old one runs",
                    module.part[0], module.part[1], module.part[2], user.part[0], user.part[1],
                    user.part[2], library);
        return;
    }
    finding_add(f, FINDING_OK, "", "NVIDIA %u.%u.%u, module and library", module.part[0],
                module.part[1], module.part[2]);
}

/* HMM lets a stray pointer of a kernel reach the worker's own memory; operating.md. */
void check_kernel_memory(const struct doctor *d, struct finding *f)
{
    char path[PATH_MAX];
    char text[1024];
    char off[8] = "";
    struct version module;
    struct version linux_version = {{0, 0, 0}};
    const struct version hmm = {{6, 1, 24}};
    if (!module_version(d->host, text, sizeof text, &module)) {
        finding_add(f, FINDING_SKIPPED, "", "the driver's module is not loaded");
        return;
    }
    bool open = strstr(text, "Open Kernel Module") != NULL;
    (void)host_read(host_path(d->host, path, "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm"),
                    off, sizeof off);
    (void)host_read(host_path(d->host, path, "/proc/sys/kernel/osrelease"), text, sizeof text);
    (void)version_read(text, &linux_version);
    if (open && off[0] != 'Y' && off[0] != '1' && version_compare(&linux_version, &hmm) >= 0) {
        finding_add(
            f, FINDING_WARNING,
            "echo options nvidia-uvm uvm_disable_hmm=1 >/etc/modprobe.d/gpud.conf && reboot",
            "HMM is on: kernels reach all memory of their worker by a stray pointer, "
            "instead of faulting");
        return;
    }
    finding_add(f, FINDING_OK, "", "kernels reach device memory only (no HMM)");
}

/* ---- device files ---------------------------------------------------------------------------- */

/* The users that open devices, and how to let them. */
struct openers {
    struct user user[3];
    const char *name[3];
    unsigned count;
    bool units;
};

static void openers_init(const struct host *h, struct openers *o)
{
    static const char *const names[] = {"gpud-worker0", "gpud-worker", "gpud"};
    *o = (struct openers){.units = host_has_units(h)};
    for (size_t i = 0; o->units && i < sizeof names / sizeof names[0]; i++) {
        if (host_user(h, names[i], &o->user[o->count])) { /* a missing one is for check_users */
            o->name[o->count++] = names[i];
        }
    }
    if (!o->units) {
        o->user[0] = h->caller;
        o->name[0] = "this user";
        o->count = 1;
    }
}

/* Reports a device file that is missing or that a user may not open. */
static void look_at(const struct host *h, const struct openers *o, const char *file, bool optional,
                    struct finding *f)
{
    char path[PATH_MAX];
    char group[64];
    struct stat st;
    if (stat(host_path(h, path, "%s", file), &st) != 0) {
        finding_add(f, FINDING_FAILURE,
                    o->units ? "systemctl restart gpud-nvidia"
                             : "nvidia-modprobe -c 0 -c 255 && nvidia-modprobe -u -c 0",
                    "%s: %s", file, strerror(errno));
        return;
    }
    for (unsigned i = 0; i < o->count; i++) {
        if (user_may_use(&o->user[i], &st)) {
            continue;
        }
        host_group_name(h, st.st_gid, group, sizeof group);
        finding_add(f, optional ? FINDING_WARNING : FINDING_FAILURE, "",
                    "%s: %s may not open it (mode %03o, group %s)", file, o->name[i],
                    (unsigned)st.st_mode & 0777u, group);
        if (o->units) {
            finding_mend(
                f,
                "for u in gpud gpud-worker $(seq -f gpud-worker%%g 0 63); do adduser $u %s; "
                "done; systemctl restart gpud-launcher gpud",
                group);
        } else {
            finding_mend(f, "adduser $USER %s, and log in again", group);
        }
        return;
    }
}

/* The minor number of a GPU from the driver's folder; -1: unknown. */
static int minor_of(const struct host *h, const char *gpu)
{
    char path[PATH_MAX];
    char text[2048];
    (void)host_read(host_path(h, path, NVIDIA "/gpus/%s/information", gpu), text, sizeof text);
    const char *at = strstr(text, "Device Minor:");
    return at != NULL ? (int)strtol(at + strlen("Device Minor:"), NULL, 10) : -1;
}

static void nvidia_files(const struct host *h, const struct openers *o, struct finding *f)
{
    char path[PATH_MAX];
    char file[64];
    look_at(h, o, "/dev/nvidiactl", false, f);
    look_at(h, o, "/dev/nvidia-uvm", false, f);
    DIR *dir = opendir(host_path(h, path, NVIDIA "/gpus"));
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        int number = entry->d_name[0] != '.' ? minor_of(h, entry->d_name) : -1;
        if (number >= 0) {
            (void)snprintf(file, sizeof file, "/dev/nvidia%d", number);
            look_at(h, o, file, false, f);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

/* GPUs that OpenCL reaches; returns their number. */
static unsigned render_files(const struct host *h, const struct openers *o, struct finding *f)
{
    char path[PATH_MAX];
    char file[300];
    unsigned count = 0;
    DIR *dir = opendir(host_path(h, path, "/dev/dri"));
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, "renderD", strlen("renderD")) == 0) {
            (void)snprintf(file, sizeof file, "/dev/dri/%s", entry->d_name);
            look_at(h, o, file, true, f);
            count++;
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return count;
}

void check_devices(const struct doctor *d, struct finding *f)
{
    struct openers o;
    unsigned nvidia = host_nvidia_gpus(d->host);
    openers_init(d->host, &o);
    if (nvidia > 0) {
        nvidia_files(d->host, &o, f);
    }
    unsigned rendering = render_files(d->host, &o, f);
    if (nvidia == 0 && rendering == 0) {
        finding_add(f, FINDING_SKIPPED, "", "this host has no device files of GPUs");
    }
    finding_add(f, FINDING_OK, "", "%s may open the files of %u NVIDIA GPU(s) and %u other(s)",
                o.units ? "gpud's users" : "this user", nvidia, rendering);
}
