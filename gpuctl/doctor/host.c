#include "gpuctl/doctor/host.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpuctl/base/child.h"

#define TIMEOUT_MS  3000u
#define DISK_LOW    (UINT64_C(64) << 20)
#define DEFAULT_URL "ipc:///run/gpud/gpud.sock"
/* Debian's header of Linux may be older than Landlock. */
#define LANDLOCK_CREATE      444
#define LANDLOCK_ASK_VERSION 1u

static const char *variable(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : otherwise;
}

static uint64_t limit_of(int resource)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0) {
        return 0;
    }
    return limit.rlim_max == RLIM_INFINITY ? UINT64_MAX : (uint64_t)limit.rlim_max;
}

static void caller_init(struct user *user)
{
    user->uid = geteuid();
    int count = getgroups((int)HOST_GROUPS - 1, user->groups);
    user->group_count = count > 0 ? (unsigned)count : 0;
    user->groups[user->group_count++] = getegid();
}

/* The folder of a program, which child_find looks for beside gpuctl; "" if it is not there. */
static void folder_of(const char *folder, const char *name, char out[PATH_MAX])
{
    struct ctl_err ignored;
    if (child_find(folder, name, out, PATH_MAX, &ignored) != 0) {
        out[0] = '\0';
        return;
    }
    char *slash = strrchr(out, '/');
    *slash = '\0';
}

void host_init(struct host *h, const char *url, uint64_t timeout_ms)
{
    *h = (struct host){.root = "",
                       .url = url != NULL ? url : variable("GPUD_URL", DEFAULT_URL),
                       .search = variable("PATH", "/usr/bin:/bin"),
                       .libraries = variable("LD_LIBRARY_PATH", ""),
                       .cuda = variable("CUDA_PATH", variable("CUDA_HOME", "")),
                       .timeout_ms = timeout_ms > 0 ? timeout_ms : TIMEOUT_MS,
                       .disk_low = DISK_LOW,
                       .descriptors = limit_of(RLIMIT_NOFILE),
                       .memlock = limit_of(RLIMIT_MEMLOCK)};
    folder_of("", "gpud", h->programs);
    folder_of(GPUD_HELPERS, "gpud-launcher", h->helpers);
    if (h->helpers[0] == '\0') { /* in a folder of builds */
        folder_of("", "gpud-launcher", h->helpers);
    }
    caller_init(&h->caller);
    h->landlock = (int)syscall(LANDLOCK_CREATE, NULL, 0, LANDLOCK_ASK_VERSION);
}

const char *host_path(const struct host *h, char out[PATH_MAX], const char *fmt, ...)
{
    int used = snprintf(out, PATH_MAX, "%s", h->root);
    va_list ap;
    va_start(ap, fmt);
    if (used >= 0 && used < PATH_MAX) {
        (void)vsnprintf(out + used, (size_t)(PATH_MAX - used), fmt, ap);
    }
    va_end(ap);
    return out;
}

bool host_exists(const struct host *h, const char *path)
{
    char full[PATH_MAX];
    return access(host_path(h, full, "%s", path), F_OK) == 0;
}

bool host_read(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    out[0] = '\0';
    if (fd < 0) {
        return false;
    }
    size_t used = 0;
    ssize_t got = 0;
    while (used + 1 < size && (got = read(fd, out + used, size - used - 1)) > 0) {
        used += (size_t)got;
    }
    out[used] = '\0';
    (void)close(fd);
    return got >= 0;
}

bool host_has_units(const struct host *h)
{
    static const char *const folders[] = {"/etc/systemd/system", "/run/systemd/system",
                                          "/usr/local/lib/systemd/system",
                                          "/usr/lib/systemd/system", "/lib/systemd/system"};
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        if (access(host_path(h, path, "%s/gpud.service", folders[i]), F_OK) == 0) {
            return true;
        }
    }
    return false;
}

/* Is the PCI device a display or 3D controller of NVIDIA? */
static bool is_nvidia(const struct host *h, const char *name)
{
    char path[PATH_MAX];
    char vendor[16];
    char class[16];
    return host_read(host_path(h, path, "/sys/bus/pci/devices/%s/vendor", name), vendor,
                     sizeof vendor) &&
           host_read(host_path(h, path, "/sys/bus/pci/devices/%s/class", name), class,
                     sizeof class) &&
           strncmp(vendor, "0x10de", 6) == 0 && strncmp(class, "0x03", 4) == 0;
}

static unsigned entries(const struct host *h, const char *folder,
                        bool (*take)(const struct host *h, const char *name))
{
    char path[PATH_MAX];
    unsigned count = 0;
    DIR *dir = opendir(host_path(h, path, "%s", folder));
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        count += entry->d_name[0] != '.' && (take == NULL || take(h, entry->d_name));
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return count;
}

unsigned host_nvidia_gpus(const struct host *h)
{
    unsigned on_bus = entries(h, "/sys/bus/pci/devices", is_nvidia);
    unsigned known = entries(h, "/proc/driver/nvidia/gpus", NULL); /* a container may see no bus */
    return on_bus > known ? on_bus : known;
}

/* ---- libraries and programs ------------------------------------------------------------------ */

static bool in_folder(const char *folder, const char *name, int mode, char out[PATH_MAX])
{
    int n = snprintf(out, PATH_MAX, "%s/%s", folder, name);
    return n > 0 && n < PATH_MAX && access(out, mode) == 0;
}

/* Looks through a list of folders, separated by colons or newlines; others than those of absolute
 * paths are ignored. */
static bool in_list(const struct host *h, const char *list, const char *name, int mode,
                    char out[PATH_MAX])
{
    while (*list != '\0') {
        size_t length = strcspn(list, ":\n");
        char folder[PATH_MAX];
        if (list[0] == '/') {
            host_path(h, folder, "%.*s", (int)length, list);
            if (in_folder(folder, name, mode, out)) {
                return true;
            }
        }
        list += length + (list[length] != '\0');
    }
    return false;
}

/* The folders that /etc/ld.so.conf.d adds. */
static bool in_loader_folders(const struct host *h, const char *name, char out[PATH_MAX])
{
    char folder[PATH_MAX];
    char path[PATH_MAX];
    char list[4096];
    bool found = false;
    DIR *dir = opendir(host_path(h, folder, "/etc/ld.so.conf.d"));
    const struct dirent *entry;
    while (dir != NULL && !found && (entry = readdir(dir)) != NULL) {
        int n = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        found = entry->d_name[0] != '.' && n > 0 && n < PATH_MAX &&
                host_read(path, list, sizeof list) && in_list(h, list, name, R_OK, out);
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return found;
}

bool host_library(const struct host *h, const char *name, char out[PATH_MAX])
{
    static const char system[] = "/usr/local/lib:/usr/lib/x86_64-linux-gnu:/lib/x86_64-linux-gnu:"
                                 "/usr/lib/aarch64-linux-gnu:/lib/aarch64-linux-gnu:/usr/lib64:"
                                 "/lib64:/usr/lib:/lib";
    char found[PATH_MAX];
    if (name[0] == '/'
            ? access(host_path(h, found, "%s", name), R_OK) != 0
            : !in_list(h, h->libraries, name, R_OK, found) &&
                  !in_list(h, system, name, R_OK, found) && !in_loader_folders(h, name, found)) {
        return false;
    }
    return realpath(found, out) != NULL;
}

bool host_command(const struct host *h, const char *name, char out[PATH_MAX])
{
    return in_list(h, h->search, name, X_OK, out);
}

bool host_program(const struct host *h, const char *name, char out[PATH_MAX])
{
    return (h->programs[0] != '\0' && in_folder(h->programs, name, X_OK, out)) ||
           (h->helpers[0] != '\0' && in_folder(h->helpers, name, X_OK, out)) ||
           host_command(h, name, out);
}

bool host_run(const struct host *h, const char *path, const char *first, const char *second,
              char *out, size_t size)
{
    const char *const argv[] = {path, first, second, NULL};
    const struct child child = {.path = path,
                                .argv = argv,
                                .file = -1,
                                .output = out,
                                .output_size = size,
                                .output_errors = true,
                                .limit_ms = h->timeout_ms};
    struct ctl_err e = {0};
    int status = -1;
    if (child_run(&child, &status, &e) != 0) {
        (void)snprintf(out, size, "%s", e.text);
        return false;
    }
    return status == 0;
}

/* Reads numbers with dots between them; returns how many there are, at most three. */
static unsigned numbers_read(const char *text, struct version *ret_version)
{
    unsigned count = 0;
    while (count < 3 && isdigit((unsigned char)*text)) {
        char *end = NULL;
        ret_version->part[count++] = (unsigned)strtoul(text, &end, 10);
        text = *end == '.' ? end + 1 : "";
    }
    return count;
}

bool version_read(const char *text, struct version *ret_version)
{
    for (const char *at = text; *at != '\0'; at++) {
        struct version v = {{0, 0, 0}};
        if ((at == text || !isdigit((unsigned char)at[-1])) && numbers_read(at, &v) >= 2) {
            *ret_version = v;
            return true;
        }
    }
    return false;
}

int version_compare(const struct version *a, const struct version *b)
{
    for (size_t i = 0; i < sizeof a->part / sizeof a->part[0]; i++) {
        if (a->part[i] != b->part[i]) {
            return a->part[i] < b->part[i] ? -1 : 1;
        }
    }
    return 0;
}

/* ---- users ----------------------------------------------------------------------------------- */

/* A line of /etc/passwd or /etc/group, cut at its colons. */
struct account {
    char *name, *members; /* members: fifth field onwards of passwd, the list of group */
    unsigned long id, group;
};

static bool account_read(char *line, struct account *ret_account)
{
    char *field[4] = {line, NULL, NULL, NULL};
    for (unsigned i = 1; i < 4; i++) {
        char *colon = strchr(field[i - 1], ':');
        if (colon == NULL) {
            return false;
        }
        *colon = '\0';
        field[i] = colon + 1;
    }
    field[3][strcspn(field[3], "\n")] = '\0';
    *ret_account = (struct account){.name = field[0],
                                    .members = field[3],
                                    .id = strtoul(field[2], NULL, 10),
                                    .group = strtoul(field[3], NULL, 10)};
    return true;
}

static bool listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    while (*list != '\0') {
        size_t n = strcspn(list, ",");
        if (n == length && strncmp(list, name, n) == 0) {
            return true;
        }
        list += n + (list[n] != '\0');
    }
    return false;
}

/* Calls `take` with the accounts of a file until it returns true, which is the result. */
static bool each_account(const struct host *h, const char *file,
                         bool (*take)(const struct account *a, void *data), void *data)
{
    char path[PATH_MAX];
    char *line = NULL;
    size_t size = 0;
    bool taken = false;
    struct account a;
    FILE *f = fopen(host_path(h, path, "%s", file), "re");
    while (f != NULL && !taken && getline(&line, &size, f) > 0) {
        taken = account_read(line, &a) && take(&a, data);
    }
    free(line);
    if (f != NULL) {
        (void)fclose(f);
    }
    return taken;
}

struct wanted {
    const char *name;  /* of a user or group */
    struct user *user; /* whose groups are collected */
    gid_t group;
    char *out; /* receives a group's name */
    size_t size;
};

static bool take_user(const struct account *a, void *data)
{
    struct wanted *w = data;
    if (strcmp(a->name, w->name) != 0) {
        return false;
    }
    *w->user = (struct user){.uid = (uid_t)a->id, .groups = {(gid_t)a->group}, .group_count = 1};
    return true;
}

static bool take_membership(const struct account *a, void *data)
{
    struct wanted *w = data;
    if (w->user->group_count < HOST_GROUPS && listed(a->members, w->name)) {
        w->user->groups[w->user->group_count++] = (gid_t)a->id;
    }
    return false;
}

static bool take_group(const struct account *a, void *data)
{
    struct wanted *w = data;
    w->group = (gid_t)a->id;
    return strcmp(a->name, w->name) == 0;
}

static bool take_group_name(const struct account *a, void *data)
{
    struct wanted *w = data;
    if (a->id != w->group) {
        return false;
    }
    (void)snprintf(w->out, w->size, "%s", a->name);
    return true;
}

bool host_user(const struct host *h, const char *name, struct user *ret_user)
{
    struct user user = {0};
    struct wanted w = {.name = name, .user = &user};
    if (!each_account(h, "/etc/passwd", take_user, &w)) {
        return false;
    }
    (void)each_account(h, "/etc/group", take_membership, &w);
    *ret_user = user;
    return true;
}

bool host_group(const struct host *h, const char *name, gid_t *ret_group)
{
    struct wanted w = {.name = name};
    if (!each_account(h, "/etc/group", take_group, &w)) {
        return false;
    }
    *ret_group = w.group;
    return true;
}

const char *host_group_name(const struct host *h, gid_t group, char *out, size_t size)
{
    struct wanted w = {.group = group, .out = out, .size = size};
    if (!each_account(h, "/etc/group", take_group_name, &w)) {
        (void)snprintf(out, size, "%u", (unsigned)group);
    }
    return out;
}

bool user_in_group(const struct user *user, gid_t group)
{
    for (unsigned i = 0; i < user->group_count; i++) {
        if (user->groups[i] == group) {
            return true;
        }
    }
    return false;
}

bool user_may_use(const struct user *user, const struct stat *file)
{
    mode_t wanted = user->uid == file->st_uid           ? 0600
                    : user_in_group(user, file->st_gid) ? 0060
                                                        : 0006;
    return user->uid == 0 || (file->st_mode & wanted) == wanted;
}
