/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: library. See remote-plan.h. From top to bottom: constraints that can be pushed,
 * cost, order, the plan as text, the use of values, SQL.
 */
#include "client-lib/extension/remote-plan.h"

#include <inttypes.h>
#include <math.h>
#include <sqlite3ext.h>
#include <stdio.h>
#include <string.h>

SQLITE_EXTENSION_INIT3

/* Costs, in rows that SQLite reads from a file of its own. */
#define COST_START 50.0              /* of each search, even if it finds nothing: a request to the service */
#define COST_SEEN 0.5                /* of each row that the service reads and leaves out */
#define COST_SENT 2.0                /* of each row that it sends */
#define VALUES_SIZE_MAX (256 * 1024) /* of the bytes that a search sends: far below what the service accepts */
#define USED_REST 63                 /* the bit of a plan for all columns from this one on */

static const struct {
        unsigned char op;
        char letter;
        const char *sql; /* between column and value */
} operators[] = {
        /* IS NOT NULL and other constraints that exclude little are left out, and not only because of their cost: from the
         * ON of an outer join SQLite 3.40 passes them to the table on the wrong side. */
        {SQLITE_INDEX_CONSTRAINT_EQ, 'e', "="},
        {SQLITE_INDEX_CONSTRAINT_IS, 'i', "IS"},
        {SQLITE_INDEX_CONSTRAINT_GT, 'g', ">"},
        {SQLITE_INDEX_CONSTRAINT_GE, 'h', ">="},
        {SQLITE_INDEX_CONSTRAINT_LT, 'l', "<"},
        {SQLITE_INDEX_CONSTRAINT_LE, 'm', "<="},
        {SQLITE_INDEX_CONSTRAINT_ISNULL, REMOTE_PLAN_IS_NULL, "IS NULL"},
};
#define N_OPERATORS (sizeof operators / sizeof *operators)
#define END_OF_PLAN '#'
#define EQUALITIES "einv"
#define RANGES "ghlm"

/* ---- constraints that can be pushed ---- */

static bool is_limit(unsigned char op) {
        return op == SQLITE_INDEX_CONSTRAINT_LIMIT || op == SQLITE_INDEX_CONSTRAINT_OFFSET;
}

static bool is_known(sqlite3_index_info *info, int i) {
        sqlite3_value *value;

        return sqlite3_vtab_rhs_value(info, i, &value) == SQLITE_OK;
}

/* True if the constraint may be a part of "(a, b) IN ...". SQLite does not tell it, and always names the collation of `a`.
 */
static bool may_be_part(sqlite3_index_info *info, int i) {
        return info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ && !sqlite3_vtab_in(info, i, -1) && !is_known(info, i);
}

/* The collation to search by; NULL: the constraint cannot be pushed. If two come into question, the one by which more is
 * equal. */
static const char *collation_of(const RemoteTable *t, sqlite3_index_info *info, int i) {
        const int column = info->aConstraint[i].iColumn;
        const char *named = remote_collation(sqlite3_vtab_collation(info, i));
        const char *own = column < 0 ? "BINARY" : t->columns[column].collation;

        if (!named || named[0] == own[0] || !may_be_part(info, i))
                return named;
        return named[0] == 'B' ? own : own[0] == 'B' ? named : NULL;
}

static bool is_collation(sqlite3_index_info *info, int i, char letter) {
        return remote_collation(sqlite3_vtab_collation(info, i))[0] == letter;
}

/* The letter of the operator; 0: it cannot be pushed. */
static char operator_of(const RemoteTable *t, sqlite3_index_info *info, int i) {
        const struct sqlite3_index_constraint *c = &info->aConstraint[i];
        size_t k = 0;

        while (k < N_OPERATORS && operators[k].op != c->op)
                k++;
        if (k == N_OPERATORS || !c->usable || (c->iColumn < 0 && !t->rowid))
                return 0;
        if (operators[k].letter != REMOTE_PLAN_IS_NULL && !collation_of(t, info, i))
                return 0;
        /* one value of IN after the other would be a search each, and SQLite 3.40 compares them by other rules then */
        return sqlite3_vtab_in(info, i, -1) ? REMOTE_PLAN_IN : operators[k].letter;
}

static bool is_certain_text(sqlite3_index_info *info, int i) {
        sqlite3_value *value;

        return sqlite3_vtab_rhs_value(info, i, &value) == SQLITE_OK && sqlite3_value_type(value) == SQLITE_TEXT;
}

static void add_constraint(const RemoteTable *t, RemotePlan *plan, sqlite3_index_info *info, int i, char op) {
        const bool limit = is_limit(info->aConstraint[i].op), compares = !limit && op != REMOTE_PLAN_IS_NULL;
        const int n = plan->n_constraints++;

        plan->constraints[n].op = op;
        plan->constraints[n].column = limit ? 0 : info->aConstraint[i].iColumn;
        plan->constraints[n].collation = compares ? collation_of(t, info, i)[0] : 'B';
        plan->constraints[n].value = '-';
        if (compares && is_certain_text(info, i))
                plan->constraints[n].value = REMOTE_PLAN_TEXT;
        if (compares && may_be_part(info, i) && !is_collation(info, i, plan->constraints[n].collation))
                plan->constraints[n].value = REMOTE_PLAN_WIDENED;
        if (op == REMOTE_PLAN_IN)
                (void) sqlite3_vtab_in(info, i, 1);
        /* IS NULL takes a value, too: this tells SQLite that the constraint is used, and so when it must not be */
        info->aConstraintUsage[i].argvIndex = plan->n_constraints;
}

/* Returns true if all constraints are pushed. */
static bool choose_constraints(const RemoteTable *t, RemotePlan *plan, sqlite3_index_info *info) {
        bool all = true;

        for (int i = 0; i < info->nConstraint; i++) {
                char op = is_limit(info->aConstraint[i].op) ? 0 : operator_of(t, info, i);

                if (op && plan->n_constraints < REMOTE_PLAN_N - 2)
                        add_constraint(t, plan, info, i, op);
                else if (!is_limit(info->aConstraint[i].op))
                        all = false;
        }
        return all;
}

/* SQLite passes LIMIT and OFFSET only if the statement reads no other table. */
static void choose_limit(const RemoteTable *t, RemotePlan *plan, sqlite3_index_info *info) {
        bool limit = false;

        for (int i = 0; i < info->nConstraint; i++)
                limit = limit || (info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_LIMIT && info->aConstraint[i].usable);
        for (int i = 0; limit && i < info->nConstraint; i++)
                if (is_limit(info->aConstraint[i].op) && !info->aConstraint[i].usable)
                        return;
        for (int i = 0; limit && i < info->nConstraint; i++)
                if (is_limit(info->aConstraint[i].op))
                        add_constraint(t, plan, info, i,
                                       info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_LIMIT ? REMOTE_PLAN_LIMIT
                                                                                                : REMOTE_PLAN_OFFSET);
}

/* ---- cost ---- */

static bool has_constraint(const RemotePlan *plan, int column, const char *letters) {
        for (int i = 0; i < plan->n_constraints; i++)
                if (plan->constraints[i].column == column && strchr(letters, plan->constraints[i].op))
                        return true;
        return false;
}

/* The number of rows that have the same value in the column; 0: no index finds them. */
static double rows_per_value(const RemoteTable *t, int column) {
        if (column < 0)
                return 1;
        /* usually a view is asked for one row if an index below it finds that row */
        return t->knows_indexes ? t->columns[column].rows_per_value : fmax(t->n_rows / 1000, 1);
}

static void estimate(const RemoteTable *t, const RemotePlan *plan, sqlite3_index_info *info) {
        double seen = t->n_rows, sent;
        bool whole = true;

        for (int i = -1; i < t->n_columns; i++) {
                double n = rows_per_value(t, i);

                if (n == 0 || !has_constraint(plan, i, EQUALITIES RANGES))
                        continue;
                seen = fmin(seen, has_constraint(plan, i, EQUALITIES) ? n : fmax(t->n_rows / 4, 1));
                whole = false;
        }
        sent = seen;
        for (int i = 0; i < plan->n_constraints; i++)
                if (rows_per_value(t, plan->constraints[i].column) == 0)
                        sent = fmax(sent / (strchr(EQUALITIES, plan->constraints[i].op) ? 10 : 4), 1);
        info->estimatedCost = COST_START + COST_SEEN * seen + COST_SENT * sent + (whole ? 0 : log2(t->n_rows + 2));
        info->estimatedRows = (sqlite3_int64) sent;
}

/* ---- order ---- */

/* True if an index of the table, as far as it is known, helps with the order. Otherwise SQLite can sort the rows as well as
 * the service, unless the service has to send only the first ones. */
static bool is_order_useful(const RemoteTable *t, const sqlite3_index_info *info) {
        for (int i = 0; i < info->nConstraint; i++)
                if (info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_LIMIT)
                        return true;
        return rows_per_value(t, info->aOrderBy[0].iColumn) > 0;
}

/* Returns true if the rows come in the order that SQLite wants. */
static bool choose_order(const RemoteTable *t, RemotePlan *plan, sqlite3_index_info *info) {
        if (info->nOrderBy == 0)
                return true;
        if (!t->compares_as_utf8 || info->nOrderBy > REMOTE_PLAN_N || !is_order_useful(t, info))
                return false;
        for (int i = 0; i < info->nOrderBy; i++) {
                if (info->aOrderBy[i].iColumn < 0 && !t->rowid)
                        return false;
                plan->order[i].column = info->aOrderBy[i].iColumn;
                plan->order[i].descending = info->aOrderBy[i].desc;
        }
        plan->n_order = info->nOrderBy;
        info->orderByConsumed = 1;
        return true;
}

/* ---- the plan ---- */

/* The SQL after the plan is for readers of EXPLAIN QUERY PLAN. */
static char *plan_text(const RemoteTable *t, const RemotePlan *plan) {
        sqlite3_str *s = sqlite3_str_new(NULL);
        RemoteUses uses = {};
        char *sql;

        sqlite3_str_appendf(s, "%llx", (unsigned long long) plan->used);
        for (int i = 0; i < plan->n_order; i++)
                sqlite3_str_appendf(s, " %c%d", plan->order[i].descending ? '-' : '+', plan->order[i].column);
        for (int i = 0; i < plan->n_constraints; i++) {
                sqlite3_str_appendf(s, " %c%c%d%c", plan->constraints[i].op, plan->constraints[i].value,
                                    plan->constraints[i].column, plan->constraints[i].collation);
                uses[i] = plan->constraints[i].op == REMOTE_PLAN_IN ? REMOTE_USE_IN : REMOTE_USE_PUSHED;
                if (plan->constraints[i].op == REMOTE_PLAN_OFFSET)
                        uses[i] = REMOTE_USE_LEFT;
        }
        sql = remote_plan_sql(t, plan, uses);
        sqlite3_str_appendf(s, " %c %s", END_OF_PLAN, sql ? sql : "");
        sqlite3_free(sql);
        return sqlite3_str_finish(s);
}

int remote_plan_choose(const RemoteTable *t, sqlite3_index_info *info) {
        RemotePlan plan = { .used = info->colUsed };
        bool all = choose_constraints(t, &plan, info), ordered = choose_order(t, &plan, info);

        estimate(t, &plan, info);
        if (all && ordered)
                choose_limit(t, &plan, info);
        info->idxStr = plan_text(t, &plan);
        info->needToFreeIdxStr = 1;
        return info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}

void remote_plan_parse(const char *text, RemotePlan *ret) {
        char first, second, collation;
        int column, size = 0;

        *ret = (RemotePlan) {};
        (void) sscanf(text, "%" SCNx64 "%n", &ret->used, &size);
        for (text += size; sscanf(text, " %c%n", &first, &size) == 1 && first != END_OF_PLAN; text += size)
                if (first == '+' || first == '-') {
                        (void) sscanf(text, " %c%d%n", &first, &column, &size);
                        ret->order[ret->n_order].column = column;
                        ret->order[ret->n_order++].descending = first == '-';
                } else {
                        (void) sscanf(text, " %c%c%d%c%n", &first, &second, &column, &collation, &size);
                        ret->constraints[ret->n_constraints].op = first;
                        ret->constraints[ret->n_constraints].value = second;
                        ret->constraints[ret->n_constraints].column = column;
                        ret->constraints[ret->n_constraints++].collation = collation;
                }
}

/* ---- the use of values ---- */

typedef enum RemoteUse {
        VALUE_EXACT,   /* the service decides as SQLite does */
        VALUE_PUSHED,  /* it may return more rows */
        VALUE_WIDENED, /* REMOTE_USE_WIDENED */
        VALUE_LEFT,
        VALUE_NEVER, /* no row can match: the value is NULL */
} RemoteUse;

/* True for text that a numeric affinity may convert. */
static bool may_be_number(sqlite3_value *value) {
        const char *text = (const char *) sqlite3_value_text(value);

        return !text || (text[0] && strchr("+-.0123456789 \t\n\v\f\r", text[0]));
}

static RemoteUse use_text(const RemoteTable *t, const RemotePlan *plan, int i, ColumnAffinity affinity,
                          sqlite3_value *value) {
        const char op = plan->constraints[i].op;

        if (strchr(EQUALITIES, op))
                return affinity == COLUMN_UNKNOWN && may_be_number(value) ? VALUE_LEFT : VALUE_EXACT;
        if (!t->compares_as_utf8 || affinity == COLUMN_UNKNOWN)
                return VALUE_LEFT;
        /* a parameter is text that no column converted: a cast to a number would have made it a number */
        if (affinity != COLUMN_NUMERIC && strchr("lm", op) && plan->constraints[i].value != REMOTE_PLAN_TEXT &&
            !sqlite3_value_frombind(value))
                return VALUE_LEFT;
        return VALUE_PUSHED;
}

static RemoteUse use_value(const RemoteTable *t, const RemotePlan *plan, int i, sqlite3_value *value) {
        const int column = plan->constraints[i].column, type = sqlite3_value_type(value);
        const ColumnAffinity affinity = column < 0 ? COLUMN_NUMERIC : t->columns[column].affinity;

        if (type == SQLITE_NULL)
                return plan->constraints[i].op == 'i' ? VALUE_EXACT : VALUE_NEVER;
        if (type == SQLITE_TEXT)
                return use_text(t, plan, i, affinity, value);
        if (type == SQLITE_BLOB || affinity == COLUMN_NUMERIC)
                return VALUE_EXACT;
        if (affinity != COLUMN_PLAIN)
                return VALUE_LEFT;
        return strchr("gh", plan->constraints[i].op) ? VALUE_PUSHED : VALUE_WIDENED;
}

/* The same, but a value for which no room is left is not sent. */
static RemoteUse use_value_in_room(const RemoteTable *t, const RemotePlan *plan, int i, sqlite3_value *value, size_t *room) {
        const int type = sqlite3_value_type(value);
        size_t size = 0;

        if (type == SQLITE_TEXT && sqlite3_value_text(value)) /* in UTF-8 from now on */
                size = (size_t) sqlite3_value_bytes(value);
        else if (type == SQLITE_BLOB)
                size = (size_t) sqlite3_value_bytes(value);
        if (size > *room)
                return VALUE_LEFT;
        *room -= size;
        return use_value(t, plan, i, value);
}

/* Returns the worst use of the values of IN, and their number without NULL, which matches nothing. */
static RemoteUse use_in(const RemoteTable *t, const RemotePlan *plan, int i, sqlite3_value *list, size_t *room, int *ret_n) {
        RemoteUse worst = VALUE_EXACT;
        sqlite3_value *value;
        int rc, n = 0;

        for (rc = sqlite3_vtab_in_first(list, &value); rc == SQLITE_OK && value; rc = sqlite3_vtab_in_next(list, &value)) {
                RemoteUse use = use_value_in_room(t, plan, i, value, room);

                if (use == VALUE_NEVER)
                        continue;
                if (use > worst)
                        worst = use;
                if (++n > 1 << REMOTE_PLAN_IN_BITS)
                        return VALUE_LEFT;
        }
        if (rc != SQLITE_OK && rc != SQLITE_DONE)
                return VALUE_LEFT;
        *ret_n = n;
        if (n == 0)
                return VALUE_NEVER;
        return worst == VALUE_WIDENED ? VALUE_LEFT : worst;
}

/* A list has a power of two of parameters, so that a few statements serve lists of all sizes. */
static char in_letter(int n) {
        char letter = REMOTE_USE_IN;

        while (1 << (letter - REMOTE_USE_IN) < n)
                letter++;
        return letter;
}

bool remote_plan_use(const RemoteTable *t, const RemotePlan *plan, sqlite3_value **values, RemoteUses ret_uses) {
        size_t room = VALUES_SIZE_MAX;
        bool exact = true;
        int i, n_in = 0;

        for (i = 0; i < plan->n_constraints; i++) {
                const char op = plan->constraints[i].op;
                RemoteUse use;

                if (op == REMOTE_PLAN_LIMIT || op == REMOTE_PLAN_OFFSET) {
                        bool limits = op == REMOTE_PLAN_LIMIT && sqlite3_value_type(values[i]) == SQLITE_INTEGER &&
                                      sqlite3_value_int64(values[i]) >= 0;

                        ret_uses[i] = limits && exact ? REMOTE_USE_PUSHED : REMOTE_USE_LEFT;
                        continue;
                }
                if (op == REMOTE_PLAN_IN)
                        use = use_in(t, plan, i, values[i], &room, &n_in);
                else
                        use = op == REMOTE_PLAN_IS_NULL ? VALUE_EXACT : use_value_in_room(t, plan, i, values[i], &room);
                if (use == VALUE_NEVER)
                        return false;
                exact = exact && use == VALUE_EXACT && plan->constraints[i].value != REMOTE_PLAN_WIDENED;
                if (use == VALUE_LEFT)
                        ret_uses[i] = REMOTE_USE_LEFT;
                else if (op == REMOTE_PLAN_IN)
                        ret_uses[i] = in_letter(n_in);
                else
                        ret_uses[i] = use == VALUE_WIDENED ? REMOTE_USE_WIDENED : REMOTE_USE_PUSHED;
        }
        ret_uses[i] = 0;
        return true;
}

bool remote_plan_reads(const RemotePlan *plan, int i) {
        return plan->used & (UINT64_C(1) << (i < USED_REST ? i : USED_REST));
}

/* ---- SQL ---- */

/* With "o.", because a quoted name alone would be a string if the column is gone. */
static void append_column(sqlite3_str *s, const RemoteTable *t, int column) {
        if (column < 0)
                sqlite3_str_appendf(s, "o.%s", t->rowid);
        else
                sqlite3_str_appendf(s, "o.\"%w\"", t->columns[column].name);
}

static void append_constraint(sqlite3_str *s, const RemoteTable *t, const RemotePlan *plan, int i, char use) {
        const char op = plan->constraints[i].op, letter = plan->constraints[i].collation;
        const int column = plan->constraints[i].column;

        if (use == REMOTE_USE_WIDENED)
                sqlite3_str_appendall(s, "(");
        append_column(s, t, column);
        if (op != REMOTE_PLAN_IS_NULL && column >= 0 && t->columns[column].collation[0] != letter)
                sqlite3_str_appendf(s, " COLLATE %s", letter == 'B' ? "BINARY" : letter == 'N' ? "NOCASE" : "RTRIM");
        for (size_t k = 0; k < N_OPERATORS; k++)
                if (operators[k].letter == op)
                        sqlite3_str_appendf(s, op == REMOTE_PLAN_IS_NULL ? " %s" : " %s ?", operators[k].sql);
        if (use == REMOTE_USE_WIDENED) { /* a range that an index serves, and that is empty if the column has no text */
                sqlite3_str_appendall(s, " OR (");
                append_column(s, t, column);
                sqlite3_str_appendall(s, " >= '' AND ");
                append_column(s, t, column);
                sqlite3_str_appendall(s, " < x''))");
        }
        if (op != REMOTE_PLAN_IN)
                return;
        sqlite3_str_appendall(s, " IN (?");
        for (int n = 1; n < 1 << (use - REMOTE_USE_IN); n++)
                sqlite3_str_appendall(s, ", ?");
        sqlite3_str_appendall(s, ")");
}

static void append_columns(sqlite3_str *s, const RemoteTable *t, const RemotePlan *plan) {
        const char *before = "SELECT ";

        if (t->rowid) {
                sqlite3_str_appendf(s, "%so.%s", before, t->rowid);
                before = ", ";
        }
        for (int i = 0; i < t->n_columns; i++)
                if (remote_plan_reads(plan, i)) {
                        sqlite3_str_appendall(s, before);
                        append_column(s, t, i);
                        before = ", ";
                }
        if (sqlite3_str_length(s) == 0)
                sqlite3_str_appendall(s, "SELECT NULL");
}

char *remote_plan_sql(const RemoteTable *t, const RemotePlan *plan, const char *uses) {
        sqlite3_str *s = sqlite3_str_new(NULL);
        const char *before = " WHERE ", *limit = "";

        append_columns(s, t, plan);
        sqlite3_str_appendf(s, " FROM main.\"%w\" AS o", t->name);
        for (int i = 0; i < plan->n_constraints; i++) {
                if (uses[i] == REMOTE_USE_LEFT)
                        continue;
                if (plan->constraints[i].op == REMOTE_PLAN_LIMIT) {
                        limit = " LIMIT ?";
                        continue;
                }
                sqlite3_str_appendall(s, before);
                append_constraint(s, t, plan, i, uses[i]);
                before = " AND ";
        }
        for (int i = 0; i < plan->n_order; i++) {
                sqlite3_str_appendall(s, i == 0 ? " ORDER BY " : ", ");
                append_column(s, t, plan->order[i].column);
                if (plan->order[i].descending)
                        sqlite3_str_appendall(s, " DESC");
        }
        sqlite3_str_appendall(s, limit);
        return sqlite3_str_finish(s);
}
