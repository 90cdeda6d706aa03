#include "daemon/compile/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
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

#define READ_ONLY (FS_EXECUTE | FS_READ_FILE | FS_READ_DIR)
#define DEVICE    (FS_READ_FILE | FS_WRITE_FILE | FS_READ_DIR | FS_IOCTL_DEV)

struct ruleset {
    int fd;
    uint64_t fs; /* the rights that this kernel knows */
    struct err *e;
};

static int ruleset_make(struct ruleset *r)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION);
    if (abi < 1) {
        return (int)abi;
    }
    abi = abi < NEWEST_ABI ? abi : NEWEST_ABI;
    struct ruleset_attr attr = {.fs = FS_ALL_FIRST | (abi >= 2 ? FS_REFER : 0) |
                                      (abi >= 3 ? FS_TRUNCATE : 0) | (abi >= 5 ? FS_IOCTL_DEV : 0),
                                .net = abi >= 4 ? NET_TCP : 0,
                                .scoped = abi >= 6 ? SCOPE_ALL : 0};
    size_t size = abi >= 6 ? sizeof attr : abi >= 4 ? 2 * sizeof attr.fs : sizeof attr.fs;
    r->fs = attr.fs;
    r->fd = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
    return r->fd;
}

/* A path that does not exist needs no rule. */
static int allow(const struct ruleset *r, const char *path, uint64_t access)
{
    struct stat st;
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES
                   ? 0
                   : err_errno(r->e, ERR_INTERNAL, "confining the compiler: %s", path);
    }
    access &= r->fs;
    struct path_attr attr = {.allowed = access, .parent_fd = fd};
    int rc = fstat(fd, &st);
    if (rc == 0 && !S_ISDIR(st.st_mode)) {
        attr.allowed &= FS_OF_FILES;
    }
    rc = rc == 0 ? (int)syscall(SYS_landlock_add_rule, r->fd, RULE_PATH, &attr, 0) : rc;
    rc = rc == 0 ? 0 : err_errno(r->e, ERR_INTERNAL, "confining the compiler: %s", path);
    (void)close(fd);
    return rc;
}

/* Allows the absolute paths of a list whose parts end at one of `ends`. inside: for a file
 * allows its folder, because a library's other files lie beside it. */
static int allow_list(const struct ruleset *r, const char *list, const char *ends, bool inside)
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
            rc = path[0] != '\0' ? allow(r, path, READ_ONLY) : 0;
        }
        list += size;
        list += *list != '\0';
    }
    return rc;
}

/* Allows the devices of drivers whose compilers open them: OpenCL of NVIDIA and others. */
static int allow_devices(const struct ruleset *r)
{
    static const char *const patterns[] = {"/dev/nvidia*", "/dev/dri", "/dev/kfd"};
    int rc = 0;
    for (size_t p = 0; rc == 0 && p < sizeof patterns / sizeof patterns[0]; p++) {
        glob_t found;
        bool some = glob(patterns[p], 0, NULL, &found) == 0;
        for (size_t i = 0; some && rc == 0 && i < found.gl_pathc; i++) {
            rc = allow(r, found.gl_pathv[i], DEVICE);
        }
        if (some) {
            globfree(&found);
        }
    }
    return rc;
}

static int allow_system(const struct ruleset *r)
{
    static const char *const read_only[] = {
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
        "/proc", /* compilers read their own memory map */
#endif
    };
    static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof read_only / sizeof read_only[0]; i++) {
        rc = allow(r, read_only[i], READ_ONLY);
    }
    for (size_t i = 0; rc == 0 && i < sizeof devices / sizeof devices[0]; i++) {
        rc = allow(r, devices[i], DEVICE);
    }
    return rc == 0 ? allow_devices(r) : rc;
}

/* Allows the scratch folder, and in its parent the right to remove it. */
static int allow_scratch(const struct ruleset *r, const char *scratch)
{
    char around[PATH_MAX];
    (void)snprintf(around, sizeof around, "%s", scratch);
    *strrchr(around, '/') = '\0';
    int rc = allow(r, around[0] != '\0' ? around : "/", FS_REMOVE_DIR);
    return rc == 0 ? allow(r, scratch, r->fs) : rc;
}

static int allow_all(const struct ruleset *r, const struct confine *c)
{
    int rc = allow_system(r);
    rc = rc == 0 ? allow_list(r, getenv("CUDA_PATH"), "", false) : rc;
    rc = rc == 0 ? allow_list(r, getenv("CUDA_HOME"), "", false) : rc;
    rc = rc == 0 ? allow_list(r, getenv("LD_LIBRARY_PATH"), ":", false) : rc;
    rc = rc == 0 ? allow_list(r, getenv("OCL_ICD_VENDORS"), "", true) : rc;
    rc = rc == 0 ? allow_list(r, getenv("OCL_ICD_FILENAMES"), ":", true) : rc;
    rc = rc == 0 ? allow_list(r, c->options, "=,", true) : rc; /* "key=/path,key=/path" */
#if defined(__SANITIZE_ADDRESS__)
    rc = rc == 0 ? allow_list(r, getenv("LSAN_OPTIONS"), "=:", false) : rc; /* read at the exit */
#endif
    rc = rc == 0 && c->cache[0] != '\0' ? allow(r, c->cache, r->fs) : rc;
    return rc == 0 ? allow_scratch(r, c->scratch) : rc;
}

int confine(const struct confine *c, bool *ret_confined, struct err *e)
{
    struct ruleset r = {.fd = -1, .e = e};
    if (ruleset_make(&r) < 0) {
        bool absent = errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM;
        *ret_confined = false;
        return absent ? 0 : err_errno(e, ERR_INTERNAL, "confining the compiler");
    }
    int rc = allow_all(&r, c);
    if (rc == 0 && syscall(SYS_landlock_restrict_self, r.fd, 0) != 0) {
        rc = err_errno(e, ERR_INTERNAL, "confining the compiler");
    }
    (void)close(r.fd);
    *ret_confined = rc == 0;
    return rc;
}
