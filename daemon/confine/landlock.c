#include "daemon/confine/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Copied from linux/landlock.h of ABI 6, because the headers of older kernels lack parts of it. */
#define CREATE_VERSION 1u
#define RULE_PATH      1
#define FS_EXECUTE     (UINT64_C(1) << 0)
#define FS_WRITE_FILE  (UINT64_C(1) << 1)
#define FS_READ_FILE   (UINT64_C(1) << 2)
#define FS_READ_DIR    (UINT64_C(1) << 3)
#define FS_REMOVE_DIR  (UINT64_C(1) << 4)
#define FS_ALL_FIRST   ((UINT64_C(1) << 13) - 1) /* ABI 1 */
#define FS_REFER       (UINT64_C(1) << 13)       /* ABI 2 */
#define FS_TRUNCATE    (UINT64_C(1) << 14)       /* ABI 3 */
#define FS_IOCTL_DEV   (UINT64_C(1) << 15)       /* ABI 5 */
#define NET_TCP        UINT64_C(3)               /* ABI 4: bind, connect */
#define SCOPE_ALL      UINT64_C(3)               /* ABI 6: abstract sockets, signals */
#define FS_OF_FILES    (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)
#define NEWEST_ABI     6

struct ruleset_attr {
    uint64_t fs, net, scoped;
};
struct path_attr {
    uint64_t allowed;
    int32_t parent_fd;
} __attribute__((packed));

static uint64_t rights_of(unsigned rights)
{
    return ((rights & LANDLOCK_READ) != 0 ? FS_READ_FILE | FS_READ_DIR : 0) |
           ((rights & LANDLOCK_RUN) != 0 ? FS_EXECUTE : 0) |
           ((rights & LANDLOCK_DEVICE) != 0
                ? FS_READ_FILE | FS_WRITE_FILE | FS_READ_DIR | FS_IOCTL_DEV
                : 0) |
           ((rights & LANDLOCK_REMOVE) != 0 ? FS_REMOVE_DIR : 0) |
           ((rights & LANDLOCK_ALL) != 0 ? UINT64_MAX : 0);
}

int landlock_begin(struct landlock *l, struct err *e)
{
    *l = (struct landlock){.fd = -1, .e = e};
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION);
    if (abi < 1) {
        bool absent = abi == 0 || errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM;
        return absent ? 0 : err_errno(e, ERR_INTERNAL, "asking for Landlock");
    }
    l->abi = (int)(abi < NEWEST_ABI ? abi : NEWEST_ABI);
    struct ruleset_attr attr = {.fs = FS_ALL_FIRST | (abi >= 2 ? FS_REFER : 0) |
                                      (abi >= 3 ? FS_TRUNCATE : 0) | (abi >= 5 ? FS_IOCTL_DEV : 0),
                                .net = abi >= 4 ? NET_TCP : 0,
                                .scoped = abi >= 6 ? SCOPE_ALL : 0};
    size_t size = abi >= 6 ? sizeof attr : abi >= 4 ? 2 * sizeof attr.fs : sizeof attr.fs;
    l->fs = attr.fs;
    l->fd = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
    return l->fd >= 0 ? 0 : err_errno(e, ERR_INTERNAL, "making rules of Landlock");
}

int landlock_allow(const struct landlock *l, const char *path, unsigned rights)
{
    struct stat st;
    if (l->fd < 0) {
        return 0;
    }
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES
                   ? 0
                   : err_errno(l->e, ERR_INTERNAL, "a rule of Landlock for %s", path);
    }
    struct path_attr attr = {.allowed = rights_of(rights) & l->fs, .parent_fd = fd};
    int rc = fstat(fd, &st);
    if (rc == 0 && !S_ISDIR(st.st_mode)) {
        attr.allowed &= FS_OF_FILES;
    }
    rc = rc == 0 ? (int)syscall(SYS_landlock_add_rule, l->fd, RULE_PATH, &attr, 0) : rc;
    rc = rc == 0 ? 0 : err_errno(l->e, ERR_INTERNAL, "a rule of Landlock for %s", path);
    (void)close(fd);
    return rc;
}

int landlock_allow_list(const struct landlock *l, const char *list, const char *ends, bool inside,
                        unsigned rights)
{
    int rc = 0;
    while (rc == 0 && list != NULL && *list != '\0') {
        char path[PATH_MAX];
        struct stat st;
        size_t size = strcspn(list, ends);
        if (list[0] == '/' && size > 1 && size < sizeof path) {
            memcpy(path, list, size);
            path[size] = '\0';
            if (inside && stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
                *strrchr(path, '/') = '\0';
            }
            rc = path[0] != '\0' ? landlock_allow(l, path, rights) : 0;
        }
        list += size;
        list += *list != '\0';
    }
    return rc;
}

/* Devices of drivers: of NVIDIA, of the kernel's graphics, of AMD. */
static int allow_devices(const struct landlock *l)
{
    static const char *const patterns[] = {"/dev/nvidia*", "/dev/dri",  "/dev/kfd",
                                           "/dev/null",    "/dev/zero", "/dev/random",
                                           "/dev/urandom"};
    int rc = 0;
    for (size_t p = 0; rc == 0 && p < sizeof patterns / sizeof patterns[0]; p++) {
        glob_t found;
        bool some = glob(patterns[p], 0, NULL, &found) == 0;
        for (size_t i = 0; some && rc == 0 && i < found.gl_pathc; i++) {
            rc = landlock_allow(l, found.gl_pathv[i], LANDLOCK_DEVICE);
        }
        if (some) {
            globfree(&found);
        }
    }
    return rc;
}

static int allow_files(const struct landlock *l, unsigned rights)
{
    static const char *const files[] = {
        "/usr",
        "/bin",
        "/sbin",
        "/lib",
        "/lib32",
        "/lib64",
        "/etc/ld.so.cache",
        "/etc/ld.so.conf",
        "/etc/ld.so.conf.d",
        "/etc/OpenCL",
        "/etc/alternatives",
        "/proc/cpuinfo",
        "/proc/meminfo",
        "/proc/stat",
        "/proc/driver/nvidia",
        "/sys/devices",
        "/sys/class/drm",
        "/sys/bus/pci",
        "/usr/local/cuda",
        GPUD_CUDA_TOOLKIT,
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        "/proc", /* programs read their own memory map */
#endif
    };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof files / sizeof files[0]; i++) {
        rc = landlock_allow(l, files[i], rights);
    }
    return rc;
}

int landlock_allow_system(const struct landlock *l, const char *options, unsigned rights)
{
    int rc = allow_files(l, rights);
    rc = rc == 0 ? allow_devices(l) : rc;
    rc = rc == 0 ? landlock_allow_list(l, getenv("CUDA_PATH"), "", false, rights) : rc;
    rc = rc == 0 ? landlock_allow_list(l, getenv("CUDA_HOME"), "", false, rights) : rc;
    rc = rc == 0 ? landlock_allow_list(l, getenv("LD_LIBRARY_PATH"), ":", false, rights) : rc;
    rc = rc == 0 ? landlock_allow_list(l, getenv("OCL_ICD_VENDORS"), "", true, rights) : rc;
    rc = rc == 0 ? landlock_allow_list(l, getenv("OCL_ICD_FILENAMES"), ":", true, rights) : rc;
#if defined(__SANITIZE_ADDRESS__)
    rc = rc == 0 ? landlock_allow_list(l, getenv("LSAN_OPTIONS"), "=:", false, rights) : rc;
#endif
    return rc == 0 ? landlock_allow_list(l, options, "=,", true, rights) : rc;
}

void landlock_finish(struct landlock *l)
{
    if (l->fd >= 0) {
        (void)close(l->fd);
        l->fd = -1;
    }
}

int landlock_enforce(struct landlock *l)
{
    int rc = 0;
    if (l->fd >= 0 && syscall(SYS_landlock_restrict_self, l->fd, 0) != 0) {
        rc = err_errno(l->e, ERR_INTERNAL, "confining this process by Landlock");
    }
    landlock_finish(l);
    return rc;
}
