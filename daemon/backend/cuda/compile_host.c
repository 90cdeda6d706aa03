#include "daemon/backend/cuda/compile_host.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/backend/cuda/compile_item.h"
#include "daemon/backend/cuda/compile_param.h"

#define INSTANCE_BYTES_MAX 128u
#define PARAMETERS_MAX     8u    /* of a template */
#define ARGUMENTS_MAX      32u   /* tokens between the brackets of an instance */
#define CLASSES_MAX        8u    /* one inside of another */
#define ROUNDS_MAX         64u   /* until it is known which macros give to the device */
#define NAMESAKES_MAX      1024u /* declarations of one name */

/* One source on its way. */
struct cutting {
    struct items items; /* its names sorted */
    bool *gone;         /* owned, for each token of code: it becomes a blank */
    bool *computed;     /* owned, for each item: a constant that the compiler can compute */
    unsigned *queue;    /* owned: items that were kept and not yet looked into */
    unsigned queued;
    const char *const *expression; /* not owned */
    unsigned expression_count;
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

static bool says_device(const struct item *macro)
{
    return macro->device;
}

static bool says_constant(const struct item *macro)
{
    return macro->constant;
}

/* Is there a macro among the words that says such a thing? */
static bool macro_says(const struct cutting *c, const struct lex_token *t, size_t at, size_t end,
                       bool (*says)(const struct item *macro))
{
    for (; at < end; at++) {
        size_t stop = 0;
        for (size_t n = names_of(c, &t[at], &stop); n < stop; n++) {
            const struct item *item = item_named(c, n);
            if (item->kind == ITEM_MACRO && says(item)) {
                return true;
            }
        }
    }
    return false;
}

/* Behind the last token that says what it is: its body, or its value, comes next. */
static size_t head_end(const struct lex_token *t, const struct item *item)
{
    size_t end = item->body > 0 ? item->body : item->end;
    size_t at = item->begin;
    while (item->kind == ITEM_VARIABLE && at < end && !lex_is(&t[at], "=")) {
        at++;
    }
    return item->kind == ITEM_VARIABLE ? at : end;
}

/* Macros that use a macro for the device are such ones, and so are declarations; the same holds for
 * variables and macros that say "const". false: they lie too deep. */
static bool macros_settle(struct cutting *c)
{
    bool more = true;
    for (unsigned round = 0; more && round < ROUNDS_MAX; round++) {
        more = false;
        for (unsigned i = 0; i < c->items.count; i++) {
            struct item *item = &c->items.item[i];
            const struct lex_token *t = tokens_of(c, item);
            size_t end = item->body > 0 ? item->body : item->end;
            bool data = item->kind == ITEM_VARIABLE || item->kind == ITEM_MACRO;
            if (!item->device && macro_says(c, t, item->begin, end, says_device)) {
                item->device = true;
                more = true;
            }
            if (data && !item->constant &&
                macro_says(c, t, item->begin, head_end(t, item), says_constant)) {
                item->constant = true;
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

/* Is it computed by a call of the host's functions alone? Then the host's compiler alone knows it.
 */
static bool host_computes(const struct cutting *c, const struct item *item)
{
    const struct lex_token *t = c->items.code.token;
    if (item->kind != ITEM_VARIABLE || item->device) {
        return false;
    }
    for (size_t at = head_end(t, item); at < item->end; at++) {
        size_t stop = 0;
        size_t first = lex_is(&t[at + 1], "(") ? names_of(c, &t[at], &stop) : 0;
        bool host = first < stop;
        for (size_t n = first; n < stop; n++) {
            host = host && for_host(item_named(c, n));
        }
        if (host) {
            return true;
        }
    }
    return false;
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

/* `user`, which stays, names a function that would go, as tokens[at]. What runs on the device
 * cannot call it, so that it is another one or a variable; but for what this cannot tell, and for a
 * constant, which the host computes. */
static void mention(struct cutting *c, const struct item *user, const struct item *item,
                    const struct lex_token *tokens, size_t at)
{
    const struct lex_token *t = c->items.code.token;
    const struct lex_token *next = &tokens[at + 1];
    bool calls = lex_is(next, "(") || lex_is(next, "<") || lex_is(next, ">") ||
                 (at > 0 && lex_is(&tokens[at - 1], "&"));
    if (calls && !defines_member(t, item)) {
        c->mentioned = true;
        c->doubtful = c->doubtful || user->kind == ITEM_VARIABLE || annotation_doubtful(t, item);
    }
}

/* A variable of the host that is named is no device's: its name is another thing's, or an error. */
static void keep(struct cutting *c, const struct item *user, unsigned index,
                 const struct lex_token *tokens, size_t at)
{
    struct item *item = &c->items.item[index];
    if (for_host(item)) {
        mention(c, user, item, tokens, at);
    } else if (!host_variable(item) && !host_computes(c, item) && !item->kept) {
        item->kept = true;
        c->queue[c->queued++] = index;
    }
}

/* Is the type a specialization of a template, "template <…> struct name<…>", or in another space
 * than it is declared in? Then who uses the template may be elsewhere. */
static bool specializes(const struct cutting *c, const struct item *item)
{
    static const char *const ends[] = {"{", ";", "=", NULL};
    const struct lex_token *t = c->items.code.token;
    size_t at = template_skip(t, item->begin, item->end);
    bool of_template = at > item->begin;
    bool found = false;
    for (; of_template && !found && at < item->end && !one_of(&t[at], ends); at++) {
        bool colons = lex_is(&t[at], ":") && lex_is(&t[at + 1], ":") && t[at + 1].glued;
        if (lex_is(&t[at], ":") && !colons) {
            break; /* what follows are its bases */
        }
        found = colons || lex_is(&t[at], "<") || lex_is(&t[at], "(");
    }
    return found;
}

static bool stays(const struct cutting *c, const struct item *item)
{
    return item->device || item->kind == ITEM_OTHER ||
           (item->kind == ITEM_TYPE && specializes(c, item));
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
            keep(c, item, c->items.name[n].item, t, i);
        }
        c->unevaluated = c->unevaluated || unevaluated(&t[i]);
    }
}

static bool sign3(const struct lex_token *t, const char *sign)
{
    return lex_is(&t[0], sign) && lex_is(&t[1], sign) && lex_is(&t[2], sign) && t[1].glued &&
           t[2].glued;
}

/* The "<" of "name<…>" before the "<<<" at `launch`; 0: there is none. */
static size_t arguments_open(const struct lex_token *t, size_t launch)
{
    size_t open = launch;
    int depth = 0;
    do {
        open--;
        depth += lex_is(&t[open], ">");
        depth -= lex_is(&t[open], "<");
    } while (depth > 0 && open > 0 && open + ARGUMENTS_MAX > launch);
    bool named = open + 1 < launch && depth == 0 && open > 0 && t[open - 1].kind == LEX_WORD;
    return named ? open : 0;
}

/* A type or a constant that an instance of a kernel is named by. */
static void argument_keep(struct cutting *c, const struct lex_token *t)
{
    size_t stop = 0;
    for (size_t n = names_of(c, t, &stop); n < stop; n++) {
        struct item *item = item_named(c, n);
        bool data = item->kind == ITEM_TYPE || (item->kind == ITEM_VARIABLE && item->constant);
        if (data && !item->kept) {
            item->kept = true;
            c->queue[c->queued++] = c->items.name[n].item;
        }
    }
}

static void expression_keep(struct cutting *c, const char *expression)
{
    struct lex lex;
    struct lex_token t = {.kind = LEX_WORD};
    lex_init(&lex, expression, "");
    while (t.kind != LEX_END && lex_next(&lex, &t, NULL) == 0) {
        argument_keep(c, &t);
    }
}

/* Those of "name<…>" before each "<<<". */
static void launches_keep(struct cutting *c)
{
    const struct lex_token *t = c->items.code.token;
    for (size_t i = 1; i < c->items.code.count; i++) {
        size_t open = sign3(&t[i], "<") ? arguments_open(t, i) : 0;
        for (size_t at = open; open > 0 && at < i; at++) {
            argument_keep(c, &t[at]);
        }
    }
}

static void reach(struct cutting *c)
{
    launches_keep(c);
    for (unsigned i = 0; i < c->expression_count; i++) {
        expression_keep(c, c->expression[i]);
    }
    for (unsigned i = 0; i < c->items.count; i++) {
        const struct item *item = &c->items.item[i];
        if (item->kind != ITEM_MACRO && stays(c, item)) {
            keep(c, item, i, c->items.code.token, item->begin);
        }
    }
    while (c->queued > 0) {
        look_into(c, &c->items.item[c->queue[--c->queued]]);
    }
}

/* ---- constants ------------------------------------------------------------------------------- */

/* What this becomes in the text: nvcc computes a "const float" from others, NVRTC "constexpr" ones
 * only. As long as "const", and a macro of what the text is compiled with. */
static const char computed_word[] = HOST_CONSTEXPR;
_Static_assert(sizeof computed_word == sizeof "const", "columns stay");

/* Is the word at `at` a parameter of the macro that it stands in? */
static bool macro_parameter(const struct lex_token *t, const struct item *macro, size_t at)
{
    size_t open = macro->begin + 1;
    bool found = false;
    if (!lex_is(&t[open], "(") || !t[open].glued) {
        return false;
    }
    for (size_t i = open; i < macro->end && !lex_is(&t[i], ")"); i++) {
        found = found || (t[i].size == t[at].size && memcmp(t[i].text, t[at].text, t[i].size) == 0);
    }
    return found;
}

/* A macro of elsewhere: M_PI. */
static bool all_capitals(const struct lex_token *t)
{
    bool all = true;
    for (size_t i = 0; i < t->size; i++) {
        all = all && (t->text[i] < 'a' || t->text[i] > 'z');
    }
    return all;
}

static bool says_constexpr(const struct lex_token *t, const struct item *item)
{
    bool found = false;
    for (size_t at = item->begin; item->kind == ITEM_FUNCTION && at < item->params; at++) {
        found = found || lex_is(&t[at], "constexpr") || lex_is(&t[at], "consteval");
    }
    return found;
}

/* May the token at `at` of the item stand in what a compiler computes? */
static bool token_computed(const struct cutting *c, const struct item *item, size_t at)
{
    static const char *const words[] = {"unsigned", "signed", "int",   "long",   "short",
                                        "char",     "bool",   "float", "double", "true",
                                        "false",    "sizeof", "const", NULL};
    const struct lex_token *t = &tokens_of(c, item)[at];
    size_t stop = 0;
    size_t first = names_of(c, t, &stop);
    bool known = first < stop;
    for (size_t n = first; n < stop; n++) {
        const struct item *named = item_named(c, n);
        known = known && (named == item || c->computed[c->items.name[n].item] ||
                          says_constexpr(c->items.code.token, named));
    }
    if (t->kind != LEX_WORD) {
        return !lex_is(t, "[") && !lex_is(t, "{") && (t->kind != LEX_LITERAL || t->text[0] == '\'');
    }
    return known || one_of(t, words) || (first == stop && all_capitals(t)) ||
           (item->kind == ITEM_MACRO && macro_parameter(tokens_of(c, item), item, at));
}

static bool item_computed(const struct cutting *c, const struct item *item)
{
    const struct lex_token *t = tokens_of(c, item);
    bool variable = item->kind == ITEM_VARIABLE && item->constant && !item->device;
    size_t at = variable ? head_end(t, item) : item->begin + 1;
    bool all = variable || item->kind == ITEM_MACRO || item->kind == ITEM_TYPE;
    for (; all && item->kind != ITEM_TYPE && at < item->end; at++) {
        all = token_computed(c, item, at);
    }
    return all;
}

static void computed_settle(struct cutting *c)
{
    bool more = true;
    for (unsigned round = 0; more && round < ROUNDS_MAX; round++) {
        more = false;
        for (unsigned i = 0; i < c->items.count; i++) {
            if (!c->computed[i] && item_computed(c, &c->items.item[i])) {
                c->computed[i] = true;
                more = true;
            }
        }
    }
}

/* Behind the "const" of a number that may be no integer, which is one for NVRTC as it is; 0 if it
 * is of another form than "const TYPE NAME = …". */
static size_t real_constant(const struct cutting *c, const struct item *item)
{
    static const char *const others[] = {"static", "inline", NULL};
    static const char *const integers[] = {"unsigned", "signed", "int",  "long",
                                           "short",    "char",   "bool", NULL};
    const struct lex_token *t = c->items.code.token;
    size_t end = head_end(t, item);
    size_t found = 0;
    unsigned words = 0;
    bool plain = end < item->end;
    for (size_t at = item->begin; plain && at < end; at++) {
        bool constant = lex_is(&t[at], "const");
        found = constant && found == 0 ? at + 1 : found;
        words += !constant && !one_of(&t[at], others);
        plain = t[at].kind == LEX_WORD && !one_of(&t[at], integers);
    }
    return plain && words == 2 ? found : 0;
}

static void constants_mark(const struct cutting *c, const char *text, char *out)
{
    for (unsigned i = 0; i < c->items.count; i++) {
        const struct item *item = &c->items.item[i];
        bool real = item->kind == ITEM_VARIABLE && item->kept && c->computed[i];
        size_t behind = real ? real_constant(c, item) : 0;
        if (behind > 0) {
            const char *at = c->items.code.token[behind - 1].text;
            memcpy(out + (at - text), computed_word, sizeof computed_word - 1);
        }
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
        if (for_host(&member) && !macro_says(c, t, member.begin, head, says_device)) {
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
    static const char *const signs[] = {",", "*", "<", ">", ":", NULL};
    return t->kind == LEX_NUMBER || one_of(t, signs) || lex_is(t, "_");
}

/* The parameters of a function's template, and what one of its calls gives for them. */
struct substitution {
    const struct lex_token *name[PARAMETERS_MAX];
    size_t begin[PARAMETERS_MAX], end[PARAMETERS_MAX]; /* tokens of the call */
    unsigned count;
};

/* An instance's name as it grows. */
struct instance {
    char text[INSTANCE_BYTES_MAX];
    size_t used;
    bool word; /* it ends with one */
    bool known;
};

static void instance_add(const struct cutting *c, struct instance *out, const struct lex_token *t,
                         bool checked)
{
    bool word = t->kind != LEX_SIGN;
    out->known = out->known && (!checked || argument_known(c, t)) &&
                 out->used + t->size + 2 <= sizeof out->text;
    if (!out->known) {
        return;
    }
    out->text[out->used] = ' ';
    out->used += word && out->word;
    memcpy(out->text + out->used, t->text, t->size);
    out->used += t->size;
    out->text[out->used] = '\0';
    out->word = word;
}

/* "name<…>" before the "<<<" at `launch` as one text without blanks; false: not of such a form. */
static bool instance_text(const struct cutting *c, size_t launch, const struct substitution *s,
                          struct instance *out)
{
    const struct lex_token *t = c->items.code.token;
    size_t open = arguments_open(t, launch);
    *out = (struct instance){.known = open > 0};
    for (size_t i = open > 0 ? open - 1 : launch; i < launch; i++) {
        unsigned p = 0;
        while (p < s->count && (s->name[p]->size != t[i].size || i < open ||
                                memcmp(s->name[p]->text, t[i].text, t[i].size) != 0)) {
            p++;
        }
        if (p == s->count) {
            instance_add(c, out, &t[i], i > open && i + 1 < launch);
            continue;
        }
        for (size_t k = s->begin[p]; k < s->end[p]; k++) {
            instance_add(c, out, &t[k], true);
        }
    }
    return out->known;
}

static void instance_put(struct host_cut *out, const struct instance *instance)
{
    bool known = out->instance_count == HOST_INSTANCES_MAX;
    for (unsigned k = 0; !known && k < out->instance_count; k++) {
        known = strcmp(out->instance[k], instance->text) == 0;
    }
    char *copy = known ? NULL : strdup(instance->text);
    if (copy != NULL) {
        out->instance[out->instance_count++] = copy;
    }
}

/* Of "template <class A, int B = 1>" at the item's begin A and B. */
static void parameters_read(const struct lex_token *t, const struct item *item,
                            struct substitution *out)
{
    size_t end = template_skip(t, item->begin, item->params);
    int depth = 0;
    bool value = false;
    *out = (struct substitution){.count = 0};
    for (size_t i = item->begin + 1; i < end && out->count < PARAMETERS_MAX; i++) {
        bool closes = (lex_is(&t[i], ",") && depth == 1) || (lex_is(&t[i], ">") && depth == 1);
        depth += lex_is(&t[i], "<");
        depth -= lex_is(&t[i], ">");
        if ((closes || (lex_is(&t[i], "=") && depth == 1)) && !value) {
            out->name[out->count++] = &t[i - 1];
        }
        value = lex_is(&t[i], "=") ? true : closes ? false : value;
    }
}

/* "<…>(" at `open`: what it gives for each parameter. false: not for all of them. */
static bool arguments_read(const struct lex_token *t, size_t open, struct substitution *s)
{
    unsigned count = 0;
    int depth = 0;
    size_t begin = open + 1;
    for (size_t i = open; i < open + ARGUMENTS_MAX && t[i].kind != LEX_END; i++) {
        bool last = lex_is(&t[i], ">") && depth == 1;
        if (last || (lex_is(&t[i], ",") && depth == 1)) {
            if (count == s->count) {
                return false;
            }
            s->begin[count] = begin;
            s->end[count++] = i;
            begin = i + 1;
        }
        if (last) {
            return count == s->count && lex_is(&t[i + 1], "(");
        }
        depth += lex_is(&t[i], "<");
        depth -= lex_is(&t[i], ">");
    }
    return false;
}

/* What a launch in a template of the host is for each call of that with its arguments. */
static void instances_of_calls(const struct cutting *c, const struct item *host, size_t launch,
                               struct host_cut *out)
{
    const struct lex_token *t = c->items.code.token;
    const struct lex_token *name = &t[host->params - 1];
    struct substitution s;
    struct instance instance;
    parameters_read(t, host, &s);
    for (size_t i = 0; s.count > 0 && i < c->items.code.count; i++) {
        bool calls = t[i].kind == LEX_WORD && t[i].size == name->size &&
                     memcmp(t[i].text, name->text, name->size) == 0 && lex_is(&t[i + 1], "<");
        if (calls && arguments_read(t, i + 1, &s) && instance_text(c, launch, &s, &instance)) {
            instance_put(out, &instance);
        }
    }
}

static void instances_collect(const struct cutting *c, struct host_cut *out)
{
    static const struct substitution nothing = {.count = 0};
    const struct lex_token *t = c->items.code.token;
    struct instance instance;
    for (size_t i = 1; i < c->items.code.count; i++) {
        if (c->gone[i] && sign3(&t[i], "<") && instance_text(c, i, &nothing, &instance)) {
            instance_put(out, &instance);
        }
    }
    out->launched_count = out->instance_count;
    for (unsigned k = 0; k < c->items.count; k++) {
        const struct item *host = &c->items.item[k];
        bool templated = host->kind == ITEM_FUNCTION && host->params > host->begin &&
                         host->body > 0 && lex_is(&t[host->begin], "template");
        for (size_t i = host->body; templated && i < host->end; i++) {
            if (c->gone[i] && sign3(&t[i], "<") && arguments_open(t, i) > 0) {
                instances_of_calls(c, host, i, out);
            }
        }
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool cut(struct cutting *c, const char *text, struct host_cut *out)
{
    c->gone = calloc(c->items.code.count + 1, sizeof *c->gone);
    c->queue = calloc(c->items.count + 1, sizeof *c->queue);
    c->computed = calloc(c->items.count + 1, sizeof *c->computed);
    out->text = strdup(text);
    if (c->gone == NULL || c->queue == NULL || c->computed == NULL || out->text == NULL) {
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
    computed_settle(c);
    constants_mark(c, text, out->text);
    return strcmp(text, out->text) != 0;
}

bool host_cut(const char *text, const char *const *expressions, unsigned expression_count,
              struct host_cut *ret_cut)
{
    struct cutting c = {.queued = 0};
    struct host_cut out = {.text = NULL};
    if (!items_read(text, &c.items)) {
        return false;
    }
    c.expression = expressions;
    c.expression_count = expression_count;
    bool ok = cut(&c, text, &out);
    items_finish(&c.items);
    free(c.gone);
    free(c.queue);
    free(c.computed);
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
