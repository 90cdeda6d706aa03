#include "daemon/backend/cuda/compile_host.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/backend/cuda/compile_item.h"
#include "daemon/backend/cuda/compile_param.h"

#define INSTANCE_BYTES_MAX 128u
#define CLASSES_MAX        8u    /* one inside of another */
#define ROUNDS_MAX         64u   /* until it is known which macros give to the device */
#define NAMESAKES_MAX      1024u /* declarations of one name */

/* One source on its way. */
struct cutting {
    struct items items; /* its names sorted */
    bool *gone;         /* owned, for each token of code: it becomes a blank */
    unsigned *queue;    /* owned: items that were kept and not yet looked into */
    unsigned queued;
    unsigned members; /* functions of classes whose bodies go */
    bool mentioned;   /* what stays names a function that would go, … */
    bool doubtful;    /* … which may not be the host's */
    bool unevaluated; /* names are looked up there by what does not run */
};

/* ---- names ----------------------------------------------------------------------------------- */

static int text_compare(struct bytes a, struct bytes b)
{
    int rc = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);
    return rc != 0 ? rc : (a.size > b.size) - (a.size < b.size);
}

static int name_compare(const void *a, const void *b)
{
    return text_compare(((const struct item_name *)a)->text, ((const struct item_name *)b)->text);
}

/* The names that a word is: from the result to below *ret_end. */
static size_t names_of(const struct cutting *c, const struct lex_token *t, size_t *ret_end)
{
    const struct bytes text = bytes_of(t->text, t->size);
    const struct item_name *name = c->items.name;
    size_t low = 0;
    size_t high = t->kind == LEX_WORD ? c->items.name_count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (text_compare(name[middle].text, text) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    size_t end = low;
    while (t->kind == LEX_WORD && end < c->items.name_count &&
           text_compare(name[end].text, text) == 0) {
        end++;
    }
    *ret_end = end;
    return low;
}

static struct item *item_named(const struct cutting *c, size_t name)
{
    return &c->items.item[c->items.name[name].item];
}

static const struct lex_token *tokens_of(const struct cutting *c, const struct item *item)
{
    return item->kind == ITEM_MACRO ? c->items.macros.token : c->items.code.token;
}

/* Is there a macro among the words that may give a declaration to the device? */
static bool macro_given(const struct cutting *c, const struct lex_token *t, size_t at, size_t end)
{
    for (; at < end; at++) {
        size_t stop = 0;
        for (size_t n = names_of(c, &t[at], &stop); n < stop; n++) {
            const struct item *item = item_named(c, n);
            if (item->kind == ITEM_MACRO && item->device) {
                return true;
            }
        }
    }
    return false;
}

/* Macros that use a macro for the device are such ones, and so are declarations. false: they lie
 * too deep. */
static bool macros_settle(struct cutting *c)
{
    bool more = true;
    for (unsigned round = 0; more && round < ROUNDS_MAX; round++) {
        more = false;
        for (unsigned i = 0; i < c->items.count; i++) {
            struct item *item = &c->items.item[i];
            size_t end = item->body > 0 ? item->body : item->end;
            if (!item->device && macro_given(c, tokens_of(c, item), item->begin, end)) {
                item->device = true;
                more = true;
            }
        }
    }
    return !more;
}

static bool names_macro(const struct cutting *c, const struct lex_token *t)
{
    size_t stop = 0;
    for (size_t n = names_of(c, t, &stop); n < stop; n++) {
        if (item_named(c, n)->kind == ITEM_MACRO) {
            return true;
        }
    }
    return false;
}

/* A macro of the source with parentheses looks like a function: who knows what it makes. */
static void macro_uses_settle(struct cutting *c)
{
    for (unsigned i = 0; i < c->items.count; i++) {
        struct item *item = &c->items.item[i];
        if (item->kind == ITEM_FUNCTION && item->params > item->begin &&
            names_macro(c, &c->items.code.token[item->params - 1])) {
            item->kind = ITEM_OTHER;
        }
    }
}

static bool namesakes_few(const struct cutting *c)
{
    size_t same = 0;
    for (size_t i = 1; i < c->items.name_count && same < NAMESAKES_MAX; i++) {
        same = text_compare(c->items.name[i].text, c->items.name[i - 1].text) == 0 ? same + 1 : 0;
    }
    return same < NAMESAKES_MAX;
}

/* ---- what stays ------------------------------------------------------------------------------ */

/* A function that no device code can call. One whose type its body says, or that a compiler may
 * compute, is not told apart by what stands before it. */
static bool for_host(const struct item *item)
{
    return item->kind == ITEM_FUNCTION && !item->device && !item->constant;
}

static bool host_variable(const struct item *item)
{
    return item->kind == ITEM_VARIABLE && !item->device && !item->constant;
}

/* "type C::name(…) { … }": what is found by the name is the declaration in the class, which stays.
 */
static bool defines_member(const struct lex_token *t, const struct item *item)
{
    size_t name = item->params - 1;
    return item->body > 0 && item->params > item->begin + 2 &&
           (lex_is(&t[name - 1], ":") || lex_is(&t[name - 1], "~"));
}

static bool one_of(const struct lex_token *t, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (lex_is(t, *words)) {
            return true;
        }
    }
    return false;
}

/* Behind the "<…>" of a template; `at` if it is none. */
static size_t template_skip(const struct lex_token *t, size_t at, size_t end)
{
    int depth = 0;
    if (!lex_is(&t[at], "template") || !lex_is(&t[at + 1], "<")) {
        return at;
    }
    do {
        at++;
        depth += lex_is(&t[at], "<");
        depth -= lex_is(&t[at], ">");
    } while (depth > 0 && at < end);
    return at + 1;
}

/* May a word before its name be a macro of elsewhere, which gives it to the device? One such word
 * is its type, if nothing else is. Nor is it told of a specialization, which has a template's. */
static bool annotation_doubtful(const struct lex_token *t, const struct item *item)
{
    static const char *const types[] = {"unsigned", "signed", "int",    "long", "short",  "char",
                                        "bool",     "float",  "double", "void", "size_t", NULL};
    static const char *const others[] = {"static", "inline", "extern", "__host__", NULL};
    size_t at = template_skip(t, item->begin, item->params);
    bool specializes = at == item->begin + 3;
    unsigned unknown = 0;
    unsigned known = 0;
    for (int depth = 0; at + 1 < item->params; at++) {
        depth += lex_is(&t[at], "<");
        depth -= lex_is(&t[at], ">");
        bool word = depth == 0 && t[at].kind == LEX_WORD && !lex_is(&t[at + 1], ":");
        bool type = word && one_of(&t[at], types);
        known += type;
        unknown += word && !type && !one_of(&t[at], others);
    }
    return specializes || unknown > 1 || (unknown == 1 && known > 0);
}

/* What is looked up by name and not run finds the host's functions, too. */
static bool unevaluated(const struct lex_token *t)
{
    static const char *const words[] = {"decltype", "sizeof", "noexcept",   "requires", "typeof",
                                        "alignof",  "typeid", "__typeof__", "declval",  NULL};
    return one_of(t, words);
}

/* What stays names a function that would go, as tokens[at]. What runs on the device cannot call it,
 * so that it is another one or a variable; but for what this cannot tell. */
static void mention(struct cutting *c, const struct item *item, const struct lex_token *tokens,
                    size_t at)
{
    const struct lex_token *t = c->items.code.token;
    const struct lex_token *next = &tokens[at + 1];
    bool calls = lex_is(next, "(") || lex_is(next, "<") || lex_is(next, ">") ||
                 (at > 0 && lex_is(&tokens[at - 1], "&"));
    if (calls && !defines_member(t, item)) {
        c->mentioned = true;
        c->doubtful = c->doubtful || annotation_doubtful(t, item);
    }
}

/* A variable of the host that is named is no device's: its name is another thing's, or an error. */
static void keep(struct cutting *c, unsigned index, const struct lex_token *tokens, size_t at)
{
    struct item *item = &c->items.item[index];
    if (for_host(item)) {
        mention(c, item, tokens, at);
    } else if (!host_variable(item) && !item->kept) {
        item->kept = true;
        c->queue[c->queued++] = index;
    }
}

/* Templates of types may be specializations, which are found by other names than their own. */
static bool stays(const struct cutting *c, const struct item *item)
{
    bool of_template = lex_is(&c->items.code.token[item->begin], "template");
    return item->device || item->kind == ITEM_OTHER || (item->kind == ITEM_TYPE && of_template);
}

/* Keeps all that an item mentions, but for bodies that go. */
static void look_into(struct cutting *c, const struct item *item)
{
    const struct lex_token *t = tokens_of(c, item);
    bool macro = item->kind == ITEM_MACRO;
    for (size_t i = item->begin; i < item->end; i++) {
        size_t stop = 0;
        size_t n = macro || !c->gone[i] ? names_of(c, &t[i], &stop) : 0;
        for (; n < stop; n++) {
            keep(c, c->items.name[n].item, t, i);
        }
        c->unevaluated = c->unevaluated || unevaluated(&t[i]);
    }
}

static void reach(struct cutting *c)
{
    for (unsigned i = 0; i < c->items.count; i++) {
        const struct item *item = &c->items.item[i];
        if (item->kind != ITEM_MACRO && stays(c, item)) {
            keep(c, i, c->items.code.token, item->begin);
        }
    }
    while (c->queued > 0) {
        look_into(c, &c->items.item[c->queue[--c->queued]]);
    }
}

/* ---- what goes ------------------------------------------------------------------------------- */

static void tokens_cut(struct cutting *c, size_t at, size_t end)
{
    for (; at < end; at++) {
        c->gone[at] = true;
    }
}

static size_t access_skip(const struct lex_token *t, size_t at, size_t end)
{
    while (at + 1 < end && lex_is(&t[at + 1], ":") &&
           (lex_is(&t[at], "public") || lex_is(&t[at], "private") || lex_is(&t[at], "protected"))) {
        at += 2;
    }
    return at;
}

/* Of the host's functions the declarations stay, so that a class is what it was. */
static void member_cut(struct cutting *c, const struct item *member, size_t end)
{
    const struct lex_token *t = c->items.code.token;
    if (member->body == 0 || member->params <= member->begin ||
        names_macro(c, &t[member->params - 1])) {
        return;
    }
    tokens_cut(c, member->body, member->end);
    for (size_t i = access_skip(t, member->begin, end); i < member->body; i++) {
        c->gone[i] = lex_is(&t[i], "__host__");
    }
    c->members++;
}

static void class_cut(struct cutting *c, size_t open, size_t end, unsigned depth)
{
    const struct lex_token *t = c->items.code.token;
    size_t close = item_skip(t, open, end) - 1;
    for (size_t at = open + 1; at < close && depth < CLASSES_MAX;) {
        struct item member;
        at = item_read_member(t, at, close, &member);
        size_t head = member.body > 0 ? member.body : member.end;
        if (for_host(&member) && !macro_given(c, t, member.begin, head)) {
            member_cut(c, &member, close);
        } else if (member.body > 0 && member.kind == ITEM_TYPE) {
            class_cut(c, member.body, member.end, depth + 1);
        }
    }
}

static void classes_cut(struct cutting *c)
{
    for (unsigned i = 0; i < c->items.count; i++) {
        const struct item *item = &c->items.item[i];
        if (item->kind == ITEM_TYPE && item->body > 0) {
            class_cut(c, item->body, item->end, 0);
        }
    }
}

static void items_cut(struct cutting *c, struct host_cut *out)
{
    for (unsigned i = 0; i < c->items.count; i++) {
        const struct item *item = &c->items.item[i];
        if (item->kind == ITEM_MACRO || item->kept) {
            continue;
        }
        tokens_cut(c, item->begin, item->end);
        out->functions += item->kind == ITEM_FUNCTION;
        out->others += item->kind != ITEM_FUNCTION;
        out->line = out->line == 0 ? c->items.code.token[item->begin].line : out->line;
    }
}

/* A body that goes while its declaration stays leaves a ";". */
static void text_cut(const struct cutting *c, const char *text, char *out)
{
    const struct lex_token *t = c->items.code.token;
    for (size_t i = 0; i < c->items.code.count; i++) {
        char *at = out + (t[i].text - text);
        for (size_t k = 0; c->gone[i] && k < t[i].size; k++) {
            at[k] = at[k] == '\n' ? '\n' : ' ';
        }
        bool begins = c->gone[i] && i > 0 && !c->gone[i - 1];
        bool body = lex_is(&t[i], "{") || lex_is(&t[i], ":");
        bool declared = begins && !lex_is(&t[i - 1], ";") && !lex_is(&t[i - 1], "}");
        if (declared && body) {
            *at = ';';
        }
    }
}

/* ---- instances of templates ------------------------------------------------------------------ */

static bool sign3(const struct lex_token *t, const char *sign)
{
    return lex_is(&t[0], sign) && lex_is(&t[1], sign) && lex_is(&t[2], sign) && t[1].glued &&
           t[2].glued;
}

/* Can everyone say it: a number, a type of the language or of what stays, a macro? */
static bool argument_known(const struct cutting *c, const struct lex_token *t)
{
    static const char *const words[] = {"unsigned", "signed", "int",    "long",   "short",
                                        "char",     "true",   "false",  "const",  "float",
                                        "double",   "bool",   "float2", "float4", "double2"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (lex_is(t, words[i])) {
            return true;
        }
    }
    size_t stop = 0;
    size_t n = names_of(c, t, &stop);
    for (; n < stop; n++) {
        if (item_named(c, n)->kept || item_named(c, n)->kind == ITEM_MACRO) {
            return true;
        }
    }
    return t->kind == LEX_NUMBER || lex_is(t, ",") || lex_is(t, "*") || lex_is(t, "_");
}

/* "name<…>" before the "<<<" at `launch` as one text without blanks; false: not of such a form. */
static bool instance_text(const struct cutting *c, size_t launch, char out[INSTANCE_BYTES_MAX])
{
    const struct lex_token *t = c->items.code.token;
    size_t open = launch - 1;
    size_t used = 0;
    while (open > 0 && !lex_is(&t[open], "<") && open + 32 > launch) {
        open--;
    }
    if (!lex_is(&t[launch - 1], ">") || open == 0 || t[open - 1].kind != LEX_WORD) {
        return false;
    }
    for (size_t i = open + 1; i + 1 < launch; i++) {
        if (!argument_known(c, &t[i])) {
            return false;
        }
    }
    for (size_t i = open - 1; i < launch; i++) {
        bool words = i > open && t[i].kind != LEX_SIGN && t[i - 1].kind != LEX_SIGN;
        if (used + t[i].size + 2 > INSTANCE_BYTES_MAX) {
            return false;
        }
        out[used] = ' ';
        used += words;
        memcpy(out + used, t[i].text, t[i].size);
        used += t[i].size;
    }
    out[used] = '\0';
    return true;
}

static void instances_collect(const struct cutting *c, struct host_cut *out)
{
    const struct lex_token *t = c->items.code.token;
    char text[INSTANCE_BYTES_MAX];
    for (size_t i = 1; i < c->items.code.count; i++) {
        if (!c->gone[i] || !sign3(&t[i], "<") || out->instance_count == HOST_INSTANCES_MAX ||
            !instance_text(c, i, text)) {
            continue;
        }
        bool known = false;
        for (unsigned k = 0; k < out->instance_count; k++) {
            known = known || strcmp(out->instance[k], text) == 0;
        }
        char *copy = known ? NULL : strdup(text);
        if (copy != NULL) {
            out->instance[out->instance_count++] = copy;
        }
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool cut(struct cutting *c, const char *text, struct host_cut *out)
{
    c->gone = calloc(c->items.code.count + 1, sizeof *c->gone);
    c->queue = calloc(c->items.count + 1, sizeof *c->queue);
    out->text = strdup(text);
    if (c->gone == NULL || c->queue == NULL || out->text == NULL) {
        return false;
    }
    if (c->items.name_count == 0) {
        return false;
    }
    qsort(c->items.name, c->items.name_count, sizeof *c->items.name, name_compare);
    if (!namesakes_few(c) || !macros_settle(c)) {
        return false;
    }
    macro_uses_settle(c);
    classes_cut(c);
    reach(c);
    if (c->mentioned && (c->doubtful || c->unevaluated)) {
        return false;
    }
    items_cut(c, out);
    out->functions += c->members;
    instances_collect(c, out);
    text_cut(c, text, out->text);
    return strcmp(text, out->text) != 0;
}

bool host_cut(const char *text, struct host_cut *ret_cut)
{
    struct cutting c = {.queued = 0};
    struct host_cut out = {.text = NULL};
    if (!items_read(text, &c.items)) {
        return false;
    }
    bool ok = cut(&c, text, &out);
    items_finish(&c.items);
    free(c.gone);
    free(c.queue);
    if (!ok) {
        host_cut_finish(&out);
        return false;
    }
    *ret_cut = out;
    return true;
}

void host_cut_finish(struct host_cut *c)
{
    for (unsigned i = 0; i < c->instance_count; i++) {
        free(c->instance[i]);
    }
    free(c->text);
    *c = (struct host_cut){.text = NULL};
}
