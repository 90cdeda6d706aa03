#include "gpuctl/top/draw.h"

#include <langinfo.h>
#include <ncurses.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpuctl/sheet/sheet_fit.h"

#define ESCAPE_MS    50 /* between the bytes of one key */
#define DEVICE_LINES 4  /* with bars; further devices are in their table */
#define BAR_WIDTH    10

enum pair { PAIR_GOOD = 1, PAIR_BAD, PAIR_WORSE };

int draw_begin(bool colour, struct ctl_err *e)
{
    SCREEN *screen = newterm(NULL, stdout, stdin);
    if (screen == NULL) {
        const char *terminal = getenv("TERM");
        return ctl_err_set(e, GPUD_ERR_UNSUPPORTED,
                           "a terminal '%s' is not known here: set TERM, or use -w",
                           terminal != NULL ? terminal : "");
    }
    (void)set_term(screen);
    (void)set_escdelay(ESCAPE_MS);
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    (void)keypad(stdscr, TRUE);
    (void)nodelay(stdscr, TRUE);
    (void)curs_set(0);
    if (colour && has_colors() && start_color() == OK) {
        (void)use_default_colors();
        (void)init_pair(PAIR_GOOD, COLOR_GREEN, -1);
        (void)init_pair(PAIR_BAD, COLOR_YELLOW, -1);
        (void)init_pair(PAIR_WORSE, COLOR_RED, -1);
    }
    return 0;
}

void draw_end(void)
{
    (void)endwin();
}

int draw_key(void)
{
    static const int keys[][2] = {
        {KEY_UP, TOP_KEY_UP},          {KEY_DOWN, TOP_KEY_DOWN},     {KEY_LEFT, TOP_KEY_LEFT},
        {KEY_RIGHT, TOP_KEY_RIGHT},    {KEY_PPAGE, TOP_KEY_PAGE_UP}, {KEY_NPAGE, TOP_KEY_PAGE_DOWN},
        {KEY_HOME, TOP_KEY_HOME},      {KEY_END, TOP_KEY_END},       {KEY_ENTER, TOP_KEY_ENTER},
        {'\r', TOP_KEY_ENTER},         {'\n', TOP_KEY_ENTER},        {0x1b, TOP_KEY_ESCAPE},
        {KEY_BACKSPACE, TOP_KEY_BACK}, {0x7f, TOP_KEY_BACK},         {'\b', TOP_KEY_BACK},
    };
    int key = getch();
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (keys[i][0] == key) {
            return keys[i][1];
        }
    }
    return key == ERR ? -1 : key < KEY_MIN ? key : 0; /* KEY_RESIZE: the next drawing fits */
}

/* ---- parts ---------------------------------------------------------------------------------- */

static bool utf8(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* Writes text from a column on, cut at the right edge. */
static void put(int line, int column, const char *text)
{
    int room = COLS - column;
    if (line >= 0 && line < LINES && room > 0) {
        (void)mvaddnstr(line, column, text, (int)fit_cut(text, (size_t)room));
    }
}

static attr_t state_attribute(const char *state)
{
    short pair = strcmp(state, "ready") == 0      ? PAIR_GOOD
                 : strcmp(state, "degraded") == 0 ? PAIR_BAD
                                                  : PAIR_WORSE;
    return A_BOLD | (attr_t)COLOR_PAIR(pair);
}

static void draw_head(const struct top *top)
{
    const struct source *s = &top->source;
    char text[256];
    char now[16] = "";
    char bars[SPARK_BYTES];
    time_t seconds = time(NULL);
    struct tm parts;
    if (localtime_r(&seconds, &parts) != NULL) {
        (void)strftime(now, sizeof now, "%H:%M:%S", &parts);
    }
    const char *state = s->trouble[0] != '\0' ? "no answer" : s->state;
    put(0, 0, "gpud ");
    (void)attron(state_attribute(state));
    put(0, 5, state);
    (void)attroff(state_attribute(state));
    (void)snprintf(text, sizeof text, "%s%s", top->paused ? "paused " : "", now);
    put(0, COLS - (int)strlen(text), text);
    (void)snprintf(text, sizeof text, "  %s", s->trouble[0] != '\0' ? s->trouble : s->problem);
    int at = 5 + (int)strlen(state);
    (void)mvaddnstr(0, at, text, COLS - at - 18 > 0 ? COLS - at - 18 : 0);
    double most = spark_most(&s->rates);
    (void)snprintf(text, sizeof text, "sessions %llu  queued %llu  in flight %llu  done %llu",
                   (unsigned long long)s->sessions, (unsigned long long)s->queued,
                   (unsigned long long)s->in_flight, (unsigned long long)s->done);
    put(1, 0, text);
    int behind = (int)strlen(text) + 2;
    (void)snprintf(text, sizeof text, "[%s] %.4g/s",
                   spark_text(&s->rates, most, BAR_WIDTH, utf8(), bars), s->rate);
    put(1, behind, text);
}

/* Returns the next line. */
static int draw_devices(const struct top *top, int line)
{
    const struct source *s = &top->source;
    char busy[SPARK_BYTES], full[SPARK_BYTES], used[32], memory[32], text[512];
    uint32_t count = s->device_count < DEVICE_LINES ? s->device_count : DEVICE_LINES;
    for (uint32_t i = 0; i < count && line < LINES - 4; i++) {
        const struct source_device *d = &s->device[i];
        (void)snprintf(text, sizeof text, "%3llu %-10.10s busy [%s] %3.0f %%  mem [%s] %s/%s  %s",
                       (unsigned long long)d->id, d->state,
                       spark_text(&d->busy, 1, BAR_WIDTH, utf8(), busy), d->part * 100,
                       spark_text(&d->full, 1, BAR_WIDTH, utf8(), full),
                       sheet_text(GPUD_COLUMN_BYTES, d->used, used, sizeof used),
                       sheet_text(GPUD_COLUMN_BYTES, d->memory, memory, sizeof memory), d->name);
        put(line++, 0, text);
    }
    return line;
}

static void draw_tabs(const struct top *top, int line)
{
    static const char *const names[TOP_VIEWS] = {"1 devices", "2 tenants", "3 sessions", "4 jobs",
                                                 "5 pool"};
    const struct view *v = &top->view[top->shown];
    char text[128];
    int at = 0;
    for (unsigned i = 0; i < TOP_VIEWS; i++) {
        (void)snprintf(text, sizeof text, i == top->shown ? "[%s]" : " %s ", names[i]);
        (void)attrset(i == top->shown ? A_BOLD : A_NORMAL);
        put(line, at, text);
        at += (int)strlen(text);
    }
    (void)attrset(A_NORMAL);
    int n = 0;
    if (v->sort != VIEW_DAEMON && v->sheet != NULL) {
        char head[GPUD_NAME];
        n = snprintf(text, sizeof text, "  by %s%s", view_head(v, v->sort, head, sizeof head),
                     v->descending ? ", down" : ", up");
    }
    (void)snprintf(text + n, sizeof text - (size_t)n, "%s%s", v->filter[0] != '\0' ? "  /" : "",
                   v->filter);
    put(line, at, n > 0 || v->filter[0] != '\0' ? text : "");
}

/* ---- rows ----------------------------------------------------------------------------------- */

static void measure(const struct view *v, struct fit_column *fit)
{
    char text[256];
    for (uint32_t c = 0; c < v->column_count; c++) {
        size_t head = strlen(view_head(v, c, text, sizeof text));
        bool is_text = v->sheet->columns[v->column[c]].kind == GPUD_COLUMN_TEXT;
        fit[c] = (struct fit_column){.head = head, .width = head, .text = is_text, .empty = true};
        for (uint32_t i = 0; i < v->count; i++) {
            size_t width = fit_width(view_text(v, i, c, text, sizeof text));
            fit[c].width = width > fit[c].width ? width : fit[c].width;
            fit[c].empty = fit[c].empty && strcmp(text, "-") == 0;
        }
    }
    fit_columns(fit, v->column_count, (size_t)COLS);
}

/* One line: heads for index UINT32_MAX, else a row. Texts are cut, numbers never. */
static void draw_line(const struct view *v, const struct fit_column *fit, uint32_t index, int line)
{
    int at = 0;
    for (uint32_t c = 0; c < v->column_count; c++) {
        char text[256];
        if (!fit[c].shown) {
            continue;
        }
        if (index == UINT32_MAX) {
            (void)view_head(v, c, text, sizeof text);
        } else {
            (void)view_text(v, index, c, text, sizeof text);
        }
        text[fit_cut(text, fit[c].given)] = '\0';
        int blanks = (int)(fit[c].given - fit_width(text));
        put(line, at + (fit[c].text ? 0 : blanks), text);
        at += (int)fit[c].given + 1;
    }
}

static void draw_rows(struct top *top, int line, int last)
{
    struct view *v = &top->view[top->shown];
    struct fit_column fit[VIEW_COLUMNS];
    top->page = last - line > 1 ? (uint32_t)(last - line - 1) : 1;
    if (v->sheet == NULL) {
        return;
    }
    measure(v, fit);
    view_scroll(v, top->page);
    (void)attrset(A_BOLD);
    draw_line(v, fit, UINT32_MAX, line++);
    (void)attrset(A_NORMAL);
    for (uint32_t i = v->top; i < v->count && line < last; i++, line++) {
        bool selected = i == v->at;
        (void)attrset(selected ? A_REVERSE : A_NORMAL);
        if (selected) {
            (void)mvhline(line, 0, ' ' | A_REVERSE, COLS);
        }
        draw_line(v, fit, i, line);
    }
    (void)attrset(A_NORMAL);
}

static void draw_text(const char *text, int line, int last)
{
    char *copy = strdup(text);
    char *rest = NULL;
    char *paragraph = copy != NULL ? strtok_r(copy, "\n", &rest) : NULL;
    for (; paragraph != NULL; paragraph = strtok_r(NULL, "\n", &rest)) {
        char *lines = fit_wrap(paragraph, COLS > 0 ? (size_t)COLS : 1);
        for (char *at = lines; at != NULL && line < last;) {
            size_t n = strcspn(at, "\n");
            bool more = at[n] != '\0';
            at[n] = '\0';
            put(line++, 0, at);
            at = more ? at + n + 1 : NULL;
        }
        free(lines);
    }
    free(copy);
}

static void draw_foot(const struct top *top)
{
    char text[256];
    int line = LINES - 1;
    switch (top->mode) {
    case TOP_FILTER:
        (void)snprintf(text, sizeof text, "/%s_   (Enter: done, Esc: all rows)", top->input);
        break;
    case TOP_CONFIRM:
        (void)snprintf(text, sizeof text, "cancel job %llu? y, or any other key",
                       (unsigned long long)top->job);
        break;
    case TOP_TEXT:
        (void)snprintf(text, sizeof text, "any key goes back");
        break;
    default:
        (void)snprintf(
            text, sizeof text, "%s",
            top->note[0] != '\0'
                ? top->note
                : "h help  / filter  < > sort  r reverse  e explain  c cancel  p pause  q end");
        break;
    }
    put(line, 0, text);
}

void draw_all(struct top *top)
{
    (void)erase();
    draw_head(top);
    int line = draw_devices(top, 2);
    draw_tabs(top, line++);
    if (top->mode == TOP_TEXT) {
        draw_text(top->text, line, LINES - 1);
    } else {
        draw_rows(top, line, LINES - 1);
    }
    draw_foot(top);
    (void)refresh();
}
