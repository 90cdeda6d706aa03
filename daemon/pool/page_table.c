#include "daemon/pool/page_table.h"

#include <stdlib.h>

#include "daemon/pool/pool_int.h"

static const struct pool_pages *ops(const struct pool *p)
{
    return p->source.pages;
}

static struct run *run_at(const struct pool *p, uint32_t r)
{
    return records_at(&p->table.runs, r);
}

int page_table_init(struct pool *p, uint32_t max, struct err *e)
{
    struct page_table *t = &p->table;
    uint64_t slots = to_pages(p, p->space);
    int rc = records_init(&t->runs, sizeof(struct run), max, e);
    rc = rc != 0 ? rc : marks_init(&t->views, slots, e);
    rc = rc != 0 ? rc : frames_init(&t->frames, max, e);
    rc = rc != 0 ? rc : marks_init(&t->holders, max, e);
    t->view = calloc(slots, sizeof *t->view);
    t->holder = calloc(max, sizeof *t->holder);
    if (rc == 0 && (t->view == NULL || t->holder == NULL)) {
        rc = err_set(e, ERR_NOMEM, "no memory for a table of %llu pages", LL(slots));
    }
    return rc;
}

/* ---- views ------------------------------------------------------------------------------------*/

/* The slot at which the view that covers slot s begins; MARKS_NONE: nothing is mapped at s. */
static uint64_t view_over(const struct pool *p, uint64_t s)
{
    if (p->table.view[s].there) {
        return s;
    }
    uint64_t v = marks_last(&p->table.views, s);
    return v != MARKS_NONE && s - v < run_at(p, p->table.view[v].run)->count ? v : MARKS_NONE;
}

uint64_t page_view(const struct pool *p, uint64_t slot)
{
    return view_over(p, slot);
}

static bool view_busy(const struct pool *p, uint64_t s)
{
    const struct view *v = &p->table.view[s];
    return v->seq > p->done[v->stream];
}

/* `like`: the view that it is cut from; NULL: a new view. */
static void view_add(struct pool *p, uint64_t s, uint32_t r, const struct view *like)
{
    struct run *g = run_at(p, r);
    struct view *view = p->table.view;
    view[s] = like != NULL ? *like : (struct view){.there = true, .mapped = true};
    view[s].run = r;
    view[s].next = g->views;
    view[s].prev = 0;
    if (g->views != 0) {
        view[g->views - 1].prev = (uint32_t)s + 1;
    }
    g->views = (uint32_t)s + 1;
    marks_add(&p->table.views, s);
}

static void view_remove(struct pool *p, uint64_t s)
{
    struct view *view = p->table.view;
    const struct view *v = &view[s];
    if (v->next != 0) {
        view[v->next - 1].prev = v->prev;
    }
    late_forget(p, v, run_at(p, v->run)->count);
    *(v->prev != 0 ? &view[v->prev - 1].next : &run_at(p, v->run)->views) = v->next;
    view[s].there = false;
    marks_remove(&p->table.views, s);
}

static bool is_used(const struct pool *p, uint64_t view)
{
    return run_at(p, p->table.view[view].run)->used == view + 1;
}

static uint64_t after(const struct pool *p, uint64_t view)
{
    return view + run_at(p, p->table.view[view].run)->count;
}

/* ---- runs -------------------------------------------------------------------------------------*/

/* Cuts a run and its views after `count` frames, between two handles. There are as many records as
 * frames. Returns the rest. */
static uint32_t run_cut(struct pool *p, uint32_t r, uint32_t count)
{
    uint32_t rest = records_take(&p->table.runs);
    struct run *a = run_at(p, r);
    *run_at(p, rest) = (struct run){.used = a->used != 0 ? a->used + count : 0,
                                    .frame = a->frame + count,
                                    .count = a->count - count};
    a->count = count;
    for (uint32_t v = a->views; v != 0; v = p->table.view[v - 1].next) {
        view_add(p, v - 1 + count, rest, &p->table.view[v - 1]);
    }
    return rest;
}

/* The run of a view that covers slot s, cut to begin at s and to have at most `most` frames. Both
 * cuts are between handles. */
static uint32_t run_within(struct pool *p, uint64_t view, uint64_t s, uint64_t most)
{
    uint32_t r = p->table.view[view].run;
    if (view < s) {
        r = run_cut(p, r, (uint32_t)(s - view));
    }
    if (run_at(p, r)->count > most) {
        (void)run_cut(p, r, (uint32_t)most);
    }
    return r;
}

/* The slots that the handle mapped at slot s by this view covers: from *ret_first on. Returns how
 * many. */
static uint64_t handle_slots(const struct pool *p, uint64_t view, uint64_t s, uint64_t *ret_first)
{
    const struct frames *f = &p->table.frames;
    uint64_t frame = run_at(p, p->table.view[view].run)->frame + (s - view);
    *ret_first = s - (frame - handle_first(f, frame));
    return handle_end(f, frame) - handle_first(f, frame);
}

/* Frames of the handle that begins `done` frames behind the start of a run. */
static uint64_t handle_frames(const struct pool *p, const struct run *g, uint64_t done)
{
    return handle_end(&p->table.frames, g->frame + done) - g->frame - done;
}

/* Unmaps a view from its start on. On failure the unmapped part is a run of its own without this
 * view. */
static int view_unmap(struct pool *p, uint64_t s, struct err *e)
{
    uint32_t r = p->table.view[s].run;
    uint32_t count = run_at(p, r)->count;
    uint64_t done = p->table.view[s].mapped ? 0 : count;
    int rc = 0;
    while (done < count && rc == 0) {
        uint64_t frames = handle_frames(p, run_at(p, r), done);
        p->stats.driver_calls++;
        rc = ops(p)->unmap(p->source.user, p->range, (s + done) * p->page, frames * p->page, e);
        done += rc == 0 ? frames : 0;
    }
    if (done > 0 && done < count) {
        (void)run_cut(p, r, (uint32_t)done);
    }
    if (done > 0) {
        view_remove(p, s);
    }
    return rc;
}

/* The same, unless a stream may use the run there. */
static int view_clear(struct pool *p, uint64_t s, struct err *e)
{
    return view_busy(p, s)
               ? err_set(e, ERR_DEVICE_MEMORY, "a stream still uses what is mapped there")
               : view_unmap(p, s, e);
}

/* Maps handles of a run at slot s, where nothing is mapped, until one fails. Returns frames. */
static uint64_t handles_map(struct pool *p, uint64_t s, uint32_t r, struct err *e)
{
    const struct run *g = run_at(p, r);
    uint64_t done = 0;
    int rc = 0;
    while (done < g->count && rc == 0) {
        uint64_t frames = handle_frames(p, g, done);
        p->stats.driver_calls++;
        rc = ops(p)->map(p->source.user, p->range, (s + done) * p->page,
                         p->table.frames.name[g->frame + done], frames * p->page, e);
        done += rc == 0 ? frames : 0;
    }
    return done;
}

/* The same. The part that could not be mapped is a run of its own: *ret_rest, or this run. */
static int run_map(struct pool *p, uint64_t s, uint32_t r, uint32_t *ret_rest, struct err *e)
{
    struct err why = ERR_INIT;
    uint64_t done = handles_map(p, s, r, &why);
    bool all = done == run_at(p, r)->count;
    if (!all) {
        *ret_rest = done > 0 ? run_cut(p, r, (uint32_t)done) : r;
    }
    if (done > 0) {
        view_add(p, s, r, NULL);
        p->table.view[s].ticket = late_issued(p);
    }
    return all ? 0 : err_set(e, why.code, "%s", why.text);
}

/* Maps a run where its view at slot s sleeps. On failure the part that could not be mapped is a run
 * of its own. Returns frames. */
static uint64_t view_wake(struct pool *p, uint64_t s, struct err *e)
{
    uint32_t r = p->table.view[s].run;
    uint64_t done = handles_map(p, s, r, e);
    if (done > 0 && done < run_at(p, r)->count) {
        (void)run_cut(p, r, (uint32_t)done);
    }
    p->table.view[s].mapped = done > 0;
    p->table.view[s].ticket = late_issued(p);
    return done;
}

/* ---- memory of the source ---------------------------------------------------------------------*/

uint64_t page_create(struct pool *p, uint64_t bytes, uint32_t *ret_run, struct err *e)
{
    struct frames *f = &p->table.frames;
    uint32_t frame = 0;
    if (p->late.refuses) {
        (void)err_set(e, ERR_DEVICE_MEMORY, "the device refused memory lately");
        return 0;
    }
    uint64_t count = frames_take(f, to_pages(p, bytes), &frame);
    if (count == 0) {
        (void)err_set(e, ERR_NOMEM, "the pool's records are used up");
        return 0;
    }
    uint64_t done = frames_create(p, frame, count, false, e);
    frames_give(f, frame + done, count - done);
    if (done == 0) {
        return 0;
    }
    uint32_t r = records_take(&p->table.runs);
    *run_at(p, r) = (struct run){.frame = frame, .count = (uint32_t)done};
    tenancy_new(p, frame, done);
    *ret_run = r;
    return done * p->page;
}

static void run_forget(struct pool *p, uint32_t r)
{
    run_at(p, r)->count = 0;
    records_give(&p->table.runs, r);
}

/* Gives a run that is mapped nowhere back to the source; its views sleep. Returns bytes. */
static uint64_t destroy(struct pool *p, uint32_t r)
{
    const struct run *g = run_at(p, r);
    uint64_t count = g->count;
    while (g->views != 0) {
        view_remove(p, g->views - 1);
    }
    frames_destroy(p, g->frame, count);
    frames_give(&p->table.frames, g->frame, count);
    run_forget(p, r);
    late_room(p);
    return count * p->page;
}

/* ---- memory to addresses ----------------------------------------------------------------------*/

/* Unmaps all handles that are mapped in [s, s + count), also where they reach beyond. */
static int clear_views(struct pool *p, uint64_t s, uint64_t count, struct err *e)
{
    uint64_t over = view_over(p, s);
    uint64_t v = over != MARKS_NONE ? over : marks_next(&p->table.views, s);
    int rc = 0;
    while (rc == 0 && v < s + count) { /* MARKS_NONE ends it */
        uint64_t begin = v;
        uint64_t last = after(p, v) - 1;
        uint64_t first;
        if (v < s) {
            (void)handle_slots(p, v, s, &begin);
        }
        last = last < s + count ? last : s + count - 1;
        uint64_t slots = handle_slots(p, v, last, &first);
        (void)run_within(p, v, begin, first + slots - begin);
        rc = view_clear(p, begin, e);
        v = marks_next(&p->table.views, begin);
    }
    return rc;
}

uint64_t page_put(struct pool *p, uint64_t at, uint32_t run, struct err *e)
{
    uint64_t s = to_pages(p, at);
    uint32_t rest = run;
    uint32_t count = run_at(p, run)->count;
    int rc = clear_views(p, s, count, e);
    rc = rc == 0 ? run_map(p, s, run, &rest, e) : rc;
    if (rc != 0) {
        count -= (uint32_t)to_pages(p, destroy(p, rest));
    }
    if (count > 0) {
        run_at(p, run)->used = (uint32_t)s + 1;
    }
    return count * p->page;
}

/* The run used at slot s, cut to begin there, with at most `most` frames. */
static uint32_t run_used(struct pool *p, uint64_t s, uint64_t most)
{
    return run_within(p, view_over(p, s), s, most);
}

/* Unmaps a run everywhere, last at slot `own`. On failure its first part, or nothing of it, is
 * unmapped there. */
static int run_unmap(struct pool *p, uint32_t r, uint64_t own, struct err *e)
{
    const struct run *g = run_at(p, r);
    const struct view *v = p->table.view;
    int rc = 0;
    while (rc == 0 && (g->views != own + 1 || v[own].next != 0)) {
        rc = view_clear(p, (g->views != own + 1 ? g->views : v[own].next) - 1, e);
    }
    return rc == 0 ? view_clear(p, own, e) : rc;
}

uint64_t page_drop(struct pool *p, uint64_t at, uint64_t bytes, struct err *e)
{
    uint64_t gone = 0;
    int rc = 0;
    while (gone < bytes && rc == 0) {
        uint64_t own = to_pages(p, at + gone);
        uint32_t r = run_used(p, own, to_pages(p, bytes - gone));
        rc = run_unmap(p, r, own, e);
        gone += run_at(p, r)->views == 0 ? destroy(p, r) : 0; /* perhaps only its first part */
    }
    return gone;
}

/* Puts the view of a handle at slot s to sleep. */
static int view_sleep(struct pool *p, uint64_t s, struct err *e)
{
    struct view *v = &p->table.view[s];
    uint64_t bytes = run_at(p, v->run)->count * p->page;
    int rc = 0;
    if (v->mapped) {
        p->stats.driver_calls++;
        rc = ops(p)->unmap(p->source.user, p->range, s * p->page, bytes, e);
        v->mapped = rc != 0;
        v->accessible = v->accessible && rc != 0;
    }
    return rc;
}

/* Puts the views of a handle to sleep, last the one at slot `own`. */
static int run_sleep(struct pool *p, uint32_t r, uint64_t own, struct err *e)
{
    int rc = 0;
    for (uint32_t v = run_at(p, r)->views; v != 0 && rc == 0;) {
        uint64_t s = v - 1;
        v = p->table.view[s].next;
        if (view_busy(p, s)) {
            rc = err_set(e, ERR_DEVICE_MEMORY, "a stream still uses what is mapped there");
        } else if (s != own) {
            rc = p->table.view[s].late < VIEW_FAILED ? view_sleep(p, s, e) : view_unmap(p, s, e);
        }
    }
    return rc == 0 ? view_sleep(p, own, e) : rc;
}

int page_break(struct pool *p, uint64_t at, bool alone, struct err *e)
{
    uint64_t own;
    uint64_t view = view_over(p, to_pages(p, at));
    uint64_t count = handle_slots(p, view, to_pages(p, at), &own);
    uint32_t r = run_within(p, view, own, count);
    struct run *g = run_at(p, r);
    uint64_t front = to_pages(p, at) - own;
    uint64_t middle = alone && count - front > 1 ? 1 : 0;
    int rc = run_sleep(p, r, own, e);
    if (rc != 0) { /* it is still mapped there */
        return rc;
    }
    g->used = 0;
    frames_destroy(p, g->frame, count);
    uint64_t done = frames_create(p, g->frame, front, false, e);
    if (done == front && middle > 0) {
        done += frames_create(p, g->frame + front, middle, false, e);
    }
    if (done == front + middle) {
        done += frames_create(p, g->frame + done, count - done, true, e);
    }
    frames_give(&p->table.frames, g->frame + done, count - done);
    p->stats.breaks++;
    while (done == 0 && g->views != 0) {
        view_remove(p, g->views - 1);
    }
    if (done == 0) {
        run_forget(p, r);
        return e->code;
    }
    g->count = (uint32_t)done;
    tenancy_new(p, g->frame, done);
    uint64_t mapped = page_put(p, own * p->page, r, e);
    return mapped == count * p->page ? page_access(p, own * p->page, mapped, e) : e->code;
}

/* A clear of the moved pages that is not over yet may fail, and is then reported for their old
 * place. Until it is over it may come at any time, so their next user at `to` waits for it. */
static void spoil_uncleared(struct pool *p, uint64_t from, uint64_t to, uint64_t count)
{
    const struct block moved = {.at = to * p->page, .size = count * p->page};
    uint64_t ticket = p->table.view[view_over(p, from)].ticket;
    if (ticket > p->late.done) {
        tenancy_spoil(p, &moved);
    }
    if (ticket > p->table.view[to].ticket) {
        p->table.view[to].ticket = ticket;
    }
}

/* Uses a run at `to`, where it is mapped already or is mapped now; its old view remains. Returns
 * frames. */
static uint64_t move_view(struct pool *p, const struct page_way *way, uint64_t done, struct err *e)
{
    uint64_t s = to_pages(p, way->from + done);
    uint64_t to = to_pages(p, way->to + done);
    uint64_t most = to_pages(p, way->bytes - done);
    uint32_t r = run_used(p, s, most);
    bool known = view_over(p, to) == to && p->table.view[to].run == r &&
                 p->table.view[to].late < VIEW_FAILED;
    if (known && !p->table.view[to].mapped && view_wake(p, to, e) == 0) {
        return 0;
    }
    if (!known) {
        uint32_t rest;
        if (clear_views(p, to, run_at(p, r)->count, e) != 0) {
            return 0;
        }
        r = run_used(p, s, most); /* clear_views may have cut it */
        if (run_map(p, to, r, &rest, e) != 0 && rest == r) {
            return 0;
        }
    }
    uint64_t count = run_at(p, r)->count;
    run_at(p, r)->used = (uint32_t)to + 1;
    spoil_uncleared(p, s, to, count);
    if (way->seq != 0) {
        p->table.view[s].stream = (uint8_t)way->stream;
        p->table.view[s].seq = way->seq;
    }
    if (!way->keep && !view_busy(p, s)) { /* on failure: clear_views, later */
        (void)view_unmap(p, s, NULL);
    }
    return count;
}

uint64_t page_move(struct pool *p, const struct page_way *way, struct err *e)
{
    uint64_t moved = 0;
    struct err why = ERR_INIT;
    while (moved < way->bytes && why.code == 0) {
        moved += move_view(p, way, moved, &why) * p->page;
    }
    if (why.code != 0 && e != NULL) {
        *e = why;
    }
    p->stats.remaps += to_pages(p, moved);
    return moved;
}

bool page_wake(struct pool *p, uint64_t at, uint64_t bytes)
{
    uint64_t s = to_pages(p, at);
    (void)run_within(p, view_over(p, s), s, to_pages(p, bytes));
    if (p->table.view[s].mapped) {
        return page_accessible(p, at, at + bytes) == bytes;
    }
    return view_wake(p, s, NULL) * p->page == bytes && page_access(p, at, bytes, NULL) == 0;
}

int page_access(struct pool *p, uint64_t at, uint64_t bytes, struct err *e)
{
    struct view *view = p->table.view;
    uint64_t end = to_pages(p, at + bytes);
    for (uint64_t s = view_over(p, to_pages(p, at)); s < end;) {
        uint64_t first = s;
        while (s < end && !view[s].accessible) {
            s += run_at(p, view[s].run)->count;
        }
        if (s > first) {
            p->stats.driver_calls++;
            int rc =
                ops(p)->access(p->source.user, p->range, first * p->page, (s - first) * p->page, e);
            if (rc != 0) {
                return rc;
            }
        }
        for (; first < s; first += run_at(p, view[first].run)->count) {
            view[first].accessible = true;
            view[first].ticket = late_issued(p);
        }
        s += s < end ? run_at(p, view[s].run)->count : 0;
    }
    return 0;
}

/* ---- what is there ----------------------------------------------------------------------------*/

/* Bytes of the slots [first, last) before `end`. */
static uint64_t stretch(const struct pool *p, uint64_t first, uint64_t last, uint64_t end)
{
    return (last < end ? last - first : end - first) * p->page;
}

/* Bytes from `at` on in views in a row for which `holds` is true. */
static inline uint64_t row_of(const struct pool *p, uint64_t at, uint64_t end,
                              bool (*holds)(const struct pool *p, uint64_t view))
{
    uint64_t first = to_pages(p, at);
    uint64_t s = first;
    while (s < to_pages(p, end)) {
        uint64_t v = view_over(p, s);
        if (v == MARKS_NONE || !holds(p, v)) {
            break;
        }
        s = after(p, v);
    }
    return stretch(p, first, s, to_pages(p, end));
}

static bool is_accessible(const struct pool *p, uint64_t view)
{
    return p->table.view[view].accessible;
}

uint64_t page_used(const struct pool *p, uint64_t at, uint64_t end)
{
    return row_of(p, at, end, is_used);
}

uint64_t page_unused(const struct pool *p, uint64_t at, uint64_t end)
{
    uint64_t first = to_pages(p, at);
    uint64_t s = first;
    while (s < to_pages(p, end)) {
        uint64_t v = view_over(p, s);
        if (v == MARKS_NONE) {
            s = marks_next(&p->table.views, s); /* MARKS_NONE ends it */
        } else if (!is_used(p, v)) {
            s = after(p, v);
        } else {
            break;
        }
    }
    return stretch(p, first, s, to_pages(p, end));
}

uint64_t page_accessible(const struct pool *p, uint64_t at, uint64_t end)
{
    return row_of(p, at, end, is_accessible);
}

uint64_t page_busy(const struct pool *p, uint64_t at, uint64_t end)
{
    return row_of(p, at, end, view_busy);
}

uint64_t page_idle(const struct pool *p, uint64_t at, uint64_t end)
{
    uint64_t first = to_pages(p, at);
    uint64_t over = view_over(p, first);
    uint64_t v = over != MARKS_NONE ? over : marks_next(&p->table.views, first);
    while (v < to_pages(p, end) && !view_busy(p, v)) { /* MARKS_NONE ends it */
        v = marks_next(&p->table.views, v + 1);
    }
    return stretch(p, first, v > first ? v : first, to_pages(p, end));
}

bool page_breakable(const struct pool *p, uint64_t at)
{
    uint32_t v = run_at(p, p->table.view[view_over(p, to_pages(p, at))].run)->views;
    while (v != 0 && !view_busy(p, v - 1)) {
        v = p->table.view[v - 1].next;
    }
    return v == 0;
}

uint64_t page_inside(const struct pool *p, uint64_t at)
{
    uint64_t first;
    uint64_t v = view_over(p, to_pages(p, at));
    (void)handle_slots(p, v, to_pages(p, at), &first);
    return at - first * p->page;
}

uint64_t page_rest(const struct pool *p, uint64_t at)
{
    uint64_t first;
    uint64_t v = view_over(p, to_pages(p, at));
    uint64_t slots = handle_slots(p, v, to_pages(p, at), &first);
    return (first + slots) * p->page - at;
}

bool page_mapped(const struct pool *p, uint64_t at)
{
    return view_over(p, to_pages(p, at)) != MARKS_NONE;
}

struct handles page_handles(const struct pool *p, uint64_t at, uint64_t end)
{
    uint64_t s = to_pages(p, at + p->page - 1);
    uint64_t stop = to_pages(p, end);
    uint64_t first = s;
    struct handles h = {.at = s * p->page};
    if (s >= stop) {
        return h;
    }
    uint64_t slots = handle_slots(p, view_over(p, s), s, &first);
    if (first != s && first + slots < stop) { /* its first part is elsewhere */
        s = first + slots;
        slots = handle_slots(p, view_over(p, s), s, &first);
    }
    uint64_t last = first;
    uint64_t back = slots;
    if (first + slots < stop) {
        back = handle_slots(p, view_over(p, stop - 1), stop - 1, &last);
    }
    if (last + back > stop && last > s) { /* its last part is elsewhere */
        stop = last;
        back = handle_slots(p, view_over(p, stop - 1), stop - 1, &last);
    }
    h.at = s * p->page;
    if (first == s && last + back == stop) {
        h.bytes = (stop - s) * p->page;
        h.front = slots * p->page;
        h.back = back * p->page;
    }
    return h;
}

uint64_t page_whole(const struct pool *p, uint64_t at, uint64_t end, uint64_t *ret_at)
{
    const struct handles h = page_handles(p, at, end);
    *ret_at = h.at;
    return h.bytes;
}

uint64_t page_where(const struct pool *p, uint64_t at, uint64_t *ret_from)
{
    uint64_t s = to_pages(p, at);
    uint64_t v = view_over(p, s);
    if (v == MARKS_NONE || p->table.view[v].late >= VIEW_FAILED) {
        return 0;
    }
    *ret_from = (run_at(p, p->table.view[v].run)->used - UINT64_C(1) + s - v) * p->page;
    return (after(p, v) - s) * p->page;
}

uint64_t page_frame(const struct pool *p, uint64_t at, uint32_t *ret_frame)
{
    uint64_t s = to_pages(p, at);
    uint64_t v = view_over(p, s);
    if (v == MARKS_NONE || !is_used(p, v)) {
        return 0;
    }
    *ret_frame = run_at(p, p->table.view[v].run)->frame + (uint32_t)(s - v);
    return (after(p, v) - s) * p->page;
}

void page_view_cut(struct pool *p, uint64_t s, uint64_t end)
{
    (void)run_within(p, view_over(p, s), s, end - s);
}

void page_view_clear(struct pool *p, uint64_t view)
{
    (void)view_clear(p, view, NULL);
}

/* ---- all of it --------------------------------------------------------------------------------*/

int page_table_check(const struct pool *p, uint64_t *ret_used, struct err *e)
{
    const struct page_table *t = &p->table;
    uint64_t used = 0;
    uint64_t frames = 0;
    uint64_t end = 0;
    for (uint64_t v = marks_next(&t->views, 0); v != MARKS_NONE; v = marks_next(&t->views, v + 1)) {
        const struct view *w = &t->view[v];
        const struct run *g = run_at(p, w->run);
        uint32_t head = w->prev != 0 ? t->view[w->prev - 1].next : g->views;
        bool whole = g->count != 0 && handle_first(&t->frames, g->frame) == g->frame &&
                     handle_end(&t->frames, g->frame + g->count - 1) == g->frame + g->count;
        if (v < end || !whole || head != v + 1) {
            return err_set(e, ERR_INTERNAL, "pool: what is mapped at page %llu is listed wrongly",
                           LL(v));
        }
        end = v + g->count;
        used += g->used == v + 1 ? g->count : 0;
    }
    for (uint32_t r = 0; r < t->runs.made; r++) {
        frames += run_at(p, r)->count;
    }
    *ret_used = used * p->page;
    return frames == used ? 0
                          : err_set(e, ERR_INTERNAL, "pool: %llu of %llu pages are used somewhere",
                                    LL(used), LL(frames));
}

void page_table_finish(struct pool *p)
{
    struct page_table *t = &p->table;
    bool empty = true;
    uint64_t v = p->range != NULL ? marks_next(&t->views, 0) : MARKS_NONE;
    for (; v != MARKS_NONE; v = marks_next(&t->views, v + 1)) {
        if (view_unmap(p, v, NULL) != 0) { /* its first remaining page is lost */
            uint64_t rest = view_over(p, v) == v ? v : marks_next(&t->views, v);
            (void)run_within(p, rest, rest, 1);
            empty = false;
            v = rest;
        }
    }
    for (uint32_t r = 0; p->range != NULL && r < t->runs.made; r++) {
        if (run_at(p, r)->count > 0 && run_at(p, r)->views == 0) { /* else it is still mapped */
            (void)destroy(p, r);
        }
    }
    if (p->range != NULL && empty) {
        ops(p)->release(p->source.user, p->range, p->space);
    }
    records_finish(&t->runs);
    frames_finish(&t->frames);
    marks_finish(&t->views);
    marks_finish(&t->holders);
    free(t->view);
    free(t->holder);
}
