/*
 * Gives NVRTC's heap for precompiled headers a fixed address. A precompiled header is an image of
 * that heap and valid at the same address only, but address randomization moves the heap in each
 * process. Requests of the heap's size therefore get a fixed address if it is free. All other
 * memory and code remain randomized.
 */
#include "daemon/compile/heap.h"

#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HEAP_BYTES   ((size_t)256 << 20) /* NVRTC's default */
#define HEAP_ADDRESS ((uintptr_t)0x500000000000)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/* the sanitizers have an mmap of their own */
bool heap_placed(void)
{
    return false;
}
#else
bool heap_placed(void)
{
    return true;
}

__attribute__((visibility("default"))) void *mmap(void *address, size_t size, int protection,
                                                  int flags, int fd, off_t offset)
{
    if (address == NULL && size == HEAP_BYTES && fd == -1 && (flags & MAP_ANONYMOUS) != 0) {
        long at = syscall(SYS_mmap, HEAP_ADDRESS, size, protection, flags | MAP_FIXED_NOREPLACE, fd,
                          offset);
        if (at != -1) {
            return (void *)at; /* NOLINT: the system call returns a number */
        }
    }
    return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset); /* NOLINT */
}
#endif
