/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Descriptions of statements (description.h). Library. */
#include <string.h>

#include "client-lib/call.h"
#include "client-lib/description.h"
#include "client-lib/dictionary.h"
#include "client-lib/parameter.h"

void description_done(Description *d) {
        for (unsigned i = 0; i < d->n_columns; i++) {
                free(d->columns[i].name);
                free(d->columns[i].declared_type);
        }
        for (unsigned i = 0; i < d->n_parameters; i++)
                free(d->parameters[i]);
        free(d->columns);
        free(d->parameters);
        *d = (Description) { .page_size = SQLIPC_PAGE_SIZE_DEFAULT };
}

/* Replaces `*name` with the bytes of a name that a D-Bus string cannot hold. */
static int read_bytes(sd_bus_message *reply, char **name) {
        const void *bytes;
        size_t size;
        char *copy;
        int r;

        r = sd_bus_message_enter_container(reply, 'v', "ay");
        if (r < 0)
                return r;
        r = sd_bus_message_read_array(reply, 'y', &bytes, &size);
        if (r < 0)
                return r;
        r = sd_bus_message_exit_container(reply);
        if (r < 0)
                return r;
        copy = strndup(size > 0 ? bytes : "", size);
        if (!copy)
                return -ENOMEM;
        free(*name);
        *name = copy;
        return 1;
}

static int read_column_detail(sd_bus_message *reply, const char *key, const char *type, void *userdata) {
        Column *column = userdata;

        if (strcmp(type, "ay") != 0)
                return 0;
        if (strcmp(key, "name-bytes") == 0)
                return read_bytes(reply, &column->name);
        if (strcmp(key, "declared-type-bytes") == 0)
                return read_bytes(reply, &column->declared_type);
        return 0;
}

static int read_column(Description *d, sd_bus_message *reply) {
        const char *name, *declared_type;
        Column *columns, *column;
        int r;

        r = sd_bus_message_read(reply, "ss", &name, &declared_type);
        if (r < 0)
                return r;
        columns = reallocarray(d->columns, d->n_columns + 1, sizeof *columns);
        if (!columns)
                return -ENOMEM;
        d->columns = columns;
        column = &columns[d->n_columns++];
        *column = (Column) { .name = strdup(name), .declared_type = declared_type[0] ? strdup(declared_type) : NULL };
        if (!column->name || (declared_type[0] && !column->declared_type))
                return -ENOMEM;
        return dictionary_read(reply, read_column_detail, column);
}

static int read_columns(Description *d, sd_bus_message *reply) {
        int r;

        r = sd_bus_message_enter_container(reply, 'a', "(ssa{sv})");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(reply, 'r', "ssa{sv}")) > 0) {
                if (d->n_columns >= SQLIPC_N_COLUMNS_MAX)
                        return -EBADMSG;
                r = read_column(d, reply);
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(reply);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : sd_bus_message_exit_container(reply);
}

static int read_parameters(Description *d, sd_bus_message *reply) {
        int r;

        r = sd_bus_message_enter_container(reply, 'v', "as");
        if (r < 0)
                return r;
        r = sd_bus_message_enter_container(reply, 'a', "s");
        if (r < 0)
                return r;
        for (;;) {
                const char *name;
                char **parameters;

                r = sd_bus_message_read(reply, "s", &name);
                if (r < 0)
                        return r;
                if (r == 0)
                        break;
                if (d->n_parameters >= N_PARAMETERS_MAX)
                        return -EBADMSG;
                parameters = reallocarray(d->parameters, d->n_parameters + 1, sizeof *parameters);
                if (!parameters)
                        return -ENOMEM;
                d->parameters = parameters;
                parameters[d->n_parameters] = name[0] ? strdup(name) : NULL;
                if (name[0] && !parameters[d->n_parameters])
                        return -ENOMEM;
                d->n_parameters++;
        }
        r = sd_bus_message_exit_container(reply);
        if (r < 0)
                return r;
        r = sd_bus_message_exit_container(reply);
        return r < 0 ? r : 1;
}

int description_read_columns(Description *d, sd_bus_message *reply) {
        int r;

        r = sd_bus_message_enter_container(reply, 'v', "a(ssa{sv})");
        if (r < 0)
                return r;
        r = read_columns(d, reply);
        if (r < 0)
                return r;
        r = sd_bus_message_exit_container(reply);
        return r < 0 ? r : 1;
}

static int read_page_version(sd_bus_message *reply) {
        uint32_t version;
        int r;

        r = sd_bus_message_read(reply, "v", "u", &version);
        if (r < 0)
                return r;
        r = call_check_page_version(version);
        return r < 0 ? r : 1;
}

static int read_info(sd_bus_message *reply, const char *key, const char *type, void *userdata) {
        Description *d = userdata;

        if (strcmp(key, "parameters") == 0 && strcmp(type, "as") == 0 && !d->parameters)
                return read_parameters(d, reply);
        if (strcmp(key, "page-size") == 0 && strcmp(type, "u") == 0)
                return sd_bus_message_read(reply, "v", "u", &d->page_size);
        if (strcmp(key, "readonly") == 0 && strcmp(type, "b") == 0)
                return dictionary_read_bool(reply, &d->read_only);
        if (strcmp(key, "started") == 0 && strcmp(type, "b") == 0) {
                bool started;
                int r = dictionary_read_bool(reply, &started);

                d->not_started = r >= 0 && !started;
                return r;
        }
        if (strcmp(key, "page-version") == 0 && strcmp(type, "u") == 0)
                return read_page_version(reply);
        return 0;
}

int description_read(Description *ret, sd_bus_message *reply) {
        _cleanup_(description_done) Description d = { .page_size = SQLIPC_PAGE_SIZE_DEFAULT };
        int r;

        r = read_columns(&d, reply);
        if (r >= 0)
                r = dictionary_read(reply, read_info, &d);
        if (r < 0)
                return r;
        *ret = d;
        d = (Description) { .page_size = 0 };
        return 0;
}

int description_read_info(Description *ret, sd_bus_message *reply) {
        _cleanup_(description_done) Description d = { .page_size = SQLIPC_PAGE_SIZE_DEFAULT };
        int r;

        r = dictionary_read(reply, read_info, &d);
        if (r < 0)
                return r;
        *ret = d;
        d = (Description) { .page_size = 0 };
        return 0;
}

static int copy_string(char **ret, const char *string) {
        *ret = string ? strdup(string) : NULL;
        return string && !*ret ? -ENOMEM : 0;
}

int description_copy(Description *ret, const PageDecoder *decoder) {
        _cleanup_(description_done) Description d = { .page_size = SQLIPC_PAGE_SIZE_DEFAULT };
        unsigned n_columns = decoder->statement_n_columns, n_parameters = decoder->statement_n_parameters;

        d.read_only = decoder->statement_read_only;
        d.columns = calloc((size_t) n_columns + 1, sizeof *d.columns);
        d.parameters = calloc((size_t) n_parameters + 1, sizeof *d.parameters);
        if (!d.columns || !d.parameters)
                return -ENOMEM;
        for (; d.n_columns < n_columns; d.n_columns++) {
                Column *column = &d.columns[d.n_columns];
                const char *name, *declared_type;

                page_decoder_statement_column(decoder, d.n_columns, &name, &declared_type);
                /* an empty type counts as none, as over the bus, which cannot tell the two apart */
                if (declared_type && !declared_type[0])
                        declared_type = NULL;
                if (copy_string(&column->name, name) < 0 || copy_string(&column->declared_type, declared_type) < 0) {
                        d.n_columns++;
                        return -ENOMEM;
                }
        }
        for (; d.n_parameters < n_parameters; d.n_parameters++)
                if (copy_string(&d.parameters[d.n_parameters],
                                page_decoder_statement_parameter(decoder, d.n_parameters)) < 0)
                        return -ENOMEM;
        *ret = d;
        d = (Description) { .page_size = 0 };
        return 0;
}
