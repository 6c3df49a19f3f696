/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pages of pipes: nobody takes another's, and growth leaves room for the next pipe. */
#include "pipe-budget.h"
#include "test.h"

static PipeBudget budget(uint64_t soft) {
        PipeBudget b;

        pipe_budget_init(&b, soft, UINT64_MAX);
        return b;
}

static void test_total(void) {
        CHECK_INT(budget(16384).total, 12288);
        CHECK_INT(budget(0).total, 12288); /* the kernel sets no bound: we do */
        CHECK_INT(budget(8).total, 6);
        CHECK(budget(UINT64_MAX).total > 0);
}

static void test_pipes_leave_descriptors(void) {
        PipeBudget b;
        PipeAccount a = {};
        unsigned n = 0;

        pipe_budget_init(&b, 16384, 1024);
        CHECK_INT(b.total, 512);
        for (; pipe_budget_admits_new(&b, &a, UINT64_MAX); n++)
                pipe_budget_change(&b, &a, 0, 1);
        CHECK_INT(n, 256);
}

static void test_new_pipes_up_to_half(void) {
        PipeBudget b = budget(16384);
        PipeAccount a = {};
        unsigned n = 0;

        while (pipe_budget_admits_new(&b, &a, UINT64_MAX)) {
                pipe_budget_change(&b, &a, 0, 1);
                n++;
        }
        CHECK_INT(n, 6144);
        CHECK_INT(a.used, 6144);
        CHECK_INT(b.n_holders, 1);

        PipeAccount other = {};
        CHECK(pipe_budget_admits_new(&b, &other, UINT64_MAX));
        CHECK(pipe_budget_admits_filling(&b, &other, UINT64_MAX, 255));
}

static void test_limit_of_the_account(void) {
        PipeBudget b = budget(16384);
        PipeAccount a = {};

        CHECK(pipe_budget_admits_new(&b, &a, 2));
        pipe_budget_change(&b, &a, 0, 2);
        CHECK(!pipe_budget_admits_new(&b, &a, 2));
        CHECK(pipe_budget_admits_new(&b, &a, 3));
        pipe_budget_change(&b, &a, 2, 7);
        CHECK(!pipe_budget_admits_first_run(&b, &a, 8, 1)); /* 7/8 of the 8: the last page is for a new pipe */
        CHECK(pipe_budget_admits_new(&b, &a, 8));
}

static void test_growth_leaves_room(void) {
        PipeBudget b = budget(16384);
        PipeAccount a = {};

        while (pipe_budget_admits_filling(&b, &a, UINT64_MAX, 256))
                pipe_budget_change(&b, &a, 0, 256);
        CHECK_INT(a.used, 3072); /* half of what it may have */
        while (pipe_budget_admits_first_run(&b, &a, UINT64_MAX, 16))
                pipe_budget_change(&b, &a, 0, 16);
        CHECK_INT(a.used, 5376);
        CHECK(pipe_budget_admits_new(&b, &a, UINT64_MAX));
}

/* Three uids with a lot of runs, each under its own cap, leave the others a pipe for their queries. */
static void test_growth_of_several_leaves_room(void) {
        PipeBudget b = budget(16384);
        PipeAccount hogs[3] = {}, late = {};

        for (unsigned i = 0; i < N_ELEMENTS(hogs); i++)
                while (pipe_budget_admits_first_run(&b, &hogs[i], UINT64_MAX, 16))
                        pipe_budget_change(&b, &hogs[i], 0, 16);
        CHECK_INT(b.used, 10752); /* 7/8 */
        CHECK(!pipe_budget_admits_filling(&b, &late, UINT64_MAX, 16));
        CHECK(!pipe_budget_admits_first_run(&b, &late, UINT64_MAX, 16));
        CHECK(pipe_budget_admits_new(&b, &late, UINT64_MAX));
}

static void test_fair_share(void) {
        PipeBudget b = budget(16384);
        PipeAccount accounts[12] = {};

        for (unsigned i = 0; i < N_ELEMENTS(accounts); i++)
                pipe_budget_change(&b, &accounts[i], 0, 1);
        CHECK_INT(b.n_holders, 12);
        /* 12288 pages by 12 uids, of which half is for growth */
        CHECK(pipe_budget_admits_filling(&b, &accounts[0], UINT64_MAX, 511));
        CHECK(!pipe_budget_admits_filling(&b, &accounts[0], UINT64_MAX, 512));
}

static void test_total_is_never_passed(void) {
        PipeBudget b = budget(16384);
        PipeAccount hogs[2] = {}, late = {};

        /* these made their pipes larger themselves: they count as they are */
        pipe_budget_change(&b, &hogs[0], 0, 10000);
        pipe_budget_change(&b, &hogs[1], 0, 10000);
        CHECK(!pipe_budget_admits_new(&b, &late, UINT64_MAX));
        CHECK(!pipe_budget_admits_new(&b, &hogs[0], UINT64_MAX));
        pipe_budget_change(&b, &hogs[1], 10000, 0);
        CHECK(pipe_budget_admits_new(&b, &late, UINT64_MAX));
        CHECK(!pipe_budget_admits_new(&b, &hogs[0], UINT64_MAX));
}

/* One alone that made its pipes larger than all may be: it has nothing left, the others have half. */
static void test_past_the_total(void) {
        PipeBudget b = budget(16384);
        PipeAccount hog = {}, late = {};

        pipe_budget_change(&b, &hog, 0, 20000);
        CHECK(!pipe_budget_admits_new(&b, &hog, UINT64_MAX));
        CHECK(pipe_budget_admits_first_run(&b, &late, UINT64_MAX, 16));
        CHECK_INT(b.used, 6144);
        pipe_budget_change(&b, &hog, 20000, 7000);
        CHECK_INT(b.used, 6144);
        pipe_budget_change(&b, &hog, 7000, 100);
        CHECK_INT(b.used, 100);
        pipe_budget_change(&b, &hog, 100, 0);
        CHECK_INT(b.used, 0);
}

static void test_changes_add_up(void) {
        PipeBudget b = budget(16384);
        PipeAccount a = {}, c = {};

        pipe_budget_change(&b, &a, 0, 16);
        pipe_budget_change(&b, &c, 0, 1);
        pipe_budget_change(&b, &a, 16, 256);
        CHECK_INT(b.used, 257);
        pipe_budget_change(&b, &a, 256, 1);
        CHECK_INT(b.used, 2);
        pipe_budget_change(&b, &a, 1, 0);
        CHECK_INT(b.n_holders, 1);
        pipe_budget_change(&b, &c, 1, 0);
        CHECK_INT(b.n_holders, 0);
        CHECK_INT(b.used, 0);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_total), TEST(test_pipes_leave_descriptors), TEST(test_new_pipes_up_to_half),
                TEST(test_limit_of_the_account), TEST(test_growth_leaves_room),
                TEST(test_growth_of_several_leaves_room), TEST(test_fair_share), TEST(test_total_is_never_passed),
                TEST(test_past_the_total), TEST(test_changes_add_up),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
