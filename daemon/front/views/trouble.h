/*
 * The one sentence an operator needs first: what keeps the daemon from its full service.
 * Thread: the loop's.
 */
#ifndef FRONT_VIEWS_TROUBLE_H
#define FRONT_VIEWS_TROUBLE_H

#include <stddef.h>

#include "daemon/front/model/front.h"

/* "" if there is nothing. The worst comes first. */
void trouble_text(const struct front *f, char *out, size_t size);
/* A few words on one device for a table: why it does not serve, or how its worker ended last. "" if
 * there is nothing to say. */
void trouble_note(const struct device *d, uint64_t now_ns, char *out, size_t size);

#endif
