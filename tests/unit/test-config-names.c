/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of users and groups: which names are looked up, the answers of NSS here, and the meaning of an answer. */
#include <grp.h>
#include <pwd.h>

#include "daemon/configuration/configuration-database.h"
#include "daemon/configuration/configuration-main.h"
#include "daemon/configuration/configuration-names.h"
#include "tests/unit/test.h"

static DatabaseConfig *add(Config *c, const char *name, const char *text) {
        config_add_database(c, name, &(ConfigText) { "/x.conf", text, strlen(text) }, 1);
        CHECK_INT(g_hash_table_size(c->broken), 0);
        return g_hash_table_lookup(c->databases, name);
}

static void test_question(void) {
        g_autoptr(Config) c = config_new();

        g_autofree char *nothing = names_question(c);
        CHECK_STRING(nothing, "");
        add(c, "x", "[Database]\nPath=/x\nAllowUsers=alice 0 * alice 'b\tc'\nAllowGroups=7 alice 'd e'\n");
        g_autofree char *question = names_question(c);
        CHECK_STRING(question, "u alice\ng alice\ng d e\n");
}

static void test_no_names(void) {
        g_autoptr(Config) c = config_new();

        add(c, "x", "[Database]\nPath=/x\nAllowUsers=* 12\nAllowGroups=7\n");
        g_autofree char *question = names_question(c);
        CHECK_STRING(question, "");
}

/* All users and groups that NSS knows on this machine. */
static void test_real_names(void) {
        unsigned n = 0;

        setpwent();
        for (const struct passwd *user; (user = getpwent()) && n < 50; n++) {
                g_autofree char *question = g_strdup_printf("u %s\nu no-such-user-here\n", user->pw_name);
                g_autofree char *expected = g_strdup_printf("u %s %u\n", user->pw_name, (unsigned) user->pw_uid);
                g_autofree char *answer = names_resolve(question);
                CHECK_STRING(answer, expected);
        }
        endpwent();
        CHECK(n > 1);
}

static void test_real_groups(void) {
        const struct group *group = getgrgid(0);
        g_autofree char *name = g_strdup(group->gr_name), *question = g_strdup_printf("g %s\nwhat\n\nx root\n", name),
                        *expected = g_strdup_printf("g %s 0\n", name), *answer = names_resolve(question);

        CHECK_STRING(answer, expected);
}

static void test_apply(void) {
        g_autoptr(Config) c = config_new();
        DatabaseConfig *d = add(c, "x", "[Database]\nPath=/x\nAllowUsers=bob alice 9 9\nAllowUsers=nobody-here\n"
                                        "AllowGroups='the staff'\n");

        CHECK(!d->allow_everybody);
        names_apply(c, "u alice 1000\nu bob 4294967294\ng the staff 50\nu other 1\n");
        CHECK(!d->allow_everybody);
        CHECK_INT(d->n_uids, 3);
        CHECK_INT(d->uids[0], 9);
        CHECK_INT(d->uids[1], 1000);
        CHECK_INT(d->uids[2], 4294967294);
        CHECK_INT(d->n_gids, 1);
        CHECK_INT(d->gids[0], 50);
        CHECK_INT(c->warnings->len, 1);
        CHECK_STRING(c->warnings->pdata[0], "/x.conf:4: user nobody-here is not known; the name gives no access to x");
}

static void test_everybody(void) {
        g_autoptr(Config) c = config_new();
        DatabaseConfig *d = add(c, "x", "[Database]\nPath=/x\nAllowUsers=*\n"),
                       *nobody = add(c, "y", "[Database]\nPath=/x\n"),
                       *reset = add(c, "z", "[Database]\nPath=/x\nAllowUsers=*\nAllowUsers=\nAllowUsers=5\n");

        names_apply(c, "");
        CHECK(d->allow_everybody);
        CHECK(!nobody->allow_everybody);
        CHECK_INT(nobody->n_uids, 0);
        CHECK(!reset->allow_everybody);
        CHECK_INT(reset->n_uids, 1);
}

static void test_writers(void) {
        g_autoptr(Config) c = config_new();
        DatabaseConfig *d = add(c, "x", "[Database]\nPath=/x\nMode=read-write\nAllowUsers=alice\nWriteUsers=bob alice 9\n"
                                        "WriteGroups='the staff' nogroup-here\n");

        g_autofree char *question = names_question(c);
        CHECK_STRING(question, "u alice\nu bob\ng the staff\ng nogroup-here\n");
        names_apply(c, "u alice 1000\nu bob 7\ng the staff 50\n");
        CHECK_INT(d->n_uids, 1);
        CHECK_INT(d->n_gids, 0);
        CHECK(!d->write_everybody);
        CHECK_INT(d->n_write_uids, 3);
        CHECK_INT(d->write_uids[0], 7);
        CHECK_INT(d->write_uids[1], 9);
        CHECK_INT(d->write_uids[2], 1000);
        CHECK_INT(d->n_write_gids, 1);
        CHECK_INT(d->write_gids[0], 50);
        CHECK_INT(c->warnings->len, 1);
        CHECK_STRING(c->warnings->pdata[0],
                     "/x.conf:6: group nogroup-here is not known; the name gives no right to write to x");
        d = add(c, "y", "[Database]\nPath=/x\nMode=read-write\nWriteUsers=*\n");
        names_apply(c, "");
        CHECK(d->write_everybody);
        CHECK(!d->allow_everybody);
        CHECK_INT(d->n_write_uids, 0);
}

static void test_no_answer(void) {
        g_autoptr(Config) c = config_new();
        DatabaseConfig *d = add(c, "x", "[Database]\nPath=/x\nAllowUsers=alice 5\nAllowGroups=staff\n");

        names_apply(c, NULL);
        CHECK_INT(d->n_uids, 1);
        CHECK_INT(d->n_gids, 0);
        CHECK_INT(c->warnings->len, 2);
        CHECK_STRING(c->warnings->pdata[0], "/x.conf:3: user alice could not be looked up; the name gives no access to x");
        CHECK_STRING(c->warnings->pdata[1], "/x.conf:4: group staff could not be looked up; the name gives no access to x");
}

/* All names of a large site when none can be looked up: the first thousand are reported. */
static void test_many_unknown(void) {
        g_autoptr(Config) c = config_new();

        for (int i = 0; i < 1001; i++) {
                g_autofree char *name = g_strdup_printf("x%i", i);
                add(c, name, "[Database]\nPath=/x\nAllowUsers=alice bob\n");
        }
        names_apply(c, NULL);
        CHECK_INT(c->warnings->len, 1001);
        CHECK(strstr(c->warnings->pdata[999], "could not be looked up"));
        CHECK_STRING(c->warnings->pdata[1000], "there is more that is odd, which is not told");
}

/* NSS modules run in the child: whatever it says, only ids of names that were asked for count. */
static void test_odd_answers(void) {
        static const char *const answers[] = {
                "u alice\n", "u alice -1\n", "u alice 4294967295\n", "u alice 1x\n", "alice 1\n", "g alice 1\n",
                " 1\n", "u alice 1 \n", "\n\n",
        };

        for (size_t i = 0; i < N_ELEMENTS(answers); i++) {
                g_autoptr(Config) c = config_new();
                DatabaseConfig *d = add(c, "x", "[Database]\nPath=/x\nAllowUsers=alice\n");

                names_apply(c, answers[i]);
                CHECK_INT(d->n_uids, 0);
                CHECK_INT(c->warnings->len, 1);
        }
}

int main(void) {
        static const Test tests[] = {
                TEST(test_question), TEST(test_no_names), TEST(test_real_names), TEST(test_real_groups), TEST(test_apply),
                TEST(test_everybody), TEST(test_writers), TEST(test_no_answer), TEST(test_many_unknown),
                TEST(test_odd_answers),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
