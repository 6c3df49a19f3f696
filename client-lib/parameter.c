/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Values of parameters, and their form as D-Bus values (parameter.h). Library. */
#include <stddef.h>
#include <string.h>

#include "client-lib/parameter.h"

/* The size of the struct in the first release. */
#define PARAMETER_SIZE_MIN (offsetof(sqlipc_parameter, size) + sizeof(size_t))

/* Checks that fields after the known ones are not set: the library would ignore what they mean. */
static int check_struct(const uint8_t *element, size_t size) {
        for (size_t i = sizeof(sqlipc_parameter); i < size; i++)
                if (element[i] != 0)
                        return -EOPNOTSUPP;
        return 0;
}

/* A program that was built with an older header passes smaller elements than ours, one with a newer header larger ones. */
int parameter_read(const sqlipc_parameter *parameters, size_t n, Parameter *read) {
        size_t size = n > 0 ? parameters->struct_size : PARAMETER_SIZE_MIN;
        const uint8_t *element = (const uint8_t *) parameters;
        int r;

        if (size < PARAMETER_SIZE_MIN || size > PARAMETER_STRUCT_SIZE_MAX || size % _Alignof(sqlipc_parameter) != 0)
                return -EINVAL;
        for (size_t i = 0; i < n; i++, element += size) {
                sqlipc_parameter p = { .struct_size = 0 };

                memcpy(&p, element, size < sizeof p ? size : sizeof p);
                if (p.struct_size != size)
                        return -EINVAL;
                r = check_struct(element, size);
                if (r < 0)
                        return r;
                read[i] = (Parameter) { .name = p.name, .type = p.type, .integer = p.integer, .real = p.real,
                                        .bytes = p.bytes, .size = p.size };
        }
        return 0;
}

int parameter_read_all(const sqlipc_parameter *parameters, size_t n, Parameter **ret) {
        _cleanup_free_ Parameter *read = NULL;
        int r;

        if (n > N_PARAMETERS_MAX)
                return -EOVERFLOW;
        read = calloc(n + 1, sizeof *read);
        if (!read)
                return -ENOMEM;
        r = parameter_read(parameters, n, read);
        if (r < 0)
                return r;
        *ret = steal(read);
        return 0;
}

/* The size of the character at `p`, 0 if D-Bus does not allow it. */
static size_t bus_character(const uint8_t *p, size_t size) {
        static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
        size_t n = p[0] < 0x80 ? 1 : p[0] < 0xC0 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : p[0] < 0xF8 ? 4 : 0;
        uint32_t c;

        if (n == 0 || n > size || p[0] == 0)
                return 0;
        if (n == 1)
                return 1;
        c = p[0] & (0x7Fu >> n);
        for (size_t i = 1; i < n; i++) {
                if ((p[i] & 0xC0) != 0x80)
                        return 0;
                c = c << 6 | (p[i] & 0x3Fu);
        }
        if (c < least[n] || c > 0x10FFFF || (c & 0xFFFFF800) == 0xD800 || (c >= 0xFDD0 && c <= 0xFDEF) ||
            (c & 0xFFFE) == 0xFFFE)
                return 0;
        return n;
}

bool parameter_is_bus_string(const void *text, size_t size, size_t *ret_bad) {
        const uint8_t *p = text;

        for (size_t i = 0; i < size;) {
                size_t n = bus_character(p + i, size - i);

                if (n == 0) {
                        if (ret_bad)
                                *ret_bad = i;
                        return false;
                }
                i += n;
        }
        return true;
}

static int append_blob(sd_bus_message *m, const void *bytes, size_t size) {
        int r;

        r = sd_bus_message_open_container(m, 'v', "ay");
        if (r < 0)
                return r;
        r = sd_bus_message_append_array(m, 'y', size > 0 ? bytes : "", size);
        if (r < 0)
                return r;
        return sd_bus_message_close_container(m);
}

/* Appends a D-Bus string of `size` bytes, which need not be NUL-terminated. */
static int append_string(sd_bus_message *m, const void *text, size_t size) {
        char *room;
        int r;

        r = sd_bus_message_open_container(m, 'v', "s");
        if (r < 0)
                return r;
        r = sd_bus_message_append_string_space(m, size, &room);
        if (r < 0)
                return r;
        memcpy(room, text, size);
        return sd_bus_message_close_container(m);
}

/* Appends TEXT that a D-Bus string cannot carry, as an a{sv} with its bytes; or, if `text` is NULL, an empty a{sv} for
 * SQL's NULL. */
static int append_special(sd_bus_message *m, const void *text, size_t size) {
        int r;

        r = sd_bus_message_open_container(m, 'v', "a{sv}");
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        if (text) {
                r = sd_bus_message_open_container(m, 'e', "sv");
                if (r < 0)
                        return r;
                r = sd_bus_message_append(m, "s", "text");
                if (r < 0)
                        return r;
                r = append_blob(m, text, size);
                if (r < 0)
                        return r;
                r = sd_bus_message_close_container(m);
                if (r < 0)
                        return r;
        }
        r = sd_bus_message_close_container(m);
        if (r < 0)
                return r;
        return sd_bus_message_close_container(m);
}

static int append_value(sd_bus_message *m, const Parameter *p) {
        const void *bytes = p->bytes ? p->bytes : "";

        switch (p->type) {
        case SQLIPC_INTEGER:
                return sd_bus_message_append(m, "v", "x", p->integer);
        case SQLIPC_REAL:
                return sd_bus_message_append(m, "v", "d", p->real);
        case SQLIPC_TEXT:
                if (p->size == 0 || parameter_is_bus_string(bytes, p->size, NULL))
                        return append_string(m, bytes, p->size);
                return append_special(m, bytes, p->size);
        case SQLIPC_BLOB:
                return append_blob(m, bytes, p->size);
        case SQLIPC_NULL:
                return append_special(m, NULL, 0);
        }
        return -EINVAL;
}

static int check_parameters(const Parameter *parameters, size_t n) {
        size_t total = 0;

        for (size_t i = 0; i < n; i++) {
                const Parameter *p = &parameters[i];

                if (p->name && !parameter_is_bus_string(p->name, strlen(p->name), NULL))
                        return -EINVAL;
                if (p->type != SQLIPC_TEXT && p->type != SQLIPC_BLOB)
                        continue;
                if (p->size > 0 && !p->bytes)
                        return -EINVAL;
                if (p->size > PARAMETERS_SIZE_MAX - total)
                        return -E2BIG;
                total += p->size;
        }
        return n > N_PARAMETERS_MAX ? -EOVERFLOW : 0;
}

static int append_positional(sd_bus_message *m, const Parameter *parameters, size_t n, size_t n_min) {
        const Parameter null = { .type = SQLIPC_NULL };
        size_t n_positional = 0;
        int r;

        r = sd_bus_message_open_container(m, 'a', "v");
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                if (parameters[i].name)
                        continue;
                r = append_value(m, &parameters[i]);
                if (r < 0)
                        return r;
                n_positional++;
        }
        for (; n_positional < n_min; n_positional++) {
                r = append_value(m, &null);
                if (r < 0)
                        return r;
        }
        return sd_bus_message_close_container(m);
}

static int append_named(sd_bus_message *m, const Parameter *parameters, size_t n) {
        int r;

        r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                if (!parameters[i].name)
                        continue;
                r = sd_bus_message_open_container(m, 'e', "sv");
                if (r < 0)
                        return r;
                r = sd_bus_message_append(m, "s", parameters[i].name);
                if (r < 0)
                        return r;
                r = append_value(m, &parameters[i]);
                if (r < 0)
                        return r;
                r = sd_bus_message_close_container(m);
                if (r < 0)
                        return r;
        }
        return sd_bus_message_close_container(m);
}

int parameter_append_all(sd_bus_message *m, const Parameter *parameters, size_t n_parameters, size_t n_positional_min) {
        int r;

        r = check_parameters(parameters, n_parameters);
        if (r < 0)
                return r;
        r = append_positional(m, parameters, n_parameters, n_positional_min);
        if (r < 0)
                return r;
        return append_named(m, parameters, n_parameters);
}
