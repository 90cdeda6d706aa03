/* Ends the example after a failure, with a message on standard error. */
#ifndef EDGES_FAIL_H
#define EDGES_FAIL_H

/* Sets the program's name, with which each message begins. Not copied. */
void fail_init(const char *name);

/* Prints "name: what: why" and ends the process. The exit status is the error's number without its
 * sign: 20 for GPUD_ERR_NOT_FOUND. */
void fail(int code, const char *what, const char *why) __attribute__((noreturn));
/* If the code is an error of libgpud: calls fail with the library's text. */
void need(int code, const char *what);

#endif
