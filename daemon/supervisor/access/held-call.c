/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls that wait for polkit. Supervisor. */
#include <string.h>

#include "daemon/configuration/configuration-database.h"
#include "daemon/supervisor/access/held-call.h"
#include "daemon/supervisor/access/policy.h"
#include "daemon/supervisor/access/polkit.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/sd-autoptr.h"
#include "daemon/supervisor/base/user.h"
#include "daemon/supervisor/calls/bus-error.h"
#include "daemon/supervisor/calls/options.h"
#include "daemon/supervisor/calls/waiting-call.h"
#include "dbus-interfaces/sqlipc-names.h"

/* SQL and parameters at their largest, as measured by waiting_call_copy(). */
#define HELD_CALL_SIZE_MAX ((size_t) 20 * 1024 * 1024)

/* A question with interaction about a held call. */
typedef struct UserQuestion {
        bool open, answered, failed;
} UserQuestion;

typedef struct HeldCall {
        Context *context;     /* not owned */
        Peer *peer;           /* not owned: the peer owns this call, in its `held` */
        User *user;           /* reference */
        size_t size;          /* bytes counted in the user's budget */
        sd_bus_message *call; /* the copy */
        int copy_error;       /* negative: the copy has no body, and `refusal` may say why */
        Refusal refusal;
        char *object;         /* the database whose object it is sent to; NULL: it is sent to the Manager's */
        char *named;          /* the database that GetDatabase names */
        GHashTable *open;     /* names of databases that polkit has not answered about yet, for reading */
        bool write_open;      /* polkit has not answered yet if the peer may write the object's */
        bool writes;          /* the method is for writing only, so the user may be asked about that */
        bool may_interact;
        UserQuestion of_user[2]; /* by PolkitAction: POLKIT_READ, POLKIT_WRITE */
        bool released;
        GList link;
} HeldCall;

static void held_call_free(HeldCall *h) {
        if (h->link.data) {
                g_queue_unlink(&h->peer->held, &h->link);
                h->context->n_held_calls--;
                h->user->n_held_calls--;
        }
        if (h->size > 0)
                user_release(h->user, h->size);
        (void) user_unref(h->user);
        (void) sd_bus_message_unref(h->call);
        refusal_done(&h->refusal);
        g_free(h->object);
        g_free(h->named);
        g_hash_table_unref(h->open);
        g_free(h);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HeldCall, held_call_free)

/* ---- Release ---- */

/* True if only a user who authenticates can turn an answer into a yes: the one about reading, or, for a peer that may read,
 * the one about writing. */
static bool needs_user(const HeldCall *h, PolkitAction *ret_action) {
        const Database *d = h->object ? database_find(h->context, h->object) : NULL;

        if (!d)
                return false;
        PolicyVerdict read = policy_view_of_peer(h->context, h->peer, true, d);

        *ret_action = read == POLICY_ASK ? POLKIT_READ : POLKIT_WRITE;
        return read == POLICY_ASK ||
               (read == POLICY_YES && h->writes && policy_write_needs_user(h->context, h->peer, d));
}

static void refuse_held(HeldCall *h, int r, Refusal *refusal) {
        (void) bus_error_reply_refusal(h->call, r, refusal);
        held_call_free(h);
}

static void ask_user(HeldCall *h, PolkitAction action) {
        g_auto(Refusal) refusal = REFUSAL_INIT;
        int r = polkit_ask_user(h->context, h->peer, action, h->object, &refusal);

        if (r < 0) {
                refuse_held(h, r, &refusal);
                return;
        }
        h->of_user[action].open = true;
}

static void refuse_without_user(HeldCall *h, PolkitAction action) {
        const char *what = action == POLKIT_WRITE ? "Writing to the database" : "The database";
        g_auto(Refusal) refusal = REFUSAL_INIT;
        int r;

        if (h->of_user[action].failed)
                r = refuse(&refusal, ERROR_ACCESS_DENIED,
                           "%s requires authentication, and it failed or was cancelled.", what);
        else
                r = sd_bus_reply_method_errorf(h->call, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
                                               "%s requires authentication%s", what,
                                               h->may_interact ? ", and no authentication agent was there to ask you: start "
                                                                 "one, such as pkttyagent." :
                                                                 ": allow interactive authorization with the call.");
        if (r < 0)
                refuse_held(h, r, &refusal);
        else
                held_call_free(h);
}

/* The call has no body and cannot be released. Only a caller that may know of the database is told why. */
static void refuse_uncopied(HeldCall *h) {
        const Database *d = h->named ? database_find(h->context, h->named) : NULL;

        if (h->named && !(d && policy_is_visible(h->context, h->peer, d))) {
                g_auto(Refusal) refusal = REFUSAL_INIT;
                int r = policy_refuse_unknown(h->named, &refusal);

                refuse_held(h, r, &refusal);
                return;
        }
        refuse_held(h, h->copy_error, &h->refusal);
}

static void release(HeldCall *h) {
        const Database *d = h->object ? database_find(h->context, h->object) : NULL;

        /* If the object does not exist for the caller, the call is released even without its body, which is not read
         * there. */
        if (h->copy_error < 0 && (!h->object || (d && policy_is_visible(h->context, h->peer, d)))) {
                refuse_uncopied(h);
                return;
        }
        int r = sd_bus_enqueue_for_read(h->context->bus, h->call);
        if (r < 0) {
                g_auto(Refusal) refusal = REFUSAL_INIT;

                refuse_held(h, r, &refusal);
                return;
        }
        h->released = true;
}

/* Decides about the call. May free it. */
static void settle(HeldCall *h) {
        PolkitAction action;

        if (!needs_user(h, &action))
                release(h);
        else if (h->may_interact && !h->of_user[action].answered)
                ask_user(h, action);
        else
                refuse_without_user(h, action);
}

static bool is_asked_about(const HeldCall *h) {
        return g_hash_table_size(h->open) > 0 || h->write_open || h->of_user[POLKIT_READ].open ||
               h->of_user[POLKIT_WRITE].open;
}

static bool is_behind_another(const HeldCall *h) {
        for (const GList *i = h->link.prev; i; i = i->prev) {
                const HeldCall *other = i->data;

                if (!other->released && g_strcmp0(other->object, h->object) == 0)
                        return h->object != NULL;
        }
        return false;
}

static void go_on(Peer *p) {
        GList *next;

        for (GList *i = p->held.head; i; i = next) {
                HeldCall *h = i->data;

                next = i->next;
                if (!h->released && !is_asked_about(h) && !is_behind_another(h))
                        settle(h);
        }
}

static void ask_all(const HeldCall *h) {
        GHashTableIter i;
        void *name;

        g_hash_table_iter_init(&i, h->open);
        while (g_hash_table_iter_next(&i, &name, NULL))
                polkit_ask(h->context, h->peer, POLKIT_READ, name, false);
        if (h->write_open)
                polkit_ask(h->context, h->peer, POLKIT_WRITE, h->object, false);
}

/* The user took a while to say yes about one right. If polkit's answer about the other one no longer holds, asks again. */
static void ask_about_other(HeldCall *h, PolkitAction answered) {
        const Database *d = database_find(h->context, h->object);

        if (!d)
                return;
        if (answered == POLKIT_READ && policy_write_verdict(h->context, h->peer, d) == POLICY_ASK)
                h->write_open = true;
        else if (answered == POLKIT_WRITE && policy_verdict(h->context, h->peer, d) == POLICY_ASK)
                g_hash_table_add(h->open, g_strdup(h->object));
        else
                return;
        ask_all(h);
}

static void note_answer(HeldCall *h, const PolkitReply *reply) {
        bool is_about_object = g_strcmp0(h->object, reply->database) == 0;

        if (reply->interactive && !is_about_object)
                return;
        if (reply->action == POLKIT_READ)
                (void) g_hash_table_remove(h->open, reply->database);
        else if (is_about_object)
                h->write_open = false;
        if (!reply->interactive)
                return;
        /* the user's answer holds for all waiting calls */
        h->of_user[reply->action] = (UserQuestion) { .answered = true, .failed = reply->answer == POLKIT_NO };
        if (reply->answer == POLKIT_YES)
                ask_about_other(h, reply->action);
}

void held_call_on_answer(Peer *p, const PolkitReply *reply) {
        for (GList *i = p->held.head; i; i = i->next) {
                HeldCall *h = i->data;

                if (!h->released)
                        note_answer(h, reply);
        }
        go_on(p);
}

/* ---- New calls ---- */

static bool is_call_of_manager(sd_bus_message *message, const char *member) {
        const char *interface = sd_bus_message_get_interface(message);

        return g_strcmp0(sd_bus_message_get_path(message), SQLIPC_MANAGER_PATH) == 0 &&
               (!interface || strcmp(interface, SQLIPC_MANAGER_INTERFACE) == 0) &&
               strcmp(sd_bus_message_get_member(message), member) == 0;
}

bool held_call_gets_databases(sd_bus_message *message) {
        const char *interface, *property;

        if (g_strcmp0(sd_bus_message_get_path(message), SQLIPC_MANAGER_PATH) != 0 ||
            sd_bus_message_is_method_call(message, "org.freedesktop.DBus.Properties", "Get") <= 0 ||
            sd_bus_message_has_signature(message, "ss") <= 0)
                return false;
        bool is_it = sd_bus_message_read(message, "ss", &interface, &property) > 0 &&
                     strcmp(interface, SQLIPC_MANAGER_INTERFACE) == 0 && strcmp(property, "Databases") == 0;
        (void) sd_bus_message_rewind(message, true);
        return is_it;
}

/* Returns the database that GetDatabase names; NULL: the call is another one, or the method will refuse it. */
static char *dup_named(sd_bus_message *message) {
        const char *name;

        /* An invalid name is not copied: it may be as long as a message. */
        return is_call_of_manager(message, "GetDatabase") && sd_bus_message_read_basic(message, 's', &name) >= 0 &&
                               database_name_is_valid(name) ?
                       g_strdup(name) : NULL;
}

static char *dup_object(sd_bus_message *message) {
        const char *path = sd_bus_message_get_path(message);
        char *name = NULL;

        return path && sd_bus_path_decode(path, SQLIPC_DATABASE_PATH, &name) > 0 ? name : NULL;
}

static void open_question(GHashTable *open, const Context *context, const Peer *p, const Database *d) {
        if (d && policy_verdict(context, p, d) == POLICY_ASK)
                g_hash_table_add(open, g_strdup(database_name(d)));
}

static void open_all_questions(GHashTable *open, const Context *context, const Peer *p) {
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, context->databases);
        while (g_hash_table_iter_next(&i, NULL, &value))
                open_question(open, context, p, value);
}

static bool is_call_of_database(sd_bus_message *message) {
        const char *interface = sd_bus_message_get_interface(message);

        return !interface || strcmp(interface, SQLIPC_DATABASE_INTERFACE) == 0;
}

static bool begins_to_write(sd_bus_message *message) {
        g_auto(Refusal) refusal = REFUSAL_INIT; /* not sent: the method refuses the options itself */
        Options options;
        bool writes = sd_bus_message_has_signature(message, "a{sv}") > 0 &&
                      options_read(message, OPTIONS_OF_BEGIN, &options, &refusal) >= 0 &&
                      g_strcmp0(options.mode, "write") == 0;

        (void) sd_bus_message_rewind(message, true);
        return writes;
}

/* True if the call, which is sent to a database, is of a method that is for writing only. */
static bool is_for_writing(sd_bus_message *message) {
        static const char *const members[] = { "Execute", "ExecuteBatch", "Load", NULL };
        const char *member = sd_bus_message_get_member(message);

        return is_call_of_database(message) &&
               (g_strv_contains(members, member) || (strcmp(member, "Begin") == 0 && begins_to_write(message)));
}

/* True if polkit must be asked if the peer may write the database. */
static bool is_write_open(const Context *context, const Peer *p, const Database *d, sd_bus_message *message) {
        return is_call_of_database(message) && policy_verdict(context, p, d) != POLICY_NO &&
               (policy_write_verdict(context, p, d) == POLICY_ASK ||
                (is_for_writing(message) && policy_write_needs_user(context, p, d)));
}

static bool is_held_up(const Peer *p, const char *object) {
        for (const GList *i = p->held.head; i && object; i = i->next)
                if (g_strcmp0(((const HeldCall *) i->data)->object, object) == 0)
                        return true;
        return false;
}

static int copy_call(HeldCall *h, sd_bus_message *message) {
        int r = waiting_call_copy(message, HELD_CALL_SIZE_MAX, &h->call, &h->size, &h->refusal);

        if (r >= 0)
                r = user_hold(h->user, h->size, &h->refusal);
        if (r >= 0)
                return 0;
        h->size = 0;
        h->call = sd_bus_message_unref(h->call);
        h->copy_error = r;
        return waiting_call_new(message, &h->call);
}

/* Holds a call. Takes `object`, `named` and `open`. */
static int hold(Context *context, Peer *p, sd_bus_message *message, char *object, char *named, GHashTable *open,
                bool write_open) {
        g_autoptr(HeldCall) h = g_new(HeldCall, 1);

        *h = (HeldCall) {
                .context = context,
                .peer = p,
                .user = user_get(context, p->uid),
                .refusal = REFUSAL_INIT,
                .object = object,
                .named = named,
                .open = open,
                .write_open = write_open,
                .writes = object && is_for_writing(message),
                .may_interact = sd_bus_message_get_allow_interactive_authorization(message) > 0,
        };
        int r = copy_call(h, message);
        if (r < 0)
                return r;
        h->link.data = h;
        g_queue_push_tail_link(&p->held, &h->link);
        context->n_held_calls++;
        h->user->n_held_calls++;
        ask_all(g_steal_pointer(&h));
        go_on(p);
        return 1;
}

bool held_call_is_full(const Context *context, const Peer *p) {
        const User *u = g_hash_table_lookup(context->users, GUINT_TO_POINTER(p->uid));

        return u && u->n_held_calls >= HELD_CALLS_MAX;
}

int held_call_refuse(Refusal *refusal) {
        return refuse(refusal, ERROR_LIMITS_EXCEEDED,
                      "Your programs have %u calls waiting for polkit: call again when those are answered.", HELD_CALLS_MAX);
}

static int refuse_more(sd_bus_message *message) {
        g_auto(Refusal) refusal = REFUSAL_INIT;
        int r = held_call_refuse(&refusal);

        return bus_error_reply_refusal(message, r, &refusal);
}

static bool may_use_by_name(const Context *context, const Peer *p, const char *name) {
        const Database *d = g_hash_table_lookup(context->databases, name);

        return d && policy_verdict(context, p, d) == POLICY_YES;
}

/* The held call of the peer whose copy is `message`; NULL: none. */
static HeldCall *find_by_copy(const Peer *p, const sd_bus_message *message) {
        for (const GList *i = p->held.head; i; i = i->next)
                if (((const HeldCall *) i->data)->call == message)
                        return i->data;
        return NULL;
}

static bool take_released(Context *context, const Peer *p, sd_bus_message *message) {
        HeldCall *h = find_by_copy(p, message);

        if (!h)
                return false;
        context->released_call = message;
        held_call_free(h);
        return true;
}

static int on_call(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        g_autoptr(GHashTable) open = NULL;
        g_autofree char *object = NULL, *named = NULL;
        Context *context = userdata;
        Peer *p = sd_bus_message_is_method_call(message, NULL, NULL) ? peer_of(context, message) : NULL;

        context->released_call = NULL;
        if (!p || take_released(context, p, message))
                return 0;
        object = dup_object(message);
        named = dup_named(message);
        const char *name = object ?: named;
        const Database *d = name ? database_find(context, name) : NULL;
        bool write_open = d && object && is_write_open(context, p, d, message);
        open = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        if (name)
                open_question(open, context, p, d);
        else if (is_call_of_manager(message, "ListDatabases") || held_call_gets_databases(message))
                open_all_questions(open, context, p);
        bool must_wait = g_hash_table_size(open) > 0 || write_open || is_held_up(p, object);
        /* Names that do not exist are refused in the same way, so that the refusal does not tell which names exist. */
        if (held_call_is_full(context, p) && (must_wait || (name && !may_use_by_name(context, p, name))))
                return refuse_more(message);
        if (!must_wait)
                return 0;
        return hold(context, p, message, g_steal_pointer(&object), g_steal_pointer(&named), g_steal_pointer(&open),
                    write_open);
}

/* ---- Other events ---- */

bool held_call_is_released(const Peer *p, sd_bus_message *message) {
        return find_by_copy(p, message) != NULL;
}

void held_call_forget(Peer *p) {
        while (p->held.head)
                held_call_free(p->held.head->data);
}

void held_call_stop(Peer *p, const char *sentence) {
        GList *next;

        for (GList *i = p->held.head; i; i = next) {
                HeldCall *h = i->data;
                Failure failure = { .error = ERROR_SHUTTING_DOWN, .sql_offset = -1, .message = sentence };

                next = i->next;
                if (h->released)
                        continue; /* it is dispatched again, and answered then */
                (void) bus_error_reply(h->call, &failure, false);
                held_call_free(h);
        }
}

int held_call_watch(Context *context) {
        return sd_bus_add_filter(context->bus, NULL, on_call, context);
}
