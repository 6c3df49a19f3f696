/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The one error table. Pure: two X-macros, expanded by the supervisor (number -> D-Bus name), by the worker (SQLite's code
 * -> number) and by the library (D-Bus name or number -> public code and errno). No other file lists the errors.
 *
 * A number is the value in an ERROR frame (sqlipc-page.h) and the result of `sqlipc_error_code()`: it is never reused and
 * never changes. A new error is one more row at the end, its sentence in docs/man/org.sqlipc1.5.rst, and its name in `enum
 * sqlipc_error_code` of sqlipc.h (the compiler refuses to build the library while that is missing).
 */
#ifndef SQLIPC_DBUS_INTERFACES_SQLIPC_ERRORS_H
#define SQLIPC_DBUS_INTERFACES_SQLIPC_ERRORS_H

/* X(number, SYMBOL, Name, errno): SYMBOL is the C name after SQLIPC_ERROR_, Name the D-Bus name after SQLIPC_ERROR_PREFIX,
 * errno the value that the library returns, negated. */
#define SQLIPC_ERROR_TABLE(X)                                                                                         \
        /* The named object does not exist, or is not the caller's: the two are never told apart. */                  \
        X(1, UNKNOWN_DATABASE, UnknownDatabase, ENOENT)                                                               \
        X(2, UNKNOWN_STATEMENT, UnknownStatement, ESTALE)                                                             \
        X(3, UNKNOWN_RUN, UnknownRun, ESTALE)                                                                         \
        /* The call is wrong. */                                                                                      \
        X(4, UNKNOWN_OPTION, UnknownOption, EINVAL)                                                                   \
        X(5, INVALID_OPTION, InvalidOption, EINVAL)                                                                   \
        X(6, PARAMETER_COUNT, ParameterCount, EINVAL)                                                                 \
        X(7, UNKNOWN_PARAMETER, UnknownParameter, EINVAL)                                                             \
        X(8, PARAMETER_TYPE, ParameterType, EINVAL)                                                                   \
        /* The SQL is wrong, or needs something that a read-only service does not allow. */                           \
        X(9, EMPTY_STATEMENT, EmptyStatement, EINVAL)                                                                 \
        X(10, SEVERAL_STATEMENTS, SeveralStatements, EINVAL)                                                          \
        X(11, SQL, Sql, EINVAL)                                                                                       \
        X(12, MISSING_FUNCTION, MissingFunction, EINVAL)                                                              \
        X(13, MISSING_COLLATION, MissingCollation, EINVAL)                                                            \
        X(14, MISSING_MODULE, MissingModule, EINVAL)                                                                  \
        X(15, READ_ONLY, ReadOnly, EROFS)                                                                             \
        X(16, NOT_ALLOWED, NotAllowed, EPERM)                                                                         \
        /* The database cannot be read. */                                                                            \
        X(17, CORRUPT, Corrupt, EUCLEAN)                                                                              \
        X(18, FILE_MISSING, FileMissing, ENODEV)                                                                      \
        X(19, CANNOT_OPEN, CannotOpen, EACCES)                                                                        \
        X(20, NEEDS_OWNER, NeedsOwner, EACCES)                                                                        \
        X(21, NEEDS_RECOVERY, NeedsRecovery, EACCES)                                                                  \
        X(22, INPUT_OUTPUT, InputOutput, EIO)                                                                         \
        /* A bound was reached. */                                                                                    \
        X(23, LIMITS_EXCEEDED, LimitsExceeded, EDQUOT)                                                                \
        X(24, ROW_TOO_LARGE, RowTooLarge, EMSGSIZE)                                                                   \
        X(25, OUT_OF_MEMORY, OutOfMemory, ENOMEM)                                                                     \
        X(26, NO_SPACE, NoSpace, ENOSPC)                                                                              \
        X(27, BUSY, Busy, EBUSY)                                                                                      \
        X(28, TIMED_OUT, TimedOut, ETIMEDOUT)                                                                         \
        X(29, READER_TOO_SLOW, ReaderTooSlow, ETIME)                                                                  \
        /* The client, the service or a loss ended it. */                                                             \
        X(30, CANCELLED, Cancelled, ECANCELED)                                                                        \
        X(31, PIPE_CLOSED, PipeClosed, EPIPE)                                                                         \
        X(32, WORKER_LOST, WorkerLost, ECONNRESET)                                                                    \
        X(33, DAEMON_LOST, DaemonLost, ECONNRESET) /* never the error of a call */                                    \
        X(34, SHUTTING_DOWN, ShuttingDown, ESHUTDOWN)                                                                 \
        X(35, INTERNAL, Internal, EBADE)                                                                              \
        X(36, ACCESS_DENIED, AccessDenied, EACCES)                                                                    \
        /* The bytes on a channel are not a valid request, or those of a load not a valid stream. */                  \
        X(37, INVALID_REQUEST, InvalidRequest, EPROTO)                                                                \
        /* The bus connection passes no descriptors, and the operation needs one. */                                  \
        X(38, NO_DESCRIPTORS, NoDescriptors, EOPNOTSUPP) /* made by the library only */                               \
        /* The operation may or may not have been done. */                                                            \
        X(39, OUTCOME_UNKNOWN, OutcomeUnknown, ECONNABORTED)                                                          \
        /* The transaction that is named was rolled back, or has ended. */                                            \
        X(40, TRANSACTION_ENDED, TransactionEnded, ENOTCONN)                                                          \
        /* The database is on a server, which cannot be reached, or refuses the service. */                           \
        X(41, SERVER_UNREACHABLE, ServerUnreachable, EHOSTUNREACH)                                                    \
        X(42, LOGIN_FAILED, LoginFailed, EACCES)                                                                      \
        /* Deferred foreign keys are violated. The transaction is still open. */                                      \
        X(43, COMMIT_REFUSED, CommitRefused, EINVAL)                                                                  \
        /* The statement needs a connection of its client's own, a pin, or that is gone with its TEMP tables. */      \
        X(44, NEEDS_PIN, NeedsPin, EREMOTE)                                                                           \
        X(45, PIN_LOST, PinLost, ESTALE)

/* X(SQLITE_SYMBOL, SYMBOL): maps SQLite's primary result code to a row of the table above, if the code alone decides.
 * daemon/worker/sqlite/sqlite-error.c looks closer at SQLITE_ERROR, SQLITE_READONLY and SQLITE_CANTOPEN. */
#define SQLIPC_ERROR_SQLITE_TABLE(X)                                                                                  \
        X(SQLITE_ERROR, SQL)                                                                                          \
        X(SQLITE_INTERNAL, INTERNAL)                                                                                  \
        X(SQLITE_PERM, CANNOT_OPEN)                                                                                   \
        X(SQLITE_ABORT, CANCELLED)                                                                                    \
        X(SQLITE_BUSY, BUSY)                                                                                          \
        /* This is not a lock of another program, which is SQLITE_BUSY. There is no shared cache, so the cause is a       \
         * virtual table that opens itself, and trying again does not help. */                                        \
        X(SQLITE_LOCKED, SQL)                                                                                         \
        X(SQLITE_NOMEM, OUT_OF_MEMORY)                                                                                \
        X(SQLITE_READONLY, READ_ONLY)                                                                                 \
        X(SQLITE_INTERRUPT, CANCELLED)                                                                                \
        X(SQLITE_IOERR, INPUT_OUTPUT)                                                                                 \
        X(SQLITE_CORRUPT, CORRUPT)                                                                                    \
        X(SQLITE_FULL, NO_SPACE)                                                                                      \
        X(SQLITE_CANTOPEN, CANNOT_OPEN)                                                                               \
        X(SQLITE_PROTOCOL, BUSY)                                                                                      \
        X(SQLITE_SCHEMA, BUSY)                                                                                        \
        X(SQLITE_TOOBIG, LIMITS_EXCEEDED)                                                                             \
        X(SQLITE_CONSTRAINT, SQL)                                                                                     \
        X(SQLITE_MISMATCH, SQL)                                                                                       \
        X(SQLITE_MISUSE, INTERNAL)                                                                                    \
        X(SQLITE_AUTH, NOT_ALLOWED)                                                                                   \
        X(SQLITE_RANGE, PARAMETER_COUNT)                                                                              \
        X(SQLITE_NOTADB, CORRUPT)

#define SQLIPC_ERROR_PREFIXED(name) "org.sqlipc1.Error." #name

/* The numbers as an enum, for our own code (sqlipc.h writes them out for users, who see no other header). */
typedef enum ErrorNumber {
        ERROR_NONE = 0,
#define X(number, symbol, name, error) ERROR_##symbol = number,
        SQLIPC_ERROR_TABLE(X)
#undef X
        ERROR_NUMBER_MAX,
} ErrorNumber;

#endif
