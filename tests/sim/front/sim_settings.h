/*
 * What a course changes in the settings while a world runs: whom to trust, and the places for
 * workers of single tenants. A reload brings it to the front. Thread: one.
 */
#ifndef TEST_SIM_SETTINGS_H
#define TEST_SIM_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

struct chance;
struct config;
struct sim;

enum sim_section {
    SECTION_OTHERS,
    SECTION_SOCKETS,
    SECTION_TOKENS = SECTION_SOCKETS + 2,
    SECTIONS = SECTION_TOKENS + 2
};

struct sim_settings {
    bool trusted[SECTIONS];
    bool wavered[SECTIONS]; /* it was another before */
    uint64_t places, idle_s;
    uint64_t percent; /* of a device, to each such worker at first */
    bool spare;
    bool own; /* tenants have workers of their own */
};

void settings_begin(struct sim *s);
void settings_fill(const struct sim *s, struct config *c);
void settings_event(struct sim *s, struct chance *r);
/* Places for all: a job that blocks would wait for ever where others keep theirs. */
void settings_settle(struct sim *s);
/* The section of a tenant. */
enum sim_section settings_section(const char *tenant);

#endif
