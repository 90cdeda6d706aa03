#include "tests/sim/front/sim_settings.h"

#include <string.h>

#include "tests/sim/front/sim.h"
#include "tests/sim/front/sim_load.h"

#define USUAL_PLACES  8u /* as config_defaults has them */
#define USUAL_PERCENT 10u
#define PLACES_ENOUGH 64u /* for all tenants that wait for one */

void settings_begin(struct sim *s)
{
    const struct course_params *p = &s->p;
    struct sim_settings *set = &s->set;
    set->own = p->special == WORLD_DOMAINS;
    set->places = p->places != 0 ? p->places : p->clients % 3 == 0 ? 1 : USUAL_PLACES;
    set->percent = p->slow % 4 < 2 ? USUAL_PERCENT : p->slow / 2 + 10;
    set->idle_s = p->places > 0 && p->clients % 2 == 0 ? 8 * p->devices : p->devices;
    set->spare = p->clients % 2 != 0;
    for (unsigned i = 0; i < SECTIONS; i++) {
        set->trusted[i] = !set->own;
    }
}

void settings_fill(const struct sim *s, struct config *c)
{
    const struct course_params *p = &s->p;
    c->domain_host_bytes = p->clients % 2 == 0 ? UINT64_C(1) << 30 : UINT64_C(1) << 20;
    if (s->set.own) {
        c->domain_idle_s = s->set.idle_s;
        c->domains_max = s->set.places;
        c->domain_percent = s->set.percent;
        c->domain_spare = s->set.spare;
    }
    c->domain_place_s = p->clients % 2 + 1;
    c->batch_percent = load_is(s) ? s->load->percent : c->batch_percent;
}

enum sim_section settings_section(const char *tenant)
{
    unsigned number = tenant[0] != '\0' && tenant[strlen(tenant) - 1] == '1';
    return strncmp(tenant, "twin", 4) == 0  ? SECTION_SOCKETS + number
           : strncmp(tenant, "far", 3) == 0 ? SECTION_TOKENS + number
                                            : SECTION_OTHERS;
}

void settings_event(struct sim *s, struct chance *r)
{
    struct sim_settings *set = &s->set;
    unsigned n = (unsigned)chance_below(r, 100);
    if (n < 40) {
        unsigned i = (unsigned)chance_below(r, SECTIONS);
        set->trusted[i] = !set->trusted[i];
        set->wavered[i] = true;
    } else if (n < 80) {
        set->places =
            set->places > 1 && chance_percent(r, 50) ? set->places - 1 : 1 + chance_below(r, 4);
        set->spare = chance_percent(r, 60);
    } else {
        set->idle_s = chance_below(r, 6);
    }
    sim_log(s, "settings: %u places%s, idle after %u s", (unsigned)set->places,
            set->spare ? ", a spare worker" : "", (unsigned)set->idle_s);
    front_reload(s);
}

void settings_settle(struct sim *s)
{
    if (s->set.own && s->set.places < PLACES_ENOUGH) {
        s->set.places = PLACES_ENOUGH;
        front_reload(s);
    }
}
