/* Queries of the daemon: limits, devices, jobs, tables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/src/api/result.h"
#include "client/src/base/client.h"
#include "client/src/base/enter.h"
#include "client/src/base/error.h"
#include "client/src/base/text.h"
#include "client/src/session/call.h"
#include "common/clock.h"

int gpud_ping(gpud_client *client, uint64_t *ret_ns)
{
    struct err e = ERR_INIT;
    int rc = client_enter(client, &e);
    if (rc != 0) {
        return error_report(rc, &e);
    }
    uint64_t begin = clock_now_ns();
    struct msg_ping msg = {.value = begin};
    struct msg_pong pong;
    struct message *m = NULL;
    rc = client_call(client, &schema_msg_ping, &msg, CALL_PLAIN, &schema_msg_pong, &pong, &m, &e);
    if (rc == 0) {
        if (pong.value != begin) {
            rc = err_set(&e, ERR_PROTOCOL, "the answer belongs to another ping");
        } else if (ret_ns != NULL) {
            *ret_ns = clock_now_ns() - begin;
        }
        message_unref(m);
    }
    client_leave(client);
    return error_report(rc, &e);
}

int gpud_limits(gpud_client *client, gpud_limits_desc *ret_limits)
{
    struct err e = ERR_INIT;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        const struct session *s = &client->session;
        gpud_limits_desc desc = {
            .major = (uint32_t)s->major,
            .minor = (uint32_t)s->minor,
            .max_message = s->max_message,
            .max_inline = PROTO_INLINE_MAX < s->max_message ? PROTO_INLINE_MAX : s->max_message,
            .max_in_flight = s->max_inflight,
            .linger_ns = s->linger_ns,
            .session = s->number,
            .may_load = s->may_load,
            .connected = s->state == SESSION_READY,
            .max_arena = s->max_arena,
            .max_requests = s->max_requests,
            .max_unacked = s->max_unacked,
            .max_kept = s->max_kept,
            .max_early = s->max_early,
            .max_reorder = s->max_reorder,
            .max_buffers = s->max_buffers,
            .max_arenas = s->max_arenas,
            .max_modules = s->max_modules,
            .max_programs = s->max_programs,
        };
        text_copy(desc.build, sizeof desc.build, bytes_str(s->build));
        text_copy(desc.tenant, sizeof desc.tenant, bytes_str(s->tenant));
        rc = desc_return(ret_limits, &desc, sizeof desc, &e);
        client_leave(client);
    }
    return error_report(rc, &e);
}

/* ---- jobs by number ------------------------------------------------------------------------ */

static void job_desc_fill(const struct msg_job *reply, gpud_job_desc *desc)
{
    *desc = (gpud_job_desc){
        .id = reply->job,
        .code = (int)reply->code,
        .device = reply->device > 0 ? reply->device - 1 : GPUD_NO_DEVICE,
        .stream = reply->stream,
        .replays = reply->replays,
        .submitted_ns = reply->submitted_ns,
        .dispatched_ns = reply->dispatched_ns,
        .started_ns = reply->started_ns,
        .ended_ns = reply->ended_ns,
        .trace_id = reply->trace_id,
        .now_ns = reply->now_ns,
        .begins_ns = reply->begins_ns,
        .ends_ns = reply->ends_ns,
    };
    text_copy(desc->state, sizeof desc->state, reply->state);
    text_copy(desc->label, sizeof desc->label, reply->label);
    text_copy(desc->text, sizeof desc->text, reply->text);
    timings_served_by(reply->timings, desc->implementation, sizeof desc->implementation);
}

int gpud_job_info(gpud_client *client, uint64_t job, gpud_job_desc *ret_desc)
{
    struct err e = ERR_INIT;
    struct msg_job_info msg = {.job = job};
    struct msg_job reply;
    struct message *m = NULL;
    int rc = client_enter(client, &e);
    if (rc != 0) {
        return error_report(rc, &e);
    }
    rc = client_call(client, &schema_msg_job_info, &msg, CALL_PLAIN, &schema_msg_job, &reply, &m,
                     &e);
    if (rc == 0) {
        gpud_job_desc desc;
        job_desc_fill(&reply, &desc);
        rc = desc_return(ret_desc, &desc, sizeof desc, &e);
        message_unref(m);
    }
    client_leave(client);
    return error_report(rc, &e);
}

static int cancel_number(gpud_client *client, uint64_t job, bool kill)
{
    struct err e = ERR_INIT;
    struct msg_cancel msg = {.job = job, .kill = kill};
    int rc = client_enter(client, &e);
    if (rc == 0) {
        rc = kill ? client_may_kill(client, &e) : 0;
        rc = rc == 0 ? client_call_done(client, &schema_msg_cancel, &msg, CALL_PLAIN,
                                        &schema_msg_done, &e)
                     : rc;
        client_leave(client);
    }
    return error_report(rc, &e);
}

int gpud_job_cancel(gpud_client *client, uint64_t job)
{
    return cancel_number(client, job, false);
}

int gpud_job_kill(gpud_client *client, uint64_t job)
{
    return cancel_number(client, job, true);
}

int gpud_explain(gpud_client *client, uint64_t job, char *ret_text, size_t bytes)
{
    struct err e = ERR_INIT;
    struct msg_explain msg = {.job = job};
    struct msg_explanation reply;
    struct message *m = NULL;
    int rc = client_enter(client, &e);
    if (rc != 0) {
        return error_report(rc, &e);
    }
    if (ret_text == NULL || bytes == 0) {
        rc = err_set(&e, ERR_INVALID, "no pointer for the text");
    } else {
        rc = client_call(client, &schema_msg_explain, &msg, CALL_PLAIN, &schema_msg_explanation,
                         &reply, &m, &e);
    }
    if (rc == 0) {
        text_copy(ret_text, bytes, reply.text);
        message_unref(m);
    }
    client_leave(client);
    return error_report(rc, &e);
}

int gpud_control(gpud_client *client, const char *what, const char *value)
{
    struct err e = ERR_INIT;
    struct msg_control msg = {.what = bytes_str(what), .value = bytes_str(value)};
    int rc = client_enter(client, &e);
    if (rc == 0) {
        rc = client_call_done(client, &schema_msg_control, &msg, CALL_PLAIN, &schema_msg_done, &e);
        client_leave(client);
    }
    return error_report(rc, &e);
}

/* ---- devices ------------------------------------------------------------------------------- */

static uint64_t cell_value(const gpud_table *t, uint32_t row, const char *column)
{
    int at = gpud_table_find(t, column);
    return at >= 0 ? gpud_table_value(t, row, (uint32_t)at) : 0;
}

static void cell_text(const gpud_table *t, uint32_t row, const char *column, char *out, size_t size)
{
    int at = gpud_table_find(t, column);
    text_copy(out, size, bytes_str(at >= 0 ? gpud_table_text(t, row, (uint32_t)at) : ""));
}

int gpud_device_info(gpud_client *client, uint32_t index, gpud_device_desc *ret_device)
{
    struct err e = ERR_INIT;
    gpud_table *t = NULL;
    int rc = gpud_query(client, "devices", NULL, &t);
    if (rc != 0) {
        return rc;
    }
    if (gpud_table_find(t, "device") < 0) {
        rc = err_set(&e, ERR_PROTOCOL, "the daemon's table of devices has no column \"device\"");
    } else if (index >= gpud_table_rows(t)) {
        rc = err_set(&e, ERR_NOT_FOUND, "the daemon has %u devices", gpud_table_rows(t));
    } else {
        char kind[GPUD_NAME];
        gpud_device_desc desc = {
            .id = cell_value(t, index, "device"),
            .memory_bytes = cell_value(t, index, "memory"),
            .memory_used = cell_value(t, index, "buffers"),
        };
        cell_text(t, index, "name", desc.name, sizeof desc.name);
        cell_text(t, index, "backend", desc.backend, sizeof desc.backend);
        cell_text(t, index, "state", desc.state, sizeof desc.state);
        cell_text(t, index, "kind", kind, sizeof kind);
        desc.cpu = strcmp(kind, "CPU") == 0;
        desc.simulated = strcmp(kind, "simulated") == 0;
        rc = desc_return(ret_device, &desc, sizeof desc, &e);
    }
    gpud_table_free(t);
    return error_report(rc, &e);
}
