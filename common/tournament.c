#include "common/tournament.h"

#include <stdlib.h>
#include <string.h>

#define SEATS_LEAST 8u
#define SEATS_MOST  (UINT32_C(1) << 30)

/* An empty seat comes after all others. */
static bool before(const struct contender *a, const struct contender *b)
{
    if (a->what == NULL || b->what == NULL) {
        return a->what != NULL;
    }
    return a->key != b->key ? a->key < b->key : a->tie < b->tie;
}

/* The winner below a node: inner nodes come first, then the seats. */
static uint32_t winner_of(const struct tournament *t, uint32_t node)
{
    return node < t->seats ? t->winner[node] : node - t->seats;
}

static uint32_t decide(const struct tournament *t, uint32_t node)
{
    uint32_t left = winner_of(t, 2 * node);
    uint32_t right = winner_of(t, 2 * node + 1);
    return before(&t->seat[right], &t->seat[left]) ? right : left;
}

/* The contender of this seat is another one, or has another key. Above a node that another seat has
 * won, as before, nothing changes. */
static void replay(struct tournament *t, uint32_t seat)
{
    for (uint32_t node = (t->seats + seat) / 2; node > 0; node /= 2) {
        uint32_t winner = decide(t, node);
        if (winner == t->winner[node] && winner != seat) {
            return;
        }
        t->winner[node] = winner;
    }
}

/* Twice as many seats. */
static bool grow(struct tournament *t)
{
    uint32_t size = t->seats > 0 ? 2 * t->seats : SEATS_LEAST;
    struct contender *seat =
        size <= SEATS_MOST ? calloc(size, sizeof *t->seat + sizeof *t->winner) : NULL;
    if (seat == NULL) {
        return false;
    }
    if (t->seats > 0) {
        memcpy(seat, t->seat, t->seats * sizeof *seat);
    }
    free(t->seat);
    t->seat = seat;
    t->winner = (uint32_t *)(void *)(seat + size);
    t->seats = size;
    for (uint32_t node = size - 1; node > 0; node--) {
        t->winner[node] = decide(t, node);
    }
    return true;
}

bool tournament_join(struct tournament *t, uint32_t *ret_seat)
{
    if (t->vacant == 0 && t->given == t->seats && !grow(t)) {
        return false;
    }
    if (t->vacant == 0) {
        *ret_seat = t->given++;
        return true;
    }
    *ret_seat = t->vacant - 1;
    t->vacant = (uint32_t)t->seat[*ret_seat].key;
    return true;
}

void tournament_leave(struct tournament *t, uint32_t seat)
{
    tournament_drop(t, seat);
    t->seat[seat].key = t->vacant;
    t->vacant = seat + 1;
}

void tournament_put(struct tournament *t, uint32_t seat, uint64_t key, uint64_t tie, void *what)
{
    t->count += t->seat[seat].what == NULL;
    t->seat[seat] = (struct contender){.key = key, .tie = tie, .what = what};
    replay(t, seat);
}

void tournament_drop(struct tournament *t, uint32_t seat)
{
    if (tournament_has(t, seat)) {
        t->count--;
        t->seat[seat] = (struct contender){.what = NULL};
        replay(t, seat);
    }
}

bool tournament_has(const struct tournament *t, uint32_t seat)
{
    return t->seat[seat].what != NULL;
}

void *tournament_first(const struct tournament *t)
{
    return t->count > 0 ? t->seat[t->winner[1]].what : NULL;
}

void tournament_finish(struct tournament *t)
{
    free(t->seat);
    *t = (struct tournament){.seats = 0};
}
