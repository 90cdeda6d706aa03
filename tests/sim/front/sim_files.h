/* Files that one front leaves to the next, and what happens to them in between. Thread: one. */
#ifndef TEST_SIM_FILES_H
#define TEST_SIM_FILES_H

struct sim;

/* A front begins: some files are damaged, and it reads what is left. */
void files_read(struct sim *s);

#endif
