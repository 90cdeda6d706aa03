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
 */
#ifndef FRONT_NNG_GUARD_H
#define FRONT_NNG_GUARD_H

void nng_guard(void); /* does nothing; naming it links the file in */

#endif
