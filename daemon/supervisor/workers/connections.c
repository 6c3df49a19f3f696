/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The connections of a user's workers to a server. Supervisor. */
#include <errno.h>

#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/workers/connections.h"
#include "daemon/supervisor/workers/group.h"
#include "daemon/supervisor/workers/worker.h"

/* Gives the worker one, if one is left, or asks others for it. */
static void satisfy(Worker *w) {
        if (!w->connection_wanted || !worker_stays(w) || !w->group->database->published)
                return;
        if (group_connections_left(w->group) == 0) {
                (void) group_ask_for_connection(w->group, w);
                return;
        }
        if (message_send(w->control_fd, &(Message) { .kind = MESSAGE_CONNECTION }, -1) < 0)
                return; /* its socket is full: at the next event */
        w->connection_wanted = false;
        w->n_connections++;
}

static void distribute(const Group *g) {
        for (GList *i = g->user->groups.head; i; i = i->next) {
                const Group *other = i->data;

                for (GList *j = group_shares_connections(g, other) ? other->workers.head : NULL; j; j = j->next)
                        satisfy(j->data);
        }
        group_on_connection_left(g);
}

int connections_on_wanted(Worker *w) {
        if (!database_config_is_server(w->group->database->config) || w->connection_wanted)
                return -EBADMSG;
        worker_on_sign_of_life(w);
        w->connection_wanted = true;
        distribute(w->group);
        return 0;
}

int connections_on_returned(Worker *w) {
        if (!w->connection_asked)
                return -EBADMSG;
        w->connection_asked = false;
        w->n_connections--;
        distribute(w->group);
        return 0;
}

void connections_on_work_over(const Group *g) {
        if (database_config_is_server(g->database->config))
                distribute(g);
}

void connections_on_worker_gone(const Context *context) {
        for (GList *i = context->workers.head; i; i = i->next)
                satisfy(i->data);
}
