/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Replies that name all databases, built in pieces. Supervisor. */
#include "daemon/supervisor/access/listing.h"

#include <string.h>

#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/user.h"
#include "daemon/supervisor/calls/bus-error.h"
#include "daemon/supervisor/calls/waiting-call.h"

static int compare_names(const void *a, const void *b) {
        return strcmp(*(const char *const *) a, *(const char *const *) b);
}

static GPtrArray *names_of_all(Context *context) {
        GHashTableIter i;
        void *name;

        if (!context->listings->names) {
                context->listings->names = g_ptr_array_new_full(g_hash_table_size(context->databases), g_free);
                g_hash_table_iter_init(&i, context->databases);
                while (g_hash_table_iter_next(&i, &name, NULL))
                        g_ptr_array_add(context->listings->names, g_strdup(name));
                g_ptr_array_sort(context->listings->names, compare_names);
        }
        return g_ptr_array_ref(context->listings->names);
}

static void listing_free(Listing *l) {
        GQueue *of_user = &l->user->listings;

        g_queue_unlink(of_user, &l->link);
        if (!of_user->head)
                g_queue_unlink(&l->context->listings->users, &l->user->listings_link);
        if (l->names)
                g_ptr_array_unref(l->names);
        if (l->text)
                (void) g_string_free(l->text, TRUE);
        reply_done(&l->reply);
        (void) sd_bus_message_unref(l->call);
        (void) user_unref(l->user);
        g_free(l);
}

/* ---- Turns ---- */

static int begin(Listing *l) {
        int r = reply_new(l->call, &l->reply);

        l->names = names_of_all(l->context);
        return r < 0 ? r : l->kind->begin(l);
}

/* A database that was published anew meanwhile is listed as it is now. One that was removed is left out. */
static int add_next(Listing *l) {
        const Database *d = database_find(l->context, l->names->pdata[l->next++]);
        PolicyVerdict view = d ? policy_view_of_peer(l->context, l->peer, l->was_held, d) : POLICY_NO;

        return view == POLICY_NO ? 0 : l->kind->add(l, d, view);
}

/* Builds one piece. 1: there is more to do; 0: the call was answered. */
static int go_on(Listing *l) {
        int r = l->names ? 0 : begin(l);
        size_t before = l->reply.size;

        for (unsigned n = 0; r >= 0 && l->next < l->names->len; n++) {
                if (n >= LISTING_PIECE_LENGTH || l->reply.size - before >= LISTING_PIECE_SIZE)
                        return 1;
                r = add_next(l);
        }
        if (r >= 0)
                r = l->kind->end(l);
        return r < 0 ? r : reply_send(&l->reply);
}

/* Builds one piece of `l`, the first listing of its user. Frees it if it was answered. */
static void serve(Listing *l) {
        g_auto(Refusal) refusal = REFUSAL_INIT;
        int r = go_on(l);

        if (r > 0 && l->next < l->names->len)
                return;
        if (r < 0)
                (void) bus_error_reply_refusal(l->call, r, &refusal);
        listing_free(l);
}

static int take_turn(Context *context);

static int on_turn(sd_event_source *s, uint64_t usec, void *userdata) {
        Context *context = userdata;
        GList *first = g_queue_pop_head_link(&context->listings->users);

        if (first) {
                User *u = first->data;

                g_queue_push_tail_link(&context->listings->users, first);
                serve(u->listings.head->data);
        }
        if (context->listings->users.head)
                (void) take_turn(context); /* the source exists, so this cannot fail for lack of memory */
        /* otherwise calls that sd-bus has already read would wait until all listings are done */
        peer_serve_read_ahead(context);
        return 0;
}

/* Uses a timer that is due at once, because it alternates with the bus. A deferred source would always come first. */
static int take_turn(Context *context) {
        sd_event_source *s = context->listings->source;

        if (!s)
                return sd_event_add_time(context->event, &context->listings->source, CLOCK_MONOTONIC, 0, 1, on_turn,
                                         context);
        return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

/* ---- New listings, and their end ---- */

static void line_up(Listing *l) {
        User *u = l->user;

        if (!u->listings.head) {
                u->listings_link.data = u;
                g_queue_push_tail_link(&l->context->listings->users, &u->listings_link);
        }
        l->link.data = l;
        g_queue_push_tail_link(&u->listings, &l->link);
}

static int check_number(const Context *context, const Peer *p, Refusal *refusal) {
        const User *u = g_hash_table_lookup(context->users, GUINT_TO_POINTER(p->uid));

        if (!u || u->listings.length < LISTINGS_MAX)
                return 0;
        return refuse(refusal, ERROR_LIMITS_EXCEEDED,
                      "Your programs wait for %u lists of databases: call again when those are answered.", LISTINGS_MAX);
}

int listing_new(Context *context, sd_bus_message *call, const ListingKind *kind, Refusal *refusal) {
        Peer *p = peer_of(context, call);
        sd_bus_message *stand_in;

        if (sd_bus_message_get_expect_reply(call) <= 0)
                return 0;
        int r = check_number(context, p, refusal);
        if (r >= 0)
                r = take_turn(context);
        if (r >= 0)
                r = waiting_call_new(call, &stand_in);
        if (r < 0)
                return r;
        Listing *l = g_new(Listing, 1);
        *l = (Listing) {
                .context = context,
                .peer = p,
                .user = user_get(context, p->uid),
                .call = stand_in,
                .kind = kind,
                .was_held = policy_call_was_held(context, call),
                .reply = REPLY_INIT,
        };
        line_up(l);
        if (l->user->listings.length == 1) /* if there are few databases they are one piece, so the call is answered here */
                serve(l);
        return 0;
}

void listing_on_reload(Context *context) {
        g_clear_pointer(&context->listings->names, g_ptr_array_unref);
}

bool listing_is_busy(const Context *context) {
        return context->listings->users.head;
}

void listing_forget(const Peer *p) {
        User *u = g_hash_table_lookup(p->context->users, GUINT_TO_POINTER(p->uid));
        GList *next;

        if (!u)
                return;
        g_autoptr(User) keep = user_ref(u); /* each listing has a reference, too */
        for (GList *i = keep->listings.head; i; i = next) {
                Listing *l = i->data;

                next = i->next;
                if (l->peer == p)
                        listing_free(l);
        }
}

void listing_stop(Context *context, const char *sentence) {
        while (context->listings->users.head) {
                User *u = context->listings->users.head->data;
                Listing *l = u->listings.head->data;

                (void) bus_error_reply(l->call, &(Failure) { .error = ERROR_SHUTTING_DOWN, .sql_offset = -1,
                                                             .message = sentence }, false);
                listing_free(l);
        }
}

void listing_done(Listings *all) {
        all->source = sd_event_source_disable_unref(all->source);
        g_clear_pointer(&all->names, g_ptr_array_unref);
}
