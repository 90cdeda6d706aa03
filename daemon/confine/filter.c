#include "daemon/confine/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/confine/calls.h"
#include "daemon/confine/refused.h"

#define INSTRUCTIONS_MAX 1024u

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(ARCH)
#define POSSIBLE false
#else
#define POSSIBLE true
#endif
#ifndef ARCH
#define ARCH 0
#endif

#define PASS           SECCOMP_RET_ALLOW
#define SILENT(number) (SECCOMP_RET_ERRNO | (number))

struct program {
    struct sock_filter code[INSTRUCTIONS_MAX];
    unsigned count;  /* beyond the room if it is too small */
    uint32_t refuse; /* the result for what does not pass */
};

static void add(struct program *p, struct sock_filter code)
{
    if (p->count < INSTRUCTIONS_MAX) {
        p->code[p->count] = code;
    }
    p->count++;
}

static void result(struct program *p, uint32_t action)
{
    add(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

static void load(struct program *p, size_t offset)
{
    add(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* The low half of an argument; processors with the low half first. */
static size_t argument(unsigned number)
{
    return offsetof(struct seccomp_data, args) + number * sizeof(uint64_t);
}

/* Returns `action` if the loaded word is `value`. */
static void if_equal(struct program *p, uint32_t value, uint32_t action)
{
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
    result(p, action);
}

/* Returns `action` if the loaded word has one of these bits. */
static void if_bits(struct program *p, uint32_t bits, uint32_t action)
{
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1));
    result(p, action);
}

/* ---- calls whose arguments decide: `call_begin`, tests that return, `call_end` --------------- */

static unsigned call_begin(struct program *p, int number)
{
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 0));
    return p->count - 1;
}

/* Every path of the tests has returned, so that the number is still loaded for other calls. */
static void call_end(struct program *p, unsigned begin, uint32_t action)
{
    result(p, action);
    if (begin < INSTRUCTIONS_MAX) {
        p->code[begin].jf = (uint8_t)(p->count - begin - 1);
    }
}

/* Descriptors are controlled at will, except for what types into a terminal or has signals sent. */
static void add_ioctl(struct program *p)
{
    unsigned begin = call_begin(p, SYS_ioctl);
    load(p, argument(1));
    if_equal(p, TIOCSTI, p->refuse);
    if_equal(p, TIOCLINUX, p->refuse);
    if_equal(p, FIOSETOWN, p->refuse);
    if_equal(p, SIOCSPGRP, p->refuse);
    call_end(p, begin, PASS);
    begin = call_begin(p, SYS_fcntl);
    load(p, argument(1));
    if_equal(p, F_SETOWN, p->refuse);
    if_equal(p, F_SETOWN_EX, p->refuse);
    if_equal(p, F_SETSIG, p->refuse);
    call_end(p, begin, PASS);
}

/* Threads, but no processes and no name spaces. */
static void add_clone(struct program *p, bool programs)
{
    const uint32_t spaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                            CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
    unsigned begin = call_begin(p, SYS_clone);
    load(p, argument(0));
    if_bits(p, spaces, p->refuse);
    if_bits(p, CLONE_THREAD, PASS);
    call_end(p, begin, programs ? PASS : p->refuse);
}

/* Passes a call whose argument is one of two values: 0 and this process, where processes are named.
 */
static void add_own(struct program *p, int number, unsigned place, uint32_t one, uint32_t other)
{
    unsigned begin = call_begin(p, number);
    load(p, argument(place));
    if_equal(p, one, PASS);
    if_equal(p, other, PASS);
    call_end(p, begin, p->refuse);
}

static void add_processes(struct program *p)
{
    uint32_t own = (uint32_t)getpid();
    add_own(p, SYS_tgkill, 0, own, own);
    add_own(p, SYS_kill, 0, own, own);
    add_own(p, SYS_prlimit64, 0, 0, own);
    add_own(p, SYS_move_pages, 0, 0, own);
}

static void add_prctl(struct program *p)
{
    static const int options[] = {PR_SET_NAME,         PR_GET_NAME,       PR_SET_VMA,
                                  PR_GET_DUMPABLE,     PR_CAPBSET_READ,   PR_SET_NO_NEW_PRIVS,
                                  PR_GET_NO_NEW_PRIVS, PR_SET_PDEATHSIG,  PR_GET_PDEATHSIG,
                                  PR_SET_TIMERSLACK,   PR_GET_TIMERSLACK, PR_SET_THP_DISABLE,
                                  PR_GET_THP_DISABLE,  PR_GET_SECCOMP};
    unsigned begin = call_begin(p, SYS_prctl);
    load(p, argument(0));
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if_equal(p, (uint32_t)options[i], PASS);
    }
    call_end(p, begin, p->refuse);
}

/* Sends only where no address is named: both halves of the pointer are 0. */
static void add_send(struct program *p)
{
    unsigned begin = call_begin(p, SYS_sendto);
    load(p, argument(4) + sizeof(uint32_t));
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0));
    result(p, p->refuse);
    load(p, argument(4));
    if_equal(p, 0, PASS);
    call_end(p, begin, p->refuse);
}

static void add_passing(struct program *p, const int *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if_equal(p, (uint32_t)calls[i], PASS);
    }
}

static void program_begin(struct program *p)
{
    p->count = 0;
    load(p, offsetof(struct seccomp_data, arch));
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0));
    result(p, SECCOMP_RET_KILL_PROCESS);
    load(p, offsetof(struct seccomp_data, nr));
}

/* Calls that programs try and go on without. They have a filter of their own, as they need no line
 * of the log. clone3 has its flags in memory, where a filter does not see them; the C library takes
 * clone where it is missing. Landlock does not limit changes of the rights of files. */
static void program_silent(struct program *p)
{
    program_begin(p);
    if_equal(p, SYS_clone3, SILENT(ENOSYS));
    if_equal(p, SYS_io_uring_setup, SILENT(ENOSYS));
    if_equal(p, SYS_openat2, SILENT(ENOSYS));
    if_equal(p, SYS_fchmod, SILENT(EPERM));
    if_equal(p, SYS_fchmodat, SILENT(EPERM));
#if defined(__x86_64__)
    if_equal(p, SYS_chmod, SILENT(EPERM));
#endif
    result(p, PASS);
}

static void program_make(struct program *p, const struct filter *f)
{
    static const int silent[] = {
        SYS_clone3,
        SYS_io_uring_setup,
        SYS_openat2,
        SYS_fchmod,
        SYS_fchmodat,
#if defined(__x86_64__)
        SYS_chmod
#endif
    };
    size_t count = 0;
    program_begin(p);
    p->refuse = f->named ? SECCOMP_RET_TRAP : SILENT(EPERM);
    add_ioctl(p); /* first: the kernel remembers the result of calls without tests only */
    const int *calls = calls_passing(&count);
    add_passing(p, calls, count);
    if (f->programs) {
        calls = calls_of_programs(&count);
        add_passing(p, calls, count);
    }
    add_passing(p, silent, sizeof silent / sizeof silent[0]); /* the other filter's */
    add_clone(p, f->programs);
    add_processes(p);
    add_prctl(p);
    add_send(p);
    result(p, p->refuse);
}

bool filter_built(void)
{
    return POSSIBLE;
}

/* Filters all threads. Returns 0 also if the kernel has no filters, *ret_on is false then. */
static int install(const struct program *p, unsigned flags, bool *ret_on, struct err *e)
{
    if (p->count > INSTRUCTIONS_MAX) {
        return err_set(e, ERR_INTERNAL, "a filter of %u instructions, room for %u", p->count,
                       INSTRUCTIONS_MAX);
    }
    const struct sock_fprog code = {.len = (unsigned short)p->count,
                                    .filter = (struct sock_filter *)(uintptr_t)p->code};
    flags |= SECCOMP_FILTER_FLAG_TSYNC;
    long thread = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &code);
    *ret_on = thread == 0;
    if (thread < 0 && (errno == ENOSYS || errno == EINVAL || errno == EPERM)) {
        return 0; /* or another filter forbids it */
    }
    if (thread != 0) {
        errno = thread < 0 ? errno : ESRCH;
        return err_errno(e, ERR_INTERNAL, "filtering system calls");
    }
    return 0;
}

int filter_install(const struct filter *f, bool *ret_on, struct err *e)
{
    static struct program p;
    *ret_on = false;
    if (!POSSIBLE) {
        return 0;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return err_errno(e, ERR_INTERNAL, "giving up new privileges");
    }
    int rc = refused_watch(e);
    if (rc != 0) {
        return rc;
    }
    program_silent(&p);
    rc = install(&p, 0, ret_on, e);
    if (rc != 0 || !*ret_on) {
        return rc;
    }
    program_make(&p, f); /* second, because it refuses the call that installs filters */
    return install(&p, f->named ? 0 : SECCOMP_FILTER_FLAG_LOG, ret_on, e);
}
