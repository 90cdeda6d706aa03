/* What a benchmark needs of the host for a while. Errors end the process. Thread: one. */
#ifndef BENCH_SCRATCH_H
#define BENCH_SCRATCH_H

#include <stddef.h>

/* Makes a folder; its name ends in XXXXXX, as for mkdtemp. */
void scratch_folder(char *name);
/* Removes the folder with all that is in it, as far as that is possible. */
void scratch_remove(const char *folder);
/* The URL of a free port of the loopback. scheme: "tcp", "tls+tcp". */
void scratch_url(char *url, size_t size, const char *scheme);

#endif
