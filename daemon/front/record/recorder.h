/*
 * The queue, the thread and the file of one recording. The loop puts entries into memory of a fixed
 * size; the thread makes lines of them and writes them, so a disk that is slow or full costs lines
 * and nothing else. Entries that find no room are counted, and a line says where they are missing.
 *
 *   opening → runs → stopped   as asked
 *   opening → failed           the file cannot be made
 *   runs → full                the file has its limit
 *   runs → failed              it cannot be written
 *
 * Thread: the loop's, but for the writing one. Nothing of the loop's blocks, except destroy.
 */
#ifndef FRONT_RECORD_RECORDER_H
#define FRONT_RECORD_RECORDER_H

#include "common/err.h"
#include "daemon/front/record/lines.h"
#include "daemon/front/settings/config.h"

/* bytes of entries that wait to be written, twice: while some are written, others come */
#define RECORDER_ROOM      (4u * 1024u * 1024u)
#define RECORDER_DATA_ROOM (32u * 1024u * 1024u) /* the same, with data */
#define RECORDER_HELD      (64u * 1024u * 1024u) /* bytes of messages that they refer to */
#define RECORDER_LEAST     (UINT64_C(64) << 10)
#define RECORDER_DEVICES   64u

enum recorder_state {
    RECORDER_OPENING,
    RECORDER_RUNS,
    RECORDER_STOPPED,
    RECORDER_FULL,
    RECORDER_FAILED,
};

struct recorder;

struct recorder_options {
    char dir[CONFIG_PATH];  /* of the daemon's own, is made if it is not there; "": none */
    char path[CONFIG_PATH]; /* must not exist */
    int fd;                 /* instead of the path, taken over; -1: none */
    bool data;
    uint64_t file_bytes; /* limit */
    uint64_t begin_ns;
    const char *build;
    struct lines_device device[RECORDER_DEVICES];
    unsigned devices;
};

struct recorder_status {
    enum recorder_state state;
    char path[CONFIG_PATH];
    char why[256]; /* failed: the reason */
    bool data;
    uint64_t bytes, file_bytes;
    uint64_t jobs; /* in the file */
    uint64_t lost; /* entries that found no room */
};

/* Copies the options. ERR_NOMEM. */
int recorder_create(const struct recorder_options *o, struct recorder **ret_recorder,
                    struct err *e);
/* Writes what waits, if it was not stopped before. Blocks as long as the disk does. NULL is
 * accepted. */
void recorder_destroy(struct recorder *r);
/* Room for an entry of this size, with its size set; recorder_put_end has to follow. held: bytes of
 * a message that it refers to. NULL: there is none, and the entry is counted as lost; nothing
 * follows. */
struct entry *recorder_put(struct recorder *r, size_t size, size_t held);
void recorder_put_end(struct recorder *r);
/* No entry follows: the thread writes what waits, then the last line. */
void recorder_stop(struct recorder *r, uint64_t now_ns);
/* Whether it takes entries: it opens or runs. */
bool recorder_takes(struct recorder *r);
/* Whether its thread has written its last. */
bool recorder_over(struct recorder *r);
void recorder_status(struct recorder *r, struct recorder_status *ret_status);
const char *recorder_state_name(enum recorder_state state);

#endif
