/*
 * Streams to systemd's journal. A process that writes to another process's stream can forge its
 * lines, so each process has its own. Blocks while it connects to a local socket. Safe between fork
 * and exec.
 */
#ifndef COMMON_JOURNAL_H
#define COMMON_JOURNAL_H

#include <stdbool.h>

#define JOURNAL_SOCKET "/run/systemd/journal/stdout"

/* Whether this descriptor leads to the journal, according to JOURNAL_STREAM, which the service
 * manager sets. */
bool journal_is(int fd);
/* Opens a stream for lines of `identifier`. levels: a line may begin with its level as "<6>";
 * otherwise all lines have level info, and such a beginning is text. Close-on-exec; -1: no journal.
 */
int journal_stream(const char *path, const char *identifier, bool levels);

#endif
