/*
 * Where NVRTC's heap for precompiled headers lies. Such a header is an image of that heap and good
 * at the same address only, which the loader's randomization would change with each process; so
 * requests of the heap's size are sent to a place of their own, if it is free. All else, code
 * included, stays where chance puts it.
 */
#include "daemon/compile/heap.h"

#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HEAP_BYTES   ((size_t)256 << 20) /* NVRTC's default */
#define HEAP_ADDRESS ((uintptr_t)0x500000000000)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/* they have their own mmap, and their own places */
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
            return (void *)at; /* NOLINT: as the system call says it */
        }
    }
    return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset); /* NOLINT */
}
#endif
