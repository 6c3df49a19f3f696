/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes the structs of Arrow's C data interface (arrow-struct.h). Pure. ADBC driver. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/adbc/arrow-struct.h"
#include "client-lib/adbc/cleanup.h"
#include "client-lib/adbc/utf8-check.h"

void arrow_struct_release_schema(struct ArrowSchema *schema) {
        if (schema->release)
                schema->release(schema);
}

void arrow_struct_release_array(struct ArrowArray *array) {
        if (array->release)
                array->release(array);
}

void arrow_struct_release_stream(struct ArrowArrayStream *stream) {
        if (stream->release)
                stream->release(stream);
}

/* ---- Schemas ------------------------------------------------------------------------------------------------------- */

typedef struct SchemaMemory {
        char *format;
        char *name;
        struct ArrowSchema dictionary;
        struct ArrowSchema *children;
        struct ArrowSchema **pointers;
} SchemaMemory;

static void free_schema_memory(SchemaMemory *memory) {
        free(memory->format);
        free(memory->name);
        free(memory->children);
        free(memory->pointers);
        free(memory);
}

static void release_schema(struct ArrowSchema *schema) {
        SchemaMemory *memory = schema->private_data;

        for (int64_t i = 0; i < schema->n_children; i++)
                arrow_struct_release_schema(schema->children[i]);
        if (schema->dictionary)
                arrow_struct_release_schema(schema->dictionary);
        free_schema_memory(memory);
        schema->release = NULL;
}

int arrow_struct_schema(struct ArrowSchema *ret_schema, const char *format, const char *name, int64_t flags,
                        size_t n_children) {
        SchemaMemory *memory = calloc(1, sizeof *memory);

        if (!memory)
                return -ENOMEM;
        memory->format = strdup(format);
        memory->name = utf8_make_valid(name);
        memory->children = calloc(n_children + 1, sizeof *memory->children);
        memory->pointers = calloc(n_children + 1, sizeof *memory->pointers);
        if (!memory->format || !memory->name || !memory->children || !memory->pointers) {
                free_schema_memory(memory);
                return -ENOMEM;
        }
        for (size_t i = 0; i < n_children; i++)
                memory->pointers[i] = &memory->children[i];
        *ret_schema = (struct ArrowSchema) {
                .format = memory->format,
                .name = memory->name,
                .flags = flags,
                .n_children = (int64_t) n_children,
                .children = memory->pointers,
                .release = release_schema,
                .private_data = memory,
        };
        return 0;
}

int arrow_struct_copy_schema(struct ArrowSchema *ret_schema, const struct ArrowSchema *schema) {
        _cleanup_(arrow_struct_release_schema) struct ArrowSchema copy = { .release = NULL };
        int r;

        r = arrow_struct_schema(&copy, schema->format, schema->name ? schema->name : "", schema->flags,
                                (size_t) schema->n_children);
        if (r < 0)
                return r;
        for (int64_t i = 0; i < schema->n_children; i++) {
                r = arrow_struct_copy_schema(copy.children[i], schema->children[i]);
                if (r < 0)
                        return r;
        }
        if (schema->dictionary) {
                SchemaMemory *memory = copy.private_data;

                copy.dictionary = &memory->dictionary;
                r = arrow_struct_copy_schema(copy.dictionary, schema->dictionary);
                if (r < 0)
                        return r;
        }
        *ret_schema = copy;
        copy.release = NULL;
        return 0;
}

/* ---- Arrays -------------------------------------------------------------------------------------------------------- */

typedef struct ArrayMemory {
        const void *buffers[ARROW_STRUCT_BUFFERS_MAX];
        struct ArrowArray *children;
        struct ArrowArray **pointers;
} ArrayMemory;

static void free_array_memory(ArrayMemory *memory) {
        free(memory->children);
        free(memory->pointers);
        free(memory);
}

static void release_array(struct ArrowArray *array) {
        ArrayMemory *memory = array->private_data;

        for (int64_t i = 0; i < array->n_children; i++)
                arrow_struct_release_array(array->children[i]);
        for (int64_t i = 0; i < array->n_buffers; i++)
                free((void *) memory->buffers[i]);
        free_array_memory(memory);
        array->release = NULL;
}

int arrow_struct_array(struct ArrowArray *ret_array, int64_t length, int64_t null_count, void *const *buffers,
                       size_t n_buffers, size_t n_children) {
        ArrayMemory *memory = calloc(1, sizeof *memory);

        if (!memory)
                return -ENOMEM;
        memory->children = calloc(n_children + 1, sizeof *memory->children);
        memory->pointers = calloc(n_children + 1, sizeof *memory->pointers);
        if (!memory->children || !memory->pointers) {
                free_array_memory(memory);
                return -ENOMEM;
        }
        for (size_t i = 0; i < n_children; i++)
                memory->pointers[i] = &memory->children[i];
        for (size_t i = 0; i < n_buffers; i++)
                memory->buffers[i] = buffers[i];
        *ret_array = (struct ArrowArray) {
                .length = length,
                .null_count = null_count,
                .n_buffers = (int64_t) n_buffers,
                .n_children = (int64_t) n_children,
                .buffers = memory->buffers,
                .children = memory->pointers,
                .release = release_array,
                .private_data = memory,
        };
        return 0;
}

/* ---- Streams of one array ------------------------------------------------------------------------------------------ */

typedef struct OneArray {
        struct ArrowSchema schema;
        struct ArrowArray array;
} OneArray;

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *ret_schema) {
        OneArray *one = stream->private_data;

        return -arrow_struct_copy_schema(ret_schema, &one->schema);
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *ret_array) {
        OneArray *one = stream->private_data;

        *ret_array = one->array;
        one->array.release = NULL;
        return 0;
}

static const char *get_last_error(struct ArrowArrayStream *stream) { return NULL; }

static void release_stream(struct ArrowArrayStream *stream) {
        OneArray *one = stream->private_data;

        arrow_struct_release_schema(&one->schema);
        arrow_struct_release_array(&one->array);
        free(one);
        stream->release = NULL;
}

int arrow_struct_stream(struct ArrowArrayStream *ret_stream, struct ArrowSchema *schema, struct ArrowArray *array) {
        OneArray *one = malloc(sizeof *one);

        if (!one)
                return -ENOMEM;
        *one = (OneArray) { .schema = *schema, .array = *array };
        schema->release = NULL;
        array->release = NULL;
        *ret_stream = (struct ArrowArrayStream) {
                .get_schema = get_schema,
                .get_next = get_next,
                .get_last_error = get_last_error,
                .release = release_stream,
                .private_data = one,
        };
        return 0;
}
