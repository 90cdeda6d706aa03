/* Failures end the example: what failed and why go to standard error. */
#ifndef EDGES_FAIL_H
#define EDGES_FAIL_H

/* The first words of each message: the name of the program. Not copied. */
void fail_init(const char *name);

/* Prints "name: what: why" and ends the process. The exit status is the error's number without its
 * sign: 20 for GPUD_ERR_NOT_FOUND. */
void fail(int code, const char *what, const char *why) __attribute__((noreturn));
/* As fail with the library's reason, if a call of it returned an error. */
void need(int code, const char *what);

#endif
