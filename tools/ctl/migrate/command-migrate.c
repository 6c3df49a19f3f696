/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sqlipcctl migrate: copies a database into another one, perhaps of another engine, and has the service use that one. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/ctl/bus.h"
#include "tools/ctl/create-file.h"
#include "tools/ctl/listing.h"
#include "tools/ctl/migrate/engine-dialect.h"
#include "tools/ctl/migrate/migration.h"
#include "tools/ctl/migrate/switch.h"
#include "tools/ctl/open-database.h"
#include "tools/ctl/service-child.h"

enum { ROUNDS_MAX = 5 }; /* each makes the tables again that were changed meanwhile */

static char *arg_to, *arg_service_user, **arg_types;
static gboolean arg_yes, arg_switch, arg_dates, arg_keep_case;

static const GOptionEntry options[] = {
        { "to", 0, 0, G_OPTION_ARG_FILENAME, &arg_to, "The configuration of the new database, as databases.d/NAME.conf",
          "FILE" },
        { "yes", 'y', 0, G_OPTION_ARG_NONE, &arg_yes, "Do not ask", NULL },
        { "switch", 0, 0, G_OPTION_ARG_NONE, &arg_switch, "Have the service use the new database", NULL },
        { "type", 0, 0, G_OPTION_ARG_STRING_ARRAY, &arg_types, "TABLE.COLUMN=TYPE: the type of a column in PostgreSQL",
          "COLUMN" },
        { "dates", 0, 0, G_OPTION_ARG_NONE, &arg_dates, "Dates in texts become dates", NULL },
        { "keep-case", 0, 0, G_OPTION_ARG_NONE, &arg_keep_case, "Names keep their capitals in PostgreSQL", NULL },
        { "service-user", 0, 0, G_OPTION_ARG_STRING, &arg_service_user, "The user that the service runs as", "USER" },
        {},
};

/* ---- What is shown ------------------------------------------------------------------------------------------------ */

static void text_entry(GVariantBuilder *dictionary, const char *key, const char *text) {
        g_autofree char *valid = g_utf8_make_valid(text, -1);

        entry(dictionary, key, g_variant_new_string(valid));
}

/* The columns with their types, aa{sv}. */
static GVariant *columns_document(const Plan *plan) {
        g_auto(GVariantBuilder) rows = {};

        g_variant_builder_init(&rows, G_VARIANT_TYPE("aa{sv}"));
        for (guint i = 0; i < plan->tables->len; i++) {
                const PlanTable *table = plan->tables->pdata[i];

                for (guint n = 0; n < table->columns->len; n++) {
                        const PlanColumn *column = &g_array_index(table->columns, PlanColumn, n);
                        g_autofree char *found = column_found_describe(&column->found);

                        if (!column->source)
                                continue;
                        g_variant_builder_open(&rows, G_VARIANT_TYPE_VARDICT);
                        text_entry(&rows, "table", table->source->name);
                        text_entry(&rows, "column", column->source->name);
                        text_entry(&rows, "declared", column->source->type);
                        text_entry(&rows, "found", found);
                        text_entry(&rows, "type", column_kind_to_string(column->kind) ?: column->source->type);
                        if (column->note)
                                text_entry(&rows, "note", column->note);
                        g_variant_builder_close(&rows);
                }
        }
        return g_variant_ref_sink(g_variant_builder_end(&rows));
}

static GVariant *lines_document(const GPtrArray *lines) {
        g_auto(GVariantBuilder) array = {};

        g_variant_builder_init(&array, G_VARIANT_TYPE_STRING_ARRAY);
        for (guint i = 0; i < lines->len; i++) {
                g_autofree char *valid = g_utf8_make_valid(lines->pdata[i], -1);

                g_variant_builder_add(&array, "s", valid);
        }
        return g_variant_builder_end(&array);
}

static void show_plan(const Context *c, const Plan *plan) {
        static const Column columns[] = {
                { .key = "table", .title = "table" },
                { .key = "column", .title = "column" },
                { .key = "declared", .title = "declared", .rank = 2 },
                { .key = "found", .title = "found", .gives_way = true, .rank = 1 },
                { .key = "type", .title = "type" },
                { .key = "note", .title = "note", .optional = true, .gives_way = true },
        };
        g_autoptr(GVariant) rows = columns_document(plan);

        if (!c->json)
                listing_print(c, rows, columns, G_N_ELEMENTS(columns), "column");
        for (guint i = 0; i < plan->omitted->len; i++)
                complain("not copied: %s", (const char *) plan->omitted->pdata[i]);
        for (guint i = 0; i < plan->obstacles->len; i++)
                complain("error: %s", (const char *) plan->obstacles->pdata[i]);
}

static bool confirm(const char *question) {
        char answer[8] = "";

        if (arg_yes)
                return true;
        if (!isatty(STDIN_FILENO)) {
                complain("Nothing was copied. If the types above are right, run the same command with --yes: without a "
                         "terminal it cannot ask.");
                return false;
        }
        printf("%s [y/N] ", question);
        (void) fflush(stdout);
        if (fgets(answer, sizeof answer, stdin) && g_ascii_tolower(*answer) == 'y')
                return true;
        complain("Nothing was copied.");
        return false;
}

/* The tables with their checksums, aa{sv}. */
static GVariant *tables_document(const Migration *m) {
        g_auto(GVariantBuilder) rows = {};

        g_variant_builder_init(&rows, G_VARIANT_TYPE("aa{sv}"));
        for (guint i = 0; i < m->plan->tables->len; i++) {
                const PlanTable *table = m->plan->tables->pdata[i];
                const TableResult *result = &g_array_index(m->results, TableResult, i);
                g_autofree char *sum = row_sum_to_string(&result->sum);

                g_variant_builder_open(&rows, G_VARIANT_TYPE_VARDICT);
                text_entry(&rows, "table", table->source->name);
                entry(&rows, "rows", g_variant_new_uint64(result->sum.n_rows));
                text_entry(&rows, "checksum", sum);
                g_variant_builder_close(&rows);
        }
        return g_variant_ref_sink(g_variant_builder_end(&rows));
}

static void show_outcome(const Context *c, const Migration *m, bool switched) {
        static const Column columns[] = {
                { .key = "table", .title = "table" },
                { .key = "rows", .title = "rows", .as = SHOWN_NUMBER },
                { .key = "checksum", .title = "checksum", .gives_way = true, .rank = 1 },
        };
        g_autoptr(GVariant) rows = tables_document(m), types = columns_document(m->plan);
        g_auto(GVariantBuilder) document = {};

        for (guint i = 0; i < m->refused->len; i++)
                complain("not accepted: %s", (const char *) m->refused->pdata[i]);
        if (!c->json) {
                listing_print(c, rows, columns, G_N_ELEMENTS(columns), "table");
                printf("All tables are equal; %" PRIu64 " rows were copied by this call.\n", m->n_copied);
                if (switched)
                        printf("The service uses the new database under the name %s.\n", m->source.database);
                else
                        printf("'sqlipcctl migrate %s --to=%s --switch' compares again, and has the service use it.\n",
                               m->source.database, arg_to);
                return;
        }
        g_variant_builder_init(&document, G_VARIANT_TYPE_VARDICT);
        entry(&document, "columns", types);
        entry(&document, "omitted", lines_document(m->plan->omitted));
        entry(&document, "refused", lines_document(m->refused));
        entry(&document, "tables", rows);
        entry(&document, "copied", g_variant_new_uint64(m->n_copied));
        entry(&document, "switched", g_variant_new_boolean(switched));
        document_print(c, g_variant_builder_end(&document));
}

/* ---- Rounds ------------------------------------------------------------------------------------------------------- */

static const char *table_name(const Migration *m, guint n) {
        return ((const PlanTable *) m->plan->tables->pdata[n])->source->name;
}

/* Drops the copies of the tables that differ. It is an error if no change of the source can explain that. */
static int drop_different(Migration *m) {
        int r = 0;

        for (guint i = 0; r >= 0 && i < m->results->len; i++) {
                const TableResult *result = &g_array_index(m->results, TableResult, i);

                if (result->is_equal)
                        continue;
                if (result->is_inexact) {
                        complain("The copy of %s has other values than the source: the target does not keep them exactly.",
                                 table_name(m, i));
                        return -EBADMSG;
                }
                complain("%s was changed since it was copied, and is copied again.", table_name(m, i));
                r = migration_drop(m, i);
        }
        return r;
}

static int check_schema(Migration *m) {
        g_autofree char *fingerprint = NULL;
        int r = source_schema_fingerprint(&m->source, &fingerprint);

        if (r < 0 || g_str_equal(fingerprint, m->plan->schema->fingerprint))
                return r;
        complain("The schema of %s was changed meanwhile; run the same command again.", m->source.database);
        return -ESTALE;
}

static int leave_incomplete(int r) {
        complain("The copy is not complete. Run the same command again to continue it.");
        return r;
}

/* Returns 1: all is done; 0: another round is needed; or an error, which has been printed. */
static int run_round(Context *c, Migration *m, Publication *target, SwitchLock *lock, bool *ret_switched) {
        uint64_t sequence;
        guint n_different;
        int r = migration_make_tables(m), made = r < 0 ? r : migration_make_objects(m);

        if (r >= 0)
                r = migration_compare(m, &n_different, &sequence);
        if (r < 0)
                return leave_incomplete(r);
        r = check_schema(m);
        if (r < 0)
                return r;
        if (n_different > 0)
                return drop_different(m);
        if (made < 0) /* with the rows that the source has now */
                return leave_incomplete(made);
        if (sequence == 0)
                return 0;
        if (!arg_switch)
                return 1;
        r = switch_run(c, &m->source, &m->target, sequence, lock, target);
        *ret_switched = r > 0;
        return r;
}

static bool keep_lock(void *lock) {
        return switch_lock_keep(lock);
}

/* The first round may take long, and programs go on writing. From the second one on, which copies the tables that were
 * changed meanwhile, they wait. */
static int run_rounds(Context *c, Migration *m, Publication *target) {
        g_auto(SwitchLock) lock = {};
        bool switched = false;
        int r = 0;

        for (unsigned round = 0; r == 0 && round < ROUNDS_MAX; round++) {
                if (arg_switch && round > 0) {
                        r = switch_lock(c, &m->source, &lock);
                        m->keep = keep_lock;
                        m->keep_userdata = &lock;
                }
                if (r == 0)
                        r = migration_is_interrupted() ? -ECANCELED : run_round(c, m, target, &lock, &switched);
        }
        m->keep = NULL;
        if (r == 0)
                complain("Programs write to %s all the time, so the copy is never equal to it. %s", m->source.database,
                         "Stop them, and run the same command again: it copies only what has changed.");
        if (r > 0)
                show_outcome(c, m, switched);
        return r > 0 ? CTL_OK : CTL_FAILED;
}

/* ---- Begin -------------------------------------------------------------------------------------------------------- */

/* The copy of another plan, for other types or an older schema, is of no use. */
static int begin_state(Migration *m) {
        g_autoptr(GString) all = g_string_new(NULL);
        g_autofree char *digest = NULL, *plan = NULL;
        const char *before = state_get(&m->state, "source", "");
        int r = state_make_table(&m->state);

        if (r < 0)
                return r;
        for (guint i = 0; i < m->plan->tables->len; i++) {
                const PlanTable *table = m->plan->tables->pdata[i];

                g_string_append_printf(all, "%s\n%s\n", table->create, table->insert);
        }
        digest = g_compute_checksum_for_string(G_CHECKSUM_SHA256, all->str, -1);
        plan = g_strdup_printf("%s %s %s", m->source.database, m->plan->schema->fingerprint, digest);
        if (g_strcmp0(before, plan) == 0)
                return 0;
        if (before && strncmp(before, plan, strlen(m->source.database) + 1) != 0) {
                complain("The target contains a migration of another database.");
                return -ENOTEMPTY;
        }
        if (before)
                complain("The schema or the types have changed since the last call: all tables are made again.");
        for (guint i = 0; r >= 0 && before && i < m->plan->tables->len; i++)
                r = migration_drop(m, i);
        if (r < 0)
                return r;
        r = state_set(&m->state, NULL, NULL, "source", "", plan);
        return r < 0 ? side_fail(&m->target, "the target cannot be written", r) : 0;
}

static void clear_result(gpointer data) {
        TableResult *result = data;

        row_sum_done(&result->source);
        row_sum_done(&result->sum);
}

static int migrate(Context *c, Migration *m, Publication *target, const Dialect *dialect) {
        const PlanOptions plan_options = { dialect, arg_dates, arg_keep_case, arg_types };
        g_autoptr(SourceSchema) schema = NULL;
        g_autoptr(Plan) plan = NULL;

        /* The target first, because reading the source may take long. */
        if (publication_begin(target) < 0 || side_check(&m->target, target->file) < 0 ||
            state_open(&m->state, &m->target, dialect->names_sql) < 0 || source_schema_read(&m->source, &schema) < 0)
                return CTL_FAILED;
        m->plan = plan = plan_new(schema, &plan_options);
        g_array_set_size(m->results, plan->tables->len);
        if (migration_scan(m) < 0)
                return CTL_FAILED;
        plan_write(plan);
        show_plan(c, plan);
        if (plan->obstacles->len > 0) {
                complain("Nothing was copied.");
                return CTL_FAILED;
        }
        if (!confirm("Copy the tables with these types?"))
                return CTL_FAILED;
        if (begin_state(m) < 0)
                return CTL_FAILED;
        return run_rounds(c, m, target);
}

/* A file that does not exist is made, as by create. */
static int make_file(Context *c, const DatabaseConfig *d) {
        g_autoptr(ServiceUnit) unit = context_is_unit(c) ? service_unit_new() : NULL;
        g_auto(ServiceUser) user = {};

        if (database_config_is_server(d) || g_file_test(d->path, G_FILE_TEST_EXISTS))
                return 0;
        if (service_user_find(arg_service_user, context_is_system(c), unit, &user) < 0)
                return -ESRCH;
        return create_file(&(NewFile) { .path = d->path, .make_folder = true }, &user);
}

static int check_source(const DatabaseConfig *d, const Publication *target) {
        if (*d->expose) {
                complain("Only a part of %s is published, by Expose=: publish all of it for the migration.", d->name);
                return -EINVAL;
        }
        if (!engine_has_sqlite_dialect(d)) {
                complain("%s does not have SQLite's dialect: only a database that has it can be migrated.", d->name);
                return -EOPNOTSUPP;
        }
        if (g_str_equal(database_config_data(d), database_config_data(target->d))) {
                complain("%s is the database itself.", database_config_data(d));
                return -EINVAL;
        }
        return 0;
}

/* Only a target whose columns have types can use these options. */
static int check_options(const Dialect *dialect) {
        if (dialect->has_types || (!arg_types && !arg_dates && !arg_keep_case))
                return CTL_OK;
        return complain_usage("--type, --dates and --keep-case are for a target with Engine=postgresql.");
}

static int check_types(void) {
        for (char **type = arg_types; type && *type; type++) {
                const char *equal = strrchr(*type, '=');

                if (!equal || equal < strchrnul(*type, '.') || column_kind_from_string(equal + 1) < 0)
                        return complain_usage("--type=%s is not TABLE.COLUMN=TYPE, with bigint, double precision, numeric, "
                                              "text, bytea, date or timestamp.", *type);
        }
        return CTL_OK;
}

static int run_with(Context *c, const DatabaseConfig *d, Publication *target) {
        __attribute__((cleanup(sqlipc_connection_unrefp))) sqlipc_connection *connection = NULL;
        __attribute__((cleanup(sqlipc_watch_closep))) sqlipc_watch *watch = NULL;
        g_autoptr(GArray) results = g_array_new(FALSE, TRUE, sizeof(TableResult));
        g_autoptr(GPtrArray) refused = g_ptr_array_new_with_free_func(g_free);
        Migration m = { .results = results, .refused = refused };
        int r = sqlipc_open_bus(c->bus, &connection);

        if (r < 0) {
                complain("The bus cannot be used: %s", g_strerror(-r));
                return CTL_FAILED;
        }
        g_array_set_clear_func(results, clear_result);
        (void) sqlipc_set_timeout(connection, UINT64_MAX);
        m.source = (Side) { connection, d->name };
        m.target = (Side) { connection, target->name };
        progress_begin(&m.progress, !c->json, (uint64_t) g_get_monotonic_time());
        migration_catch_signals(connection);
        /* While a client watches a database, the service also counts changes by programs that open the file themselves. */
        (void) sqlipc_watch_open(connection, d->name, NULL, &watch);
        if (switch_is_done(c, d->name, target)) { /* a call that was killed in the middle of it */
                r = publication_begin(target) < 0 || switch_finish(c, &m.target, target) < 0 ? CTL_FAILED : CTL_OK;
                if (r == CTL_OK && !c->json)
                        printf("The service uses the new database under the name %s.\n", d->name);
        } else
                r = check_source(d, target) < 0 || make_file(c, target->d) < 0
                            ? CTL_FAILED
                            : migrate(c, &m, target, engine_dialect(target->d));
        state_close(&m.state);
        return r;
}

static int run(Context *c, char **words) {
        g_auto(Publication) target = { .fd = -1 };
        g_autoptr(Config) config = NULL;
        const DatabaseConfig *d;

        if (!arg_to)
                return complain_usage("Where to? --to=FILE.conf names the configuration of the new database.");
        if (check_types() != CTL_OK)
                return CTL_USAGE;
        config = open_database_find(c, words[0], &d);
        if (!config || publication_open(c, words[0], arg_to, &target) < 0 || bus_open(c) < 0 ||
            (arg_switch && switch_check(c, words[0]) < 0))
                return CTL_FAILED;
        if (check_options(engine_dialect(target.d)) != CTL_OK)
                return CTL_USAGE;
        return run_with(c, d, &target);
}

const Verb verb_migrate = {
        "migrate", "NAME", "Copy a database into another one, of any engine, and switch to it", 1, 1, true, options,
        "Shows the types first, and asks. A call that was interrupted is continued by the same command.\n", run,
};
