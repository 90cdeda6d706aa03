#include "daemon/front/settings/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int secret_file_name(const char *key, const char *value, struct err *e)
{
    bool path = value[0] == '/';
    bool credential = value[0] != '\0' && value[0] != '.' && strchr(value, '/') == NULL;
    if (!path && !credential) {
        return err_set(e, ERR_INVALID, "%s = %s: neither an absolute path nor a credential's name",
                       key, value);
    }
    return 0;
}

static int path_of(const char *key, const char *value, char ret_path[PATH_MAX], struct err *e)
{
    int rc = secret_file_name(key, value, e);
    if (rc != 0 || value[0] == '/') {
        (void)snprintf(ret_path, PATH_MAX, "%s", value);
        return rc;
    }
    const char *folder = getenv("CREDENTIALS_DIRECTORY");
    if (folder == NULL || folder[0] != '/') {
        return err_set(e, ERR_NOT_FOUND,
                       "%s = %s: gpud has no credentials: give an absolute path, or "
                       "LoadCredential=%s:PATH in the unit",
                       key, value, value);
    }
    int n = snprintf(ret_path, PATH_MAX, "%s/%s", folder, value);
    return n > 0 && n < PATH_MAX ? 0 : err_set(e, ERR_LIMIT, "%s = %s: too long", key, value);
}

static int check(int fd, const char *key, const char *path, bool hidden, struct stat *ret_stat,
                 struct err *e)
{
    if (fstat(fd, ret_stat) != 0) {
        return err_errno(e, ERR_IO, "%s = %s", key, path);
    }
    if (!S_ISREG(ret_stat->st_mode)) {
        return err_set(e, ERR_INVALID, "%s = %s: not a regular file", key, path);
    }
    if (hidden && (ret_stat->st_mode & S_IRWXO) != 0) {
        return err_set(e, ERR_PERMISSION,
                       "%s = %s: every user may read or change it (mode %04o): chmod o= %s", key,
                       path, (unsigned)(ret_stat->st_mode & 07777), path);
    }
    if (ret_stat->st_size > (off_t)SECRET_FILE_MAX) {
        return err_set(e, ERR_LIMIT, "%s = %s: over %u bytes", key, path, SECRET_FILE_MAX);
    }
    return 0;
}

static void erase(char *text, size_t size)
{
    explicit_bzero(text, size);
    free(text);
}

static int read_all(int fd, const char *key, const char *path, char **ret_text, struct err *e)
{
    size_t used = 0;
    char *text = malloc(SECRET_FILE_MAX + 1);
    if (text == NULL) {
        return err_set(e, ERR_NOMEM, "%s: no memory to read %s", key, path);
    }
    ssize_t n = 1;
    while (n != 0 && used < SECRET_FILE_MAX) {
        n = read(fd, text + used, SECRET_FILE_MAX - used);
        if (n < 0 && errno != EINTR) {
            int rc = err_errno(e, ERR_IO, "%s = %s", key, path);
            erase(text, used);
            return rc;
        }
        used += n > 0 ? (size_t)n : 0;
    }
    text[used] = '\0';
    if (strlen(text) != used) { /* such as a key in DER */
        erase(text, used);
        return err_set(e, ERR_INVALID, "%s = %s: not a text (a key or certificate has to be PEM)",
                       key, path);
    }
    *ret_text = text;
    return 0;
}

int secret_file_read(const char *key, const char *value, bool hidden, char **ret_text,
                     struct err *e)
{
    char path[PATH_MAX];
    struct stat st;
    int rc = path_of(key, value, path, e);
    if (rc != 0) {
        return rc;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        int code = errno == ENOENT                     ? ERR_NOT_FOUND
                   : errno == EACCES || errno == EPERM ? ERR_PERMISSION
                                                       : ERR_IO;
        return err_errno(e, code, "%s = %s", key, path);
    }
    rc = check(fd, key, path, hidden, &st, e);
    rc = rc == 0 ? read_all(fd, key, path, ret_text, e) : rc;
    (void)close(fd);
    return rc;
}

void secret_file_free(char *text)
{
    if (text != NULL) {
        erase(text, strlen(text));
    }
}
