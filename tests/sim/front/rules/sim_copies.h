/* The copy of the accounts on a disk (tenants/account_file.h). Thread: one. */
#ifndef TEST_SIM_COPIES_H
#define TEST_SIM_COPIES_H

#include <stdbool.h>
#include <stddef.h>

struct sim;

/* A front begins. Whether it keeps a copy; ret_folder gets the folder for it. */
bool accounts_copy_follow(struct sim *s, char *ret_folder, size_t size);
void accounts_copy_check(struct sim *s);
/* Removes the folder below `dir`. */
void accounts_copy_clear(const char *dir);

#endif
