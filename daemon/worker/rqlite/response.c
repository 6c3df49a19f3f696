/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See response.h. The parser of JSON is yajl: it takes the text in pieces, and gives numbers as text, so that
 * none is rounded.
 */
#include "daemon/worker/rqlite/response.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "daemon/worker/rqlite/text-buffer.h"

#define ERROR_SIZE_MAX ((size_t) 2048)   /* of a message; the rest is cut off */
#define SKIPPED_MAX 64u                  /* levels of a value that is skipped */
#define ROW_VALUES_MAX ((size_t) 32767)  /* SQLite has no result with more columns */

/* Where the parser is. */
typedef enum ResponsePlace {
        PLACE_START,
        PLACE_TOP,    /* in the object of the response */
        PLACE_ITEMS,  /* in "results" */
        PLACE_ITEM,   /* in the result of a statement */
        PLACE_ROWS,   /* in "values" */
        PLACE_ROW,
        PLACE_BYTES,  /* in a value that is an array */
        PLACE_END,
} ResponsePlace;

typedef enum ResponseMember {
        MEMBER_OTHER,
        MEMBER_RESULTS,
        MEMBER_COLUMNS,
        MEMBER_VALUES,
        MEMBER_ERROR,
        MEMBER_LAST_ROWID,
        MEMBER_N_CHANGES,
        MEMBER_RAFT_INDEX,
} ResponseMember;

struct ResponseParser {
        yajl_handle yajl;          /* owned */
        ResponseHandler handler;
        ResponsePlace place;
        ResponseMember member;     /* whose value comes */
        unsigned skipped;          /* depth inside a value that is skipped */
        ResponseItem item;
        char item_error[ERROR_SIZE_MAX], error[ERROR_SIZE_MAX];
        bool has_error;
        unsigned n_items;
        uint64_t raft_index;
        JsonValue *values;         /* owned: of the row, with offsets in `bytes` until the row is whole */
        size_t n, n_allocated;
        TextBuffer bytes;          /* of the row */
        bool stopped;
        uint64_t n_events;         /* calls of yajl */
        TextBuffer held;           /* bytes that yajl did not get yet */
        size_t token_size;         /* bytes since the last event */
};

/* ---- values ---- */

bool json_number_int64(const char *text, int64_t *ret) {
        char *end;

        errno = 0;
        *ret = strtoll(text, &end, 10);
        return errno == 0 && end != text && *end == 0;
}

static void copy_message(char to[static ERROR_SIZE_MAX], const unsigned char *text, size_t size) {
        size_t n = size < ERROR_SIZE_MAX - 1 ? size : ERROR_SIZE_MAX - 1;

        while (n < size && n > 0 && (text[n] & 0xc0) == 0x80) /* not in the middle of a character */
                n--;
        memcpy(to, text, n);
        to[n] = 0;
}

static bool begin_value(ResponseParser *p, JsonKind kind) {
        if (p->n == ROW_VALUES_MAX)
                return false;
        if (p->n == p->n_allocated) {
                size_t n = p->n_allocated > 0 ? 2 * p->n_allocated : 16;
                JsonValue *values = realloc(p->values, n * sizeof *values);

                if (!values)
                        return false;
                p->values = values;
                p->n_allocated = n;
        }
        p->values[p->n++] = (JsonValue) { .kind = kind, .size = p->bytes.size };
        return true;
}

/* A NUL is after the bytes of each value. */
static bool end_value(ResponseParser *p) {
        text_buffer_add(&p->bytes, "", 1);
        return p->bytes.state == TEXT_GOOD;
}

static bool add_value(ResponseParser *p, JsonKind kind, const void *bytes, size_t size) {
        if (!begin_value(p, kind))
                return false;
        text_buffer_add(&p->bytes, bytes, size);
        return end_value(p);
}

static bool end_row(ResponseParser *p) {
        size_t end = p->bytes.size;

        for (size_t i = p->n; i-- > 0;) {
                size_t start = p->values[i].size;

                p->values[i].bytes = p->bytes.bytes + start;
                p->values[i].size = end - 1 - start;
                end = start;
        }
        p->stopped = !p->handler.row(p->handler.userdata, p->item.index, p->values, p->n);
        text_buffer_cut(&p->bytes, 0);
        p->n = 0;
        p->place = PLACE_ROWS;
        return !p->stopped;
}

/* ---- what yajl calls ---- */

/* A scalar that is no value of a row, and no member of use. */
static bool is_skipped(const ResponseParser *p) {
        return p->skipped > 0 || p->member == MEMBER_OTHER;
}

static int on_null(void *ctx) {
        ResponseParser *p = ctx;

        p->n_events++;
        if (p->skipped > 0)
                return 1;
        switch (p->place) {
        case PLACE_ROW:
                return add_value(p, JSON_NULL, NULL, 0);
        case PLACE_TOP: /* "results": null */
        case PLACE_ITEM:
                return 1;
        default:
                return 0;
        }
}

static int on_boolean(void *ctx, int value) {
        ResponseParser *p = ctx;

        p->n_events++;
        if (p->place == PLACE_ROW && p->skipped == 0)
                return add_value(p, value ? JSON_TRUE : JSON_FALSE, NULL, 0);
        return is_skipped(p);
}

/* A number of a member of the response, not of a row. */
static bool take_number(ResponseParser *p, const char *text, size_t size) {
        char few[32] = {};
        int64_t number;

        if (is_skipped(p))
                return true;
        if (size >= sizeof few)
                return false;
        memcpy(few, text, size);
        if (!json_number_int64(few, &number))
                return false;
        if (p->place == PLACE_TOP && p->member == MEMBER_RAFT_INDEX)
                p->raft_index = (uint64_t) number;
        else if (p->place == PLACE_ITEM && p->member == MEMBER_LAST_ROWID)
                p->item.last_rowid = number;
        else if (p->place == PLACE_ITEM && p->member == MEMBER_N_CHANGES)
                p->item.n_changes = number;
        else
                return false;
        return true;
}

static bool add_byte(ResponseParser *p, const char *text, size_t size) {
        unsigned value = 0;
        unsigned char byte;

        for (size_t i = 0; i < size; i++) {
                if (text[i] < '0' || text[i] > '9' || value > 255)
                        return false;
                value = 10 * value + (unsigned) (text[i] - '0');
        }
        if (value > 255)
                return false;
        byte = (unsigned char) value;
        text_buffer_add(&p->bytes, &byte, 1);
        return p->bytes.state == TEXT_GOOD;
}

static int on_number(void *ctx, const char *text, size_t size) {
        ResponseParser *p = ctx;

        p->n_events++;
        if (p->place == PLACE_ROW && p->skipped == 0)
                return add_value(p, JSON_NUMBER, text, size);
        if (p->place == PLACE_BYTES && p->skipped == 0)
                return add_byte(p, text, size);
        return take_number(p, text, size);
}

static int on_string(void *ctx, const unsigned char *text, size_t size) {
        ResponseParser *p = ctx;

        p->n_events++;
        if (p->place == PLACE_ROW && p->skipped == 0)
                return add_value(p, JSON_STRING, text, size);
        if (is_skipped(p))
                return 1;
        if (p->member != MEMBER_ERROR || (p->place != PLACE_TOP && p->place != PLACE_ITEM))
                return 0;
        if (p->place == PLACE_TOP) {
                copy_message(p->error, text, size);
                p->has_error = true;
        } else {
                copy_message(p->item_error, text, size);
                p->item.error = p->item_error;
        }
        return 1;
}

/* Each level costs memory, and no server has a use for many. */
static int skip_deeper(ResponseParser *p) {
        return p->skipped++ < SKIPPED_MAX;
}

static int on_start_map(void *ctx) {
        ResponseParser *p = ctx;

        p->n_events++;
        if (p->skipped > 0 || ((p->place == PLACE_TOP || p->place == PLACE_ITEM) && p->member == MEMBER_OTHER))
                return skip_deeper(p);
        if (p->place == PLACE_START)
                p->place = PLACE_TOP;
        else if (p->place == PLACE_ITEMS) {
                p->place = PLACE_ITEM;
                p->item = (ResponseItem) { .index = p->n_items };
        } else
                return 0;
        p->member = MEMBER_OTHER;
        return 1;
}

static int on_map_key(void *ctx, const unsigned char *key, size_t size) {
        static const struct {
                ResponsePlace place;
                const char *name;
                ResponseMember member;
        } members[] = {
                { PLACE_TOP, "results", MEMBER_RESULTS },        { PLACE_TOP, "error", MEMBER_ERROR },
                { PLACE_TOP, "raft_index", MEMBER_RAFT_INDEX },  { PLACE_ITEM, "columns", MEMBER_COLUMNS },
                { PLACE_ITEM, "values", MEMBER_VALUES },         { PLACE_ITEM, "error", MEMBER_ERROR },
                { PLACE_ITEM, "rows_affected", MEMBER_N_CHANGES }, { PLACE_ITEM, "last_insert_id", MEMBER_LAST_ROWID },
        };
        ResponseParser *p = ctx;

        p->n_events++;
        if (p->skipped > 0)
                return 1;
        p->member = MEMBER_OTHER;
        for (size_t i = 0; i < sizeof members / sizeof *members; i++)
                if (members[i].place == p->place && strlen(members[i].name) == size &&
                    memcmp(members[i].name, key, size) == 0)
                        p->member = members[i].member;
        return 1;
}

static int on_end_map(void *ctx) {
        ResponseParser *p = ctx;

        p->n_events++;
        if (p->skipped > 0) {
                p->skipped--;
                return 1;
        }
        if (p->place == PLACE_TOP) {
                p->place = PLACE_END;
                return 1;
        }
        p->n_items++;
        p->place = PLACE_ITEMS;
        p->stopped = !p->handler.item(p->handler.userdata, &p->item);
        return !p->stopped;
}

static int on_start_array(void *ctx) {
        ResponseParser *p = ctx;

        p->n_events++;
        if (p->skipped > 0 || ((p->place == PLACE_TOP || p->place == PLACE_ITEM) && p->member == MEMBER_OTHER))
                return skip_deeper(p);
        if (p->place == PLACE_TOP && p->member == MEMBER_RESULTS)
                p->place = PLACE_ITEMS;
        else if (p->place == PLACE_ITEM && p->member == MEMBER_COLUMNS) {
                p->item.has_columns = true;
                p->skipped++;
        } else if (p->place == PLACE_ITEM && p->member == MEMBER_VALUES)
                p->place = PLACE_ROWS;
        else if (p->place == PLACE_ROWS)
                p->place = PLACE_ROW;
        else if (p->place == PLACE_ROW) {
                p->place = PLACE_BYTES;
                return begin_value(p, JSON_BYTES);
        } else
                return 0;
        return 1;
}

static int on_end_array(void *ctx) {
        ResponseParser *p = ctx;

        p->n_events++;
        if (p->skipped > 0) {
                p->skipped--;
                return 1;
        }
        switch (p->place) {
        case PLACE_ITEMS:
                p->place = PLACE_TOP;
                break;
        case PLACE_ROWS:
                p->place = PLACE_ITEM;
                break;
        case PLACE_ROW:
                return end_row(p);
        case PLACE_BYTES:
                p->place = PLACE_ROW;
                return end_value(p);
        default:
                return 0;
        }
        p->member = MEMBER_OTHER;
        return 1;
}

static const yajl_callbacks callbacks = {
        .yajl_null = on_null,
        .yajl_boolean = on_boolean,
        .yajl_number = on_number,
        .yajl_string = on_string,
        .yajl_start_map = on_start_map,
        .yajl_map_key = on_map_key,
        .yajl_end_map = on_end_map,
        .yajl_start_array = on_start_array,
        .yajl_end_array = on_end_array,
};

/* ---- the parser ---- */

int response_parser_new(const ResponseHandler *handler, size_t row_size_max, ResponseParser **ret) {
        ResponseParser *p = malloc(sizeof *p);

        if (!p)
                return -ENOMEM;
        *p = (ResponseParser) { .handler = *handler, .bytes.size_max = row_size_max };
        p->yajl = yajl_alloc(&callbacks, NULL, p);
        if (!p->yajl) {
                (void) response_parser_free(p);
                return -ENOMEM;
        }
        *ret = p;
        return 0;
}

ResponseParser *response_parser_free(ResponseParser *p) {
        if (!p)
                return NULL;
        if (p->yajl)
                yajl_free(p->yajl);
        text_buffer_done(&p->bytes);
        text_buffer_done(&p->held);
        free(p->values);
        free(p);
        return NULL;
}

static bool feed(ResponseParser *p, const char *bytes, size_t size) {
        uint64_t n_events = p->n_events;
        bool ok = yajl_parse(p->yajl, (const unsigned char *) bytes, size) == yajl_status_ok;

        p->token_size = p->n_events == n_events ? p->token_size + size : 0;
        return ok;
}

static bool feed_held(ResponseParser *p) {
        bool ok = p->held.state == TEXT_GOOD && (p->held.size == 0 || feed(p, p->held.bytes, p->held.size));

        text_buffer_cut(&p->held, 0);
        return ok;
}

/* With each piece of a long string, yajl begins again with its first byte. So it gets pieces that double the string. */
bool response_parser_feed(ResponseParser *p, const char *bytes, size_t size) {
        if (p->token_size == 0)
                return feed(p, bytes, size);
        text_buffer_add(&p->held, bytes, size);
        return p->held.size < p->token_size ? p->held.state == TEXT_GOOD : feed_held(p);
}

bool response_parser_end(ResponseParser *p) {
        return feed_held(p) && yajl_complete_parse(p->yajl) == yajl_status_ok && p->place == PLACE_END;
}

bool response_parser_stopped(const ResponseParser *p) {
        return p->stopped;
}

const char *response_parser_error(const ResponseParser *p) {
        return p->has_error ? p->error : NULL;
}

unsigned response_parser_n_items(const ResponseParser *p) {
        return p->n_items;
}

uint64_t response_parser_raft_index(const ResponseParser *p) {
        return p->raft_index;
}

/* ---- a number in other JSON ---- */

/* Members of objects on the way to a number. */
typedef struct NumberSearch {
        const char *path;      /* what is left of it; "": the value is next */
        unsigned depth, at;    /* of objects and arrays; the depth of the object that `path` goes on in */
        bool next, found;      /* the value, or the object, of the path is next */
        uint64_t number;
} NumberSearch;

static int search_value(void *ctx) {
        NumberSearch *s = ctx;

        s->next = false;
        return 1;
}

static int search_boolean(void *ctx, int value) {
        (void) value;
        return search_value(ctx);
}

static int search_number(void *ctx, const char *text, size_t size) {
        NumberSearch *s = ctx;
        char few[32] = {};
        int64_t number;

        if (((s->next && !*s->path) || s->depth == 0) && size < sizeof few) {
                memcpy(few, text, size);
                s->found = json_number_int64(few, &number) && number >= 0;
                s->number = s->found ? (uint64_t) number : 0;
        }
        return search_value(ctx);
}

static int search_string(void *ctx, const unsigned char *text, size_t size) {
        (void) text;
        (void) size;
        return search_value(ctx);
}

static int search_start(void *ctx) {
        NumberSearch *s = ctx;

        s->depth++;
        if (s->next)
                s->at = s->depth;
        s->next = false;
        return 1;
}

static int search_end(void *ctx) {
        NumberSearch *s = ctx;

        s->depth--;
        return 1;
}

static int search_key(void *ctx, const unsigned char *key, size_t size) {
        NumberSearch *s = ctx;
        size_t n = strcspn(s->path, ".");

        s->next = !s->found && s->depth == s->at && n > 0 && n == size && memcmp(s->path, key, n) == 0;
        if (s->next)
                s->path += s->path[n] ? n + 1 : n;
        return 1;
}

bool response_find_number(const char *json, size_t size, const char *path, uint64_t *ret) {
        static const yajl_callbacks search = {
                .yajl_null = search_value,
                .yajl_boolean = search_boolean,
                .yajl_number = search_number,
                .yajl_string = search_string,
                .yajl_start_map = search_start,
                .yajl_map_key = search_key,
                .yajl_end_map = search_end,
                .yajl_start_array = search_start,
                .yajl_end_array = search_end,
        };
        NumberSearch s = { .path = path, .at = 1 };
        yajl_handle yajl = yajl_alloc(&search, NULL, &s);
        bool ok;

        if (!yajl)
                return false;
        ok = yajl_parse(yajl, (const unsigned char *) json, size) == yajl_status_ok &&
             yajl_complete_parse(yajl) == yajl_status_ok && s.found;
        yajl_free(yajl);
        if (ok)
                *ret = s.number;
        return ok;
}
