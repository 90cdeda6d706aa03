/* Checks of the folders for compiled kernels: gpud's own, and the workers' for what drivers
 * compile. */
#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

#include "gpuctl/doctor/check.h"

#define CACHE         "/var/cache/gpud"
#define WORKERS_CACHE "/var/cache/gpud-worker"
#define INODES_LOW    1000u
#define MIB           (UINT64_C(1) << 20)

/* code: programs are loaded from there. */
static void look_at(const struct host *h, const char *folder, bool code, struct finding *f)
{
    char path[PATH_MAX];
    struct statvfs disk;
    if (statvfs(host_path(h, path, "%s", folder), &disk) != 0) {
        finding_add(f, FINDING_FAILURE,
                    "systemd-tmpfiles --create gpud.conf && systemctl restart gpud",
                    "%s: %s: kernels are compiled anew each time", folder, strerror(errno));
        return;
    }
    uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize;
    if ((disk.f_flag & ST_RDONLY) != 0) {
        finding_add(f, FINDING_FAILURE, "", "%s is on a file system that is read-only", folder);
        finding_mend(f, "mount -o remount,rw $(findmnt -n -o TARGET -T %s)", folder);
    }
    if (code && (disk.f_flag & ST_NOEXEC) != 0) {
        finding_add(f, FINDING_FAILURE, "",
                    "%s is mounted noexec: PoCL cannot load what it compiles", folder);
        finding_mend(f, "mount -o remount,exec $(findmnt -n -o TARGET -T %s)", folder);
    }
    if (left < h->disk_low || (disk.f_files > 0 && disk.f_favail < INODES_LOW)) {
        finding_add(f, FINDING_FAILURE, "",
                    "%s has %llu MiB and %llu files left: kernels are compiled anew each time",
                    folder, (unsigned long long)(left / MIB), (unsigned long long)disk.f_favail);
        finding_mend(f, "df -h %s; du -xsh %s; remove what is not needed there", folder, folder);
    }
    finding_add(f, FINDING_OK, "", "%s has %llu MiB left", folder,
                (unsigned long long)(left / MIB));
}

void check_cache(const struct doctor *d, struct finding *f)
{
    const char *folder = d->facts.cache_dir[0] != '\0' ? d->facts.cache_dir : CACHE;
    bool units = host_has_units(d->host);
    if (!units && d->facts.cache_dir[0] == '\0') {
        finding_add(f, FINDING_SKIPPED, "",
                    "the folder of a daemon that was started by hand is known only while it runs");
        return;
    }
    look_at(d->host, folder, false, f);
    if (units) {
        look_at(d->host, WORKERS_CACHE, true, f);
    }
}
