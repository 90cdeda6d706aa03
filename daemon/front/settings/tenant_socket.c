#include "daemon/front/settings/tenant_socket.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/hash.h"

#define FOLDER_MODE 0755 /* its sockets have permissions of their own */

bool tenant_socket_key(const char *key)
{
    return strcmp(key, "listen") == 0 || strcmp(key, "listen_mode") == 0 ||
           strcmp(key, "listen_group") == 0;
}

/* One path has one spelling, so that equal ones are found. */
static bool plain(const char *path)
{
    bool good = path[0] == '/' && path[strlen(path) - 1] != '/';
    for (const char *c = path; good && *c != '\0';) {
        size_t length = strcspn(c + 1, "/");
        bool dots = (length == 1 || length == 2) && strspn(c + 1, ".") == length;
        good = length > 0 && !dots;
        c += 1 + length;
    }
    return good;
}

static int set_path(struct tenant_socket *s, const char *value, struct err *e)
{
    static const char ipc[] = "ipc://";
    const char *path = strncmp(value, ipc, sizeof ipc - 1) == 0 ? value + sizeof ipc - 1 : value;
    if (path[0] != '\0' && !plain(path)) {
        return err_set(e, ERR_INVALID,
                       "listen = %s: not the absolute path of a socket, without \".\", \"..\" and "
                       "empty parts",
                       value);
    }
    if (strlen(path) >= sizeof s->path) {
        return err_set(e, ERR_LIMIT,
                       "listen = %s: longer than %zu bytes, and %s follows for the socket of "
                       "descriptors",
                       value, sizeof s->path - 1, TENANT_SOCKET_SHM);
    }
    (void)snprintf(s->path, sizeof s->path, "%s", path);
    return 0;
}

static int set_mode(struct tenant_socket *s, const char *value, struct err *e)
{
    char *end = NULL;
    unsigned long mode = strtoul(value, &end, 8);
    if (value[strspn(value, "01234567")] != '\0' || end == value || (mode & ~0666ul) != 0 ||
        (mode & 0600) != 0600) {
        return err_set(e, ERR_INVALID,
                       "listen_mode = %s: not the octal permissions of a socket, as 0660 or 0666",
                       value);
    }
    s->mode = (uint32_t)mode;
    return 0;
}

static int set_group(struct tenant_socket *s, const char *value, struct err *e)
{
    char *end = NULL;
    errno = 0;
    unsigned long gid = value[0] >= '0' && value[0] <= '9' ? strtoul(value, &end, 10) : UINT32_MAX;
    bool number = end != NULL && *end == '\0' && errno == 0 && gid < UINT32_MAX;
    const struct group *g = number || value[0] == '\0' ? NULL : getgrnam(value);
    if (!number && g == NULL && value[0] != '\0') {
        return err_set(e, ERR_NOT_FOUND, "listen_group: there is no group %s", value);
    }
    s->gid = number ? (uint32_t)gid : g != NULL ? g->gr_gid : TENANT_SOCKET_GROUP;
    return 0;
}

int tenant_socket_set(struct tenant_socket *s, const char *key, const char *value, struct err *e)
{
    if (strcmp(key, "listen") == 0) {
        return set_path(s, value, e);
    }
    return strcmp(key, "listen_mode") == 0 ? set_mode(s, value, e) : set_group(s, value, e);
}

bool tenant_socket_has(const struct tenant_socket *s, const char *path)
{
    size_t length = strlen(s->path);
    return length > 0 && strncmp(s->path, path, length) == 0 &&
           (path[length] == '\0' || strcmp(path + length, TENANT_SOCKET_SHM) == 0);
}

/* The folder that a path is in, "" for the root. */
static void folder_of(const char *path, char ret_folder[TENANT_SOCKET_PATH])
{
    const char *end = strrchr(path, '/');
    (void)snprintf(ret_folder, TENANT_SOCKET_PATH, "%.*s", end != NULL ? (int)(end - path) : 0,
                   path);
}

static bool is_folder(const char *path)
{
    struct stat st;
    return path[0] == '\0' || (stat(path, &st) == 0 && S_ISDIR(st.st_mode));
}

int tenant_socket_folder(const struct tenant_socket *s, struct err *e)
{
    char folder[TENANT_SOCKET_PATH];
    folder_of(s->path, folder);
    if (is_folder(folder) || mkdir(folder, FOLDER_MODE) == 0) {
        return 0;
    }
    return err_errno(e, ERR_IO, "listen = %s: making the folder %s", s->path, folder);
}

int tenant_socket_check_folder(const struct tenant_socket *s, const char *runtime_dir,
                               struct err *e)
{
    char folder[TENANT_SOCKET_PATH];
    char parent[TENANT_SOCKET_PATH];
    size_t length = strlen(runtime_dir);
    folder_of(s->path, folder);
    folder_of(folder, parent);
    bool runs = strncmp(folder, runtime_dir, length) == 0 &&
                (folder[length] == '/' || folder[length] == '\0');
    if (s->path[0] == '\0' || runs || is_folder(folder) || is_folder(parent)) {
        return 0;
    }
    return err_set(e, ERR_NOT_FOUND,
                   "listen = %s: there is no folder %s, nor one to make it in: make %s first",
                   s->path, folder, parent);
}

uint32_t tenant_socket_number(const char *tenant)
{
    uint32_t number = (uint32_t)hash_short(tenant, strlen(tenant));
    return number != 0 ? number : 1;
}
