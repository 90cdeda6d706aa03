/* `gpuctl top` in a build without ncurses. */
#include "gpuctl/ctl/ctl.h"

int cmd_top(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    int rc = ctl_words(ctl, options, 0, 0, NULL, e);
    return rc != 0 ? rc
                   : ctl_err_set(e, GPUD_ERR_UNSUPPORTED,
                                 "this gpuctl was built without ncurses; gpuctl jobs -w 2 writes "
                                 "lines");
}
