/* Threads beside a loop that handles the process's signals. Any thread may call. */
#ifndef COMMON_THREAD_H
#define COMMON_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* Starts a thread that has this stack, in bytes, and gets no signals. The caller joins or detaches
 * it. false: the system has no room for one; *ret_thread is not set. Does not block. */
bool thread_start(size_t stack, void *(*run)(void *data), void *data, pthread_t *ret_thread);

#endif
