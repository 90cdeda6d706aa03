/* Finds the known word that is most similar to an unknown one, for messages. Pure. */
#ifndef GPUCTL_CTL_NEAR_H
#define GPUCTL_CTL_NEAR_H

#include <stddef.h>

struct near {
    const char *word;  /* the unknown word, not owned */
    size_t distance;   /* of `found` */
    const char *found; /* the nearest candidate so far, not owned; NULL: none is near */
};

void near_init(struct near *n, const char *word);
/* Takes `candidate` if it is nearer than `found`. At most one letter in three may be wrong,
 * missing, extra or exchanged with its neighbour. */
void near_try(struct near *n, const char *candidate);
/* "; did you mean X?", or "" if nothing is near. Returns out. */
const char *near_text(const struct near *n, const char *before, char *out, size_t size);

#endif
