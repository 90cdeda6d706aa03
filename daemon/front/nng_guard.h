/*
 * A shield against a fault of NNG 1.5.2: a peer that leaves before its connection is negotiated
 * makes the answer to its greeting fail with EPIPE; NNG translates that as "closed", takes it for
 * the end of the listener itself, and never accepts another connection. Any local process could so
 * make the daemon deaf. This file's sendmsg(2) stands in front of the C library's for the whole
 * program and reports such a peer as ECONNRESET, which NNG knows how to live with.
 *
 * NNG also accepts as long as there are descriptors, before anybody can count connections. This
 * file's accept(2) keeps a part of them back (common/descriptors.h) and reports EMFILE, after which
 * NNG waits a little.
 *
 * Nor does it take the descriptors that a peer may send along, and the kernel closes them in NNG's
 * thread, which can take as long as the peer wishes (SO_LINGER). The same accept(2) has the kernel
 * refuse them to the peer, since Linux 6.16.
 *
 * A connection that NNG 1.5.2 is asked to close between a message's header and its body never ends,
 * nor does any other after it, nor the socket. One that the peer ends does. So gpud ends
 * connections as a peer would, by shutdown(2), and needs their descriptors, which NNG does not
 * tell: it uses them when it is asked who the peer is, and this file's getsockopt(2) and
 * getpeername(2) note it.
 */
#ifndef FRONT_NNG_GUARD_H
#define FRONT_NNG_GUARD_H

#include <nng/nng.h>

/* The connection's descriptor, NNG's own; -1: not known. Any thread. Valid until
 * NNG_PIPE_EV_REM_POST was told of the pipe. */
int nng_guard_descriptor(nng_pipe pipe);

void nng_guard(void); /* does nothing; naming it links the file in */

#endif
