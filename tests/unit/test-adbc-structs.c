/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ADBC driver: structs of the C data interface that are released in any order, nested arrays, rows of bound batches. A
 * sanitizer finds memory that is freed twice or not at all. ADBC driver.
 */
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "client-lib/adbc/adbc-error.h"
#include "client-lib/adbc/arrow-struct.h"
#include "client-lib/adbc/arrow-tree.h"
#include "client-lib/adbc/bound-rows.h"

static void *memory(const void *bytes, size_t size) { return g_memdup2(bytes, size); }

/* An array of int64: g_malloc() is malloc(), so free() may release it. */
static struct ArrowArray numbers(const int64_t *values, size_t n) {
        void *buffers[] = { NULL, memory(values, n * sizeof *values) };
        struct ArrowArray array;

        g_assert_cmpint(arrow_struct_array(&array, (int64_t) n, 0, buffers, 2, 0), ==, 0);
        return array;
}

static const int64_t three[] = { 1, 2, 3 };

/* A batch with `n` columns of type `format`, which takes the arrays. */
static struct ArrowArray batch_of(struct ArrowArray *columns, size_t n) {
        void *buffers[] = { NULL };
        struct ArrowArray batch;

        g_assert_cmpint(arrow_struct_array(&batch, columns[0].length, 0, buffers, 1, n), ==, 0);
        for (size_t i = 0; i < n; i++)
                *batch.children[i] = columns[i];
        return batch;
}

static struct ArrowSchema schema_of(const char *const *formats, size_t n) {
        struct ArrowSchema schema;

        g_assert_cmpint(arrow_struct_schema(&schema, "+s", "", 0, n), ==, 0);
        for (size_t i = 0; i < n; i++) {
                g_autofree char *name = g_strdup_printf("c%zu", i);

                g_assert_cmpint(arrow_struct_schema(schema.children[i], formats[i], name, ARROW_FLAG_NULLABLE, 0), ==, 0);
        }
        return schema;
}

static void test_children_first(void) {
        struct ArrowArray columns[] = { numbers(three, 3), numbers(three, 3) }, batch = batch_of(columns, 2), moved;
        struct ArrowSchema schema = schema_of((const char *const[]) { "l", "l" }, 2), field;

        moved = *batch.children[1]; /* a consumer moves a column out */
        batch.children[1]->release = NULL;
        batch.release(&batch);
        g_assert_cmpint(((const int64_t *) moved.buffers[1])[2], ==, 3);
        moved.release(&moved);

        field = *schema.children[0];
        schema.children[0]->release = NULL;
        schema.release(&schema);
        g_assert_cmpstr(field.name, ==, "c0");
        field.release(&field);
}

static void test_stream_orders(void) {
        for (unsigned order = 0; order < 3; order++) {
                struct ArrowSchema schema = schema_of((const char *const[]) { "l" }, 1), copy;
                struct ArrowArray columns[] = { numbers(three, 3) }, batch = batch_of(columns, 1), got, end;
                struct ArrowArrayStream stream;

                g_assert_cmpint(arrow_struct_stream(&stream, &schema, &batch), ==, 0);
                g_assert_null(schema.release);
                g_assert_null(batch.release);
                if (order == 2) { /* nothing is taken */
                        stream.release(&stream);
                        continue;
                }
                g_assert_cmpint(stream.get_schema(&stream, &copy), ==, 0);
                g_assert_cmpint(stream.get_next(&stream, &got), ==, 0);
                g_assert_cmpint(stream.get_next(&stream, &end), ==, 0);
                g_assert_null(end.release);
                if (order == 0)
                        stream.release(&stream);
                got.release(&got);
                copy.release(&copy);
                if (order == 1)
                        stream.release(&stream);
                g_assert_null(stream.release);
        }
}

static const TreeField inner[] = { { "item", "u", false, NULL }, { NULL } };
static const TreeField members[] = {
        { "n", "i", true, NULL }, { "list", "+l", false, inner }, { "flag", "b", false, NULL }, { NULL }
};
static const TreeField root_field = { "", "+s", true, members };

static void test_tree(void) {
        Tree *tree = arrow_tree_new(&root_field);
        struct ArrowSchema schema;
        struct ArrowArray array;
        const int32_t *ends;

        g_assert_nonnull(tree);
        for (int i = 0; i < 3; i++) {
                Tree *list = arrow_tree_child(tree, 1);

                arrow_tree_integer(arrow_tree_child(tree, 0), i);
                for (int k = 0; k < i; k++)
                        arrow_tree_text(arrow_tree_child(list, 0), k == 0 ? "ab" : NULL);
                if (i == 1)
                        arrow_tree_end(list);
                else if (i == 2)
                        arrow_tree_end(list);
                else
                        arrow_tree_null(list);
                arrow_tree_integer(arrow_tree_child(tree, 2), i == 1);
                arrow_tree_end(tree);
        }
        g_assert_cmpint(arrow_tree_schema(&root_field, &schema), ==, 0);
        g_assert_cmpstr(schema.children[1]->children[0]->format, ==, "u");
        g_assert_cmpint(schema.children[0]->flags, ==, 0);
        schema.release(&schema);
        g_assert_cmpint(arrow_tree_finish(tree, &array), ==, 0);
        g_assert_cmpint(array.length, ==, 3);
        g_assert_cmpint(array.children[1]->null_count, ==, 1);
        ends = array.children[1]->buffers[1];
        g_assert_cmpint(ends[0] | ends[1], ==, 0);
        g_assert_cmpint(ends[2], ==, 1);
        g_assert_cmpint(ends[3], ==, 3);
        g_assert_cmpint(array.children[1]->children[0]->null_count, ==, 1);
        g_assert_cmpuint(((const uint8_t *) array.children[2]->buffers[1])[0], ==, 2);
        array.release(&array);
        arrow_tree_free(tree);
}

/* Binds the arrays, which it takes, and returns a reader. */
static BoundRows *bind(struct ArrowArray *columns, const char *const *formats, size_t n) {
        struct ArrowSchema schema = schema_of(formats, n);
        struct ArrowArray batch = batch_of(columns, n);
        struct ArrowArrayStream stream;
        BoundRows *rows = NULL;

        g_assert_cmpint(arrow_struct_stream(&stream, &schema, &batch), ==, 0);
        g_assert_cmpint(bound_rows_new(&stream, false, &rows, NULL), ==, ADBC_STATUS_OK);
        g_assert_null(stream.release);
        return rows;
}

static const sqlipc_parameter *next(BoundRows *rows) {
        const sqlipc_parameter *values;

        g_assert_cmpint(bound_rows_next(rows, &values, NULL), ==, ADBC_STATUS_OK);
        return values;
}

static void assert_text(const sqlipc_parameter *value, const char *text) {
        g_assert_cmpint(value->type, ==, SQLIPC_TEXT);
        g_assert_cmpmem(value->bytes, value->size, text, strlen(text));
}

static void test_times(void) {
        const int64_t micros[] = { 0, -1, 1700000000123456 };
        const char *const formats[] = { "tsu:", "tsu:Europe/Berlin", "tdm" };
        const int64_t days[] = { 0, -86400000, 253402300799999 };
        struct ArrowArray columns[] = { numbers(micros, 3), numbers(micros, 3), numbers(days, 3) };
        BoundRows *rows = bind(columns, formats, 3);
        const sqlipc_parameter *values = next(rows);

        g_assert_cmpstr(bound_rows_declaration(rows, 0), ==, "TEXT");
        assert_text(&values[0], "1970-01-01 00:00:00.000000");
        assert_text(&values[1], "1970-01-01 00:00:00.000000+00:00");
        assert_text(&values[2], "1970-01-01");
        values = next(rows);
        assert_text(&values[0], "1969-12-31 23:59:59.999999");
        assert_text(&values[2], "1969-12-31");
        values = next(rows);
        assert_text(&values[0], "2023-11-14 22:13:20.123456");
        assert_text(&values[2], "9999-12-31");
        g_assert_null(next(rows));
        bound_rows_free(rows);
}

static void test_unsigned(void) {
        const int64_t values[] = { INT64_MAX, -1 }; /* as uint64 the second is larger than any INTEGER */
        struct ArrowArray columns[] = { numbers(values, 2) };
        BoundRows *rows = bind(columns, (const char *const[]) { "L" }, 1);
        struct AdbcError error = { .vendor_code = ADBC_ERROR_VENDOR_CODE_PRIVATE_DATA };
        const sqlipc_parameter *row = next(rows);

        g_assert_cmpint(row->integer, ==, INT64_MAX);
        g_assert_cmpint(bound_rows_next(rows, &row, &error), ==, ADBC_STATUS_INVALID_DATA);
        g_assert_nonnull(strstr(error.message, "Row 2, column \"c0\""));
        g_assert_cmpstr((const char *) adbc_error_detail(&error, 0).value, ==, "2");
        error.release(&error);
        bound_rows_free(rows);
}

static void test_dictionary(void) {
        struct ArrowSchema schema = schema_of((const char *const[]) { "l" }, 1), copy, dictionary;
        const int64_t indices[] = { 1, 0, 1 }, words[] = { 70, 80 };
        struct ArrowArray columns[] = { numbers(indices, 3) }, batch = batch_of(columns, 1), values = numbers(words, 2);
        struct ArrowArrayStream stream;
        BoundRows *rows;

        g_assert_cmpint(arrow_struct_schema(&dictionary, "l", "", 0, 0), ==, 0);
        schema.children[0]->dictionary = &dictionary;
        g_assert_cmpint(arrow_struct_copy_schema(&copy, &schema), ==, 0);
        schema.children[0]->dictionary = NULL;
        schema.release(&schema);
        dictionary.release(&dictionary);
        batch.children[0]->dictionary = &values;
        g_assert_cmpint(arrow_struct_stream(&stream, &copy, &batch), ==, 0);
        g_assert_cmpint(bound_rows_new(&stream, false, &rows, NULL), ==, ADBC_STATUS_OK);
        g_assert_cmpint(next(rows)->integer, ==, 80);
        g_assert_cmpint(next(rows)->integer, ==, 70);
        bound_rows_free(rows);
        values.release(&values);
}

static void test_refused_types(void) {
        static const char *const refused[] = { "+l", "d:10,2", "tDs", "tin", "+r", "tsx", "" };

        for (size_t i = 0; i < G_N_ELEMENTS(refused); i++) {
                struct ArrowSchema schema = schema_of(&refused[i], 1);
                struct ArrowArray none = { .release = NULL };
                struct AdbcError error = { .message = NULL };
                struct ArrowArrayStream stream;
                BoundRows *rows = NULL;

                g_assert_cmpint(arrow_struct_stream(&stream, &schema, &none), ==, 0);
                g_assert_cmpint(bound_rows_new(&stream, false, &rows, &error), ==, ADBC_STATUS_NOT_IMPLEMENTED);
                g_assert_nonnull(strstr(error.message, "c0"));
                g_assert_null(stream.release);
                g_assert_null(rows);
                error.release(&error);
        }
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/adbc/structs/children-first", test_children_first);
        g_test_add_func("/adbc/structs/stream-orders", test_stream_orders);
        g_test_add_func("/adbc/structs/tree", test_tree);
        g_test_add_func("/adbc/structs/times", test_times);
        g_test_add_func("/adbc/structs/unsigned", test_unsigned);
        g_test_add_func("/adbc/structs/dictionary", test_dictionary);
        g_test_add_func("/adbc/structs/refused-types", test_refused_types);
        return g_test_run();
}
