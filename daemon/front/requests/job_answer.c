#include "daemon/front/requests/job_answer.h"

#include <string.h>

#include "common/log.h"
#include "daemon/front/clients/reply.h"
#include "daemon/front/model/about.h"
#include "daemon/front/model/op.h"
#include "daemon/front/model/session_events.h"
#include "daemon/front/requests/events.h"
#include "daemon/front/sched/completion.h"
#include "daemon/front/sched/history.h"

#define ANSWER_ROOM 512u /* bytes; most answers are shorter */

/* Keeps a result for EVENTS, or an error in its place. The client waits for one of them, so the
 * error takes no memory except what the job has for it. */
static void keep_result(struct job *j, int rc, struct bytes result, const struct err *why)
{
    if (rc == 0 && session_result_in(j->session, &j->result, j->id, result)) {
        return;
    }
    struct err e = *why;
    if (rc == 0) {
        (void)err_set(&e, ERR_NOMEM, "no memory for the result of %zu bytes", result.size);
    }
    struct proto_result r = {.job = j->id,
                             .code = e.code,
                             .step = -1,
                             .arg = -1,
                             .effects = ERR_EFFECTS_MAYBE,
                             .text = bytes_of(e.text, strnlen(e.text, RESULT_TEXT))};
    uint8_t room[RESULT_ROOM];
    struct capbuf out;
    capbuf_init_in(&out, sizeof room, room, sizeof room);
    rc = proto_list_add(&schema_result, &r, &out, NULL);
    if (rc != 0 || !session_result_in(j->session, &j->result, j->id, capbuf_view(&out))) {
        log_about(LOG_NO_MEMORY, about_job(j),
                  "job %llu: its end could not be reported: out of memory",
                  (unsigned long long)j->id);
    }
    capbuf_finish(&out);
}

void job_answer(struct front *f, struct job *j)
{
    bool acked = j->op != NULL && op_acked(j->op);
    uint8_t room[2][ANSWER_ROOM];
    struct capbuf record;
    struct capbuf out;
    struct err e;
    err_init(&e);
    capbuf_init_in(&record, PROTO_MESSAGE_MAX, room[0], sizeof room[0]);
    capbuf_init_in(&out, PROTO_MESSAGE_MAX, room[1], sizeof room[1]);
    int rc = completion_result(j, &record, &e);
    if (j->async) {
        keep_result(j, rc, capbuf_view(&record), &e);
        session_send_events(f, j->session, turn_now(f));
    } else if (rc == 0) {
        struct msg_results m = {.results = proto_list_of(&record, 1)};
        rc = proto_encode(&schema_msg_results, &m, &out, &e);
        if (rc == 0) {
            reply_answer(f, j->op, capbuf_view(&out));
        }
    }
    if (rc != 0 && !j->async) {
        e.effects = j->error.code != 0 ? j->error.effects : ERR_EFFECTS_MAYBE; /* the job ran */
        reply_answer_error(f, j->op, &e, (struct bytes){0});
    }
    if (acked) {
        job_acknowledged(f, j); /* an ack covered the number before */
    }
    capbuf_finish(&record);
    capbuf_finish(&out);
}
