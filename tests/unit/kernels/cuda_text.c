#include "cuda_text.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "kernels/builtin.h"
#include "kernels/dialect.h"
#include "language.h"

unsigned cuda_text_count(void)
{
    return 1 + builtin_module_count();
}

const char *cuda_text_name(unsigned index)
{
    return index == 0 ? "language.gk" : builtin_module_name(index - 1);
}

void cuda_text_write(unsigned index, struct capbuf *out)
{
    struct err e = ERR_INIT;
    struct bytes source =
        index == 0 ? bytes_str(language_source) : builtin_module_source(index - 1);
    ck_assert_msg(dialect_translate(source, cuda_text_name(index), DIALECT_CUDA, true, out, &e) ==
                      0,
                  "%s", e.text);
}

void cuda_text_check(unsigned index, const char *ptx)
{
    unsigned module = 0;
    for (unsigned k = 0; k < builtin_kernel_count(); k++) {
        const struct signature *s = builtin_kernel(k, &module);
        if (module + 1 != index) {
            continue;
        }
        for (unsigned t = 0; t < (s->type_count == 0 ? 1 : s->type_count); t++) {
            char entry[SIG_NAME + 8];
            char line[128];
            ck_assert_int_eq(signature_entry(s, s->type[t], entry, sizeof(entry), NULL), 0);
            snprintf(line, sizeof(line), ".entry %s(", entry);
            ck_assert_msg(strstr(ptx, line) != NULL, "no entry %s", entry);
        }
    }
}
