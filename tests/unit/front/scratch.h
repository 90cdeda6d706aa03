/* A folder of a test's own and a loop that must be empty in the end. */
#ifndef TESTS_FRONT_SCRATCH_H
#define TESTS_FRONT_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#define SCRATCH_PATH 64

void scratch_make(char ret_dir[SCRATCH_PATH]);
void scratch_remove(const char *dir);
/* "<dir>/<name>" in memory that the next calls but three overwrite. */
const char *scratch_path(const char *dir, const char *name);
void scratch_write(const char *path, const void *data, size_t size);
int descriptors_open(void);

/* Turns the loop until *flag; Check's time-out is the limit. */
void loop_until(uv_loop_t *loop, const bool *flag);
/* Lets what is being closed end, and fails if anything else is left. */
void loop_finish(uv_loop_t *loop);

#endif
