/*
 * A front with a world of text around it: real from the decoding of requests to the links of
 * workers, with the test as clock, clients, workers, launcher and compiler. Each line of a stream
 * is one thing that happens; what the front says then is printed behind it.
 *
 *   # comment
 *   connect PIPE UID                   a connection of that user; requests may follow
 *   PIPE MESSAGE                       a request (tests/sim/text.h) of that connection
 *   closed PIPE                        its end
 *   listed                             the launcher has named all workers that ran before
 *   started WORKER PID                 the launcher's answer for a worker
 *   ended WORKER STATUS                a worker's end, with its status as of waitpid
 *   device N FRAME                     a frame of the worker of device N
 *   output N OFFSET BYTES              what that worker wrote into its output memory
 *   compiled C_RESPONSE's fields       the compiler's answer to the oldest request
 *   wait MS                            time passes; timers run when they are due
 *   set KEY VALUE                      a setting, from now on
 *   restart                            the front hands over, and the next one begins
 *   adopt WORKER PID                   the launcher names a worker that ran before
 *   adopted                            all of these have reported
 *
 * Lines for streams that are made up while they run (random_test.c). They do nothing where there is
 * nothing to do:
 *
 *   next PIPE MESSAGE                  a request with the session's next number, which acknowledges
 *                                      all answers that came; `$N` in it is the N-th buffer's
 * handle open                               workers that were asked for run, and say that they are
 * ready answer N CODE                      the worker of device N answers its oldest frame build
 * CODE                         the compiler answers its oldest request die N STATUS the worker of
 * device N ends reap                               workers that were killed end beat all workers
 * are alive
 *
 * Each request is answered once at most; a second answer fails the test.
 *
 * Errors in a stream fail the test. Thread: one.
 */
#ifndef TEST_SIM_WORLD_H
#define TEST_SIM_WORLD_H

#include <stdio.h>

void world_begin(FILE *out);
void world_line(const char *line); /* without its newline */
/* Ends the front; frees all. */
void world_end(void);

#endif
