/* The page of `gpuctl pool snapshot --html` (pool_page.html): the parts before and after its data.
 * embed.cmake generates the definitions. */
#ifndef GPUCTL_POOL_POOL_PAGE_H
#define GPUCTL_POOL_POOL_PAGE_H

#include <stddef.h>

extern const unsigned char pool_page_head[], pool_page_tail[];
extern const size_t pool_page_head_size, pool_page_tail_size; /* bytes */

#endif
