#include "daemon/compile/exhaustion.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "proto/compile.h"

#define SAID_BYTES 8192u /* bytes searched at the end of the compiler's output */
/* bytes; a compiler that cannot allocate them has run out of memory */
#define ROOM_BYTES (64u << 20)
/* bytes between the stack's end and a fault that counts as its overflow */
#define STACK_SLACK  (1024u * 1024u)
#define HANDLER_SIZE (64u * 1024u)

/* What the handlers need, because they get no argument. Set once, before they can run. */
static struct {
    int said_fd;
    uintptr_t stack_top;
    uint64_t stack_bytes; /* 0: unlimited */
    unsigned char said[SAID_BYTES];
    unsigned char stack[HANDLER_SIZE];
} watch = {.said_fd = -1};

/* The functions below run in a signal handler: only system calls and plain loops. */

static bool said(size_t size, const char *words)
{
    size_t length = strlen(words);
    for (size_t at = 0; at + length <= size; at++) {
        if (memcmp(watch.said + at, words, length) == 0) {
            return true;
        }
    }
    return false;
}

static bool said_memory(void)
{
    off_t end = watch.said_fd < 0 ? -1 : lseek(watch.said_fd, 0, SEEK_END);
    off_t from = end > (off_t)SAID_BYTES ? end - (off_t)SAID_BYTES : 0;
    ssize_t size = end > 0 ? pread(watch.said_fd, watch.said, SAID_BYTES, from) : 0;
    return size > 0 && (said((size_t)size, "out of memory") || said((size_t)size, "bad_alloc") ||
                        said((size_t)size, "Cannot allocate memory"));
}

static bool no_room(void)
{
    void *room = mmap(NULL, ROOM_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) {
        return true;
    }
    (void)munmap(room, ROOM_BYTES);
    return false;
}

static bool at_stacks_end(uintptr_t fault)
{
    uintptr_t depth = watch.stack_top - fault;
    return watch.stack_bytes != 0 && fault < watch.stack_top &&
           depth + STACK_SLACK > watch.stack_bytes && depth < watch.stack_bytes + STACK_SLACK;
}

static void end_for_memory(void)
{
    if (said_memory() || no_room()) {
        _exit(COMPILE_EXIT_MEMORY);
    }
}

static void on_end(int signal, siginfo_t *info, void *context)
{
    (void)context;
    end_for_memory();
    if (signal == SIGSEGV && info->si_code > 0 && at_stacks_end((uintptr_t)info->si_addr)) {
        _exit(COMPILE_EXIT_STACK);
    }
    (void)raise(
        signal); /* the handler was for once: this ends the process as it would have ended */
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

int exhaustion_watch(int said_fd, struct err *e)
{
    (void)said_fd; /* the sanitizers have handlers of their own, and no limit on memory */
    (void)e;
    (void)on_end;
    return 0;
}

#else

/* Replaces the C library's abort() for this program and its libraries: LLVM installs a SIGABRT
 * handler of its own, and abort() calls no other handler after that. */
__attribute__((visibility("default"), noreturn)) void abort(void)
{
    end_for_memory();
    (void)signal(SIGABRT, SIG_DFL);
    (void)raise(SIGABRT);
    _exit(127);
}

int exhaustion_watch(int said_fd, struct err *e)
{
    static const int SIGNALS[] = {SIGSEGV, SIGBUS};
    struct rlimit limit;
    struct sigaction action = {.sa_sigaction = on_end,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK | (int)SA_RESETHAND};
    const stack_t stack = {.ss_sp = watch.stack, .ss_size = sizeof watch.stack};
    watch.said_fd = said_fd;
    watch.stack_top = (uintptr_t)__builtin_frame_address(0);
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        watch.stack_bytes = limit.rlim_cur;
    }
    (void)sigemptyset(&action.sa_mask);
    bool ok = sigaltstack(&stack, NULL) == 0;
    for (size_t i = 0; ok && i < sizeof SIGNALS / sizeof SIGNALS[0]; i++) {
        ok = sigaction(SIGNALS[i], &action, NULL) == 0;
    }
    return ok ? 0 : err_errno(e, ERR_INTERNAL, "watching the compiler's end");
}

#endif
