/*
 * Ring lanes: the memory, the bells and both sides of a lane are the real ones. Requests are noted
 * when the front takes them out of a ring, answers when it puts them into one. A ring of the
 * front's bell wakes the users.
 */
#include "daemon/front/clients/lane_int.h"
#include "tests/sim/client/libsim.h"

void __real_lane_answer(struct lane *lane, struct op *o, struct bytes reply);
void __real_lane_reply(struct lane *lane, uint32_t ring_id, struct bytes reply);
void __real_doorbell_ring(int fd);
void __wrap_lane_answer(struct lane *lane, struct op *o, struct bytes reply);
void __wrap_lane_reply(struct lane *lane, uint32_t ring_id, struct bytes reply);
void __wrap_doorbell_ring(int fd);

static struct sim *world;

void rings_begin(struct sim *s)
{
    world = s;
}

/* A user frees when it will. */
void client_lets_go(struct sim *s, uint64_t handle)
{
    (void)s;
    (void)handle;
}

void client_wants(struct sim *s, uint64_t handle)
{
    (void)s;
    (void)handle;
}

void clients_want(struct sim *s, unsigned device, uint64_t within_ns)
{
    (void)s;
    (void)device;
    (void)within_ns;
}

void client_ring_request(struct sim *s, uint64_t session, const struct request *r)
{
    wire_take_ring(s, session, r->ring_id, bytes_of(r + 1, r->size));
}

void __wrap_lane_answer(struct lane *lane, struct op *o, struct bytes reply)
{
    memory_outside();
    wire_answer_ring(world, lane->session->id, o->ring_id, reply);
    memory_inside();
    __real_lane_answer(lane, o, reply);
}

void __wrap_lane_reply(struct lane *lane, uint32_t ring_id, struct bytes reply)
{
    memory_outside();
    wire_answer_ring(world, lane->session->id, ring_id, reply);
    memory_inside();
    __real_lane_reply(lane, ring_id, reply);
}

void __wrap_doorbell_ring(int fd)
{
    __real_doorbell_ring(fd);
    memory_outside();
    system_rung();
    memory_inside();
}
