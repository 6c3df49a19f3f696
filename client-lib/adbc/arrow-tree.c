/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Builds nested arrays for metadata (arrow-tree.h). Pure. ADBC driver. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/adbc/arrow-struct.h"
#include "client-lib/adbc/arrow-tree.h"
#include "client-lib/adbc/cleanup.h"
#include "client-lib/adbc/utf8-check.h"

typedef struct TreeBytes {
        uint8_t *bytes;
        size_t size;
        size_t capacity;
} TreeBytes;

struct Tree {
        const TreeField *field;
        int64_t length;
        int64_t n_nulls;
        TreeBytes valid;  /* a byte for each value */
        TreeBytes values; /* scalars; bytes of text; codes of a union. A bool takes a byte here. */
        TreeBytes ends;   /* int32: the end of each text or list; the offset of each value of a union */
        bool failed;      /* without memory */
        unsigned n_children;
        Tree *children;
};

static unsigned count_children(const TreeField *field) {
        unsigned n = 0;

        while (field->children && field->children[n].name)
                n++;
        return n;
}

static void append(Tree *tree, TreeBytes *to, const void *bytes, size_t size) {
        if (to->size + size > to->capacity) {
                size_t capacity = 2 * to->capacity + size + 64;
                uint8_t *grown = realloc(to->bytes, capacity);

                if (!grown) {
                        tree->failed = true;
                        return;
                }
                to->bytes = grown;
                to->capacity = capacity;
        }
        if (size > 0)
                memcpy(to->bytes + to->size, bytes, size);
        to->size += size;
}

static bool is(const Tree *tree, char kind) { return tree->field->format[0] == '+' && tree->field->format[1] == kind; }

static bool has_ends(const Tree *tree) {
        return tree->field->format[0] == 'u' || tree->field->format[0] == 'z' || is(tree, 'l') || is(tree, 'm');
}

static void append_end(Tree *tree) {
        size_t end = is(tree, 'l') || is(tree, 'm') ? (size_t) tree->children[0].length : tree->values.size;
        int32_t end32 = (int32_t) end;

        append(tree, &tree->ends, &end32, sizeof end32);
}

static void append_validity(Tree *tree, bool valid) {
        uint8_t byte = valid;

        append(tree, &tree->valid, &byte, 1);
        tree->n_nulls += !valid;
        tree->length++;
}

/* ---- Life ---------------------------------------------------------------------------------------------------------- */

static void begin(Tree *tree) {
        tree->length = tree->n_nulls = 0;
        if (has_ends(tree))
                append(tree, &tree->ends, &(int32_t) { 0 }, sizeof(int32_t));
}

static void done(Tree *tree) {
        for (unsigned i = 0; i < tree->n_children; i++)
                done(&tree->children[i]);
        free(tree->children);
        free(tree->valid.bytes);
        free(tree->values.bytes);
        free(tree->ends.bytes);
}

static int init(Tree *tree, const TreeField *field) {
        unsigned n = count_children(field);

        *tree = (Tree) { .field = field, .children = n > 0 ? calloc(n, sizeof(Tree)) : NULL };
        if (n > 0 && !tree->children)
                return -ENOMEM;
        for (; tree->n_children < n; tree->n_children++)
                if (init(&tree->children[tree->n_children], &field->children[tree->n_children]) < 0)
                        return -ENOMEM;
        begin(tree);
        return 0;
}

Tree *arrow_tree_new(const TreeField *field) {
        Tree *tree = malloc(sizeof *tree);

        if (tree && init(tree, field) < 0)
                return arrow_tree_free(tree);
        return tree;
}

Tree *arrow_tree_free(Tree *tree) {
        if (tree) {
                done(tree);
                free(tree);
        }
        return NULL;
}

Tree *arrow_tree_child(Tree *tree, unsigned i) { return &tree->children[i]; }

/* ---- Values -------------------------------------------------------------------------------------------------------- */

/* The size of a scalar in `values`; 0 if the type has none. */
static size_t scalar_size(const Tree *tree) {
        switch (tree->field->format[0]) {
        case 'b':
                return 1;
        case 's':
                return 2;
        case 'i':
        case 'I':
                return 4;
        case 'l':
        case 'L':
        case 'g':
                return 8;
        default:
                return 0;
        }
}

void arrow_tree_integer(Tree *tree, int64_t value) {
        switch (scalar_size(tree)) {
        case 1:
                append(tree, &tree->values, &(uint8_t) { value != 0 }, 1);
                break;
        case 2:
                append(tree, &tree->values, &(int16_t) { (int16_t) value }, 2);
                break;
        case 4:
                append(tree, &tree->values, &(int32_t) { (int32_t) value }, 4);
                break;
        default:
                append(tree, &tree->values, &value, 8);
                break;
        }
        append_validity(tree, true);
}

void arrow_tree_text(Tree *tree, const char *text) {
        _cleanup_free_ char *valid = text ? utf8_make_valid(text) : NULL;

        if (!text) {
                arrow_tree_null(tree);
                return;
        }
        tree->failed = tree->failed || !valid;
        append(tree, &tree->values, valid, valid ? strlen(valid) : 0);
        append_end(tree);
        append_validity(tree, true);
}

void arrow_tree_null(Tree *tree) {
        append(tree, &tree->values, &(int64_t) { 0 }, scalar_size(tree));
        if (has_ends(tree))
                append_end(tree);
        for (unsigned i = 0; is(tree, 's') && i < tree->n_children; i++)
                arrow_tree_null(&tree->children[i]);
        append_validity(tree, false);
}

void arrow_tree_end(Tree *tree) {
        if (has_ends(tree))
                append_end(tree);
        append_validity(tree, true);
}

Tree *arrow_tree_choose(Tree *tree, unsigned code) {
        Tree *child = &tree->children[code];
        int32_t offset = (int32_t) child->length;
        uint8_t byte = (uint8_t) code;

        append(tree, &tree->values, &byte, 1);
        append(tree, &tree->ends, &offset, sizeof offset);
        tree->length++;
        return child;
}

/* ---- Arrays -------------------------------------------------------------------------------------------------------- */

int arrow_tree_schema(const TreeField *field, struct ArrowSchema *ret_schema) {
        _cleanup_(arrow_struct_release_schema) struct ArrowSchema schema = { .release = NULL };
        int r;

        r = arrow_struct_schema(&schema, field->format, field->name, field->required ? 0 : ARROW_FLAG_NULLABLE,
                                count_children(field));
        if (r < 0)
                return r;
        for (int64_t i = 0; i < schema.n_children; i++) {
                r = arrow_tree_schema(&field->children[i], schema.children[i]);
                if (r < 0)
                        return r;
        }
        *ret_schema = schema;
        schema.release = NULL;
        return 0;
}

/* Packs bytes of 0 and 1 into bits. Returns NULL without memory. */
static uint8_t *pack(const TreeBytes *bytes) {
        uint8_t *bits = calloc(bytes->size / 8 + 1, 1);

        for (size_t i = 0; bits && i < bytes->size; i++)
                bits[i / 8] |= (uint8_t) (bytes->bytes[i] << i % 8);
        return bits;
}

/* Hands over the bytes, which are never NULL for a tree that has not failed. */
static void *take(TreeBytes *bytes) {
        void *taken = bytes->bytes ? bytes->bytes : calloc(1, 8);

        *bytes = (TreeBytes) { .size = 0 };
        return taken;
}

/* Collects the buffers of the type in their order. Returns their number, or -ENOMEM. */
static int take_buffers(Tree *tree, void *buffers[ARROW_STRUCT_BUFFERS_MAX]) {
        int n = 0;

        if (!is(tree, 'u'))
                buffers[n++] = pack(&tree->valid);
        if (is(tree, 'u')) {
                buffers[n++] = take(&tree->values);
                buffers[n++] = take(&tree->ends);
        } else {
                if (has_ends(tree))
                        buffers[n++] = take(&tree->ends);
                if (tree->field->format[0] == 'b')
                        buffers[n++] = pack(&tree->values);
                else if (tree->field->format[0] != '+')
                        buffers[n++] = take(&tree->values);
        }
        for (int i = 0; i < n; i++)
                if (!buffers[i])
                        return -ENOMEM;
        return n;
}

static int finish_node(Tree *tree, struct ArrowArray *ret_array) {
        void *buffers[ARROW_STRUCT_BUFFERS_MAX] = { NULL };
        int n = tree->failed ? -ENOMEM : take_buffers(tree, buffers), r = n;

        if (n >= 0)
                r = arrow_struct_array(ret_array, tree->length, tree->n_nulls, buffers, (size_t) n, tree->n_children);
        if (r < 0)
                for (size_t i = 0; i < ARROW_STRUCT_BUFFERS_MAX; i++)
                        free(buffers[i]);
        return r;
}

int arrow_tree_finish(Tree *tree, struct ArrowArray *ret_array) {
        _cleanup_(arrow_struct_release_array) struct ArrowArray array = { .release = NULL };
        int r;

        r = finish_node(tree, &array);
        if (r < 0)
                return r;
        for (unsigned i = 0; i < tree->n_children; i++) {
                r = arrow_tree_finish(&tree->children[i], array.children[i]);
                if (r < 0)
                        return r;
        }
        tree->valid.size = tree->values.size = tree->ends.size = 0;
        begin(tree);
        *ret_array = array;
        array.release = NULL;
        return 0;
}

int arrow_tree_stream(Tree *tree, struct ArrowArrayStream *ret_stream) {
        _cleanup_(arrow_struct_release_schema) struct ArrowSchema schema = { .release = NULL };
        _cleanup_(arrow_struct_release_array) struct ArrowArray array = { .release = NULL };
        int r;

        r = arrow_tree_schema(tree->field, &schema);
        if (r < 0)
                return r;
        r = arrow_tree_finish(tree, &array);
        if (r < 0)
                return r;
        return arrow_struct_stream(ret_stream, &schema, &array);
}
