#include "client/src/wire/token_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int check(int fd, const char *path, struct err *e)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return err_errno(e, ERR_IO, "GPUD_TOKEN_FILE %s", path);
    }
    if (S_ISREG(st.st_mode) && (st.st_mode & S_IRWXO) != 0) {
        return err_set(e, ERR_PERMISSION,
                       "GPUD_TOKEN_FILE %s: every user may read or change it (mode %04o): chmod o= "
                       "%s",
                       path, (unsigned)(st.st_mode & 07777), path);
    }
    return 0;
}

static int read_token(int fd, const char *path, uint8_t ret_token[PROTO_TOKEN_MAX],
                      size_t *ret_size, struct err *e)
{
    uint8_t text[PROTO_TOKEN_MAX + 2]; /* a newline, and a byte that shows that it is too long */
    size_t size = 0;
    ssize_t n = 1;
    while (n != 0 && size < sizeof text) {
        n = read(fd, text + size, sizeof text - size);
        if (n < 0 && errno != EINTR) {
            return err_errno(e, ERR_IO, "GPUD_TOKEN_FILE %s", path);
        }
        size += n > 0 ? (size_t)n : 0;
    }
    size -= size > 0 && text[size - 1] == '\n' ? 1 : 0;
    int rc = 0;
    if (size == 0) {
        rc = err_set(e, ERR_INVALID, "GPUD_TOKEN_FILE %s: empty", path);
    } else if (size > PROTO_TOKEN_MAX) {
        rc = err_set(e, ERR_LIMIT, "GPUD_TOKEN_FILE %s: over %u bytes", path, PROTO_TOKEN_MAX);
    } else {
        memcpy(ret_token, text, size);
        *ret_size = size;
    }
    explicit_bzero(text, sizeof text);
    return rc;
}

int token_file_read(const char *path, uint8_t ret_token[PROTO_TOKEN_MAX], size_t *ret_size,
                    struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        return err_errno(e, errno == EACCES ? ERR_PERMISSION : ERR_IO, "GPUD_TOKEN_FILE %s", path);
    }
    int rc = check(fd, path, e);
    rc = rc == 0 ? read_token(fd, path, ret_token, ret_size, e) : rc;
    (void)close(fd);
    return rc;
}
