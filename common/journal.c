#include "common/journal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define HEAD_MAX 128u

bool journal_is(int fd)
{
    struct stat st;
    char here[64];
    const char *journal = getenv("JOURNAL_STREAM");
    if (journal == NULL || fstat(fd, &st) != 0) {
        return false;
    }
    (void)snprintf(here, sizeof here, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    return strcmp(here, journal) == 0;
}

/* Appends what fits. */
static size_t put(char *head, size_t at, const char *text)
{
    size_t size = strlen(text);
    if (size > HEAD_MAX - at) {
        size = HEAD_MAX - at;
    }
    for (size_t i = 0; i < size; i++) { /* without a NUL: the journal reads lines */
        head[at + i] = text[i];
    }
    return at + size;
}

/* Sends the journal's stream header: identifier, unit (empty, the journal knows it), default level,
 * whether lines have levels, and three forwarding flags. */
static bool greet(int fd, const char *identifier, bool levels)
{
    char head[HEAD_MAX];
    size_t at = put(head, 0, identifier);
    at = put(head, at, "\n\n6\n");
    at = put(head, at, levels ? "1\n" : "0\n");
    at = put(head, at, "0\n0\n0\n");
    return send(fd, head, at, MSG_NOSIGNAL) == (ssize_t)at;
}

int journal_stream(const char *path, const char *identifier, bool levels)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    size_t size = strlen(path);
    int fd = size < sizeof addr.sun_path ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    if (fd < 0) {
        return -1;
    }
    memcpy(addr.sun_path, path, size);
    if (connect(fd, (const struct sockaddr *)&addr, sizeof addr) != 0 ||
        shutdown(fd, SHUT_RD) != 0 || !greet(fd, identifier, levels)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}
