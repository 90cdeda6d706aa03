/*
 * A queue whose tenants take turns: entries of one tenant are served in the order of their arrival,
 * and a tenant with many of them delays those of another tenant by one. Entries belong to the
 * caller; nothing here fails. Adding takes time by the number of tenants. Thread: one at a time.
 */
#ifndef WORKER_MEMORY_TURNS_H
#define WORKER_MEMORY_TURNS_H

#include <stdint.h>

struct turn {
    uint64_t tenant;
    struct turn *prev, *next;    /* the oldest entries of the other tenants */
    struct turn *before, *after; /* entries of the same tenant */
};

struct turns {
    struct turn *first; /* the entry to serve: oldest of the tenant whose turn it is; NULL: none */
};

void turns_add(struct turns *t, struct turn *x, uint64_t tenant);
/* Ends the turn of the first entry's tenant. The entry remains that tenant's first. */
void turns_pass(struct turns *t);
void turns_remove(struct turns *t, struct turn *x);

#endif
