/*
 * The lines of a recording (docs/recording.md): a JSON object for each entry. The words are those
 * of `gpuctl job dump`. Thread: the recording's. Pure, but for memory.
 */
#ifndef FRONT_RECORD_LINES_H
#define FRONT_RECORD_LINES_H

#include "common/bytes.h"
#include "daemon/front/record/entry.h"

struct lines;

/* data: lines have contents, and not only their hashes. NULL: no memory. */
struct lines *lines_create(bool data, uint64_t begin_ns);
void lines_destroy(struct lines *l); /* NULL is accepted */
/* Appends the line of the entry, if it has one. false: no memory; `out` has a part of a line. */
bool lines_entry(struct lines *l, const struct entry *x, struct capbuf *out);

/* A device of the first line. */
struct lines_device {
    unsigned device;
    char backend[16];
    char name[129];
    uint64_t memory;
};

struct lines_head {
    const char *build;
    uint64_t wall_ns;
    bool data;
    uint64_t file_bytes; /* limit */
    const struct lines_device *device;
    unsigned devices;
};

bool lines_head(const struct lines_head *head, struct capbuf *out);
/* The last line. why: "stopped", "full". */
bool lines_stop(const char *why, uint64_t at_ns, uint64_t jobs, uint64_t lost, struct capbuf *out);

#endif
