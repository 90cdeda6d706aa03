/*
 * Buffers that move from one device to another (daemon/front/memory/moves.h): how long workers take
 * for them, mishaps meanwhile, and what must hold. Thread: one.
 */
#ifndef TEST_SIM_MOVES_H
#define TEST_SIM_MOVES_H

#include <stdbool.h>
#include <stdint.h>

struct job;
struct sim;
struct sim_worker;
struct sim_worker_buffer;

/* The worker is asked for the buffer's content, or to take it, which lasts so long. If the buffer
 * moves, an end of the worker that is due comes meanwhile. */
void moves_begin(struct sim *s, struct sim_worker *x, uint64_t id, uint64_t ns);
/* The worker has no memory for the buffer. */
bool moves_refused(const struct sim *s, uint64_t id);
/* The worker has the content, and answers: later, if the buffer moves there. */
void moves_take(struct sim *s, struct sim_worker *x, struct sim_worker_buffer *b);
/* The worker writes what the buffer has into its copy. */
void copy_write(struct sim *s, const struct sim_worker_buffer *b, int fd);
/* Has the worker the buffer, and will have it? It may have been told to free it, as it moved away.
 */
bool moves_has(struct sim_worker *x, uint64_t id);
/* It is told to free it, and has yet to do so. */
bool moves_frees(const struct sim_worker *x, uint64_t id);
/* Is it true what EXPLAIN says of the job, that it waits for a buffer that moves, or for a job that
 * needs one elsewhere first? */
bool moves_explained(const struct sim *s, const struct job *j, const char *why);
/* At each step: which worker has what has moved; what nothing keeps from moving goes on its way. */
void moves_check(struct sim *s);
/* Seldom: all buffers and devices. */
void moves_check_all(struct sim *s);

#endif
