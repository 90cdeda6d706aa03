/*
 * The adoption record of a device: the buffers and jobs that the front gave to its worker, with
 * their owners (RECORD_* of proto/frames.h). The next front reads it when it takes the worker over.
 * It lies in shared memory that the launcher keeps and no worker sees, so the next front need not
 * trust the worker. It outlives the worker: a job that a worker had when it ended is in the record
 * until its client has acknowledged the answer, or until it runs again.
 *
 * One atomic word puts each change into force. A front that ends during a change leaves the old
 * entry, the new one, or both; of two the newer counts. A change takes O(size of the entry).
 * Thread: the loop's.
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

/* Names an entry; its buffer or job stores it. 0: none. An entry of another record counts as
 * none. */
typedef uint64_t record_entry;

/* epoch: differs from that of every earlier record. */
int record_create(uint32_t epoch, struct record **ret_record, struct err *e);
/* Opens the record of a former front, without damaged entries. Takes the descriptor on success
 * only. */
int record_adopt(uint32_t epoch, int fd, struct record **ret_record, struct err *e);
void record_destroy(struct record *r); /* NULL is accepted */
int record_fd(const struct record *r);

/* A new worker gets the device. The entries so far are of workers that have ended. */
void record_begin(struct record *r);

/* Replaces `old` (0: none). Returns 0 if memory is out; `old` is kept then. */
record_entry record_put(struct record *r, record_entry old, enum record_kind kind, uint64_t id,
                        struct bytes bytes);
void record_drop(struct record *r, record_entry entry); /* r NULL is accepted */
/* Raises record_last. A worker may get the id without an entry, when there is no memory for one. r
 * NULL is accepted. */
void record_note(struct record *r, enum record_kind kind, uint64_t id);
/* Notes that other jobs use the job's staging memory now. */
void record_staging_reused(struct record *r, record_entry entry);
/* Notes that the job has ended and is in the account of its tenant. written: the entries of its
 * buffers say what is defined since. */
void record_ended(struct record *r, record_entry entry, bool written);
/* Notes that the job has read what a failed job should have written. */
void record_tainted(struct record *r, record_entry entry);

/* Notes how many bytes of device memory the worker may have at most, before it may have them. r
 * NULL is accepted. */
void record_set_lease(struct record *r, uint64_t bytes);
/* What was noted last, by any front. 0: nothing was, or r is NULL. */
uint64_t record_lease(const struct record *r);

/* Cells that entries take, of 256 bytes: 0 if there is no entry. r NULL is accepted. */
uint32_t record_used(const struct record *r);

/* ---- adoption: until record_settle ------------------------------------------------------- */

struct record_view {
    record_entry entry;
    uint64_t id;
    bool staging_reused, ended, tainted, counted;
    struct bytes bytes; /* valid until the next record_find */
};

/* Finds the entry of this id, if it is of the present worker. ret_again: it was found before. */
bool record_find(struct record *r, enum record_kind kind, uint64_t id, struct record_view *ret_view,
                 bool *ret_again);
/* The entry counts as not found: what was found cannot be taken over, and is of a worker that will
 * have ended. */
void record_unfind(struct record *r, enum record_kind kind, uint64_t id);
/* The greatest id of that kind that was ever noted here, by any front. */
uint64_t record_last(const struct record *r, enum record_kind kind);
/* Returns in turn the jobs of workers that have ended. present: with those of the present worker
 * that were not found, as it has ended as well. cursor: 0 at first. record_settle keeps them if
 * they are not dropped. */
bool record_departed(struct record *r, bool present, size_t *cursor, struct record_view *ret_view);
/* Returns in turn the buffers that record_find has not found. record_settle drops them, unless
 * record_keep was called for them. cursor: 0 at first. */
bool record_unfound(struct record *r, size_t *cursor, struct record_view *ret_view);
void record_keep(struct record *r, uint64_t buffer);
/* Does the record still serve an adoption? r NULL is accepted. */
bool record_adopting(const struct record *r);
/* Ends the adoption. Drops entries that were not found: they never reached the worker. */
void record_settle(struct record *r);

#endif
