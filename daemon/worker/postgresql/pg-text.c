/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See pg-text.h. From top to bottom: the result, placeholders, tokens, commands, calls.
 */
#include "daemon/worker/postgresql/pg-text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The word before, if it decides what the next one means. */
typedef enum Last {
        LAST_OTHER,
        LAST_AS,              /* a name follows, also if it is that of a keyword */
        LAST_WITH,            /* WITH or RECURSIVE: the name of a query follows */
        LAST_INSERT,          /* INSERT or MERGE that begins a statement: its INTO follows */
} Last;

/* How far the words before the statement that EXPLAIN is for were read. */
typedef enum Explain {
        EXPLAIN_NO,           /* there is none, or the statement has begun */
        EXPLAIN_WORDS,
        EXPLAIN_OPTIONS,      /* in their parentheses */
        EXPLAIN_STATEMENT,    /* after these */
} Explain;

#define LEVELS_MAX 64         /* of parentheses, whose queries are told apart */
#define CALLS_COMPARED 4096   /* bytes of a list of calls: in a longer one a name is not looked for */

typedef struct Scan {
        const char *at, *start, *end;
        const char *copied;   /* everything before it is in the result */
        PgText *text;
        unsigned parameters_max;
        SqlError *error;

        unsigned n_tokens;    /* of the statement, so far */
        bool ended;           /* a semicolon came after it */
        char previous;        /* the first character of the last token; 0: there was none */
        Last last;
        unsigned depth;       /* of parentheses */
        uint64_t with, select; /* a bit for each of these levels: there was this word */
        Explain explain;
        bool explain_runs;    /* it may have the option ANALYZE */
        bool explain_plans;   /* it has not, so the statement is not run */
        bool creates;         /* the statement is CREATE */
        bool after_begin;     /* the last word was BEGIN */
        unsigned body_depth;  /* of BEGIN ATOMIC ... END in CREATE FUNCTION */
        const char *name;     /* the last token, if it is a word or a quoted name, in whose quotes are name_size bytes */
        size_t name_size;
        bool quoted;          /* the name is */
        bool escapes;         /* the last tokens are a name with escapes: U&"..." [UESCAPE '...'] */
        bool calls_effect;    /* a function of PG_TEXT_EFFECTS is called, or one with such a name */
} Scan;

static bool is_name_start(char c) {
        return isalpha((unsigned char) c) || c == '_' || (unsigned char) c >= 0x80;
}

static bool is_name_part(char c) {
        return is_name_start(c) || isdigit((unsigned char) c) || c == '$';
}

/* The NUL after the SQL can be read, too. */
static char next(const Scan *s, size_t n) {
        return (size_t) (s->end - s->at) > n ? s->at[n] : 0;
}

/* ---- the result ---- */

static bool out_of_memory(Scan *s) {
        return sql_error_set(s->error, ERROR_OUT_OF_MEMORY, "out of memory");
}

static bool append(Scan *s, const char *bytes, size_t size) {
        PgText *t = s->text;

        if (size >= t->sql_capacity - t->sql_size) {
                size_t capacity = 2 * t->sql_capacity + size + 1;
                char *bigger = realloc(t->sql, capacity);

                if (!bigger)
                        return out_of_memory(s);
                t->sql = bigger;
                t->sql_capacity = capacity;
        }
        memcpy(t->sql + t->sql_size, bytes, size);
        t->sql_size += size;
        t->sql[t->sql_size] = 0;
        return true;
}

/* Puts `to` into the place of the next `from_size` bytes, and goes on after them. */
static bool replace(Scan *s, size_t from_size, const char *to) {
        PgText *t = s->text;
        PgPiece *pieces;

        if (!append(s, s->copied, (size_t) (s->at - s->copied)))
                return false;
        if ((t->n_pieces & (t->n_pieces - 1)) == 0) { /* grows at the powers of two */
                pieces = reallocarray(t->pieces, t->n_pieces > 0 ? 2 * t->n_pieces : 1, sizeof *pieces);
                if (!pieces)
                        return out_of_memory(s);
                t->pieces = pieces;
        }
        t->pieces[t->n_pieces++] = (PgPiece) {
                .from = (size_t) (s->at - s->start),
                .from_size = from_size,
                .to = t->sql_size,
                .to_size = strlen(to),
        };
        if (!append(s, to, strlen(to)))
                return false;
        s->at += from_size;
        s->copied = s->at;
        return true;
}

/* ---- placeholders ---- */

static bool too_many(Scan *s) {
        return sql_error_set(s->error, ERROR_LIMITS_EXCEEDED,
                             "the number of a parameter must be between 1 and the %u of VariablesMax=", s->parameters_max);
}

/* Has the list of names reach up to `index`, from 0. */
static bool reach(Scan *s, unsigned index) {
        PgText *t = s->text;
        PgName *names;

        if (index < t->n_names)
                return true;
        if (index >= s->parameters_max)
                return too_many(s);
        names = reallocarray(t->names, (size_t) index + 1, sizeof *names);
        if (!names)
                return out_of_memory(s);
        memset(names + t->n_names, 0, (index + 1 - t->n_names) * sizeof *names);
        t->names = names;
        t->n_names = index + 1;
        return true;
}

/* "$1" must not become a part of the name (a?) or of the dollar quote ($?$) before it. */
static bool is_name_before(const Scan *s) {
        return s->at > s->start && (is_name_part(s->at[-1]) || s->at[-1] == '$');
}

/* Uses the parameter of this index for the next `size` bytes. The first occurrence gives it its name. */
static bool use(Scan *s, unsigned index, size_t size, bool named) {
        char number[16];
        PgName *n;

        if (!reach(s, index))
                return false;
        n = &s->text->names[index];
        if (n->number == 0)
                n->number = ++s->text->n_numbers;
        if (named && !n->name) {
                n->name = strndup(s->at, size);
                if (!n->name)
                        return out_of_memory(s);
        }
        (void) snprintf(number, sizeof number, is_name_before(s) ? " $%u" : "$%u", n->number);
        return replace(s, size, number);
}

/* ?NNN or $N, of `size` bytes. */
static bool use_number(Scan *s, size_t size) {
        unsigned long number = strtoul(s->at + 1, NULL, 10);

        if (number < 1 || number > s->parameters_max)
                return too_many(s);
        return use(s, (unsigned) number - 1, size, true);
}

static bool use_name(Scan *s, size_t size) {
        for (unsigned i = 0; i < s->text->n_names; i++) {
                const char *name = s->text->names[i].name;

                if (name && strlen(name) == size && memcmp(name, s->at, size) == 0)
                        return use(s, i, size, true);
        }
        return use(s, s->text->n_names, size, true);
}

/* Counts the bytes from `from` on that are a name. A "$" is no part of a placeholder's name. */
static size_t name_size(const Scan *s, size_t from) {
        size_t n = from;

        while (is_name_part(next(s, n)) && next(s, n) != '$')
                n++;
        return n;
}

static size_t digits_size(const Scan *s, size_t from) {
        size_t n = from;

        while (isdigit((unsigned char) next(s, n)))
                n++;
        return n;
}

/* ---- tokens ---- */

/* Goes after the closing `quote`, which is written twice inside of the string, or to the end of the SQL. */
static void skip_quoted(Scan *s, char quote, bool has_escapes) {
        for (s->at++; s->at < s->end; s->at++) {
                if (has_escapes && *s->at == '\\' && s->at + 1 < s->end)
                        s->at++;
                else if (*s->at == quote && next(s, 1) == quote)
                        s->at++;
                else if (*s->at == quote) {
                        s->at++;
                        return;
                }
        }
}

static void skip_line(Scan *s) {
        while (s->at < s->end && *s->at != '\n' && *s->at != '\r')
                s->at++;
}

static void skip_comment(Scan *s) {
        unsigned depth = 0;

        while (s->at < s->end) {
                if (s->at[0] == '/' && next(s, 1) == '*') {
                        depth++;
                        s->at += 2;
                } else if (s->at[0] == '*' && next(s, 1) == '/') {
                        depth--;
                        s->at += 2;
                        if (depth == 0)
                                return;
                } else
                        s->at++;
        }
}

/* A string with escapes goes on after a new line, with escapes. */
static void skip_escaped(Scan *s) {
        const char *after;

        do {
                bool new_line = false;

                skip_quoted(s, '\'', true);
                after = s->at;
                for (;;) {
                        if (next(s, 0) == '-' && next(s, 1) == '-')
                                skip_line(s);
                        else if (next(s, 0) != 0 && strchr(" \t\n\r\f\v", next(s, 0))) {
                                new_line = new_line || *s->at == '\n' || *s->at == '\r';
                                s->at++;
                        } else
                                break;
                }
                if (!new_line || next(s, 0) != '\'') {
                        s->at = after;
                        return;
                }
        } while (true);
}

/* "$tag$ ... $tag$". False: the "$" does not begin one. */
static bool skip_dollar_quoted(Scan *s) {
        size_t size = is_name_start(next(s, 1)) ? name_size(s, 1) : 1;
        const char *close;

        if (next(s, size) != '$')
                return false;
        size++;
        close = memmem(s->at + size, (size_t) (s->end - s->at) - size, s->at, size);
        s->at = close ? close + size : s->end;
        return true;
}

static bool on_dollar(Scan *s) {
        if (isdigit((unsigned char) next(s, 1)))
                return use_number(s, digits_size(s, 1));
        if (skip_dollar_quoted(s))
                return true;
        if (is_name_start(next(s, 1)))
                return use_name(s, name_size(s, 1));
        s->at++;
        return true;
}

static bool on_question_mark(Scan *s) {
        size_t size;

        if (next(s, 1) == '?')
                return replace(s, 2, "?");
        size = digits_size(s, 1);
        return size > 1 ? use_number(s, size) : use(s, s->text->n_names, 1, false);
}

static bool on_colon(Scan *s) {
        if (next(s, 1) == ':')
                s->at += 2;
        else if (is_name_start(next(s, 1)))
                return use_name(s, name_size(s, 1));
        else
                s->at++;
        return true;
}

static bool on_at(Scan *s) {
        bool in_operator = s->at > s->start && (s->at[-1] == '<' || s->at[-1] == '@');

        if (!in_operator && is_name_start(next(s, 1)))
                return use_name(s, name_size(s, 1));
        s->at++;
        return true;
}

/* ---- commands ---- */

static const struct {
        const char *word;
        PgCommand command;
} commands[] = {
        { "SELECT", PG_COMMAND_READ },
        { "VALUES", PG_COMMAND_READ },
        { "TABLE", PG_COMMAND_READ },
        { "WITH", PG_COMMAND_READ },
        { "SHOW", PG_COMMAND_READ },
        { "EXPLAIN", PG_COMMAND_READ },
        { "INSERT", PG_COMMAND_ROWS },
        { "UPDATE", PG_COMMAND_ROWS },
        { "DELETE", PG_COMMAND_ROWS },
        { "MERGE", PG_COMMAND_ROWS },
        { "CALL", PG_COMMAND_CALL },
        { "DO", PG_COMMAND_CALL },
        { "TRUNCATE", PG_COMMAND_CALL },
        { "REFRESH", PG_COMMAND_CALL },
        { "ANALYZE", PG_COMMAND_SCHEMA },
        { "ANALYSE", PG_COMMAND_SCHEMA },
        { "LOCK", PG_COMMAND_CALL },
        { "CREATE", PG_COMMAND_SCHEMA },
        { "ALTER", PG_COMMAND_SCHEMA },
        { "DROP", PG_COMMAND_SCHEMA },
        { "COMMENT", PG_COMMAND_SCHEMA },
        { "GRANT", PG_COMMAND_SCHEMA },
        { "REVOKE", PG_COMMAND_SCHEMA },
        { "REINDEX", PG_COMMAND_SCHEMA },
        { "SECURITY", PG_COMMAND_SCHEMA },
        { "IMPORT", PG_COMMAND_SCHEMA },
        { "REASSIGN", PG_COMMAND_SCHEMA },
        { "SAVEPOINT", PG_COMMAND_SAVEPOINT },
        { "RELEASE", PG_COMMAND_SAVEPOINT },
        { "BEGIN", PG_COMMAND_REFUSED },
        { "START", PG_COMMAND_REFUSED },
        { "COMMIT", PG_COMMAND_REFUSED },
        { "END", PG_COMMAND_REFUSED },
        { "ABORT", PG_COMMAND_REFUSED },
        { "ROLLBACK", PG_COMMAND_REFUSED }, /* unless TO follows */
        { "PREPARE", PG_COMMAND_REFUSED },
        { "EXECUTE", PG_COMMAND_REFUSED },
        { "DEALLOCATE", PG_COMMAND_REFUSED },
        { "DECLARE", PG_COMMAND_REFUSED },
        { "FETCH", PG_COMMAND_REFUSED },
        { "MOVE", PG_COMMAND_REFUSED },
        { "CLOSE", PG_COMMAND_REFUSED },
        { "COPY", PG_COMMAND_REFUSED },
        { "LISTEN", PG_COMMAND_REFUSED },
        { "UNLISTEN", PG_COMMAND_REFUSED },
        { "NOTIFY", PG_COMMAND_REFUSED },
        { "SET", PG_COMMAND_REFUSED },
        { "RESET", PG_COMMAND_REFUSED },
        { "DISCARD", PG_COMMAND_REFUSED },
        { "LOAD", PG_COMMAND_REFUSED },
        { "VACUUM", PG_COMMAND_REFUSED },
        { "CLUSTER", PG_COMMAND_REFUSED },
        { "CHECKPOINT", PG_COMMAND_REFUSED },
};

static PgCommand command_of(const char *word, size_t size) {
        for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
                if (strlen(commands[i].word) == size && memcmp(commands[i].word, word, size) == 0)
                        return commands[i].command;
        return PG_COMMAND_UNKNOWN;
}

PgCommand pg_text_command(const char *tag) {
        return command_of(tag, strcspn(tag, " "));
}

/* A body between BEGIN ATOMIC and END has semicolons of its own, and CASE ... END in its expressions. */
static void follow_body(Scan *s, const char *word) {
        if (s->after_begin && strcmp(word, "ATOMIC") == 0)
                s->body_depth = 1;
        else if (s->body_depth > 0 && strcmp(word, "CASE") == 0)
                s->body_depth++;
        else if (s->body_depth > 0 && strcmp(word, "END") == 0)
                s->body_depth--;
        s->after_begin = s->body_depth == 0 && strcmp(word, "BEGIN") == 0;
}

static bool is_one_of(const char *word, const char *first, const char *second) {
        return strcmp(word, first) == 0 || strcmp(word, second) == 0;
}

/* ANALYZE that is switched off again is not looked for: the statement counts as one that is run. */
static bool is_option_of_explain(Scan *s, const char *word) {
        bool analyze = is_one_of(word, "ANALYZE", "ANALYSE"), first = s->depth == 1 && s->previous == '(';

        if (s->explain == EXPLAIN_STATEMENT)
                return false;
        if (s->explain == EXPLAIN_OPTIONS && first &&
            (is_one_of(word, "SELECT", "VALUES") || is_one_of(word, "WITH", "TABLE"))) /* no options, but a query */
                return false;
        s->explain_runs = s->explain_runs || analyze;
        return s->explain == EXPLAIN_OPTIONS || analyze || strcmp(word, "VERBOSE") == 0;
}

/* The first word of the statement, or of the one that EXPLAIN is for. */
static void begin_statement(Scan *s, const char *word, PgCommand command) {
        PgText *t = s->text;

        if (t->word[0]) {
                s->explain = EXPLAIN_NO;
                s->explain_plans = !s->explain_runs && command != PG_COMMAND_REFUSED && command != PG_COMMAND_UNKNOWN;
                if (s->explain_plans)
                        return;
        } else if (strcmp(word, "EXPLAIN") == 0)
                s->explain = EXPLAIN_WORDS;
        (void) snprintf(t->word, sizeof t->word, "%s", word);
        t->command = command;
        s->creates = strcmp(word, "CREATE") == 0;
        if (is_one_of(word, "INSERT", "MERGE"))
                s->last = LAST_INSERT;
}

static bool had(const Scan *s, uint64_t levels) {
        return s->depth >= LEVELS_MAX || levels >> s->depth & 1;
}

static void note(const Scan *s, uint64_t *levels) {
        if (s->depth < LEVELS_MAX)
                *levels |= UINT64_C(1) << s->depth;
}

/* INSERT, UPDATE, DELETE and MERGE are also names, for example SELECT (1) insert INTO t. They begin a statement after "(",
 * and after the queries of WITH, which may end with words (SEARCH, CYCLE), up to SELECT. */
static bool begins_rows(const Scan *s, Last last) {
        return !had(s, s->select) && (s->previous == '(' || (had(s, s->with) && last != LAST_WITH && s->previous != ','));
}

/* In a query. INTO is a reserved word: if it is neither that of INSERT or MERGE nor a name after AS, it makes a table. */
static void follow_query(Scan *s, const char *word, PgCommand command, Last last) {
        PgText *t = s->text;

        if (strcmp(word, "SELECT") == 0)
                note(s, &s->select);
        else if (strcmp(word, "WITH") == 0)
                note(s, &s->with);
        else if (strcmp(t->word, "WITH") == 0 && command == PG_COMMAND_ROWS && begins_rows(s, last)) {
                t->command = PG_COMMAND_ROWS;
                s->last = is_one_of(word, "INSERT", "MERGE") ? LAST_INSERT : LAST_OTHER;
        } else if (strcmp(word, "INTO") == 0 && last != LAST_INSERT) {
                t->command = PG_COMMAND_SCHEMA;
                (void) snprintf(t->word, sizeof t->word, "SELECT INTO");
        }
}

/* `word` is in capitals, and no quoted name. */
static void on_keyword(Scan *s, const char *word, Last last) {
        PgCommand command = command_of(word, strlen(word));
        PgText *t = s->text;

        if (last == LAST_AS || s->previous == '.')
                return;
        if (strcmp(word, "AS") == 0)
                s->last = LAST_AS;
        else if (is_one_of(word, "WITH", "RECURSIVE"))
                s->last = LAST_WITH;
        if (s->explain != EXPLAIN_NO && is_option_of_explain(s, word))
                return;
        if (!t->word[0] || s->explain != EXPLAIN_NO)
                begin_statement(s, word, command);
        else if (strcmp(t->word, "ROLLBACK") == 0 && strcmp(word, "TO") == 0)
                t->command = PG_COMMAND_SAVEPOINT;
        else if (s->creates)
                follow_body(s, word);
        if (!s->explain_plans && (t->command == PG_COMMAND_READ || t->command == PG_COMMAND_ROWS))
                follow_query(s, word, command, last);
}

static void on_word(Scan *s) {
        char word[sizeof s->text->word] = "";
        const char *start = s->at;
        Last last = s->last;
        size_t size;

        s->last = LAST_OTHER;
        while (is_name_part(next(s, 0)))
                s->at++;
        size = (size_t) (s->at - start);
        if (size == 1 && (*start == 'e' || *start == 'E') && next(s, 0) == '\'') {
                skip_escaped(s);
                return;
        }
        for (size_t i = 0; i < size && size < sizeof word; i++)
                word[i] = (char) toupper((unsigned char) start[i]);
        on_keyword(s, size < sizeof word ? word : "?", last);
}

/* Letters that come directly after a number are a word, for old servers: 1INTO, 1E'\''. Newer ones refuse it, or it is a
 * part of the number that is no keyword: 0xff, 1_000. */
static void on_number(Scan *s) {
        size_t n;

        s->at += digits_size(s, 0);
        if (next(s, 0) == '.')
                s->at += digits_size(s, 1);
        n = next(s, 1) == '+' || next(s, 1) == '-' ? 2 : 1;
        if (toupper((unsigned char) next(s, 0)) == 'E' && digits_size(s, n) > n)
                s->at += digits_size(s, n);
}

static void on_open(Scan *s) {
        if (s->explain == EXPLAIN_WORDS && s->n_tokens == 2)
                s->explain = EXPLAIN_OPTIONS;
        else if (s->explain == EXPLAIN_WORDS || (s->explain == EXPLAIN_OPTIONS && s->previous == '('))
                s->explain = EXPLAIN_STATEMENT;
        s->depth++;
        if (s->depth < LEVELS_MAX) {
                s->with &= ~(UINT64_C(1) << s->depth);
                s->select &= ~(UINT64_C(1) << s->depth);
        }
}

static void on_close(Scan *s) {
        s->depth -= s->depth > 0;
        if (s->explain == EXPLAIN_OPTIONS && s->depth == 0)
                s->explain = EXPLAIN_STATEMENT;
}

static bool on_semicolon(Scan *s) {
        s->at++;
        if (s->depth == 0 && s->body_depth == 0)
                s->ended = s->n_tokens > 0;
        return true;
}

static bool is_space(const Scan *s) {
        return strchr(" \t\n\r\f\v", *s->at) || (s->at[0] == '-' && next(s, 1) == '-') ||
               (s->at[0] == '/' && next(s, 1) == '*');
}

static void skip_space(Scan *s) {
        if (s->at[0] == '-')
                skip_line(s);
        else if (s->at[0] == '/')
                skip_comment(s);
        else
                s->at++;
}

/* ---- calls ---- */

/* True if the list, in the form of PG_TEXT_EFFECTS, has this name. */
static bool lists(const char *list, const char *name, size_t size) {
        for (const char *at = list + 1; *at; at += strcspn(at, ",}") + 1)
                if (strcspn(at, ",}") == size && strncasecmp(at, name, size) == 0)
                        return true;
        return false;
}

/* Words before "(", and functions of the server that are called all the time: the server is asked about none of them. A
 * user's own function of such a name would be called only if it has other arguments, or comes first in search_path. In
 * quotes a keyword is a plain name, and "Round" is not round(). */
static const char usual[] =
        "{abs,all,analyse,analyze,and,any,array,array_agg,as,avg,between,bigint,bit,by,case,cast,char,character,coalesce,"
        "concat,count,cube,current_time,current_timestamp,date_trunc,decimal,distinct,else,except,exists,explain,extract,"
        "filter,float,from,generate_series,greatest,group,grouping,having,in,integer,intersect,interval,is,join,json_agg,"
        "jsonb_agg,lateral,least,length,like,limit,localtime,localtimestamp,lower,materialized,max,min,mod,not,now,"
        "nullif,numeric,offset,on,or,over,overlay,partition,position,recursive,replace,returning,rollup,round,row,"
        "row_number,select,sets,some,string_agg,substr,substring,sum,then,time,timestamp,to_char,trim,union,unnest,upper,"
        "using,values,varbit,varchar,varying,verbose,when,where,with,within}";

/* Adds the name. A long list may have it twice. */
static bool add_call(Scan *s) {
        PgText *t = s->text;
        char *calls = realloc(t->calls, t->calls_size + 2 * s->name_size + 5), *start, *at;

        if (!calls)
                return out_of_memory(s);
        t->calls = calls;
        start = at = calls + t->calls_size;
        at = stpcpy(at, ",\"");
        for (const char *from = s->name; from < s->name + s->name_size; from++) {
                if (*from == '"') /* it is written twice */
                        from++;
                if (*from == '"' || *from == '\\')
                        *at++ = '\\';
                *at++ = !s->quoted && *from >= 'A' && *from <= 'Z' ? (char) (*from - 'A' + 'a') : *from;
        }
        at = stpcpy(at, "\"");
        if (t->calls_size > CALLS_COMPARED || strstr(calls, start) == start)
                t->calls_size = (size_t) (at - calls);
        return true;
}

static void end_calls(PgText *t) {
        if (!t->calls)
                return;
        t->calls[0] = '{';
        t->calls[t->calls_size] = '}';
        t->calls[t->calls_size + 1] = 0;
}

static void drop_calls(PgText *t) {
        free(t->calls);
        t->calls = NULL;
        t->calls_size = 0;
}

/* A "(" of a statement that is run. A name with escapes may be any: only the server decodes it. */
static bool on_call(Scan *s) {
        if (s->escapes || (s->name && lists(PG_TEXT_EFFECTS, s->name, s->name_size)))
                s->calls_effect = true;
        else if (s->name && s->text->command == PG_COMMAND_READ && (s->quoted || !lists(usual, s->name, s->name_size)))
                return add_call(s);
        return true;
}

/* Remembers the name that the token from `start` on is, if it is one. */
static void note_name(Scan *s, const char *start) {
        bool escapes = s->escapes;

        s->name = NULL;
        s->escapes = false;
        s->quoted = *start == '"';
        if (s->quoted && s->at - start > 2) {
                s->name = start + 1;
                s->name_size = (size_t) (s->at - start) - 2;
                s->escapes = start - s->start >= 2 && start[-1] == '&' && toupper((unsigned char) start[-2]) == 'U';
        } else if (is_name_start(*start) && s->at[-1] != '\'') {
                s->name = start;
                s->name_size = (size_t) (s->at - start);
                s->escapes = escapes && s->name_size == 7 && strncasecmp(start, "UESCAPE", 7) == 0;
        } else
                s->escapes = escapes && *start == '\'';
}

static bool read_token(Scan *s) {
        char c = *s->at;

        if (is_name_start(c)) {
                on_word(s);
                return true;
        }
        s->last = LAST_OTHER;
        switch (c) {
        case '"':
                s->explain_runs = s->explain_runs || s->explain == EXPLAIN_OPTIONS; /* an option in another spelling */
                skip_quoted(s, c, false);
                return true;
        case '\'':
                skip_quoted(s, c, false);
                return true;
        case '$':
                return on_dollar(s);
        case '?':
                return on_question_mark(s);
        case ':':
                return on_colon(s);
        case '@':
                return on_at(s);
        case '(':
                on_open(s);
                break;
        case ')':
                on_close(s);
                break;
        default:
                break;
        }
        if (isdigit((unsigned char) c))
                on_number(s);
        else
                s->at++;
        return true;
}

static bool on_token(Scan *s) {
        const char *start = s->at;

        if (*start == '(' && !s->explain_plans && !on_call(s))
                return false;
        if (!read_token(s))
                return false;
        note_name(s, start);
        return true;
}

static bool scan(Scan *s) {
        while (s->at < s->end) {
                char c = *s->at;

                if (is_space(s)) {
                        skip_space(s);
                        continue;
                }
                if (c == ';') {
                        (void) on_semicolon(s);
                        continue;
                }
                if (s->ended)
                        return sql_error_set(s->error, ERROR_SEVERAL_STATEMENTS,
                                             "there is more than one statement in this SQL: send them one by one");
                s->n_tokens++;
                if (!on_token(s))
                        return false;
                s->previous = c;
        }
        if (s->n_tokens == 0)
                return sql_error_set(s->error, ERROR_EMPTY_STATEMENT,
                                     "there is no statement in this SQL, only space or comments");
        return append(s, s->copied, (size_t) (s->end - s->copied));
}

bool pg_text_read(const char *sql, size_t sql_size, unsigned parameters_max, PgText *ret, SqlError *error) {
        PgText text = { .command = PG_COMMAND_UNKNOWN };
        Scan s = {
                .at = sql,
                .start = sql,
                .end = sql + sql_size,
                .copied = sql,
                .text = &text,
                .parameters_max = parameters_max,
                .error = error,
        };
        bool escapes;

        if (memchr(sql, 0, sql_size))
                return sql_error_set(error, ERROR_SQL, "there is a NUL in this SQL");
        if (!scan(&s)) {
                pg_text_done(&text);
                return false;
        }
        if (s.calls_effect && text.command == PG_COMMAND_READ)
                text.command = PG_COMMAND_CALL;
        if (text.command == PG_COMMAND_READ)
                end_calls(&text);
        else
                drop_calls(&text);
        escapes = strcasestr(text.sql, "U&\""); /* the names of functions may be written so */
        text.locks = escapes || strcasestr(text.sql, "advisory");
        text.sets = escapes || text.command == PG_COMMAND_SCHEMA || strcasestr(text.sql, "set_config");
        *ret = text;
        return true;
}

void pg_text_done(PgText *text) {
        for (unsigned i = 0; i < text->n_names; i++)
                free(text->names[i].name);
        free(text->names);
        free(text->pieces);
        free(text->calls);
        free(text->sql);
        *text = (PgText) {};
}

/* ---- names and places ---- */

int pg_text_find(const PgText *text, const char *name) {
        bool whole = name[0] && strchr(":@$?", name[0]);
        int found = -ENOENT;

        for (unsigned i = 0; i < text->n_names; i++) {
                const char *has = text->names[i].name;

                if (!has || strcmp(whole ? has : has + 1, name) != 0)
                        continue;
                if (found >= 0)
                        return -ENOTUNIQ;
                found = (int) i;
        }
        return found;
}

int32_t pg_text_offset(const PgText *text, long position) {
        const char *at = text->sql;
        size_t offset, base = 0;

        if (position < 1)
                return -1;
        for (long n = 1; *at && (n < position || ((unsigned char) *at & 0xc0) == 0x80); at++)
                n += ((unsigned char) at[1] & 0xc0) != 0x80;
        offset = (size_t) (at - text->sql);
        for (size_t i = 0; i < text->n_pieces; i++) {
                const PgPiece *p = &text->pieces[i];

                if (offset < p->to)
                        break;
                if (offset < p->to + p->to_size)
                        return (int32_t) p->from;
                base = p->from + p->from_size - (p->to + p->to_size);
        }
        return (int32_t) (offset + base);
}
