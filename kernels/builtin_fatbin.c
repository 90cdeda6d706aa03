#include "kernels/builtin_fatbin.h"

struct bytes builtin_fatbin_find(struct bytes cuda_source)
{
    struct hash hash = hash_of(cuda_source.data, cuda_source.size);
    for (const struct builtin_fatbin *f = builtin_fatbins; f->name != NULL; f++) {
        if (hash_equal(f->source, hash)) {
            return bytes_of(f->begin, (size_t)(f->end - f->begin));
        }
    }
    return bytes_of(NULL, 0);
}
