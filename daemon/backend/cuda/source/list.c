#include "daemon/backend/cuda/source/list.h"

#include <stdlib.h>
#include <string.h>

bool list_room(void *list, size_t count, size_t *capacity, size_t most, size_t size)
{
    void *array;
    size_t wanted = *capacity > 0 ? 2 * *capacity : 64;
    if (count < *capacity) {
        return true;
    }
    wanted = wanted < most ? wanted : most;
    memcpy(&array, list, sizeof array); /* of whatever type it is a pointer */
    void *grown = count < wanted ? realloc(array, wanted * size) : NULL;
    if (grown == NULL) {
        return false;
    }
    memcpy(list, &grown, sizeof grown);
    *capacity = wanted;
    return true;
}
