/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Differences between two lists: applied to the first list, they give the second one, and none of them is superfluous. */
#include "client-lib/rows-difference.h"
#include "tests/unit/test.h"

#define N_MAX 64

/* A list of rows, each a key and a version of its values. */
typedef struct List {
        size_t n;
        struct {
                int key, version;
        } rows[2 * N_MAX];
} List;

static void list_insert(List *l, size_t at, int key, int version) {
        CHECK(at <= l->n && l->n < 2 * (size_t) N_MAX);
        memmove(l->rows + at + 1, l->rows + at, (l->n - at) * sizeof *l->rows);
        l->rows[at].key = key;
        l->rows[at].version = version;
        l->n++;
}

static void list_remove(List *l, size_t at) {
        CHECK(at < l->n);
        l->n--;
        memmove(l->rows + at, l->rows + at + 1, (l->n - at) * sizeof *l->rows);
}

/* Letters are keys; an upper-case letter is another version of the same row. */
static List list_of(const char *letters) {
        List l = { .n = 0 };

        for (; *letters; letters++)
                list_insert(&l, l.n, *letters | 0x20, *letters & 0x20);
        return l;
}

static void match(const List *before, const List *after, RowsMatch *ret) {
        for (size_t i = 0; i < after->n; i++) {
                ret[i] = (RowsMatch) { .before = ROWS_NO_MATCH };
                for (size_t k = 0; k < before->n; k++)
                        if (before->rows[k].key == after->rows[i].key)
                                ret[i] = (RowsMatch) { .before = k,
                                                       .changed = before->rows[k].version != after->rows[i].version };
        }
}

/* Checks that the change is about the row that it names, and applies it. */
static void apply(List *l, const RowsChange *c, const List *before, const List *after) {
        int key, version;

        switch (c->kind) {
        case ROWS_REMOVED:
                CHECK_INT(l->rows[c->position].key, before->rows[c->before].key);
                list_remove(l, c->position);
                break;
        case ROWS_MOVED:
                key = l->rows[c->position].key;
                version = l->rows[c->position].version;
                CHECK_INT(key, before->rows[c->before].key);
                CHECK_INT(key, after->rows[c->after].key);
                CHECK(c->position != c->to);
                list_remove(l, c->position);
                list_insert(l, c->to, key, version);
                break;
        case ROWS_ADDED:
                list_insert(l, c->position, after->rows[c->after].key, after->rows[c->after].version);
                break;
        case ROWS_CHANGED:
                CHECK(c->position < l->n);
                CHECK_INT(l->rows[c->position].key, after->rows[c->after].key);
                CHECK(l->rows[c->position].version != after->rows[c->after].version);
                l->rows[c->position].version = after->rows[c->after].version;
                break;
        }
}

/* The longest increasing sequence, in the plainest way. */
static size_t longest(const size_t *values, size_t n) {
        size_t best[N_MAX], most = 0;

        for (size_t i = 0; i < n; i++) {
                best[i] = 1;
                for (size_t k = 0; k < i; k++)
                        if (values[k] < values[i] && best[k] + 1 > best[i])
                                best[i] = best[k] + 1;
                most = best[i] > most ? best[i] : most;
        }
        return most;
}

typedef struct Counts {
        size_t of[ROWS_CHANGED + 1];
} Counts;

static Counts expect(const List *before, const RowsMatch *matches, size_t n_after) {
        size_t places[N_MAX], n = 0;
        Counts c = { .of = { 0 } };

        for (size_t i = 0; i < n_after; i++) {
                c.of[ROWS_ADDED] += matches[i].before == ROWS_NO_MATCH;
                c.of[ROWS_CHANGED] += matches[i].before != ROWS_NO_MATCH && matches[i].changed;
                if (matches[i].before != ROWS_NO_MATCH)
                        places[n++] = matches[i].before;
        }
        c.of[ROWS_REMOVED] = before->n - n;
        c.of[ROWS_MOVED] = n - longest(places, n);
        return c;
}

static void check(const List *before, const List *after) {
        RowsMatch matches[N_MAX];
        RowsChange *changes;
        List l = *before;
        Counts counts = { .of = { 0 } }, expected;
        size_t n;

        match(before, after, matches);
        CHECK_INT(rows_difference(before->n, matches, after->n, &changes, &n), 0);
        for (size_t i = 0; i < n; i++) {
                apply(&l, &changes[i], before, after);
                counts.of[changes[i].kind]++;
                CHECK(i == 0 || changes[i - 1].kind <= changes[i].kind ||
                      (changes[i - 1].kind == ROWS_CHANGED && changes[i].kind == ROWS_ADDED));
        }
        CHECK_INT(l.n, after->n);
        for (size_t i = 0; i < l.n; i++) {
                CHECK_INT(l.rows[i].key, after->rows[i].key);
                CHECK_INT(l.rows[i].version, after->rows[i].version);
        }
        expected = expect(before, matches, after->n);
        for (size_t kind = 0; kind < N_ELEMENTS(counts.of); kind++)
                CHECK_INT(counts.of[kind], expected.of[kind]);
        free(changes);
}

/* The changes as a text: "-2" removed at 2, "2>0" moved, "+1" added, "!3" changed. */
static void check_text(const char *from, const char *to, const char *expected) {
        const List before = list_of(from), after = list_of(to);
        char text[200] = "", *at = text;
        RowsMatch matches[N_MAX];
        RowsChange *changes;
        size_t n;

        check(&before, &after);
        match(&before, &after, matches);
        CHECK_INT(rows_difference(before.n, matches, after.n, &changes, &n), 0);
        for (size_t i = 0; i < n; i++) {
                size_t left = sizeof text - (size_t) (at - text);
                const char *blank = i > 0 ? " " : "";

                switch (changes[i].kind) {
                case ROWS_REMOVED:
                        at += snprintf(at, left, "%s-%zu", blank, changes[i].position);
                        break;
                case ROWS_MOVED:
                        at += snprintf(at, left, "%s%zu>%zu", blank, changes[i].position, changes[i].to);
                        break;
                case ROWS_ADDED:
                        at += snprintf(at, left, "%s+%zu", blank, changes[i].position);
                        break;
                case ROWS_CHANGED:
                        at += snprintf(at, left, "%s!%zu", blank, changes[i].position);
                        break;
                }
        }
        CHECK_STRING(text, expected);
        free(changes);
}

static void test_simple(void) {
        check_text("", "", "");
        check_text("abc", "abc", "");
        check_text("", "abc", "+0 +1 +2");
        check_text("abc", "", "-2 -1 -0");
        check_text("abc", "aBc", "!1");
        check_text("abc", "xabc", "+0");
        check_text("abc", "axbc", "+1");
        check_text("abc", "abcx", "+3");
        check_text("abc", "ac", "-1");
        check_text("abc", "xyz", "-2 -1 -0 +0 +1 +2");
}

/* One row that moves is one move, in whichever direction, and however far. */
static void test_moves(void) {
        check_text("abcde", "eabcd", "4>0");
        check_text("abcde", "bcdea", "0>4");
        check_text("abcde", "acbde", "2>1");
        check_text("abcde", "adbce", "3>1");
        check_text("ab", "ba", "1>0");
        check_text("abc", "Cab", "2>0 !0");
        check_text("abcd", "xdaB", "-2 2>0 +0 !3");
        check_text("abcde", "edcba", "4>0 4>1 4>2 4>3");
}

/* ---- At random ---------------------------------------------------------------------------------------------------- */

static uint32_t state = 1;

static size_t below(size_t n) {
        state = state * 1664525u + 1013904223u;
        return (size_t) (state >> 8) % n;
}

static List random_list(size_t n_keys) {
        List l = { .n = 0 };

        for (size_t key = 0; key < n_keys; key++)
                if (below(3) > 0)
                        list_insert(&l, below(l.n + 1), (int) key, (int) below(2));
        return l;
}

/* Some changes to a list, as a program makes them. */
static List edited(const List *from) {
        List l = *from;

        for (size_t i = below(4); i > 0 && l.n > 1; i--) {
                size_t at = below(l.n);
                int key = l.rows[at].key, version = l.rows[at].version;

                list_remove(&l, at);
                if (below(3) > 0)
                        list_insert(&l, below(l.n + 1), key, version ^ (int) below(2));
        }
        return l;
}

static void test_random(void) {
        for (int i = 0; i < 200000; i++) {
                const List before = random_list(1 + below(12)), after = random_list(1 + below(12));

                check(&before, &after);
        }
}

static void test_random_edits(void) {
        for (int i = 0; i < 20000; i++) {
                const List before = random_list(N_MAX - 1), after = edited(&before);

                check(&before, &after);
        }
}

/* The time does not grow with the square of the number of rows: this would not end. */
static void test_many(void) {
        const size_t n = 1000000;
        RowsMatch *matches = calloc(n, sizeof *matches);
        RowsChange *changes;
        size_t n_changes;

        CHECK(matches);
        for (size_t i = 0; i < n; i++)
                matches[i].before = n - 1 - i;
        CHECK_INT(rows_difference(n, matches, n, &changes, &n_changes), 0);
        CHECK_INT(n_changes, n - 1);
        free(changes);
        free(matches);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_simple),
                TEST(test_moves),
                TEST(test_random),
                TEST(test_random_edits),
                TEST(test_many),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
