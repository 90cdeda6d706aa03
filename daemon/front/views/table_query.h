/*
 * QUERY: tables for operators. A long table is made in slices, as far as turns of the loop have
 * units of work for it, one table at a time; tenants that wait for tables take turns. An element
 * that appears or leaves meanwhile may or may not be in it. Thread: the loop's.
 */
#ifndef FRONT_VIEWS_TABLE_QUERY_H
#define FRONT_VIEWS_TABLE_QUERY_H

#include "daemon/front/model/front.h"
#include "daemon/front/model/request.h"

/* QUERY, a handler of requests (requests/requests.h). */
int request_query(struct request_context *c, struct err *e);
/* Continues unfinished tables, and answers those that are complete. */
void table_queries_run(struct front *f);
/* A job, session or tenant leaves its table; `next`: its successor in the table's order. */
void table_queries_skip(struct front *f, const void *element, const void *next);
/* Drops the unfinished tables of a session that ends; NULL: of all. */
void table_queries_cancel(struct front *f, const struct session *s);

#endif
