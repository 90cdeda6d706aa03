/*
 * A kernel that makes any system call, and one that reads addresses: what native code in a worker
 * can do. Assembly is refused when it is compiled; native code is possible nevertheless. x86-64.
 */
#ifndef SYSTEM_NATIVE_H
#define SYSTEM_NATIVE_H

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "tests/system/harness/harness.h"

#define WORDS 512u
#define DATA  8u /* where a call's data begins, in words */
#define AT    ((int64_t)(DATA * sizeof(int64_t)))

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define NATIVE true
#else
#define NATIVE false
#endif

struct native {
    gpud_client *c;    /* not owned */
    uint64_t device;   /* GPUD_ON(id); 0: any */
    gpud_kernel proxy; /* a system call; its arguments may lie in the array */
    gpud_kernel scan;  /* counts a pair of words in a range of addresses */
    gpud_kernel spoil; /* writes to a range of addresses */
    int64_t words[WORDS];
};

/* proxy: `mask` selects the arguments that are offsets of the array. scan: w[0] … w[1] for the pair
 * whose complement w[2], w[3] has, so that the array itself does not hold it; w[4] how many, w[5]
 * where the first is. spoil: w[0] … w[1]. */
static const char native_source[] =
    "#define _Pragma(x) __asm__\n" /* in place of the error that the word stands for */
    "kernel void proxy(global long *w)\n"
    "{\n"
    "    long a[6];\n"
    "    for (int i = 0; i < 6; i++)\n"
    "        a[i] = (w[7] >> i & 1) != 0 ? (long)w + w[1 + i] : w[1 + i];\n"
    "    long r;\n"
    "    __asm__ volatile(\"movq %5, %%r10; movq %6, %%r8; movq %7, %%r9; syscall\"\n"
    "                     : \"=a\"(r)\n"
    "                     : \"a\"(w[0]), \"D\"(a[0]), \"S\"(a[1]), \"d\"(a[2]), \"r\"(a[3]),\n"
    "                       \"r\"(a[4]), \"r\"(a[5])\n"
    "                     : \"rcx\", \"r11\", \"r8\", \"r9\", \"r10\", \"memory\");\n"
    "    w[0] = r;\n"
    "}\n"
    "kernel void scan(global long *w)\n"
    "{\n"
    "    long found = 0;\n"
    "    for (ulong at = w[0]; at + 16 <= (ulong)w[1]; at += 8) {\n"
    "        const volatile long *p = (const volatile long *)at;\n"
    "        if (~p[0] == w[2] && ~p[1] == w[3]) {\n"
    "            w[5] = found == 0 ? (long)at : w[5];\n"
    "            found++;\n"
    "        }\n"
    "    }\n"
    "    w[4] = found;\n"
    "}\n"
    "kernel void spoil(global long *w)\n"
    "{\n"
    "    ulong end = (ulong)w[1];\n"
    "    for (ulong at = w[0]; at + 8 <= end; at += 8)\n"
    "        *(volatile long *)at = 0x5ec4e75901150511;\n"
    "}\n";

static inline void native_load(struct native *n, gpud_client *c, uint64_t device)
{
    gpud_module m = {0};
    gpud_module_options o = {.size = sizeof o, .file = "native.cl", .name = "native"};
    n->c = c;
    n->device = device;
    ck_gpud_ok(gpud_module_load(c, GPUD_LANG_OPENCL, native_source, strlen(native_source), &o, &m));
    ck_gpud_ok(gpud_module_kernel(c, m, "proxy", &n->proxy));
    ck_gpud_ok(gpud_module_kernel(c, m, "scan", &n->scan));
    ck_gpud_ok(gpud_module_kernel(c, m, "spoil", &n->spoil));
}

/* Runs one of the kernels on the array; what the job ended with. */
static inline int native_run(struct native *n, gpud_kernel kernel)
{
    const gpud_grid one = {.size = sizeof one, .global = {1}, .local = {1}};
    const gpud_submit_options on = {.size = sizeof on, .device = n->device};
    gpud_arg args[] = {gpud_host_inout(n->words, WORDS, GPUD_I64)};
    gpud_job *job = NULL;
    ck_gpud_ok(gpud_launch(n->c, kernel, args, 1, &one, &on, &job));
    int rc = gpud_wait(job, 2 * PATIENCE);
    gpud_job_free(job);
    return rc;
}

/* Arguments at these places of `mask` are offsets of data behind the call, in bytes. */
static inline int64_t native_call(struct native *n, long number, int64_t a0, int64_t a1, int64_t a2,
                                  int64_t a3, int64_t mask)
{
    const int64_t head[DATA] = {number, a0, a1, a2, a3, 0, 0, mask};
    memcpy(n->words, head, sizeof head);
    ck_gpud_ok(native_run(n, n->proxy));
    return n->words[0];
}

static inline char *native_data(struct native *n)
{
    return (char *)&n->words[DATA];
}

static inline int64_t native_open(struct native *n, const char *path, int flags)
{
    (void)snprintf(native_data(n), 512, "%s", path);
    return native_call(n, SYS_open, AT, flags, 0, 0, 1);
}

/* Opens, reads up to `size` bytes from the beginning, and closes; < 0: it did not open. */
static inline int64_t native_read(struct native *n, const char *path, char *out, size_t size)
{
    const size_t piece = (WORDS - DATA) * sizeof n->words[0];
    int64_t fd = native_open(n, path, O_RDONLY);
    size_t used = 0;
    while (fd >= 0 && used < size) {
        int64_t got = native_call(n, SYS_read, fd, AT, (int64_t)piece, 0, 2);
        if (got <= 0) {
            break;
        }
        got = (size_t)got < size - used ? got : (int64_t)(size - used);
        memcpy(out + used, native_data(n), (size_t)got);
        used += (size_t)got;
    }
    if (fd < 0) {
        return fd;
    }
    (void)native_call(n, SYS_close, fd, 0, 0, 0, 0);
    return (int64_t)used;
}

#endif
