/*
 * The page table. For each page-sized part of the address space (a slot): the page whose memory is
 * used there (slot), and the page that the device has mapped there (view). Where the source allows
 * a page to be mapped at several places (pool_pages.aliases), a page that is wanted elsewhere
 * leaves its view behind, and comes back without a call of the driver when what needed it there
 * comes again. Pages are named by their index + 1; 0 is none.
 */
#include <stdlib.h>

#include "daemon/pool/pool_int.h"

static const struct pool_pages *ops(const struct pool *p)
{
    return p->source.pages;
}

static struct page *page_at(const struct pool *p, uint32_t page)
{
    return records_at(&p->pages, page - 1);
}

int page_table_init(struct pool *p, uint32_t max, struct err *e)
{
    uint64_t slots = p->space / p->page;
    int rc = records_init(&p->pages, sizeof(struct page), max, e);
    p->slot = calloc(slots, sizeof *p->slot);
    p->view = calloc(slots, sizeof *p->view);
    p->slot_tenant = calloc(slots, sizeof *p->slot_tenant);
    if (rc == 0 && (p->slot == NULL || p->view == NULL || p->slot_tenant == NULL)) {
        rc = err_set(e, ERR_NOMEM, "no memory for a table of %llu pages", LL(slots));
    }
    return rc;
}

/* ---- views ------------------------------------------------------------------------------------*/

static void view_add(struct pool *p, uint64_t s, uint32_t page)
{
    struct page *g = page_at(p, page);
    p->view[s] = (struct view){.page = page, .next = g->views, .prev = 0, .accessible = false};
    if (g->views != 0) {
        p->view[g->views - 1].prev = (uint32_t)s + 1;
    }
    g->views = (uint32_t)s + 1;
}

static void view_remove(struct pool *p, uint64_t s)
{
    struct view *v = &p->view[s];
    if (v->next != 0) {
        p->view[v->next - 1].prev = v->prev;
    }
    *(v->prev != 0 ? &p->view[v->prev - 1].next : &page_at(p, v->page)->views) = v->next;
    *v = (struct view){.page = 0};
}

static int view_unmap(struct pool *p, uint64_t s, struct err *e)
{
    p->stats.driver_calls++;
    int rc = ops(p)->unmap(p->source.user, p->range, s * p->page, e);
    if (rc == 0) {
        view_remove(p, s);
    }
    return rc;
}

/* ---- pages ------------------------------------------------------------------------------------*/

int page_create(struct pool *p, uint32_t *ret_page, struct err *e)
{
    uint32_t i = records_take(&p->pages);
    if (i == RECORD_NONE) {
        return err_set(e, ERR_NOMEM, "the pool's records are used up");
    }
    struct page *g = records_at(&p->pages, i);
    *g = (struct page){.views = 0};
    p->stats.driver_calls++;
    int rc = ops(p)->create(p->source.user, &g->name, e);
    if (rc != 0) {
        g->name = 0;
        records_give(&p->pages, i);
        return rc;
    }
    p->stats.size += p->page;
    p->stats.size_peak = p->stats.size > p->stats.size_peak ? p->stats.size : p->stats.size_peak;
    *ret_page = i + 1;
    return 0;
}

void page_destroy(struct pool *p, uint32_t page)
{
    struct page *g = page_at(p, page);
    p->stats.driver_calls++;
    ops(p)->destroy(p->source.user, g->name);
    g->name = 0;
    records_give(&p->pages, page - 1);
    p->stats.size -= p->page;
}

int page_map(struct pool *p, uint64_t at, uint32_t page, struct err *e)
{
    uint64_t s = at / p->page;
    int rc = 0;
    if (p->view[s].page != page) {
        rc = p->view[s].page != 0 ? view_unmap(p, s, e) : 0;
        if (rc == 0) {
            p->stats.driver_calls++;
            rc = ops(p)->map(p->source.user, p->range, at, page_at(p, page)->name, e);
        }
        if (rc != 0) {
            return rc;
        }
        view_add(p, s, page);
    }
    p->slot[s] = page;
    page_at(p, page)->used = (uint32_t)s + 1;
    return 0;
}

int page_drop(struct pool *p, uint64_t at, struct err *e)
{
    uint64_t own = at / p->page;
    uint32_t page = p->slot[own];
    const struct page *g = page_at(p, page);
    int rc = 0;
    while (rc == 0 && (g->views != own + 1 || p->view[own].next != 0)) {
        rc = view_unmap(p, (g->views != own + 1 ? g->views : p->view[own].next) - 1, e);
    }
    rc = rc != 0 ? rc : view_unmap(p, own, e);
    if (rc == 0) {
        p->slot[own] = 0;
        page_destroy(p, page);
    }
    return rc;
}

int page_move(struct pool *p, uint64_t from, uint64_t to, bool keep, struct err *e)
{
    uint64_t s = from / p->page;
    uint32_t page = p->slot[s];
    int rc = ops(p)->aliases ? 0 : view_unmap(p, s, e);
    if (rc != 0) {
        return rc;
    }
    rc = page_map(p, to, page, e);
    if (rc == 0) {
        p->slot[s] = 0;
        p->slot_tenant[to / p->page] = p->slot_tenant[s];
        p->stats.remaps++;
        if (ops(p)->aliases && !keep) { /* if it fails, the view goes when the slot is wanted */
            (void)view_unmap(p, s, NULL);
        }
    } else if (!ops(p)->aliases) { /* it is nowhere now */
        p->slot[s] = 0;
        page_destroy(p, page);
    }
    return rc;
}

int page_access(struct pool *p, uint64_t at, uint64_t bytes, struct err *e)
{
    uint64_t end = (at + bytes) / p->page;
    for (uint64_t s = at / p->page; s < end;) {
        uint64_t first = s;
        while (s < end && !p->view[s].accessible) {
            s++;
        }
        if (s > first) {
            p->stats.driver_calls++;
            int rc =
                ops(p)->access(p->source.user, p->range, first * p->page, (s - first) * p->page, e);
            if (rc != 0) {
                return rc;
            }
        }
        for (; first < s; first++) {
            p->view[first].accessible = true;
        }
        s += s < end;
    }
    return 0;
}

void page_table_finish(struct pool *p)
{
    bool empty = true;
    for (uint64_t s = 0; p->range != NULL && s < p->space / p->page; s++) {
        if (p->view[s].page != 0) {
            empty = view_unmap(p, s, NULL) == 0 && empty;
        }
    }
    for (uint32_t i = 0; p->range != NULL && i < p->pages.made; i++) {
        const struct page *g = records_at(&p->pages, i);
        if (g->name != 0 && g->views == 0) { /* what cannot be unmapped cannot be destroyed */
            page_destroy(p, i + 1);
        }
    }
    if (p->range != NULL && empty) {
        ops(p)->release(p->source.user, p->range, p->space);
    }
    records_finish(&p->pages);
    free(p->slot);
    free(p->view);
    free(p->slot_tenant);
}
