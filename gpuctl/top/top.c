#include "gpuctl/top/top.h"

#include <stdio.h>
#include <string.h>

static const char help[] =
    "1 2 3 4 5   devices, tenants, sessions, jobs, pool (also Tab, left, right)\n"
    "up, down    select a row (also PgUp, PgDn, Home, End, and k j g G)\n"
    "< >         sort by the column before, by the next one\n"
    "r           reverse the order\n"
    "/           show only rows that contain a text; Enter ends it, Esc shows all\n"
    "e           explain why the selected job waits\n"
    "c           cancel the selected job\n"
    "p           pause and go on\n"
    "h ?         this help\n"
    "q           end\n";

static const char *const device_extras[] = {"temperature", "power", "gpu_busy", "throttled", NULL};

void top_init(struct top *top, struct ctl *ctl)
{
    static const char *const tables[TOP_VIEWS] = {"devices", "tenants", "sessions", "jobs", "pool"};
    *top = (struct top){.ctl = ctl, .shown = TOP_JOBS};
    for (unsigned i = 0; i < TOP_VIEWS; i++) {
        top->view[i].table = tables[i];
        top->view[i].sort = VIEW_DAEMON;
    }
    top->view[TOP_DEVICES].also = device_extras;
}

void top_finish(struct top *top)
{
    for (unsigned i = 0; i < TOP_VIEWS; i++) {
        view_finish(&top->view[i]);
    }
    source_finish(&top->source);
}

void top_ask(struct top *top)
{
    struct view *v = &top->view[top->shown];
    source_ask(&top->source, top->ctl, v->table);
    top->stale = false; /* also without an answer: the next question is due after the interval */
    if (top->source.trouble[0] == '\0' && !view_take(v, &top->source.sheet)) {
        (void)snprintf(top->note, sizeof top->note, "out of memory");
    }
}

/* ---- keys ---------------------------------------------------------------------------------- */

/* The sheet belongs to one view at a time. */
static void show_view(struct top *top, unsigned view)
{
    for (unsigned i = 0; i < TOP_VIEWS; i++) {
        top->view[i].sheet = NULL;
        top->view[i].count = 0;
    }
    top->shown = (enum top_view)view;
    top->stale = true;
}

/* The number of the selected job; 0 with a note if there is none. */
static uint64_t selected_job(struct top *top)
{
    const struct sheet_cell *cell =
        top->shown == TOP_JOBS ? view_selected(&top->view[TOP_JOBS], "job") : NULL;
    if (cell == NULL) {
        (void)snprintf(top->note, sizeof top->note, "select a job first (4)");
        return 0;
    }
    return cell->value;
}

static void explain(struct top *top)
{
    uint64_t job = selected_job(top);
    char text[GPUD_ERROR_TEXT];
    if (job == 0 || top->ctl->client == NULL) {
        return;
    }
    if (gpud_explain(top->ctl->client, job, text, sizeof text) != 0) {
        (void)snprintf(top->note, sizeof top->note, "job %llu: %s", (unsigned long long)job,
                       gpud_last_error()->text);
        return;
    }
    (void)snprintf(top->text, sizeof top->text, "%s", text);
    top->mode = TOP_TEXT;
}

static void cancel(struct top *top)
{
    int rc =
        top->ctl->client != NULL ? gpud_job_cancel(top->ctl->client, top->job) : GPUD_ERR_CONNECT;
    if (rc == 0) {
        (void)snprintf(top->note, sizeof top->note, "asked for the end of job %llu",
                       (unsigned long long)top->job);
        top->stale = true;
    } else {
        (void)snprintf(top->note, sizeof top->note, "job %llu: %s", (unsigned long long)top->job,
                       top->ctl->client != NULL ? gpud_last_error()->text : gpud_strerror(rc));
    }
}

static void begin_cancel(struct top *top)
{
    top->job = selected_job(top);
    if (top->job != 0) {
        top->mode = TOP_CONFIRM;
    }
}

/* Moves the selection. false: the key is another one. */
static bool move_key(struct top *top, int key)
{
    struct view *v = &top->view[top->shown];
    int64_t page = top->page > 1 ? (int64_t)top->page - 1 : 1;
    switch (key) {
    case TOP_KEY_UP:
    case 'k':
        view_move(v, -1);
        return true;
    case TOP_KEY_DOWN:
    case 'j':
        view_move(v, 1);
        return true;
    case TOP_KEY_PAGE_UP:
        view_move(v, -page);
        return true;
    case TOP_KEY_PAGE_DOWN:
        view_move(v, page);
        return true;
    case TOP_KEY_HOME:
    case 'g':
        view_move(v, INT32_MIN);
        return true;
    case TOP_KEY_END:
    case 'G':
        view_move(v, INT32_MAX);
        return true;
    default:
        return false;
    }
}

/* Chooses the table and its order. false: the key is another one. */
static bool view_key(struct top *top, int key)
{
    struct view *v = &top->view[top->shown];
    switch (key) {
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
        show_view(top, (unsigned)(key - '1'));
        return true;
    case '\t':
    case TOP_KEY_RIGHT:
        show_view(top, (top->shown + 1u) % TOP_VIEWS);
        return true;
    case TOP_KEY_LEFT:
        show_view(top, (top->shown + TOP_VIEWS - 1u) % TOP_VIEWS);
        return true;
    case '<':
        view_sort(v, -1);
        return true;
    case '>':
        view_sort(v, 1);
        return true;
    case 'r':
        view_reverse(v);
        return true;
    default:
        return false;
    }
}

static void list_key(struct top *top, int key)
{
    if (move_key(top, key) || view_key(top, key)) {
        return;
    }
    switch (key) {
    case '/':
        top->mode = TOP_FILTER;
        (void)snprintf(top->input, sizeof top->input, "%s", top->view[top->shown].filter);
        break;
    case TOP_KEY_ESCAPE:
        view_filter(&top->view[top->shown], "");
        break;
    case 'e':
        explain(top);
        break;
    case 'c':
        begin_cancel(top);
        break;
    case 'p':
    case ' ':
        top->paused = !top->paused;
        break;
    case 'h':
    case '?':
        (void)snprintf(top->text, sizeof top->text, "%s", help);
        top->mode = TOP_TEXT;
        break;
    case 'q':
    case 'Q':
        top->over = true;
        break;
    default:
        break;
    }
}

static void filter_key(struct top *top, int key)
{
    size_t n = strlen(top->input);
    if (key == TOP_KEY_ENTER) {
        top->mode = TOP_LIST;
    } else if (key == TOP_KEY_ESCAPE) {
        top->input[0] = '\0';
        top->mode = TOP_LIST;
    } else if (key == TOP_KEY_BACK) {
        top->input[n > 0 ? n - 1 : 0] = '\0';
    } else if (key >= ' ' && key < 0x7f && n + 1 < sizeof top->input) {
        top->input[n] = (char)key;
        top->input[n + 1] = '\0';
    }
    view_filter(&top->view[top->shown], top->input);
}

void top_key(struct top *top, int key)
{
    top->note[0] = '\0';
    switch (top->mode) {
    case TOP_FILTER:
        filter_key(top, key);
        break;
    case TOP_CONFIRM:
        top->mode = TOP_LIST;
        if (key == 'y' || key == 'Y') {
            cancel(top);
        }
        break;
    case TOP_TEXT:
        top->mode = TOP_LIST;
        break;
    default:
        list_key(top, key);
        break;
    }
}
