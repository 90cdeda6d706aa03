/* Folders of kept courses, of any simulation. */
#ifndef TEST_SIM_FOLDER_H
#define TEST_SIM_FOLDER_H

/* Plays the course of a file. Returns 1 if it breaks a rule or is no course, else 0. */
typedef unsigned (*play_file_fn)(const void *data, const char *path);

/* Plays all courses of a folder in the order of their names, and prints how many there are. Returns
 * how many broke a rule; 1 if there is none. */
unsigned folder_play(const char *folder, play_file_fn play_file, const void *data);

#endif
