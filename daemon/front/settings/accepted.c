#include "daemon/front/settings/accepted.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEPT      "settings"
#define FRESH     "settings.new" /* being written */
#define FILES_MAX 1024           /* of one folder */

bool accepted_state(char ret_dir[CONFIG_PATH])
{
    const char *state = getenv("STATE_DIRECTORY");
    if (state == NULL || state[0] != '/' || strchr(state, ':') != NULL) {
        return false;
    }
    return (size_t)snprintf(ret_dir, CONFIG_PATH, "%s", state) < CONFIG_PATH;
}

static bool state_path(const char *name, char ret_path[CONFIG_PATH])
{
    char state[CONFIG_PATH];
    return accepted_state(state) &&
           (size_t)snprintf(ret_path, CONFIG_PATH, "%s/%s", state, name) < CONFIG_PATH;
}

bool accepted_root(char ret_root[CONFIG_PATH])
{
    return state_path(KEPT, ret_root) && access(ret_root, R_OK | X_OK) == 0;
}

static int write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, data, size);
        if (n < 0 && errno != EINTR) {
            return -1;
        }
        data += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int copy_bytes(int in, int out)
{
    char part[16384];
    ssize_t n;
    while ((n = read(in, part, sizeof part)) != 0) {
        if ((n < 0 && errno != EINTR) || (n > 0 && write_all(out, part, (size_t)n) != 0)) {
            return -1;
        }
    }
    return 0;
}

/* An absent file is skipped. */
static int copy_file(const char *from, const char *to, struct err *e)
{
    int in = open(from, O_RDONLY | O_CLOEXEC);
    if (in < 0) {
        return errno == ENOENT ? 0 : err_errno(e, ERR_IO, "%s", from);
    }
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int rc = out < 0 || copy_bytes(in, out) != 0 ? err_errno(e, ERR_IO, "%s", to) : 0;
    if (out >= 0 && close(out) != 0 && rc == 0) {
        rc = err_errno(e, ERR_IO, "%s", to);
    }
    (void)close(in);
    return rc;
}

static int is_settings(const struct dirent *d)
{
    const char *dot = strrchr(d->d_name, '.');
    return d->d_name[0] != '.' && dot != NULL && strcmp(dot, ".conf") == 0;
}

/* Calls `each` for every file of settings in a folder. An absent folder counts as empty. */
static int each_file(const char *dir,
                     int (*each)(const char *path, const char *name, void *data, struct err *e),
                     void *data, struct err *e)
{
    struct dirent **entries = NULL;
    int count = scandir(dir, &entries, is_settings, alphasort);
    if (count < 0) {
        return errno == ENOENT ? 0 : err_errno(e, ERR_IO, "%s", dir);
    }
    int rc = count > FILES_MAX
                 ? err_set(e, ERR_LIMIT, "%s: %d settings files are too many", dir, count)
                 : 0;
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        (void)snprintf(path, sizeof path, "%s/%s", dir, entries[i]->d_name);
        rc = rc == 0 ? each(path, entries[i]->d_name, data, e) : rc;
        free(entries[i]);
    }
    free(entries);
    return rc;
}

static int copy_into(const char *path, const char *name, void *data, struct err *e)
{
    char to[PATH_MAX];
    (void)snprintf(to, sizeof to, "%s/%s", (const char *)data, name);
    return copy_file(path, to, e);
}

static int remove_one(const char *path, const char *name, void *data, struct err *e)
{
    (void)name;
    (void)data;
    return unlink(path) == 0 || errno == ENOENT ? 0 : err_errno(e, ERR_IO, "%s", path);
}

static const char *const folders[] = {CONFIG_DROP_INS, CONFIG_TENANTS, ""};

/* Removes copies, complete or not. */
static int remove_copies(const char *root, struct err *e)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < sizeof folders / sizeof folders[0]; i++) {
        char dir[PATH_MAX];
        (void)snprintf(dir, sizeof dir, "%s/%s", root, folders[i]);
        rc = each_file(dir, remove_one, NULL, e);
        if (rc == 0 && rmdir(dir) != 0 && errno != ENOENT) {
            rc = err_errno(e, ERR_IO, "%s", dir);
        }
    }
    return rc;
}

static int copy_folder(const char *from, const char *root, const char *name, struct err *e)
{
    char in[PATH_MAX];
    char out[PATH_MAX];
    (void)snprintf(in, sizeof in, "%s/%s", from, name);
    (void)snprintf(out, sizeof out, "%s/%s", root, name);
    return mkdir(out, 0700) != 0 ? err_errno(e, ERR_IO, "%s", out)
                                 : each_file(in, copy_into, out, e);
}

static int copy_all(const struct config *config, const char *root, struct err *e)
{
    char from[PATH_MAX];
    char to[PATH_MAX];
    (void)snprintf(to, sizeof to, "%s/" CONFIG_FILE, root);
    (void)snprintf(from, sizeof from, "%s/" CONFIG_FILE, config->root);
    if (mkdir(root, 0700) != 0) {
        return err_errno(e, ERR_IO, "%s", root);
    }
    int rc = copy_file(config->chosen ? config->file : from, to, e);
    if (rc == 0 && !config->chosen) {
        rc = copy_folder(config->root, root, CONFIG_DROP_INS, e);
        rc = rc == 0 ? copy_folder(config->root, root, CONFIG_TENANTS, e) : rc;
    }
    return rc;
}

int accepted_keep(const struct config *config, struct err *e)
{
    char fresh[CONFIG_PATH];
    char kept[CONFIG_PATH];
    if (!state_path(FRESH, fresh) || !state_path(KEPT, kept) || strcmp(config->root, kept) == 0) {
        return 0;
    }
    int rc = remove_copies(fresh, e);
    rc = rc == 0 ? copy_all(config, fresh, e) : rc;
    rc = rc == 0 ? remove_copies(kept, e) : rc;
    if (rc == 0 && rename(fresh, kept) != 0) {
        rc = err_errno(e, ERR_IO, "%s", kept);
    }
    return rc != 0 ? err_wrap(e, "saving the accepted settings") : 0;
}
