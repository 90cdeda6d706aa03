/* The items that need no daemon. Each opens the device itself and records its results. */
#ifndef GPU_ITEMS_H
#define GPU_ITEMS_H

void item_attributes(void);
void item_beside(void);
void item_copies(void);
void item_ends(void);
void item_faulted(void);
void item_fill(void);
void item_filling(void);
void item_opening(void);
void item_overlap(void);
void item_pages(void);
void item_pinning(void);
void item_plain(void);
void item_pool(void);
void item_remaps(void);
void item_turns(void);

#endif
