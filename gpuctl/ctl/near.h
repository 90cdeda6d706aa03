/* Finds the word that was probably meant, for messages about an unknown one. Pure. */
#ifndef GPUCTL_CTL_NEAR_H
#define GPUCTL_CTL_NEAR_H

#include <stddef.h>

struct near {
    const char *word;  /* the unknown one, not owned */
    size_t distance;   /* of `found` */
    const char *found; /* the nearest so far, not owned; NULL: none is near */
};

void near_init(struct near *n, const char *word);
/* Takes `candidate` if it is nearer than what was found: at most one letter in three is wrong,
 * missing, too many or exchanged with its neighbour. */
void near_try(struct near *n, const char *candidate);
/* "; did you mean X?", or "" if nothing is near. Returns out. */
const char *near_text(const struct near *n, const char *before, char *out, size_t size);

#endif
