/*
 * A session after its connection: it lingers, and its client may come back until the linger time is
 * over. Then the session ends, and its resources are released in slices. Thread: the loop's.
 */
#ifndef FRONT_REQUESTS_SESSION_END_H
#define FRONT_REQUESTS_SESSION_END_H

#include "daemon/front/model/front.h"

/* The connection broke: its session lingers. Does nothing if the connection has no session. */
void session_disconnected(struct front *f, uint32_t pipe);
/* Ends a session: drops its buffers, arenas, modules and programs, and cancels its jobs. Steps that
 * have begun run on, and so do detached jobs. The caller must not use the session afterwards. */
void session_end(struct front *f, struct session *s);
/* Continues the ends of sessions that have begun, as far as this turn has units. */
void session_end_some(struct front *f);
/* Ends the session because its client's process has ended, and closes its connection if it has one.
 */
void session_process_ended(struct front *f, struct session *s);
/* The same, and also cancels detached jobs. */
void session_kill(struct front *f, struct session *s);
/* No client could come back while the front stood still: sessions linger for that time more. O(n)
 * in the sessions. */
void sessions_stood_still(struct front *f, uint64_t now_ns, uint64_t away_ns);
/* Ends sessions and buffers whose linger time is over, answers WAITs whose time is over, and sets
 * the front's timer for the next. */
void sessions_watch(struct front *f, uint64_t now_ns);

#endif
