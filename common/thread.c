#include "common/thread.h"

#include <signal.h>

bool thread_start(size_t stack, void *(*run)(void *data), void *data, pthread_t *ret_thread)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all;
    sigset_t before;
    if (pthread_attr_init(&attr) != 0) {
        return false;
    }
    (void)pthread_attr_setstacksize(&attr, stack);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* the new thread inherits it */
    bool started = pthread_create(&thread, &attr, run, data) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    if (started) {
        *ret_thread = thread;
    }
    return started;
}
