#include "daemon/launcher/launch.h"

#include <stdlib.h>
#include <string.h>

#include "proto/codec.h"

struct words {
    char *argv[SPAWN_ARGS_MAX + 1];
    char *storage; /* owned */
};

/* Copies the arguments into an argv. */
static int words_make(struct proto_list args, struct words *ret_words, struct err *e)
{
    size_t room = args.raw.size + args.count + 1;
    char *at = malloc(room);
    if (at == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for arguments of %zu bytes", room);
    }
    *ret_words = (struct words){.storage = at};
    struct proto_iter it = proto_iter_of(args);
    struct proto_word word;
    for (size_t i = 0; i < SPAWN_ARGS_MAX && proto_list_next(&it, &schema_word, &word); i++) {
        if (word.text.size > 0) {
            memcpy(at, word.text.data, word.text.size);
        }
        at[word.text.size] = '\0';
        ret_words->argv[i] = at;
        at += word.text.size + 1;
    }
    return 0;
}

/* `more` must live as long as the words. */
static int words_append(struct words *words, const char *const *more, struct err *e)
{
    size_t count = 0;
    while (words->argv[count] != NULL) {
        count++;
    }
    for (; more != NULL && *more != NULL; more++) {
        if (count == SPAWN_ARGS_MAX) {
            return err_set(e, ERR_LIMIT, "over %d arguments", SPAWN_ARGS_MAX);
        }
        words->argv[count++] = (char *)(uintptr_t)*more;
    }
    return 0;
}

void launch(struct child *child, struct spawn s, struct proto_list args, const char *const *more,
            const char *journal)
{
    struct err why = ERR_INIT;
    struct words words = {.storage = NULL};
    child->owed = OWED_STARTED;
    child->code = words_make(args, &words, &why);
    child->code = child->code == 0 ? words_append(&words, more, &why) : child->code;
    if (child->code == 0) {
        s.argv = words.argv;
        s.journal = journal;
        s.identity = child->identity;
        child->code = spawn_process(&s, &child->pid, &why);
        child->number = child->pid;
    }
    free(words.storage);
    memcpy(child->text, why.text, sizeof child->text); /* empty if the child runs */
}
