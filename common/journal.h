/*
 * Streams to systemd's journal. A process that writes to the stream of another one can forge its
 * lines, so each has its own. Blocks for as long as it takes to connect to a local socket; safe
 * between fork and exec.
 */
#ifndef COMMON_JOURNAL_H
#define COMMON_JOURNAL_H

#include <stdbool.h>

#define JOURNAL_SOCKET "/run/systemd/journal/stdout"

/* Does this descriptor lead to the journal? The environment says so (JOURNAL_STREAM), which the
 * service manager sets. */
bool journal_is(int fd);
/* Lines of `identifier`. levels: each may begin with its level as "<6>"; else all are of level info
 * and such a beginning is text. Close-on-exec; -1: there is no journal. */
int journal_stream(const char *path, const char *identifier, bool levels);

#endif
