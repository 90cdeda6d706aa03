/* Checks of users and groups: those of the installed units, and whether the caller may connect. */
#include <stdio.h>
#include <string.h>

#include "gpuctl/doctor/check.h"

#define GROUP "gpud"

void check_users(const struct doctor *d, struct finding *f)
{
    static const char *const names[] = {"gpud", "gpud-worker", "gpud-worker0"};
    struct user user;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!host_user(d->host, names[i], &user)) {
            finding_add(f, FINDING_FAILURE,
                        "systemd-sysusers && systemd-tmpfiles --create gpud.conf && systemctl "
                        "restart gpud-launcher gpud",
                        "user %s does not exist", names[i]);
        } else if (user.uid == 0) {
            finding_add(f, FINDING_FAILURE,
                        "systemctl stop gpud; vipw, and remove the user; then systemd-sysusers",
                        "user %s is root: kernels of users would run as root", names[i]);
        }
    }
    finding_add(f, FINDING_OK, "", "gpud, gpud-worker and the pool gpud-worker0 … exist");
}

/* May the caller connect, by the group of the socket? */
void check_group(const struct doctor *d, struct finding *f)
{
    const struct user *caller = &d->host->caller;
    gid_t group;
    if (!host_group(d->host, GROUP, &group)) {
        finding_add(f, FINDING_FAILURE, "systemd-sysusers && systemctl restart gpud",
                    "group " GROUP ", whose members may connect, does not exist");
    } else if (caller->uid != 0 && !user_in_group(caller, group)) {
        finding_add(f, FINDING_FAILURE, "adduser $USER " GROUP ", and log in again",
                    "this user (%u) is not in group " GROUP ", or was not when it logged in",
                    (unsigned)caller->uid);
    } else {
        finding_add(f, FINDING_OK, "", "this user may connect: %s",
                    caller->uid == 0 ? "root" : "a member of group " GROUP);
    }
}
