/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/ctl/database-file: the configuration reads the same values from a file as were written to it. */
#include "daemon/configuration/configuration-database.h"
#include "daemon/configuration/configuration-main.h"
#include "daemon/configuration/configuration.h"
#include "tests/unit/test.h"
#include "tools/ctl/database-file.h"

static Config *read_back(const DatabaseFile *file) {
        g_autofree char *text = database_file_text(file);
        const ConfigText texts[] = { { "x.conf", text, strlen(text) } };
        Config *config = config_new();

        config_add_database(config, "x", texts, 1);
        CHECK_INT(g_hash_table_size(config->broken), 0);
        CHECK_INT(config->warnings->len, 0);
        return config;
}

static void check_list(char **got, const char *const *expected) {
        CHECK_INT(g_strv_length(got), g_strv_length((char **) expected));
        for (size_t i = 0; expected[i]; i++)
                CHECK_STRING(got[i], expected[i]);
}

static void test_everything(void) {
        static const char *const users[] = { "alice", "1000", "*", NULL }, *const groups[] = { "staff", NULL };
        static const char *const expose[] = {
                "track", "two words", "a \"quoted\" 'one'", "back\\slash", "ends with \\", "tab\there", "ü", "#no", NULL,
        };
        const DatabaseFile file = {
                .path = "/srv/a.sqlite",
                .description = "All of it",
                .allow_users = (char **) users,
                .allow_groups = (char **) groups,
                .expose = (char **) expose,
                .immutable = true,
                .polkit = true,
        };
        g_autoptr(Config) config = read_back(&file);
        const DatabaseConfig *d = g_hash_table_lookup(config->databases, "x");

        CHECK_STRING(d->path, file.path);
        CHECK_STRING(d->description, file.description);
        CHECK(d->immutable && d->polkit && !d->write_polkit);
        check_list(d->allow_users, users);
        check_list(d->allow_groups, groups);
        check_list(d->expose, expose);
}

static void test_writers(void) {
        static const char *const users[] = { "alice", "two words", NULL }, *const groups[] = { "staff", NULL };
        const DatabaseFile file = {
                .path = "/srv/a.sqlite",
                .mode = "read-write",
                .write_users = (char **) users,
                .write_groups = (char **) groups,
                .write_polkit = true,
        };
        g_autoptr(Config) config = read_back(&file);
        const DatabaseConfig *d = g_hash_table_lookup(config->databases, "x");

        CHECK(database_config_is_writable(d));
        CHECK(d->write_polkit);
        check_list(d->write_users, users);
        check_list(d->write_groups, groups);
}

static void test_nothing_but_the_path(void) {
        const DatabaseFile file = { .path = "/srv/a.sqlite" };
        g_autofree char *text = database_file_text(&file);

        CHECK_STRING(text, "[Database]\nPath=/srv/a.sqlite\n");
}

/* Blanks at the ends, line ends, escapes, and text that would be another key. */
static void test_odd_values(void) {
        static const char *const values[] = {
                "/srv/with blanks/a.sqlite", "/srv/ends with a blank ", "/srv/new\nline\nPolkit=yes", "/srv/back\\slash\\n",
                "/srv/tab\t\r", "/srv/# ; = [x]", "/srv/\"quoted\"", "/", "/ ",
        };

        for (size_t i = 0; i < N_ELEMENTS(values); i++) {
                const DatabaseFile file = { .path = values[i], .description = values[i] + 1 };
                g_autoptr(Config) config = read_back(&file);
                const DatabaseConfig *d = g_hash_table_lookup(config->databases, "x");

                CHECK_STRING(d->path, values[i]);
                CHECK_STRING(d->description, values[i] + 1);
                CHECK(!d->polkit && !d->write_polkit);
        }
}

int main(void) {
        static const Test tests[] = {
                TEST(test_everything), TEST(test_writers), TEST(test_nothing_but_the_path), TEST(test_odd_values),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
