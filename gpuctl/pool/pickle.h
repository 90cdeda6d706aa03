/* Writes Python's pickle format (protocol 2) to a stream: lists, dictionaries, texts and numbers.
 * The caller closes each list and dictionary that it opens. Thread: one. */
#ifndef GPUCTL_POOL_PICKLE_H
#define GPUCTL_POOL_PICKLE_H

#include <stdint.h>
#include <stdio.h>

#define PICKLE_KEYS 32u

struct pickle {
    FILE *out;                    /* not owned; failures show in ferror */
    const char *key[PICKLE_KEYS]; /* not owned; written once, then referred to by number */
    unsigned keys;
};

struct pickle_list {
    unsigned items; /* of the current batch: readers load a whole batch onto their stack */
};

void pickle_begin(struct pickle *p, FILE *out);
void pickle_end(struct pickle *p);
void pickle_dict(struct pickle *p);
void pickle_dict_end(struct pickle *p);
/* key: a literal, at most PICKLE_KEYS different ones; a value follows. */
void pickle_key(struct pickle *p, const char *key);
struct pickle_list pickle_list(struct pickle *p);
void pickle_item(struct pickle *p, struct pickle_list *list); /* before each value */
void pickle_list_end(struct pickle *p);
void pickle_uint(struct pickle *p, uint64_t value);
void pickle_text(struct pickle *p, const char *text); /* '?' for each byte that is not UTF-8 */

#endif
