/*
 * Recordings of jobs for `gpuctl trace`. A session that asks for the table `trace` gets a
 * recording; each further table has the records since the one before. Nothing is recorded while no
 * session records. A recording has fixed memory of its own, which has only what its session may
 * see, so no tenant's jobs push out those of others. If its session reads too slowly, new records
 * are lost and counted.
 *
 * A recording ends with its session, or when it was not read for TRACE_IDLE_NS.
 *
 * Thread: the loop's.
 */
#ifndef FRONT_VIEWS_TRACE_H
#define FRONT_VIEWS_TRACE_H

#include "daemon/front/model/front.h"

#define TRACE_RECORDS    8192u /* of a recording; 2 MiB */
#define TRACES_MAX       8u    /* recordings; those of administrators are not counted */
#define TRACES_TENANT    2u    /* of one tenant, or of administrators together */
#define TRACE_STEPS      64u   /* of one job; later ones are left out */
#define TRACE_IDLE_NS    (30 * NS_PER_S)
#define TRACE_TABLE_ROWS 4096u /* of one table */

/* Each does nothing unless front->traces is set; the caller checks that. */
void trace_admitted(struct front *f, const struct job *j); /* its predecessors are known */
void trace_ended(struct front *f, const struct job *j);    /* before its steps are freed */

void trace_session_ended(struct front *f, const struct session *s);
void trace_watch(struct front *f, uint64_t now_ns);
void trace_finish_all(struct front *f);

#endif
