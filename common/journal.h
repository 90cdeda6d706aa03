/*
 * Ways to systemd's journal. Streams are for output that is text; a process that writes to another
 * process's stream can forge its lines, so each process has its own. Entries have fields; no
 * process with code of users has a socket for them. Safe between fork and exec, and in signal
 * handlers.
 */
#ifndef COMMON_JOURNAL_H
#define COMMON_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>

#define JOURNAL_SOCKET  "/run/systemd/journal/stdout"
#define JOURNAL_ENTRIES "/run/systemd/journal/socket"

#define JOURNAL_FIELDS_MAX 16u

struct journal_field {
    const char *name; /* capital letters, digits and underscores; no underscore first */
    const char *data; /* any bytes */
    size_t size;
};

/* Whether this descriptor leads to the journal, according to JOURNAL_STREAM, which the service
 * manager sets. */
bool journal_is(int fd);
/* Opens a stream for lines of `identifier`. levels: a line may begin with its level as "<6>";
 * otherwise all lines have level info, and such a beginning is text. Close-on-exec; -1: no journal.
 * Blocks while it connects to a local socket.
 */
int journal_stream(const char *path, const char *identifier, bool levels);

/* A socket for journal_send. Close-on-exec; -1: no descriptors. */
int journal_socket(void);
/* Sends one entry to the journal's socket at `path`, in its native protocol. Does not block. 0, or
 * an errno: EAGAIN and ENOBUFS if the journal takes no more now. */
int journal_send(int fd, const char *path, const struct journal_field *fields, unsigned count);
/* Before a process ends: the journal reads in /proc of which unit the sender of an entry is, and an
 * entry whose sender is gone has no unit. Waits until the journal has read what was sent; blocks
 * for 10 ms, and for a second if the journal reads nothing. */
void journal_drain(int fd);

#endif
