/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Builds nested arrays for metadata: structs, lists, unions and a few scalars, one value at a time. (Results have a builder
 * of their own, column-builder.h, which is fast and flat.) Pure. ADBC driver.
 *
 * A constant table describes a type, and a Tree of the same shape collects the values. Functions that append do not fail: a
 * tree without memory remembers it, and arrow_tree_finish() tells.
 */
#ifndef SQLIPC_CLIENT_LIB_ADBC_ARROW_TREE_H
#define SQLIPC_CLIENT_LIB_ADBC_ARROW_TREE_H

#include <stdbool.h>

#include "client-lib/adbc/arrow-abi.h"

/* A field, with the formats "+s" struct, "+l" list, "+m" map, "+ud:0,1,..." dense union, "u" text, "b" bool, and the
 * integers "s" int16, "i" int32, "I" uint32, "l" int64, "L" uint64; or "g" double and "z" binary, for which there are no
 * values. */
typedef struct TreeField {
        const char *name;
        const char *format;
        bool required;
        const struct TreeField *children; /* the last one has no name; NULL: none */
} TreeField;

typedef struct Tree Tree;

/* Makes an empty tree, which the caller frees with arrow_tree_free(). Returns NULL without memory. */
Tree *arrow_tree_new(const TreeField *field);
Tree *arrow_tree_free(Tree *tree);

/* Returns child `i`, or the one child of a list; borrowed. */
Tree *arrow_tree_child(Tree *tree, unsigned i);

/* Append a scalar; `text` NULL is null. Of a text that is not UTF-8, the invalid bytes are replaced. */
void arrow_tree_integer(Tree *tree, int64_t value);
void arrow_tree_text(Tree *tree, const char *text);

/* Appends a null; in a struct also to each child. */
void arrow_tree_null(Tree *tree);

/* Ends a struct, after each child got its value, or a list, after its child got the items. */
void arrow_tree_end(Tree *tree);

/* Appends a value of a dense union: returns the child `code`, which must get that one value next. */
Tree *arrow_tree_choose(Tree *tree, unsigned code);

/* Make a schema of the type; and an array of the values that were collected, after which the tree is empty. Return 0 or
 * -ENOMEM. */
int arrow_tree_schema(const TreeField *field, struct ArrowSchema *ret_schema);
int arrow_tree_finish(Tree *tree, struct ArrowArray *ret_array);

/* Makes a stream of the tree, whose root is a struct. Returns 0 or -ENOMEM. */
int arrow_tree_stream(Tree *tree, struct ArrowArrayStream *ret_stream);

#endif
