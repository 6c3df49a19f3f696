/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lists of [Database]. Pure. */
#include "daemon/configuration/configuration-list.h"

#include <errno.h>
#include <string.h>

#include "daemon/configuration/configuration-text.h"

/* Limit for one list; a group is better for more names. The list is searched for each new name, which stays fast at this
 * length. */
#define LIST_LENGTH_MAX 1024

typedef enum ListKind { LIST_USERS, LIST_GROUPS, LIST_TABLES } ListKind;

/* SQLite's own limit is higher, but no real name is this long. */
#define TABLE_NAME_SIZE_MAX 1024

static void strv_add(char ***strv, char *item) {
        unsigned n = g_strv_length(*strv);

        *strv = g_renew(char *, *strv, n + 2);
        (*strv)[n] = item;
        (*strv)[n + 1] = NULL;
}

static void strv_reset(char ***strv) {
        g_strfreev(*strv);
        *strv = g_new0(char *, 1);
}

static bool check_allowed(Place *p, ListKind kind, const char *key, const char *word) {
        uint32_t id;

        if (parse_id(word, &id) == -ERANGE)
                place_broken(p, "%s=: %s is no id that a %s has", key, word, kind == LIST_USERS ? "user" : "group");
        else if (*word == 0)
                place_broken(p, "%s=: a name is empty", key);
        else if (kind == LIST_GROUPS && strcmp(word, "*") == 0)
                place_broken(p, "%s=: there is no * for groups: use %.*sUsers=* for all users", key,
                             (int) (strlen(key) - strlen("Groups")), key);
        else
                return true;
        return false;
}

static bool check_table(Place *p, char **list, const char *key, const char *word) {
        if (*word == 0)
                place_broken(p, "%s=: a name is empty", key);
        else if (strlen(word) > TABLE_NAME_SIZE_MAX)
                place_broken(p, "%s=%.40s...: no name of more than %d bytes is taken", key, word, TABLE_NAME_SIZE_MAX);
        else if (g_ascii_strncasecmp(word, "sqlite_", 7) == 0)
                place_broken(p, "%s=%s: what begins with sqlite_ is SQLite's own and is never %s", key, word,
                             strcmp(key, "Expose") == 0 ? "exposed" : "written by clients");
        else {
                for (char **i = list; *i; i++)
                        if (g_ascii_strcasecmp(*i, word) == 0) { /* SQLite compares names this way */
                                place_warn(p, "%s=%s is in the list already", key, word);
                                return false;
                        }
                return true;
        }
        return false;
}

static bool check(Place *p, ListKind kind, char **list, const char *key, const char *word) {
        return kind == LIST_TABLES ? check_table(p, list, key, word) : check_allowed(p, kind, key, word);
}

static void add_words(Place *p, ListKind kind, const DatabaseKey *database_key, const char *value, DatabaseConfig *d) {
        char ***list = (char ***) G_STRUCT_MEMBER_P(d, database_key->offset);
        char ***places = database_key->places > 0 ? (char ***) G_STRUCT_MEMBER_P(d, database_key->places) : NULL;
        const char *key = database_key->name;
        const char *rest = value;
        char *word;
        int r;

        if (*value == 0) {
                strv_reset(list);
                if (places)
                        strv_reset(places);
        }
        while ((r = config_next_word(&rest, &word)) > 0) {
                if (g_strv_length(*list) >= LIST_LENGTH_MAX) {
                        place_broken(p, "%s=: more than %d names", key, LIST_LENGTH_MAX);
                        g_free(word);
                        return;
                }
                if (!check(p, kind, *list, key, word)) {
                        g_free(word);
                        continue;
                }
                strv_add(list, word);
                if (places)
                        strv_add(places, g_strdup_printf("%s:%u", p->file, p->line));
        }
        if (r < 0)
                place_broken(p, "%s=: a quote or backslash leads nowhere", key);
}

void list_set_users(Place *p, const DatabaseKey *key, char *value, DatabaseConfig *d) {
        add_words(p, LIST_USERS, key, value, d);
}

void list_set_groups(Place *p, const DatabaseKey *key, char *value, DatabaseConfig *d) {
        add_words(p, LIST_GROUPS, key, value, d);
}

void list_set_tables(Place *p, const DatabaseKey *key, char *value, DatabaseConfig *d) {
        add_words(p, LIST_TABLES, key, value, d);
}

bool list_equal(char **a, char **b) {
        return g_strv_equal((const char *const *) a, (const char *const *) b);
}

bool list_ids_equal(const uint32_t *a, size_t n_a, const uint32_t *b, size_t n_b) {
        return n_a == n_b && (n_a == 0 || memcmp(a, b, n_a * sizeof *a) == 0);
}
