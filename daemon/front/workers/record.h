/*
 * What the front gave a worker, written down for the next front: buffers and jobs with what belongs
 * to them (META_* of proto/frames.h). It lies in shared memory that the launcher keeps and no
 * worker ever sees, so that a front which takes a worker over believes itself and not the worker.
 *
 * Each change is complete before one word makes it count, so a front that ends in between leaves
 * what was before, or what came after. O(size of the entry) for each. Thread: the loop's.
 */
#ifndef FRONT_WORKERS_RECORD_H
#define FRONT_WORKERS_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/err.h"

#define RECORD_BYTES_MAX (64u * 1024u) /* of an entry */

struct record;

enum record_kind { RECORD_BUFFER = 1, RECORD_JOB = 2 };

/* An entry, as its noun keeps it; 0: none. One of another record is none either. */
typedef uint64_t record_entry;

/* epoch: another one than of any record before it. */
int record_create(uint32_t epoch, struct record **ret_record, struct err *e);
/* Of a front before this one. Takes the descriptor on success only. What is damaged is left out. */
int record_adopt(uint32_t epoch, int fd, struct record **ret_record, struct err *e);
void record_destroy(struct record *r); /* NULL is accepted */
int record_fd(const struct record *r);

/* In place of `old`. 0: memory is out, `old` stays. */
record_entry record_put(struct record *r, record_entry old, enum record_kind kind, uint64_t id,
                        struct bytes bytes);
void record_drop(struct record *r, record_entry entry); /* r NULL is accepted */
/* Notes that a job's staging memory is others' by now. */
void record_gone(struct record *r, record_entry entry);

/* ---- taking over: until record_settle ---------------------------------------------------- */

struct record_view {
    record_entry entry;
    uint64_t id;
    bool gone;
    struct bytes bytes; /* valid until the next record_find */
};

/* What was given under this id. From the second time on `taken` is true. */
bool record_find(struct record *r, enum record_kind kind, uint64_t id, struct record_view *ret_view,
                 bool *ret_taken);
/* No id that was ever written here is greater, of that kind. */
uint64_t record_last(const struct record *r, enum record_kind kind);
/* What nobody found goes: it never reached the worker. */
void record_settle(struct record *r);

#endif
