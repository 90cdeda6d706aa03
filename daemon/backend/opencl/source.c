#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/backend/opencl/opencl.h"

/* Reads the characters of the source without line splices, comments and literals. */
struct scan {
    struct bytes text;
    size_t at;
    unsigned line; /* of text[at], from 1 */
};

/* Skips a backslash with newline, which joins lines anywhere, even inside a word. */
static void splice_skip(struct scan *s)
{
    while (s->at + 1 < s->text.size && s->text.data[s->at] == '\\') {
        size_t next = s->at + 1;
        while (next < s->text.size && (s->text.data[next] == ' ' || s->text.data[next] == '\t' ||
                                       s->text.data[next] == '\r')) {
            next++;
        }
        if (next >= s->text.size || s->text.data[next] != '\n') {
            return;
        }
        s->at = next + 1;
        s->line++;
    }
}

static int peek(struct scan *s)
{
    splice_skip(s);
    return s->at < s->text.size ? s->text.data[s->at] : -1;
}

static int take(struct scan *s)
{
    int c = peek(s);
    if (c >= 0) {
        s->at++;
        s->line += c == '\n';
    }
    return c;
}

static void block_comment_skip(struct scan *s)
{
    int last = 0;
    for (int c = take(s); c >= 0 && !(last == '*' && c == '/'); c = take(s)) {
        last = c;
    }
}

static void line_comment_skip(struct scan *s)
{
    while (peek(s) >= 0 && peek(s) != '\n') {
        take(s);
    }
}

/* A literal ends with its line at the latest. */
static void literal_skip(struct scan *s, int quote)
{
    while (peek(s) >= 0 && peek(s) != '\n') {
        int c = take(s);
        if (c == quote) {
            return;
        }
        if (c == '\\' && peek(s) != '\n') {
            take(s);
        }
    }
}

/* The next significant character: a comment reads as a blank, a literal as a quote. */
static int next_char(struct scan *s)
{
    int c = take(s);
    if (c == '/' && peek(s) == '*') {
        take(s);
        block_comment_skip(s);
        return ' ';
    }
    if (c == '/' && peek(s) == '/') {
        line_comment_skip(s);
        return ' ';
    }
    if (c == '"' || c == '\'') {
        literal_skip(s, c);
    }
    return c;
}

static bool word_char(int c)
{
    return c == '_' || (c >= 0 && isalnum(c));
}

/* Words that include files, anywhere in a line. */
static const char *const words[] = {"__has_include", "__has_include_next", "__has_embed"};
/* Words that begin inline assembly. Sources for several vendors have it in branches that this
 * device skips, so the preprocessor has to decide: the words become macros, and the source is
 * not refused. */
static const char *const assembly[] = {"asm", "__asm", "__asm__"};
const char opencl_source_head[] =
    "#define asm _Pragma(\"GCC error \\\"inline assembly is not allowed\\\"\")\n"
    "#define __asm asm\n"
    "#define __asm__ asm\n";
static const char *const directives[] = {"include",        "include_next",     "import",  "embed",
                                         "include_macros", "__include_macros", "assembly"};

static bool listed(const char *const *list, size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i], word) == 0) {
            return true;
        }
    }
    return false;
}

/* Where the scan is in a line: a directive is the first word after the hash. */
enum place { PLACE_START, PLACE_HASH, PLACE_PRAGMA, PLACE_MACRO, PLACE_REST };

struct check {
    enum place place;
    const char *file;
    struct err *e;
};

static int refuse(const struct check *c, unsigned line, const char *mark, const char *word)
{
    return err_set(c->e, ERR_COMPILE, "%s:%u: %s%s is not allowed", c->file, line, mark, word);
}

/* The place in the line after the word. */
static enum place place_after(enum place place, const char *word)
{
    if (place == PLACE_HASH && (strcmp(word, "define") == 0 || strcmp(word, "undef") == 0)) {
        return PLACE_MACRO;
    }
    bool pragma =
        (place == PLACE_HASH && strcmp(word, "pragma") == 0) ||
        (place == PLACE_PRAGMA && (strcmp(word, "GCC") == 0 || strcmp(word, "clang") == 0));
    return pragma ? PLACE_PRAGMA : PLACE_REST;
}

static int word_check(struct check *c, unsigned line, const char *word)
{
    bool directive = c->place == PLACE_HASH;
    bool pragma = c->place == PLACE_PRAGMA;
    bool macro = c->place == PLACE_MACRO;
    c->place = place_after(c->place, word);
    if (macro && listed(assembly, sizeof assembly / sizeof assembly[0], word)) {
        return refuse(c, line, "a macro of the name ", word);
    }
    if (directive && listed(directives, sizeof directives / sizeof directives[0], word)) {
        return refuse(c, line, "#", word);
    }
    if (pragma && (strcmp(word, "dependency") == 0 || strcmp(word, "include_alias") == 0)) {
        return refuse(c, line, "#pragma ", word);
    }
    if (listed(words, sizeof words / sizeof words[0], word)) {
        return refuse(c, line, "", word);
    }
    return 0;
}

/* Reads the word that begins with `first`, truncated to fit. No refused word is that long. */
static void word_read(struct scan *s, int first, char *out, size_t size)
{
    size_t used = 0;
    int c = first;
    for (;;) {
        if (used + 1 < size) {
            out[used++] = (char)c;
        }
        if (!word_char(peek(s))) {
            break;
        }
        c = take(s);
    }
    out[used] = '\0';
}

/* Is it a hash: "#", the digraph "%:" or the trigraph "??="? */
static bool hash_sign(struct scan *s, int c)
{
    if (c == '%' && peek(s) == ':') {
        take(s);
        return true;
    }
    if (c == '?' && s->at + 1 < s->text.size && s->text.data[s->at] == '?' &&
        s->text.data[s->at + 1] == '=') {
        s->at += 2;
        return true;
    }
    return c == '#';
}

static int char_check(struct check *c, struct scan *s, int ch)
{
    if (ch == '\n') {
        c->place = PLACE_START;
        return 0;
    }
    if (isspace(ch)) {
        return 0;
    }
    if (c->place == PLACE_START && hash_sign(s, ch)) {
        c->place = PLACE_HASH;
        return 0;
    }
    if (word_char(ch)) {
        char word[32];
        unsigned line = s->line;
        word_read(s, ch, word, sizeof word);
        return word_check(c, line, word);
    }
    c->place = PLACE_REST;
    return 0;
}

int opencl_source_check(struct bytes text, const char *file, struct err *e)
{
    if (memchr(text.data, '\0', text.size)) {
        return err_set(e, ERR_COMPILE, "%s: the source contains a NUL", file);
    }
    /* It is a backslash or not, depending on the language version, so it would be uncertain
     * where literals and comments end. */
    if (memmem(text.data, text.size, "?\?/", 3)) {
        return err_set(e, ERR_COMPILE, "%s: the trigraph ?\?/ is not allowed", file);
    }
    struct scan s = {.text = text, .line = 1};
    struct check c = {.place = PLACE_START, .file = file, .e = e};
    for (int ch = next_char(&s); ch >= 0; ch = next_char(&s)) {
        int rc = char_check(&c, &s, ch);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static bool define_allowed(const char *word, size_t size)
{
    size_t name = 0;
    while (name < size && word_char((unsigned char)word[name])) {
        name++;
    }
    if (name == 0 || isdigit((unsigned char)word[0]) || (name < size && word[name] != '=')) {
        return false;
    }
    for (size_t i = name; i < size; i++) {
        if (!isalnum((unsigned char)word[i]) && !strchr("_=.+-*/()<>&|^~!?:,%", word[i])) {
            return false;
        }
    }
    return true;
}

static bool option_allowed(const char *word, size_t size)
{
    static const char cl[] = "-cl-";
    if (size > 2 && word[0] == '-' && word[1] == 'D') {
        return define_allowed(word + 2, size - 2);
    }
    if (size > sizeof cl - 1 && memcmp(word, cl, sizeof cl - 1) == 0) {
        for (size_t i = 0; i < size; i++) {
            if (!isalnum((unsigned char)word[i]) && !strchr("-=.", word[i])) {
                return false;
            }
        }
        return true;
    }
    return (size == 2 && memcmp(word, "-w", 2) == 0) ||
           (size == 7 && memcmp(word, "-Werror", 7) == 0);
}

int opencl_options_check(const char *options, struct err *e)
{
    bool define = false; /* the previous word was "-D" alone */
    for (const char *at = options + strspn(options, " \t"); *at; at += strspn(at, " \t")) {
        size_t size = strcspn(at, " \t");
        bool bare = size == 2 && at[0] == '-' && at[1] == 'D';
        if (define ? !define_allowed(at, size) : !bare && !option_allowed(at, size)) {
            return err_set(e, ERR_INVALID,
                           "compiler option \"%.*s\" is not allowed: -D, -cl-*, -w, -Werror are",
                           (int)(size < 64 ? size : 64), at);
        }
        define = !define && bare;
        at += size;
    }
    return define ? err_set(e, ERR_INVALID, "compiler option -D without a name") : 0;
}
