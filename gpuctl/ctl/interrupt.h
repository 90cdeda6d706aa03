/*
 * Ctrl-C for commands that end by it: the first one is noted, a second one ends gpuctl at once.
 * Thread: one; only one command catches at a time.
 */
#ifndef GPUCTL_CTL_INTERRUPT_H
#define GPUCTL_CTL_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>

void interrupt_catch(void);   /* SIGINT and SIGTERM are noted from now on */
void interrupt_release(void); /* and have their usual effect again */
bool interrupt_seen(void);

/* Sleeps until a time of clock_now_ns. Wakes early, with false, if the user interrupts; with
 * `output` also if the reader of the standard output goes. */
bool interrupt_sleep_until(uint64_t ns, bool output);
/* The reader of the standard output has gone. */
bool interrupt_output_gone(void);

#endif
