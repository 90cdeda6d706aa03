#include "gpuctl/ctl/near.h"

#include <stdio.h>
#include <string.h>

#define NEAR_LENGTH_MAX 64u

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The Damerau-Levenshtein distance, in which neighbours are exchanged at most once (optimal string
 * alignment). Row by row; the words have at most NEAR_LENGTH_MAX letters. */
static size_t distance(const char *a, const char *b)
{
    size_t row[3][NEAR_LENGTH_MAX + 1];
    size_t *before = row[0], *last = row[1], *now = row[2];
    size_t m = strlen(a), n = strlen(b);
    for (size_t j = 0; j <= n; j++) {
        last[j] = j;
        before[j] = 0;
    }
    for (size_t i = 1; i <= m; i++) {
        now[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t changed = last[j - 1] + (a[i - 1] != b[j - 1]);
            now[j] = least(changed, least(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                now[j] = least(now[j], before[j - 2] + 1);
            }
        }
        size_t *oldest = before;
        before = last;
        last = now;
        now = oldest;
    }
    return last[n];
}

void near_init(struct near *n, const char *word)
{
    *n = (struct near){.word = word, .distance = (strlen(word) + 2) / 3 + 1};
}

void near_try(struct near *n, const char *candidate)
{
    if (strlen(n->word) > NEAR_LENGTH_MAX || strlen(candidate) > NEAR_LENGTH_MAX) {
        return;
    }
    size_t edits = distance(n->word, candidate);
    if (edits < n->distance && edits < strlen(n->word)) {
        n->distance = edits;
        n->found = candidate;
    }
}

const char *near_text(const struct near *n, const char *before, char *out, size_t size)
{
    out[0] = '\0';
    if (n->found != NULL) {
        snprintf(out, size, "; did you mean %s%s?", before, n->found);
    }
    return out;
}
