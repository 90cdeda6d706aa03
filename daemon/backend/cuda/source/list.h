/* Arrays that grow. Pure but for memory. Thread: any. */
#ifndef BACKEND_CUDA_SOURCE_LIST_H
#define BACKEND_CUDA_SOURCE_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* Makes room for one more in *list, a pointer to an array of malloc's with `count` of *capacity
 * elements. false: they are `most`, or there is no memory. */
bool list_room(void *list, size_t count, size_t *capacity, size_t most, size_t size);

/* Adds a value to an array that is given by what holds it, as for list_room. */
#define LIST_ADD(list, count, capacity, most, value)                                               \
    (list_room(&(list), (count), &(capacity), (most), sizeof *(list)) &&                           \
     ((list)[(count)++] = (value), true))

#endif
