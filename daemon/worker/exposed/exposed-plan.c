/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See exposed-plan.h. From top to bottom: constraints that can be pushed, cost, order, the plan as text, SQL.
 */
#include "daemon/worker/exposed/exposed-plan.h"

#include <ctype.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define COST_START 10.0 /* of each search, whatever it finds: a statement is bound and reset */
#define USED_REST 63    /* the bit of a plan for all columns from this one on */

static const struct {
        unsigned char op;
        char letter;
        const char *sql; /* between column and value */
        bool value;
} operators[] = {
        /* IS NOT NULL and other constraints that exclude little are left out, and not only because of their cost: from the
         * ON of an outer join SQLite 3.40 passes them to the table on the wrong side. */
        { SQLITE_INDEX_CONSTRAINT_EQ, 'e', "=", true },
        { SQLITE_INDEX_CONSTRAINT_IS, 'i', "IS", true },
        { SQLITE_INDEX_CONSTRAINT_GT, 'g', ">", true },
        { SQLITE_INDEX_CONSTRAINT_GE, 'h', ">=", true },
        { SQLITE_INDEX_CONSTRAINT_LT, 'l', "<", true },
        { SQLITE_INDEX_CONSTRAINT_LE, 'm', "<=", true },
        { SQLITE_INDEX_CONSTRAINT_ISNULL, 'n', "IS NULL", false },
        { SQLITE_INDEX_CONSTRAINT_MATCH, 't', "MATCH", true },
};
#define N_OPERATORS (sizeof operators / sizeof *operators)

/* ---- constraints that can be pushed ---- */

static bool is_known(sqlite3_index_info *info, int i) {
        sqlite3_value *value;

        return sqlite3_vtab_rhs_value(info, i, &value) == SQLITE_OK;
}

/* True if the constraint is, or may be, IN. SQLite does not tell it for "(a, b) IN ...". */
static bool may_be_in(PlanHints hints, sqlite3_index_info *info, int i) {
        return sqlite3_vtab_in(info, i, -1) ||
               (hints.row_in && info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ && !is_known(info, i));
}

/* Index into operators[], or N_OPERATORS. */
static size_t operator_of(const ExposedObject *o, PlanHints hints, sqlite3_index_info *info, int i) {
        const struct sqlite3_index_constraint *c = &info->aConstraint[i];
        size_t k = 0;

        while (k < N_OPERATORS && operators[k].op != c->op)
                k++;
        if (k == N_OPERATORS || !c->usable || (c->iColumn < 0 && !o->rowid))
                return N_OPERATORS;
        if (c->op == SQLITE_INDEX_CONSTRAINT_MATCH)
                return o->is_virtual ? k : N_OPERATORS;
        /* SQLite passes the values of IN one after the other, and then compares them by different rules: numbers as
         * numbers */
        if (c->iColumn >= 0 && o->columns[c->iColumn].affinity != AFFINITY_NUMERIC && may_be_in(hints, info, i))
                return N_OPERATORS;
        if (c->iColumn >= 0 && operators[k].value &&
            sqlite3_stricmp(sqlite3_vtab_collation(info, i), o->columns[c->iColumn].collation) != 0)
                return N_OPERATORS;
        return k;
}

/* True for a parameter of a search, which the object's own module must get because SQLite cannot check it. */
static bool is_parameter(const ExposedObject *o, const struct sqlite3_index_constraint *c) {
        return o->is_virtual && (c->op == SQLITE_INDEX_CONSTRAINT_MATCH ||
                                 (c->op == SQLITE_INDEX_CONSTRAINT_EQ && c->iColumn >= 0 && o->columns[c->iColumn].hidden));
}

static bool is_certain_text(sqlite3_index_info *info, int i) {
        sqlite3_value *value;

        return sqlite3_vtab_rhs_value(info, i, &value) == SQLITE_OK && sqlite3_value_type(value) == SQLITE_TEXT;
}

/* ---- cost ---- */

/* The strongest constraint of a plan on a column. */
typedef enum Found {
        FOUND_NONE,
        FOUND_RANGE,
        FOUND_EQUAL,
} Found;

static Found find(const Plan *plan, int column) {
        Found found = FOUND_NONE;

        for (int i = 0; i < plan->n_constraints; i++)
                if (plan->constraints[i].column == column) {
                        if (strchr("ein", plan->constraints[i].operator))
                                return FOUND_EQUAL;
                        if (strchr("ghlm", plan->constraints[i].operator))
                                found = FOUND_RANGE;
                }
        return found;
}

typedef struct Estimate {
        double cost, n_rows;
} Estimate;

static Estimate estimate_index(const ExposedObject *o, const Plan *plan, const ExposedIndex *x) {
        Estimate e = { .n_rows = o->n_rows };
        int n = 0;

        while (n < x->n_columns && find(plan, x->columns[n]) == FOUND_EQUAL)
                n++;
        if (n > 0)
                e.n_rows = fmin(x->n_rows[n - 1], o->n_rows);
        if (n < x->n_columns && find(plan, x->columns[n]) == FOUND_RANGE)
                e.n_rows = fmax(e.n_rows / 4, 1);
        else if (n == 0)
                return (Estimate) { .n_rows = o->n_rows, .cost = HUGE_VAL };
        e.cost = COST_START + log2(o->n_rows + 2) + 2 * e.n_rows;
        return e;
}

/* For views, and tables without a suitable index. Constraints on a view are assumed to be served by indexes below it,
 * because that is the usual reason to ask a view for one row. */
static Estimate estimate_scan(const ExposedObject *o, const Plan *plan) {
        Estimate e = { .n_rows = o->n_rows, .cost = COST_START + 2 * o->n_rows };
        bool search = o->is_view || o->is_virtual;

        for (int i = 0; i < plan->n_constraints; i++) {
                double divisor = strchr("eit", plan->constraints[i].operator) ? (search ? 1000 : 10) : 4;

                e.n_rows = fmax(e.n_rows / divisor, 1);
                if (search)
                        e.cost = COST_START + (e.cost - COST_START) / divisor;
        }
        return e;
}

static Estimate estimate(const ExposedObject *o, const Plan *plan) {
        Estimate best = estimate_scan(o, plan);

        for (int i = 0; i < o->n_indexes; i++) {
                Estimate e = estimate_index(o, plan, &o->indexes[i]);

                if (e.cost < best.cost)
                        best = e;
        }
        return best;
}

/* ---- order ---- */

/* True if an index has the rows in the requested order, or in reverse. Otherwise SQLite's own sorter is cheaper, which may
 * need only the first few rows. */
static bool has_order(const ExposedIndex *x, const sqlite3_index_info *info) {
        bool backwards;

        if (info->nOrderBy > x->n_columns)
                return false;
        backwards = info->aOrderBy[0].desc != x->descending[0];
        for (int i = 0; i < info->nOrderBy; i++)
                if (x->columns[i] != info->aOrderBy[i].iColumn || (info->aOrderBy[i].desc != x->descending[i]) != backwards)
                        return false;
        return true;
}

static void choose_order(const ExposedObject *o, Plan *plan, sqlite3_index_info *info) {
        if (info->nOrderBy == 0 || info->nOrderBy > PLAN_N_CONSTRAINTS)
                return;
        for (int i = 0; i < o->n_indexes; i++)
                if (has_order(&o->indexes[i], info)) {
                        for (int k = 0; k < info->nOrderBy; k++) {
                                plan->order[k].column = info->aOrderBy[k].iColumn;
                                plan->order[k].descending = info->aOrderBy[k].desc;
                        }
                        plan->n_order = info->nOrderBy;
                        info->orderByConsumed = 1;
                        return;
                }
}

/* ---- the plan ---- */

static char *plan_text(const Plan *plan) {
        sqlite3_str *s = sqlite3_str_new(NULL);

        for (int i = 0; i < plan->n_order; i++)
                sqlite3_str_appendf(s, "%c%d", plan->order[i].descending ? 'd' : 'a', plan->order[i].column);
        sqlite3_str_appendf(s, ";%llx;", (unsigned long long) plan->used);
        for (int i = 0; i < plan->n_constraints; i++)
                sqlite3_str_appendf(s, "%c%d",
                                    plan->constraints[i].text ? toupper((unsigned char) plan->constraints[i].operator)
                                                              : plan->constraints[i].operator,
                                    plan->constraints[i].column);
        return sqlite3_str_finish(s);
}

/* True if there is a "=" on the column, and every value is pushed to the column as it is. */
static bool is_found_by(const ExposedObject *o, PlanHints hints, sqlite3_index_info *info, int column) {
        if (column != COLUMN_ROWID && (column < 0 || o->columns[column].affinity != AFFINITY_NUMERIC))
                return false;
        for (int i = 0; i < info->nConstraint; i++) {
                size_t k = operator_of(o, hints, info, i);

                if (info->aConstraint[i].iColumn == column && k < N_OPERATORS && operators[k].letter == 'e')
                        return true;
        }
        return false;
}

/* Finds a unique index by which the constraints find a single row. NULL: there is none. */
static const ExposedIndex *find_key(const ExposedObject *o, PlanHints hints, sqlite3_index_info *info) {
        for (int i = 0; i < o->n_indexes; i++) {
                const ExposedIndex *x = &o->indexes[i];
                int n = 0;

                while (n < x->n_columns && is_found_by(o, hints, info, x->columns[n]))
                        n++;
                if (x->unique && n > 0 && n == x->n_columns)
                        return x;
        }
        return NULL;
}

static bool has_column(const ExposedIndex *x, int column) {
        for (int i = 0; i < x->n_columns; i++)
                if (x->columns[i] == column)
                        return true;
        return false;
}

/* SQLITE_CONSTRAINT: a search that only the module can do would be left to SQLite. */
static int choose_constraints(const ExposedObject *o, PlanHints hints, Plan *plan, sqlite3_index_info *info) {
        /* if a unique index finds the row, SQLite checks the other constraints for less than it costs to pass their
         * values */
        const ExposedIndex *key = find_key(o, hints, info);

        for (int i = 0; i < info->nConstraint; i++) {
                const struct sqlite3_index_constraint *c = &info->aConstraint[i];
                size_t k = operator_of(o, hints, info, i);

                if (is_parameter(o, c) && (!c->usable || plan->n_constraints == PLAN_N_CONSTRAINTS))
                        return SQLITE_CONSTRAINT;
                if (k == N_OPERATORS || plan->n_constraints == PLAN_N_CONSTRAINTS ||
                    (key && (operators[k].letter != 'e' || !has_column(key, c->iColumn))))
                        continue;
                plan->constraints[plan->n_constraints].operator = operators[k].letter;
                plan->constraints[plan->n_constraints].column = c->iColumn;
                plan->constraints[plan->n_constraints].text = operators[k].value && is_certain_text(info, i);
                /* IS NULL takes a value, too: this tells SQLite that the constraint is used, and so when it must not be */
                info->aConstraintUsage[i].argvIndex = ++plan->n_constraints;
                info->aConstraintUsage[i].omit = is_parameter(o, c);
        }
        return SQLITE_OK;
}

int exposed_plan_choose(const ExposedObject *o, PlanHints hints, sqlite3_index_info *info) {
        Plan plan = { .used = info->colUsed };
        Estimate e;
        int rc = SQLITE_OK;

        if (!o->is_barrier && (o->rowid || !hints.rowids)) {
                rc = choose_constraints(o, hints, &plan, info);
                choose_order(o, &plan, info);
        }
        if (rc != SQLITE_OK)
                return rc;
        e = estimate(o, &plan);
        info->estimatedCost = e.cost;
        info->estimatedRows = (sqlite3_int64) e.n_rows;
        /* Never SQLITE_INDEX_SCAN_UNIQUE, which gains SQLite little, and would be wrong: a search for a number among texts
         * may find both '1' and '01'. */
        info->idxStr = plan_text(&plan);
        info->needToFreeIdxStr = 1;
        return info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}

void exposed_plan_parse(const char *text, Plan *ret) {
        char *p = (char *) text;

        *ret = (Plan) {};
        for (; *p != ';'; ret->n_order++) {
                ret->order[ret->n_order].descending = *p++ == 'd';
                ret->order[ret->n_order].column = (int) strtol(p, &p, 10);
        }
        ret->used = strtoull(p + 1, &p, 16);
        for (p++; *p; ret->n_constraints++) {
                ret->constraints[ret->n_constraints].operator = (char) tolower((unsigned char) *p);
                ret->constraints[ret->n_constraints].text = isupper((unsigned char) *p++);
                ret->constraints[ret->n_constraints].column = (int) strtol(p, &p, 10);
        }
}

ValueUse exposed_plan_value_use(const ExposedObject *o, const Plan *plan, int i, sqlite3_value *value) {
        const char operator = plan->constraints[i].operator;
        const int column = plan->constraints[i].column;
        const int type = sqlite3_value_type(value);
        const Affinity affinity = column < 0 ? AFFINITY_NUMERIC : o->columns[column].affinity;

        if (operator == 'n' || operator == 't' || (column >= 0 && o->columns[column].hidden))
                return VALUE_PUSHED;
        if (type == SQLITE_NULL)
                return operator == 'i' ? VALUE_PUSHED : VALUE_NEVER;
        if (affinity == AFFINITY_NUMERIC || type == SQLITE_BLOB)
                return VALUE_PUSHED;
        if (type == SQLITE_TEXT)
                /* a parameter is text that no column converted: a cast to a number would have made it a number */
                return !strchr("lm", operator) || plan->constraints[i].text || sqlite3_value_frombind(value) ? VALUE_PUSHED
                                                                                                             : VALUE_LEFT;
        if (affinity == AFFINITY_TEXT)
                return VALUE_LEFT;
        return strchr("gh", operator) ? VALUE_PUSHED : VALUE_WIDENED;
}

static bool is_fixed(const Plan *plan, const char *uses, int column) {
        for (int i = 0; i < plan->n_constraints; i++)
                if (plan->constraints[i].column == column && plan->constraints[i].operator == 'e' && uses[i] == VALUE_PUSHED)
                        return true;
        return false;
}

bool exposed_plan_is_single(const ExposedObject *o, const Plan *plan, const char *uses) {
        for (int i = 0; i < o->n_indexes; i++) {
                const ExposedIndex *x = &o->indexes[i];
                int n = 0;

                while (n < x->n_columns && is_fixed(plan, uses, x->columns[n]))
                        n++;
                if (x->unique && n > 0 && n == x->n_columns)
                        return true;
        }
        return false;
}

bool exposed_plan_reads(const Plan *plan, int i) {
        return plan->used & (UINT64_C(1) << (i < USED_REST ? i : USED_REST));
}

/* ---- SQL ---- */

static void append_column(sqlite3_str *s, const ExposedObject *o, int column) {
        if (column < 0)
                sqlite3_str_appendf(s, "o.%s", o->rowid);
        else
                sqlite3_str_appendf(s, "o.\"%w\"", o->columns[column].name);
}

static const char *operator_sql(char letter) {
        for (size_t k = 0; k < N_OPERATORS; k++)
                if (operators[k].letter == letter)
                        return operators[k].sql;
        return NULL;
}

static void append_constraint(sqlite3_str *s, const ExposedObject *o, const Plan *plan, int i, ValueUse use) {
        const char *sql = operator_sql(plan->constraints[i].operator);
        const int column = plan->constraints[i].column;

        if (use == VALUE_WIDENED)
                sqlite3_str_appendall(s, "(");
        append_column(s, o, column);
        sqlite3_str_appendf(s, " %s", sql);
        if (plan->constraints[i].operator != 'n')
                sqlite3_str_appendf(s, " ?%d", i + 1);
        if (use != VALUE_WIDENED)
                return;
        /* two ranges that an index serves; they are empty if the column has no text */
        sqlite3_str_appendall(s, " OR (");
        append_column(s, o, column);
        sqlite3_str_appendall(s, " >= '' AND ");
        append_column(s, o, column);
        sqlite3_str_appendall(s, " < x''))");
}

char *exposed_plan_sql(const ExposedObject *o, const Plan *plan, const char *uses) {
        sqlite3_str *s = sqlite3_str_new(NULL);
        const char *before = "SELECT ";

        if (o->rowid) {
                sqlite3_str_appendf(s, "%so.%s", before, o->rowid);
                before = ", ";
        }
        for (int i = 0; i < o->n_columns; i++)
                if (exposed_plan_reads(plan, i)) {
                        sqlite3_str_appendall(s, before);
                        append_column(s, o, i);
                        before = ", ";
                }
        if (sqlite3_str_length(s) == 0)
                sqlite3_str_appendall(s, "SELECT NULL");
        sqlite3_str_appendf(s, " FROM main.\"%w\" AS o", o->name);
        before = " WHERE ";
        for (int i = 0; i < plan->n_constraints; i++)
                if (uses[i] != VALUE_LEFT) {
                        sqlite3_str_appendall(s, before);
                        append_constraint(s, o, plan, i, (ValueUse) uses[i]);
                        before = " AND ";
                }
        for (int i = 0; i < plan->n_order; i++) {
                sqlite3_str_appendall(s, i == 0 ? " ORDER BY " : ", ");
                append_column(s, o, plan->order[i].column);
                if (plan->order[i].descending)
                        sqlite3_str_appendall(s, " DESC");
        }
        return sqlite3_str_finish(s);
}
