/*
 * What tenants' jobs take, kept over restarts: a file in the cache folder, which a front writes
 * when it ends and the next one reads when it begins. Lines of text, with a version in the first
 * and the number of entries in the last. Entries are of tenants by their keys, and go to a tenant
 * when it first connects. A file that is damaged, of another version or of another user is ignored,
 * with a warning. A front that is killed leaves the file of the one before it. Blocks on a small
 * file (at most FORECAST_FILE_MAX lines). Thread: the loop's.
 */
#ifndef FRONT_TENANTS_FORECAST_FILE_H
#define FRONT_TENANTS_FORECAST_FILE_H

#include "daemon/front/model/front.h"

#define FORECAST_FILE_MAX 16384u

/* Reads the file of the folder; *ret_file is NULL if there is none that can be used. The caller
 * owns it. */
void forecast_file_read(const char *dir, struct forecast_file **ret_file);
/* Gives a tenant of which nothing was learnt yet the entries that are its own, once. file NULL:
 * nothing happens. */
void forecast_file_give(struct forecast_file *file, struct tenant *t);
/* Writes what the tenants have learnt, and the entries of tenants that did not connect, if anything
 * is there. file may be NULL. */
void forecast_file_write(const struct forecast_file *file, struct tenant *tenants, const char *dir);
void forecast_file_destroy(struct forecast_file *file); /* NULL is accepted */

#endif
