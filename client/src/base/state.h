/*
 * The states of a client's session and of its ring lane: client.h describes them. Each function is
 * the one place that changes a state. Builds with assertions check each step with a table.
 *
 * Thread: under the client's lock. Never blocks.
 */
#ifndef CLIENT_BASE_STATE_H
#define CLIENT_BASE_STATE_H

#include "client/src/base/client.h"

void session_step(struct session *s, enum session_state to);
void lane_step(struct lane *l, enum lane_state to);

#endif
