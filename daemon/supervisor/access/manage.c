/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls that change the service or the work of another user. Supervisor. */
#include "daemon/supervisor/access/manage.h"

#include "daemon/supervisor/access/held-call.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/sd-autoptr.h"
#include "daemon/supervisor/base/user.h"
#include "daemon/supervisor/calls/bus-error.h"
#include "daemon/supervisor/calls/waiting-call.h"

/* A call that waits for polkit, in its peer's `managed`. */
typedef struct ManagedCall {
        Context *context;     /* not owned */
        Peer *peer;           /* not owned: the peer owns this call */
        User *user;           /* reference */
        sd_bus_message *call; /* a stand-in (waiting-call.h) */
        ManageAct act;
        uint64_t number;
        bool may_interact;
        bool interacts;       /* the question under way is one with interaction */
        GList link;
} ManagedCall;

static void managed_call_free(ManagedCall *c) {
        g_queue_unlink(&c->peer->managed, &c->link);
        c->context->n_held_calls--;
        c->user->n_held_calls--;
        (void) user_unref(c->user);
        (void) sd_bus_message_unref(c->call);
        g_free(c);
}

/* Answers the call if `r` is an error. Otherwise its action has replied, or will reply. */
static void finish(ManagedCall *c, int r, Refusal *refusal) {
        if (r < 0)
                (void) bus_error_reply_refusal(c->call, r, refusal);
        managed_call_free(c);
}

static int hold(Context *context, Peer *p, sd_bus_message *call, ManageAct act, uint64_t number) {
        sd_bus_message *stand_in;
        int r = waiting_call_new(call, &stand_in);

        if (r < 0)
                return r;
        ManagedCall *c = g_new(ManagedCall, 1);
        *c = (ManagedCall) {
                .context = context,
                .peer = p,
                .user = user_get(context, p->uid),
                .call = stand_in,
                .act = act,
                .number = number,
                .may_interact = sd_bus_message_get_allow_interactive_authorization(call) > 0,
                .link.data = c,
        };
        g_queue_push_tail_link(&p->managed, &c->link);
        context->n_held_calls++;
        c->user->n_held_calls++;
        polkit_ask(context, p, POLKIT_MANAGE, NULL, false);
        return 0;
}

int manage_call(Context *context, sd_bus_message *call, ManageAct act, uint64_t number, Refusal *refusal) {
        Peer *p = peer_of(context, call);

        if (peer_is_administrator(context, p))
                return act(call, context, number, refusal);
        if (held_call_is_full(context, p))
                return held_call_refuse(refusal);
        return hold(context, p, call, act, number);
}

static int refuse_without_user(const ManagedCall *c, bool failed, Refusal *refusal) {
        if (failed)
                return refuse(refusal, ERROR_ACCESS_DENIED, "This takes an administrator's authentication, and it failed.");
        return sd_bus_reply_method_errorf(c->call, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
                                          "This takes an administrator's authentication%s",
                                          c->may_interact ? ", and no authentication agent was there to ask for it: start "
                                                            "one, such as pkttyagent." :
                                                            ": allow interactive authorization with the call.");
}

static void on_challenge(ManagedCall *c, bool failed) {
        g_auto(Refusal) refusal = REFUSAL_INIT;
        int r;

        if (c->may_interact && !c->interacts) {
                r = polkit_ask_user(c->context, c->peer, POLKIT_MANAGE, NULL, &refusal);
                c->interacts = true;
                if (r >= 0)
                        return;
        } else
                r = refuse_without_user(c, failed, &refusal);
        finish(c, r, &refusal);
}

static void settle(ManagedCall *c, const PolkitReply *reply) {
        g_auto(Refusal) refusal = REFUSAL_INIT;
        int r;

        if (reply->answer == POLKIT_CHALLENGE || (reply->interactive && reply->answer == POLKIT_NO)) {
                on_challenge(c, reply->answer == POLKIT_NO);
                return;
        }
        if (reply->answer == POLKIT_YES)
                r = c->act(c->call, c->context, c->number, &refusal);
        else
                r = refuse(&refusal, ERROR_ACCESS_DENIED,
                           "Only root, the user that the service runs as, and users to whom polkit allows "
                           POLKIT_ACTION_MANAGE " may do this.");
        finish(c, r, &refusal);
}

void manage_on_answer(Peer *p, const PolkitReply *reply) {
        GList *next;

        for (GList *i = p->managed.head; i; i = next) {
                ManagedCall *c = i->data;

                next = i->next;
                if (c->interacts == reply->interactive)
                        settle(c, reply);
        }
}

void manage_forget(Peer *p) {
        while (p->managed.head)
                managed_call_free(p->managed.head->data);
}

void manage_stop(Peer *p, const char *sentence) {
        while (p->managed.head) {
                ManagedCall *c = p->managed.head->data;

                (void) bus_error_reply(c->call, &(Failure) { .error = ERROR_SHUTTING_DOWN, .sql_offset = -1,
                                                             .message = sentence }, false);
                managed_call_free(c);
        }
}
