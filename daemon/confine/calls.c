#include "daemon/confine/calls.h"

#include <sys/syscall.h>

static const int passing[] = {
    /* descriptors; Landlock decides on files */
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_pread64,
    SYS_pwrite64,
    SYS_preadv,
    SYS_pwritev,
    SYS_preadv2,
    SYS_pwritev2,
    SYS_openat,
    SYS_close,
    SYS_close_range,
    SYS_lseek,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_statfs,
    SYS_fstatfs,
    SYS_faccessat,
    SYS_faccessat2,
    SYS_readlinkat,
    SYS_getdents64,
    SYS_getcwd,
    SYS_chdir,
    SYS_fchdir,
    SYS_renameat,
    SYS_renameat2,
    SYS_mkdirat,
    SYS_unlinkat,
    SYS_linkat,
    SYS_symlinkat,
    SYS_truncate,
    SYS_ftruncate,
    SYS_fallocate,
    SYS_fsync,
    SYS_fdatasync,
    SYS_sync_file_range,
    SYS_fadvise64,
    SYS_readahead,
    SYS_flock,
    SYS_umask,
    SYS_copy_file_range,
    SYS_sendfile,
    SYS_splice,
    SYS_tee,
    SYS_dup,
    SYS_dup3,
    SYS_pipe2,
    SYS_eventfd2,
    SYS_epoll_create1,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
    SYS_epoll_pwait2,
    SYS_ppoll,
    SYS_pselect6,
    SYS_timerfd_create,
    SYS_timerfd_settime,
    SYS_timerfd_gettime,
    SYS_signalfd4,
    /* sockets that are there; connected ones take no other address */
    SYS_sendmsg,
    SYS_recvmsg,
    SYS_recvfrom,
    SYS_shutdown,
    SYS_getsockopt,
    SYS_setsockopt,
    SYS_getsockname,
    SYS_getpeername,
    SYS_accept,
    SYS_accept4,
    /* memory */
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_madvise,
    SYS_brk,
    SYS_msync,
    SYS_mincore,
    SYS_mlock,
    SYS_mlock2,
    SYS_munlock,
    SYS_mlockall,
    SYS_munlockall,
    SYS_mbind,
    SYS_set_mempolicy,
    SYS_get_mempolicy,
    SYS_membarrier,
    SYS_memfd_create,
    SYS_pkey_alloc,
    SYS_pkey_mprotect,
    SYS_pkey_free,
    /* threads, signals, time */
    SYS_futex,
    SYS_set_robust_list,
    SYS_get_robust_list,
    SYS_set_tid_address,
    SYS_rseq,
    SYS_exit,
    SYS_exit_group,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_sched_setaffinity,
    SYS_sched_getparam,
    SYS_sched_setparam,
    SYS_sched_getscheduler,
    SYS_sched_setscheduler,
    SYS_sched_get_priority_max,
    SYS_sched_get_priority_min,
    SYS_sched_rr_get_interval,
    SYS_sched_getattr,
    SYS_sched_setattr,
    SYS_getpriority,
    SYS_setpriority,
    SYS_getcpu,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_rt_sigpending,
    SYS_rt_sigtimedwait,
    SYS_rt_sigsuspend,
    SYS_sigaltstack,
    SYS_restart_syscall,
    SYS_setitimer,
    SYS_getitimer,
    SYS_timer_create,
    SYS_timer_settime,
    SYS_timer_gettime,
    SYS_timer_getoverrun,
    SYS_timer_delete,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_gettimeofday,
    SYS_times,
    /* ids of the process, its user, its machine */
    SYS_getpid,
    SYS_gettid,
    SYS_getppid,
    SYS_getpgid,
    SYS_getsid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getresuid,
    SYS_getresgid,
    SYS_getgroups,
    SYS_capget,
    SYS_getrlimit,
    SYS_setrlimit,
    SYS_getrusage,
    SYS_sysinfo,
    SYS_uname,
    SYS_getrandom,
#if defined(__x86_64__) /* older names, which other processors have not */
    SYS_open,
    SYS_creat,
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_getdents,
    SYS_rename,
    SYS_mkdir,
    SYS_rmdir,
    SYS_unlink,
    SYS_link,
    SYS_symlink,
    SYS_dup2,
    SYS_pipe,
    SYS_eventfd,
    SYS_epoll_create,
    SYS_epoll_wait,
    SYS_poll,
    SYS_select,
    SYS_signalfd,
    SYS_alarm,
    SYS_pause,
    SYS_time,
    SYS_getpgrp,
    SYS_arch_prctl,
#endif
};

static const int of_programs[] = {
    SYS_execve, SYS_wait4, SYS_waitid,
#if defined(__x86_64__)
    SYS_vfork,  SYS_fork,
#endif
};

#define NAMED(X)                                                                                   \
    X(socket)                                                                                      \
    X(socketpair)                                                                                  \
    X(connect)                                                                                     \
    X(bind)                                                                                        \
    X(listen)                                                                                      \
    X(sendto)                                                                                      \
    X(sendmmsg)                                                                                    \
    X(ioctl)                                                                                       \
    X(fcntl)                                                                                       \
    X(prctl)                                                                                       \
    X(kill)                                                                                        \
    X(tkill)                                                                                       \
    X(tgkill)                                                                                      \
    X(rt_sigqueueinfo)                                                                             \
    X(rt_tgsigqueueinfo)                                                                           \
    X(pidfd_open)                                                                                  \
    X(pidfd_getfd)                                                                                 \
    X(pidfd_send_signal)                                                                           \
    X(ptrace)                                                                                      \
    X(process_vm_readv)                                                                            \
    X(process_vm_writev)                                                                           \
    X(process_madvise)                                                                             \
    X(kcmp)                                                                                        \
    X(move_pages)                                                                                  \
    X(migrate_pages)                                                                               \
    X(prlimit64)                                                                                   \
    X(clone)                                                                                       \
    X(execve)                                                                                      \
    X(execveat)                                                                                    \
    X(wait4)                                                                                       \
    X(waitid)                                                                                      \
    X(setsid)                                                                                      \
    X(setpgid)                                                                                     \
    X(unshare)                                                                                     \
    X(setns)                                                                                       \
    X(mount)                                                                                       \
    X(umount2)                                                                                     \
    X(pivot_root)                                                                                  \
    X(chroot)                                                                                      \
    X(mknodat)                                                                                     \
    X(fchownat)                                                                                    \
    X(utimensat)                                                                                   \
    X(setxattr)                                                                                    \
    X(inotify_init1)                                                                               \
    X(fanotify_init)                                                                               \
    X(open_by_handle_at)                                                                           \
    X(name_to_handle_at)                                                                           \
    X(bpf)                                                                                         \
    X(perf_event_open)                                                                             \
    X(userfaultfd)                                                                                 \
    X(add_key)                                                                                     \
    X(request_key)                                                                                 \
    X(keyctl)                                                                                      \
    X(seccomp)                                                                                     \
    X(personality)                                                                                 \
    X(setuid)                                                                                      \
    X(setgid)                                                                                      \
    X(setresuid)                                                                                   \
    X(setresgid)                                                                                   \
    X(setgroups)                                                                                   \
    X(capset)                                                                                      \
    X(shmget)                                                                                      \
    X(shmat)                                                                                       \
    X(msgget)                                                                                      \
    X(semget)                                                                                      \
    X(mq_open)                                                                                     \
    X(init_module)                                                                                 \
    X(finit_module)                                                                                \
    X(kexec_load)                                                                                  \
    X(reboot)                                                                                      \
    X(swapon)                                                                                      \
    X(syslog)                                                                                      \
    X(clock_settime)                                                                               \
    X(settimeofday)                                                                                \
    X(clock_adjtime)                                                                               \
    X(quotactl)                                                                                    \
    X(acct)                                                                                        \
    X(vhangup)                                                                                     \
    X(sethostname)                                                                                 \
    X(setdomainname)                                                                               \
    X(vmsplice)                                                                                    \
    X(remap_file_pages)                                                                            \
    X(io_submit)                                                                                   \
    X(io_setup)

static const struct {
    int number;
    const char *name;
} named[] = {
#define ENTRY(name) {SYS_##name, #name},
    NAMED(ENTRY)
#undef ENTRY
};

const int *calls_passing(size_t *ret_count)
{
    *ret_count = sizeof passing / sizeof passing[0];
    return passing;
}

const int *calls_of_programs(size_t *ret_count)
{
    *ret_count = sizeof of_programs / sizeof of_programs[0];
    return of_programs;
}

const char *call_name(int number)
{
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        if (named[i].number == number) {
            return named[i].name;
        }
    }
    return NULL;
}
