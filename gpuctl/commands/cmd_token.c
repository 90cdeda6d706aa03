/* Makes a token for clients of other hosts. The token goes into a file, never to the screen; the
 * line for the daemon goes to standard output. Asks no daemon. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/token.h"
#include "gpuctl/ctl/ctl.h"

static int write_token(const char *path, const char *token, struct ctl_err *e)
{
    char text[TOKEN_TEXT_BYTES + 1];
    int size = snprintf(text, sizeof text, "%s\n", token);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return errno == EEXIST
                   ? ctl_err_set(e, GPUD_ERR_EXISTS, "%s exists: a token replaces no file", path)
                   : ctl_err_errno(e, "%s", path);
    }
    ssize_t n = write(fd, text, (size_t)size);
    int rc = n == size && fsync(fd) == 0 ? 0 : ctl_err_errno(e, "%s", path);
    (void)close(fd);
    explicit_bzero(text, sizeof text);
    if (rc != 0) {
        (void)unlink(path);
    }
    return rc;
}

int cmd_token(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    const char *word[1] = {NULL};
    char token[TOKEN_TEXT_BYTES];
    char line[TOKEN_LINE_BYTES];
    struct token_hash hash;
    struct err why = ERR_INIT;
    int rc = ctl_words(ctl, options, 1, 1, word, e);
    if (rc != 0) {
        return rc;
    }
    rc = token_make(token, &why);
    rc = rc == 0 ? token_hash_of(bytes_str(token), &hash, &why) : rc;
    rc = rc != 0 ? ctl_err_set(e, rc, "%s", why.text) : write_token(word[0], token, e);
    explicit_bzero(token, sizeof token);
    if (rc == 0) {
        const char *slash = strrchr(word[0], '/');
        token_line(&hash, line);
        (void)printf("%s %s\n", line, slash != NULL ? slash + 1 : word[0]);
    }
    return rc;
}
