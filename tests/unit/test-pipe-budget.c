/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pages of pipes: users who take many pages leave enough for others, and growth leaves enough for the next pipe. */
#include "daemon/supervisor/base/pipe-budget.h"
#include "tests/unit/test.h"

#define NO_LIMIT UINT64_MAX

static PipeBudget budget(uint64_t soft) {
        PipeBudget b;

        pipe_budget_init(&b, soft, UINT64_MAX);
        return b;
}

/* A pipe in use that we resized. */
static void change(PipeBudget *b, PipeAccount *a, uint64_t before, uint64_t after) {
        pipe_budget_change(b, a, &(PipeShare) { .pages = before, .granted = before },
                           &(PipeShare) { .pages = after, .granted = after });
}

static bool admits(const PipeBudget *b, const PipeAccount *a) {
        return pipe_budget_admits_new(b, a, NO_LIMIT) == PIPE_ADMITTED;
}

/* One pipe more that is in use, or only kept open by its reader. False: it was refused. */
static bool take(PipeBudget *b, PipeAccount *a, bool retired) {
        static const PipeShare none, made = { 1, 1, false }, kept = { 1, 1, true };

        if (!admits(b, a))
                return false;
        pipe_budget_change(b, a, &none, &made);
        if (retired)
                pipe_budget_change(b, a, &made, &kept);
        return true;
}

/* All of them take one pipe after the other until none gets one more. */
static void attack(PipeBudget *b, PipeAccount *accounts, unsigned n, bool retired) {
        for (bool more = true; more;) {
                more = false;
                for (unsigned i = 0; i < n; i++)
                        more |= take(b, &accounts[i], retired);
        }
}

static void test_total(void) {
        CHECK_INT(budget(16384).total, 12288);
        CHECK_INT(budget(0).total, 12288); /* the kernel sets no bound: we do */
        CHECK_INT(budget(16384).reserve, 1536);
        CHECK_INT(budget(16384).little, 24);
        CHECK_INT(budget(8).total, 6);
        CHECK_INT(budget(8).reserve, 1);
        CHECK_INT(budget(8).little, 1);
        CHECK(budget(UINT64_MAX).total > 0);
}

static void test_pipes_leave_descriptors(void) {
        PipeBudget b;

        pipe_budget_init(&b, 16384, 1024);
        CHECK_INT(b.total, 640);
        pipe_budget_init(&b, 16384, 20000);
        CHECK_INT(b.total, 12288);
}

/* A user alone gets half of the pages that are not reserved, and not one page more. */
static void test_alone(void) {
        PipeBudget b = budget(16384);
        PipeAccount a = {};

        attack(&b, &a, 1, false);
        CHECK_INT(a.used, 5376);
        CHECK_INT(b.granted, 5376);
        CHECK_INT(b.n_holders, 1);
        CHECK_INT(pipe_budget_admits_new(&b, &a, NO_LIMIT), PIPE_PAST_SHARE);
        change(&b, &a, 1, 0);
        CHECK(admits(&b, &a));
}

/* Pipes that a user keeps without use: half of its share, and it has the other half for those that it uses. */
static void test_retired_alone(void) {
        PipeBudget b = budget(16384);
        PipeAccount a = {};

        attack(&b, &a, 1, true);
        CHECK_INT(a.retired, 2688);
        CHECK_INT(a.used, 2688);
        CHECK_INT(pipe_budget_admits_new(&b, &a, NO_LIMIT), PIPE_PAST_RETIRED);
        pipe_budget_change(&b, &a, &(PipeShare) { 1, 1, true }, &(PipeShare) {});
        attack(&b, &a, 1, false);
        CHECK_INT(a.used, 5376);
        CHECK_INT(a.retired, 2687);
}

/* Pipes that the service retires by itself leave three eighths of the retired ones to the user's own. */
static void test_retired_by_the_service(void) {
        PipeBudget b = budget(16384);
        PipeAccount a = {};
        unsigned n = 0;

        for (; pipe_budget_leaves_retired(&b, &a, NO_LIMIT, 1, true); n++)
                CHECK(take(&b, &a, true));
        CHECK_INT(n, 2688 / 2);
        for (; pipe_budget_leaves_retired(&b, &a, NO_LIMIT, 1, false); n++)
                CHECK(take(&b, &a, true));
        CHECK_INT(n, 2688 / 8 * 5);
        attack(&b, &a, 1, true);
        CHECK_INT(a.retired, 2688);
        CHECK(!pipe_budget_leaves_retired(&b, &a, NO_LIMIT, 1, true));
        a = (PipeAccount) {};
        b = budget(16384);
        CHECK(pipe_budget_leaves_retired(&b, &a, 16, 4, true)); /* PipePagesMax=16; little is 24 */
        CHECK(pipe_budget_leaves_retired(&b, &a, 16, 12, true));
        CHECK(!pipe_budget_leaves_retired(&b, &a, 16, 13, true));
}

/* If any number of users attack in any way, one more user gets as much as each of them, and many more get a little. */
static void check_others_after_attack(unsigned n, bool retired, uint64_t each, uint64_t at_least) {
        PipeBudget b = budget(16384);
        PipeAccount attackers[200] = {}, late = {}, others[10] = {};

        attack(&b, attackers, n, retired);
        for (unsigned i = 0; i < n; i++) {
                CHECK(attackers[i].used >= each && attackers[i].used <= each + 1);
                CHECK(!admits(&b, &attackers[i]));
        }
        for (unsigned i = 0; i < N_ELEMENTS(others); i++)
                for (unsigned k = 0; k < b.little; k++)
                        CHECK(take(&b, &others[i], k % 2 == 0));
        attack(&b, &late, 1, false);
        CHECK(late.used >= at_least);
        CHECK(b.granted <= b.total);
}

static void test_two_attackers(void) {
        check_others_after_attack(2, false, 3584, 1672);
        check_others_after_attack(2, true, 2150, 3106);
}

static void test_ten_attackers(void) {
        check_others_after_attack(10, false, 977, 368);
        check_others_after_attack(10, true, 827, 1121);
}

static void test_two_hundred_attackers(void) {
        check_others_after_attack(200, false, 53, 24);
        check_others_after_attack(200, true, 52, 24);
}

/* Each takes half of the pages that those before it left, or the least share. */
static void test_attackers_after_each_other(void) {
        PipeBudget b = budget(16384);
        PipeAccount attackers[40] = {}, late = {};

        for (unsigned i = 0; i < N_ELEMENTS(attackers); i++) {
                attack(&b, &attackers[i], 1, i % 2 == 0);
                CHECK(attackers[i].used >= b.little);
        }
        attack(&b, &late, 1, false);
        CHECK_INT(late.used, b.little);
        CHECK(!admits(&b, &late));
}

/* The reserve is for those who hold little: the last page of it, and then none. */
static void test_reserve_ends(void) {
        PipeBudget b = budget(8);
        PipeAccount hogs[3] = {}, late[4] = {};

        attack(&b, hogs, N_ELEMENTS(hogs), false);
        CHECK(b.granted < b.total);
        while (b.granted < b.total)
                for (unsigned i = 0; i < N_ELEMENTS(late); i++)
                        if (late[i].used == 0 && b.granted < b.total)
                                CHECK(take(&b, &late[i], false));
        CHECK_INT(pipe_budget_admits_new(&b, &(PipeAccount) {}, NO_LIMIT), PIPE_PAST_TOTAL);
}

static void test_limit_of_the_account(void) {
        PipeBudget b = budget(16384);
        PipeAccount a = {};

        CHECK_INT(pipe_budget_admits_new(&b, &a, 2), PIPE_ADMITTED);
        change(&b, &a, 0, 2);
        CHECK_INT(pipe_budget_admits_new(&b, &a, 2), PIPE_PAST_LIMIT);
        CHECK_INT(pipe_budget_admits_new(&b, &a, 3), PIPE_ADMITTED);
        change(&b, &a, 2, 7);
        CHECK(!pipe_budget_admits_first_run(&b, &a, 8, 1)); /* the last quarter of the 8 is for new pipes */
        CHECK_INT(pipe_budget_admits_new(&b, &a, 8), PIPE_ADMITTED);
}

static void test_growth_leaves_room(void) {
        PipeBudget b = budget(16384);
        PipeAccount a = {};

        while (pipe_budget_admits_filling(&b, &a, NO_LIMIT, 256))
                change(&b, &a, 0, 256);
        CHECK_INT(a.used, 2560); /* half of its share of 5376, in pipes of 256 */
        while (pipe_budget_admits_first_run(&b, &a, NO_LIMIT, 16))
                change(&b, &a, 0, 16);
        CHECK_INT(a.used, 4032);
        CHECK(admits(&b, &a));
}

/* Users with a lot of runs leave pipes for their own next queries, and for another user. */
static void test_growth_of_several_leaves_room(void) {
        PipeBudget b = budget(16384);
        PipeAccount hogs[30] = {}, late = {};

        for (unsigned i = 0; pipe_budget_admits_first_run(&b, &hogs[i % N_ELEMENTS(hogs)], NO_LIMIT, 16); i++)
                change(&b, &hogs[i % N_ELEMENTS(hogs)], 0, 16);
        CHECK(b.granted > 8048 && b.granted <= 8064); /* 3/4 of the pages that are not reserved */
        CHECK(!pipe_budget_admits_filling(&b, &late, NO_LIMIT, 16));
        CHECK(!pipe_budget_admits_first_run(&b, &late, NO_LIMIT, 17));
        for (unsigned i = 0; i < N_ELEMENTS(hogs); i++)
                for (unsigned k = 0; k < 50; k++)
                        CHECK(take(&b, &hogs[i], false));
        CHECK(admits(&b, &late));
}

static void test_fair_part(void) {
        PipeBudget b = budget(16384);
        PipeAccount accounts[12] = {};

        for (unsigned i = 0; i < N_ELEMENTS(accounts); i++)
                change(&b, &accounts[i], 0, 1);
        CHECK_INT(b.n_holders, 12);
        /* 10752 pages by 12 uids, of which half is for growth */
        CHECK(pipe_budget_admits_filling(&b, &accounts[0], NO_LIMIT, 447));
        CHECK(!pipe_budget_admits_filling(&b, &accounts[0], NO_LIMIT, 448));
}

/* Pages that clients took by growing their pipes count against them, and take nothing from others. */
static void test_grown_by_clients(void) {
        static const PipeShare made = { .pages = 1, .granted = 1 }, grown = { .pages = 20000, .granted = 1 };
        PipeBudget b = budget(16384);
        PipeAccount hogs[2] = {}, late = {};

        for (unsigned i = 0; i < N_ELEMENTS(hogs); i++) {
                CHECK(take(&b, &hogs[i], false));
                pipe_budget_change(&b, &hogs[i], &made, &grown);
                CHECK_INT(pipe_budget_admits_new(&b, &hogs[i], NO_LIMIT), PIPE_PAST_SHARE);
        }
        CHECK_INT(b.granted, 2);
        attack(&b, &late, 1, false);
        CHECK_INT(late.used, 5375);
        pipe_budget_change(&b, &hogs[0], &grown, &made);
        CHECK(admits(&b, &hogs[0]));
}

static void test_changes_add_up(void) {
        PipeBudget b = budget(16384);
        PipeAccount a = {}, c = {};

        change(&b, &a, 0, 16);
        change(&b, &c, 0, 1);
        change(&b, &a, 16, 256);
        CHECK_INT(b.granted, 257);
        change(&b, &a, 256, 1);
        CHECK_INT(b.granted, 2);
        CHECK_INT(b.n_holders, 2);
        change(&b, &a, 1, 0);
        CHECK_INT(b.n_holders, 1);
        change(&b, &c, 1, 0);
        CHECK_INT(b.n_holders, 0);
        CHECK_INT(b.granted, 0);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_total), TEST(test_pipes_leave_descriptors), TEST(test_alone), TEST(test_retired_alone),
                TEST(test_retired_by_the_service),
                TEST(test_two_attackers), TEST(test_ten_attackers), TEST(test_two_hundred_attackers),
                TEST(test_attackers_after_each_other), TEST(test_reserve_ends), TEST(test_limit_of_the_account),
                TEST(test_growth_leaves_room), TEST(test_growth_of_several_leaves_room), TEST(test_fair_part),
                TEST(test_grown_by_clients),
                TEST(test_changes_add_up),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
