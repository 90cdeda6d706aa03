/* The last values of a quantity as a line of small bars. Pure. */
#ifndef GPUCTL_TOP_SPARK_H
#define GPUCTL_TOP_SPARK_H

#include <stdbool.h>
#include <stddef.h>

#define SPARK_VALUES 64u
#define SPARK_BYTES  (SPARK_VALUES * 3u + 1u) /* of a text: bars have up to 3 bytes in UTF-8 */

struct spark {
    double value[SPARK_VALUES]; /* a ring */
    unsigned next;              /* place of the next value */
    unsigned count;
};

void spark_add(struct spark *s, double value);
/* The largest value that is kept; 0 without values. */
double spark_most(const struct spark *s);
/* Writes the last `width` values (at most SPARK_VALUES), the newest on the right, blanks before
 * them. full: the value of a whole bar; larger ones are whole bars, too. utf8: block characters,
 * else those of ASCII. Returns out, which has SPARK_BYTES. */
const char *spark_text(const struct spark *s, double full, unsigned width, bool utf8, char *out);

#endif
