#include <stddef.h>

#include "tests/fakecuda/fake.h"

static const struct {
    int code;
    const char *name;
} codes[] = {
#define CODE(name, code) {code, #name},
#include "tests/fakecuda/codes.def"
#undef CODE
};

static const char *find(CUresult code)
{
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (codes[i].code == (int)code) {
            return codes[i].name;
        }
    }
    return NULL;
}

/* Both are also called while FAKECUDA is read: no lock, no script. */
CUresult cuGetErrorName(CUresult error, const char **pStr)
{
    *pStr = find(error);
    return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The double has one text for an error, its name. */
CUresult cuGetErrorString(CUresult error, const char **pStr)
{
    *pStr = find(error);
    return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
