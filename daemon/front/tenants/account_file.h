/*
 * The file of accounts.h: a head, then accounts, in a mapping. Its room is taken before use, so
 * that a full file system is found when an account is added, and not by a signal later. The
 * accounts stay where they are, but for account_file_remove. Thread: the loop's; a copy is written
 * by a thread.
 */
#ifndef FRONT_TENANTS_ACCOUNT_FILE_H
#define FRONT_TENANTS_ACCOUNT_FILE_H

#include <stdint.h>

#include "daemon/front/model/account.h"

#define ACCOUNTS_MAX 8192u

struct account_file;

/* Takes the file of the runtime folder, or else makes one with what the copy in the state folder
 * has. state_dir NULL: there are no copies. It has one account at least. Counts what buffers held
 * until the last beat of the front before. Troubles with files are logged. ERR_NOMEM. */
int account_file_open(const char *runtime_dir, const char *state_dir,
                      struct account_file **ret_file);
/* Saves a last copy, and waits for it. NULL is accepted. */
void account_file_close(struct account_file *f);

struct account *account_file_at(const struct account_file *f, unsigned index); /* NULL: none */
/* A zeroed account at the end. NULL: ACCOUNTS_MAX, or no room. */
struct account *account_file_add(struct account_file *f);
/* The last account takes its place. */
void account_file_remove(struct account_file *f, unsigned index);
void account_file_alive(struct account_file *f, uint64_t now_ns);
/* Begins to write a copy, unless one is being written or nothing has changed. A failure is logged,
 * once until a copy succeeds. */
void account_file_save(struct account_file *f);

#endif
