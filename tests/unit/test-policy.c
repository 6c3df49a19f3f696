/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/supervisor/access/policy: who may use a database, by the configuration and by polkit's answers. There is no bus. */
#include <glib.h>
#include <string.h>

#include "daemon/supervisor/access/policy.h"
#include "tests/unit/test.h"

#define SERVICE_UID 500u

static uid_t allowed_uids[] = { 1001 };
static gid_t allowed_gids[] = { 100, 200 };

static const Context context = { .uid = SERVICE_UID };

static DatabaseConfig config(bool polkit) {
        return (DatabaseConfig) { .name = (char *) "chinook", .polkit = polkit, .uids = allowed_uids, .n_uids = 1,
                                  .gids = allowed_gids, .n_gids = 2 };
}

static Peer peer(uid_t uid) {
        return (Peer) { .name = (char *) ":1.7", .uid = uid,
                        .answers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                        .write_answers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL) };
}

static void peer_done(Peer *p) {
        g_hash_table_unref(p->answers);
        g_hash_table_unref(p->write_answers);
}

static PolicyVerdict verdict_of(uid_t uid, gid_t gid, const DatabaseConfig *c) {
        const Database d = { .config = (DatabaseConfig *) c };
        Peer p = peer(uid);

        p.gids = &gid;
        p.n_gids = 1;
        PolicyVerdict verdict = policy_verdict(&context, &p, &d);
        peer_done(&p);
        return verdict;
}

static void test_configuration(void) {
        const DatabaseConfig c = config(false);
        DatabaseConfig open = config(false);

        CHECK_INT(verdict_of(0, 0, &c), POLICY_YES);
        CHECK_INT(verdict_of(SERVICE_UID, 500, &c), POLICY_YES);
        CHECK_INT(verdict_of(1001, 1, &c), POLICY_YES);
        CHECK_INT(verdict_of(1002, 200, &c), POLICY_YES);
        CHECK_INT(verdict_of(1002, 201, &c), POLICY_NO);
        open.allow_everybody = true;
        CHECK_INT(verdict_of(1002, 201, &open), POLICY_YES);
}

static bool may_write(uid_t uid, gid_t gid, const DatabaseConfig *c) {
        const Database d = { .config = (DatabaseConfig *) c };
        Peer p = peer(uid);

        p.gids = &gid;
        p.n_gids = 1;
        bool may = policy_may_write(&context, &p, &d);
        peer_done(&p);
        return may;
}

/* Uid 1001 and gids 100 and 200 may read, uid 1002 and gids 200 and 300 may write. To write, a user must be able to read. */
static DatabaseConfig writable(void) {
        static uid_t uids[] = { 1002 };
        static gid_t gids[] = { 200, 300 };
        DatabaseConfig c = config(false);

        c.mode = (char *) "read-write";
        c.write_uids = uids;
        c.n_write_uids = 1;
        c.write_gids = gids;
        c.n_write_gids = 2;
        return c;
}

static void test_writing(void) {
        DatabaseConfig c = writable();

        CHECK(may_write(0, 0, &c));
        CHECK(may_write(SERVICE_UID, 500, &c));
        CHECK(may_write(1002, 100, &c));
        CHECK(!may_write(1002, 1, &c)); /* the user may not read */
        CHECK(may_write(1001, 200, &c));
        CHECK(may_write(1001, 300, &c));
        CHECK(!may_write(1001, 100, &c));
        CHECK(!may_write(1003, 100, &c));
        CHECK(!may_write(1003, 300, &c));
        c.write_everybody = true;
        CHECK(may_write(1003, 100, &c));
        CHECK(!may_write(1003, 300, &c));
}

static void test_databases_that_are_never_written(void) {
        static char *exposed[] = { (char *) "Album", NULL };
        Refusal refusal = REFUSAL_INIT;
        DatabaseConfig c = writable();
        const Database d = { .config = &c };

        CHECK(policy_refuse_write(&d, &refusal) < 0); /* to a user who may not, while others may */
        CHECK_INT(refusal.error, ERROR_READ_ONLY);
        CHECK(strstr(refusal.message, "WriteUsers="));
        refusal_done(&refusal);

        c.write_everybody = true;
        c.mode = (char *) "read-only";
        CHECK(!may_write(0, 0, &c));
        CHECK(!may_write(1002, 200, &c));
        c.mode = (char *) "read-write";
        c.expose = exposed;
        CHECK(!may_write(0, 0, &c));
        CHECK(!may_write(1002, 200, &c));
        CHECK(policy_refuse_write(&d, &refusal) < 0);
        CHECK(strstr(refusal.message, "Expose="));
        refusal_done(&refusal);
}

static void answer_about(PolkitAction action, Peer *p, PolkitAnswer answer, bool interactive, bool outdated) {
        policy_keep_answer(p, &(PolkitReply) { .action = action, .database = "chinook", .answer = answer,
                                               .interactive = interactive, .outdated = outdated });
}

static void answer(Peer *p, PolkitAnswer answer, bool interactive, bool outdated) {
        answer_about(POLKIT_READ, p, answer, interactive, outdated);
}

/* A yes and a no are kept until polkit's rules change; then the last answer only tells what the client has seen. */
static void test_kept_answers(void) {
        const DatabaseConfig c = config(true);
        const Database d = { .config = (DatabaseConfig *) &c };
        Peer p = peer(1002);

        CHECK_INT(policy_verdict(&context, &p, &d), POLICY_ASK);
        CHECK(!policy_is_visible(&context, &p, &d));
        answer(&p, POLKIT_YES, false, false);
        CHECK_INT(policy_verdict(&context, &p, &d), POLICY_YES);
        answer(&p, POLKIT_NO, false, false); /* to a question from before */
        CHECK_INT(policy_verdict(&context, &p, &d), POLICY_YES);
        policy_keep_no_answers(&p);
        CHECK_INT(policy_verdict(&context, &p, &d), POLICY_ASK);
        CHECK(policy_is_visible(&context, &p, &d));
        CHECK_INT(policy_view_of_peer(&context, &p, true, &d), POLICY_YES);
        CHECK_INT(policy_view_of_peer(&context, &p, false, &d), POLICY_NO);
        answer(&p, POLKIT_NO, false, false);
        CHECK_INT(policy_verdict(&context, &p, &d), POLICY_NO);
        CHECK(!policy_is_visible(&context, &p, &d));
        peer_done(&p);
}

/* polkit decides who may read, and thereby who may write: a challenge that was answered counts for the call that waited. */
static void test_writing_with_polkit(void) {
        DatabaseConfig c = writable();
        const Database d = { .config = &c };
        Peer p = peer(1002);

        c.polkit = true;
        CHECK(!policy_may_write(&context, &p, &d));
        answer(&p, POLKIT_YES, false, false);
        CHECK(policy_may_write(&context, &p, &d));
        policy_keep_no_answers(&p);
        CHECK(policy_may_write(&context, &p, &d));
        answer(&p, POLKIT_NO, false, false);
        CHECK(!policy_may_write(&context, &p, &d));
        peer_done(&p);
}

/* polkit decides about writing for users who may read and are not named. A challenge is kept, until another answer comes. */
static void test_write_polkit(void) {
        DatabaseConfig c = writable();
        const Database d = { .config = &c };
        Peer p = peer(1001), stranger = peer(1003);

        CHECK_INT(policy_write_verdict(&context, &p, &d), POLICY_NO);
        c.write_polkit = true;
        CHECK_INT(policy_write_verdict(&context, &p, &d), POLICY_ASK);
        CHECK(!policy_may_write(&context, &p, &d));
        answer_about(POLKIT_WRITE, &p, POLKIT_CHALLENGE, false, false);
        CHECK_INT(policy_write_verdict(&context, &p, &d), POLICY_NO);
        CHECK(policy_write_needs_user(&context, &p, &d));
        answer_about(POLKIT_WRITE, &p, POLKIT_YES, true, false);
        CHECK_INT(policy_write_verdict(&context, &p, &d), POLICY_YES);
        CHECK(policy_may_write(&context, &p, &d) && !policy_write_needs_user(&context, &p, &d));
        policy_keep_no_answers(&p);
        CHECK_INT(policy_write_verdict(&context, &p, &d), POLICY_ASK);
        CHECK(policy_may_write(&context, &p, &d)); /* the call that waited */
        answer_about(POLKIT_WRITE, &p, POLKIT_ABSENT, false, false);
        CHECK_INT(policy_write_verdict(&context, &p, &d), POLICY_ASK);
        CHECK(!policy_may_write(&context, &p, &d));
        answer_about(POLKIT_WRITE, &stranger, POLKIT_YES, false, false);
        CHECK(!policy_may_write(&context, &stranger, &d)); /* who may not read */
        CHECK_INT(policy_verdict(&context, &stranger, &d), POLICY_NO);
        c.mode = (char *) "read-only";
        CHECK_INT(policy_write_verdict(&context, &stranger, &d), POLICY_NO);
        peer_done(&p);
        peer_done(&stranger);
}

/* None of these holds for the next call. */
static void test_answers_that_are_not_kept(void) {
        static const struct {
                PolkitAnswer answer;
                bool interactive, outdated;
                PolkitAnswer last;
        } cases[] = {
                { POLKIT_ABSENT, false, false, POLKIT_ABSENT },
                { POLKIT_CHALLENGE, false, false, POLKIT_CHALLENGE },
                { POLKIT_NO, true, false, POLKIT_CHALLENGE }, /* the user failed to authenticate, and may try again */
                { POLKIT_YES, false, true, POLKIT_YES },
                { POLKIT_NO, false, true, POLKIT_NO },
        };
        const DatabaseConfig c = config(true);
        const Database d = { .config = (DatabaseConfig *) &c };

        for (unsigned i = 0; i < N_ELEMENTS(cases); i++) {
                Peer p = peer(1002);

                answer(&p, cases[i].answer, cases[i].interactive, cases[i].outdated);
                CHECK_INT(policy_verdict(&context, &p, &d), POLICY_ASK);
                CHECK_INT(policy_last_answer(&p, POLKIT_READ, "chinook"), cases[i].last);
                peer_done(&p);
        }
}

int main(void) {
        static const Test tests[] = {
                TEST(test_configuration), TEST(test_writing), TEST(test_databases_that_are_never_written),
                TEST(test_kept_answers), TEST(test_writing_with_polkit), TEST(test_write_polkit),
                TEST(test_answers_that_are_not_kept),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
