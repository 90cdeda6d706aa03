/* The launcher's table of children. */
#include <fcntl.h>
#include <unistd.h>

#include "daemon/launcher/children.h"
#include "tests/unit/common/suite.h"

/* Records of ended workers without successors must not fill the table. */
START_TEST(the_oldest_record_makes_room)
{
    static struct children c;
    children_init(&c);
    for (uint64_t id = 1; id <= CHILDREN_MAX; id++) {
        struct child *child = children_add(&c, CHILD_WORKER, id);
        ck_assert_ptr_nonnull(child);
        child->pid = (pid_t)(1000 + id);
    }
    ck_assert_ptr_null(children_add(&c, CHILD_WORKER, 1000)); /* all run */
    for (unsigned i = 3; i < 6; i++) {                        /* these have ended */
        c.child[i].pid = 0;
        c.child[i].fd[CHILD_RECORD] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    c.child[3].owed = 1; /* the front has yet to hear of it */
    int fd = c.child[4].fd[CHILD_RECORD];
    ck_assert_ptr_eq(children_add(&c, CHILD_WORKER, 1001), &c.child[4]);
    ck_assert_uint_eq(c.child[4].id, 1001);
    ck_assert_int_eq(c.child[4].fd[CHILD_RECORD], -1);
    ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
    c.child[4].pid = 1;
    ck_assert_ptr_null(children_add(&c, CHILD_PREPARED, 0)); /* no record goes for it */
    ck_assert_ptr_eq(children_add(&c, CHILD_COMPILER, 1002), &c.child[5]);
    c.child[5].pid = 1;
    ck_assert_ptr_null(children_add(&c, CHILD_COMPILER, 1003));
    child_remove(&c.child[3]);
}
END_TEST

SUITE_MAIN("children", the_oldest_record_makes_room)
