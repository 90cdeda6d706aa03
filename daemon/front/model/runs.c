#include "daemon/front/model/runs.h"

#include <stddef.h>

/* An entry of a run has its neighbours in `parent` and `right`, and the number of its run, from 1,
 * in `run`. */

static bool comes_before(uint64_t key, uint64_t tie, const struct run *run)
{
    return key != run->last_key ? key < run->last_key : tie < run->last_tie;
}

/* Among the runs whose last entry is not after `x`, the one with the latest; else an empty one. */
static struct run *run_for(struct runs *r, const struct heap_entry *x)
{
    struct run *best = NULL;
    struct run *empty = r->used < RUNS_MAX ? &r->run[r->used] : NULL;
    for (unsigned i = 0; i < r->used; i++) {
        struct run *run = &r->run[i];
        if (run->last == NULL) {
            empty = run;
        } else if (!comes_before(x->key, x->tie, run) &&
                   (best == NULL || comes_before(best->last_key, best->last_tie, run))) {
            best = run;
        }
    }
    return best != NULL ? best : empty;
}

void runs_put(struct runs *r, struct heap_entry *x, uint64_t key, uint64_t tie, void *what)
{
    struct heap_entry entry = {.key = key, .tie = tie, .what = what, .in = true};
    struct run *run = run_for(r, &entry);
    if (run == NULL) {
        heap_put(&r->rest, x, key, tie, what);
        return;
    }
    entry.run = (unsigned)(run - r->run) + 1;
    r->used = entry.run > r->used ? entry.run : r->used;
    entry.parent = run->last;
    *x = entry;
    *(run->last != NULL ? &run->last->right : &run->first) = x;
    run->last = x;
    run->last_key = key;
    run->last_tie = tie;
}

void runs_drop(struct runs *r, struct heap_entry *x)
{
    if (!x->in || x->run == 0) {
        heap_drop(&r->rest, x);
        return;
    }
    struct run *run = &r->run[x->run - 1];
    *(x->parent != NULL ? &x->parent->right : &run->first) = x->right;
    *(x->right != NULL ? &x->right->parent : &run->last) = x->parent;
    if (x->right == NULL && x->parent != NULL) {
        run->last_key = x->parent->key;
        run->last_tie = x->parent->tie;
    }
    *x = (struct heap_entry){.in = false};
    while (r->used > 0 && r->run[r->used - 1].last == NULL) {
        r->used--;
    }
}

struct heap_entry *runs_first(const struct runs *r)
{
    struct heap_entry *first = r->rest.first;
    for (unsigned i = 0; i < r->used; i++) {
        struct heap_entry *x = r->run[i].first;
        first = x != NULL && (first == NULL || heap_before(x, first)) ? x : first;
    }
    return first;
}

const struct heap_entry *runs_next(const struct heap_entry *x)
{
    return x->run != 0 ? x->right : NULL;
}

unsigned runs_ahead(const struct runs *r, const struct heap_entry *x, unsigned max)
{
    unsigned ahead = heap_ahead(&r->rest, x, max);
    for (unsigned i = 0; i < r->used; i++) {
        const struct heap_entry *y = r->run[i].first;
        for (; y != NULL && ahead < max && heap_before(y, x); y = y->right) {
            ahead++;
        }
    }
    return ahead;
}
