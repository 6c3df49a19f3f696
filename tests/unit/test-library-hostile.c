/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The library against a service that lies: each method is answered by each kind of reply, and each request by each kind of
 * frame, valid or not, with any descriptor in place of a pipe or socket. Every call must return, with a row, an end or an
 * error; afterwards the same connection must serve a query of an honest service, and no descriptor may be left. Library.
 *
 * test-library-channel.c and test-library-rows.c have lies within a run; the fuzz suite has bytes of all kinds.
 */
#include <dirent.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "dbus-interfaces/sqlipc-errors.h"
#include "dbus-interfaces/wire/sqlipc-channel.h"
#include "tests/rigs/fake-service.h"

/* A blocking call waits so long for a service that says nothing. */
#define SILENCE_USEC 5000

static FakeService f;

/* ---- Calls that a kernel or a filter of system calls may lack ----------------------------------------------------- */

/* Meson builds with 64-bit offsets, for which glibc has names of its own. */
static bool no_preadv2, no_vmsplice;
static atomic_uint n_preadv2, n_vmsplice;
ssize_t __real_preadv64v2(int fd, const struct iovec *rooms, int n_rooms, off_t offset, int flags);
ssize_t __wrap_preadv64v2(int fd, const struct iovec *rooms, int n_rooms, off_t offset, int flags);
ssize_t __real_vmsplice(int fd, const struct iovec *rooms, size_t n_rooms, unsigned flags);
ssize_t __wrap_vmsplice(int fd, const struct iovec *rooms, size_t n_rooms, unsigned flags);

/* Once `endless`, a pipe is never empty, and never brings a row: after `n_honest` bytes come parts of one byte of a row. */
static bool endless;
static size_t n_honest, n_endless;

static ssize_t read_endlessly(int fd, const struct iovec *room, off_t offset, int flags) {
        const uint8_t part_of_row[FRAME_HEADER_SIZE + FRAME_ALIGN] = {
                [0] = 1, [4] = FRAME_BIG_ROW, [5] = SQLIPC_PAGE_VERSION, [6] = FRAME_MORE, [8] = FAKE_RUN,
        };

        if (n_honest > 0) {
                struct iovec part = { .iov_base = room->iov_base, .iov_len = n_honest };
                ssize_t n = __real_preadv64v2(fd, &part, 1, offset, flags);

                n_honest -= n > 0 ? (size_t) n : 0;
                return n;
        }
        for (size_t i = 0; i < room->iov_len; i++)
                ((uint8_t *) room->iov_base)[i] = part_of_row[n_endless++ % sizeof part_of_row];
        return (ssize_t) room->iov_len;
}

ssize_t __wrap_preadv64v2(int fd, const struct iovec *rooms, int n_rooms, off_t offset, int flags) {
        n_preadv2++;
        if (endless)
                return read_endlessly(fd, rooms, offset, flags);
        if (!no_preadv2)
                return __real_preadv64v2(fd, rooms, n_rooms, offset, flags);
        errno = EOPNOTSUPP;
        return -1;
}

ssize_t __wrap_vmsplice(int fd, const struct iovec *rooms, size_t n_rooms, unsigned flags) {
        n_vmsplice++;
        if (!no_vmsplice)
                return __real_vmsplice(fd, rooms, n_rooms, flags);
        errno = EPERM;
        return -1;
}

/* ---- The program, which does what programs do --------------------------------------------------------------------- */

static int count_descriptors(void) {
        DIR *folder = opendir("/proc/self/fd");
        int n = 0;

        CHECK(folder);
        while (readdir(folder))
                n++;
        closedir(folder);
        return n;
}

static void begin(sqlipc_transport transport, bool blocking, fake_handler on_call) {
        fake_start(&f);
        f.on_call = on_call;
        CHECK_INT(sqlipc_set_transport(f.connection, transport), 0);
        CHECK_INT(sqlipc_set_blocking(f.connection, blocking), 0);
        CHECK_INT(sqlipc_set_timeout(f.connection, SILENCE_USEC), 0);
}

/* A turn of the program's loop. 0: there was nothing to do. */
static int turn(void) {
        struct pollfd fd = { .fd = sqlipc_get_fd(f.connection), .events = (short) sqlipc_get_events(f.connection) };
        int n = poll(&fd, 1, SILENCE_USEC / 1000);

        CHECK(n >= 0);
        CHECK(sqlipc_process(f.connection) >= 0);
        return n;
}

static void check_failure(int r) {
        CHECK(r < 0 && r != -EINVAL && r != -ENOMEM);
        CHECK(sqlipc_error_message(f.connection)[0]);
}

/* Reads to the end, to a failure or until nothing more comes. */
static void read_all(sqlipc_cursor *c, bool blocking) {
        int r, n_rows = 0;

        for (;;) {
                r = sqlipc_cursor_next(c);
                if (r == -EAGAIN) {
                        CHECK(!blocking);
                        if (turn() == 0)
                                return;
                        continue;
                }
                if (r != 1)
                        break;
                CHECK(++n_rows < 1000);
                for (unsigned i = 0; i < sqlipc_column_count(c); i++) {
                        (void) sqlipc_column_text(c, i, NULL);
                        (void) sqlipc_column_int64(c, i);
                        (void) sqlipc_column_name(c, i);
                }
        }
        if (r < 0)
                check_failure(r);
}

static void run_query(bool blocking) {
        sqlipc_cursor *c;
        int r = sqlipc_query(f.connection, "db", "SELECT 1", &c, NULL);

        if (r < 0) {
                check_failure(r);
                return;
        }
        read_all(c, blocking);
        sqlipc_cursor_close(c);
}

static void run_statement(bool blocking) {
        sqlipc_statement *s;
        sqlipc_cursor *c;
        int r = sqlipc_prepare(f.connection, "db", "SELECT 1", &s);

        if (r < 0) {
                check_failure(r);
                return;
        }
        for (int i = 0; i < 2; i++) {
                r = sqlipc_execute(s, &c);
                if (r < 0) {
                        check_failure(r);
                        continue;
                }
                read_all(c, blocking);
                sqlipc_cursor_close(c);
        }
        sqlipc_finalize(s);
}

static int ignore_database(const sqlipc_database *database, void *userdata) {
        (void) userdata;
        CHECK(sqlipc_database_name(database));
        return 0;
}

static void list_databases(bool blocking) {
        int r = sqlipc_list_databases(f.connection, ignore_database, NULL);

        (void) blocking;
        if (r < 0)
                check_failure(r);
}

/* The service's thread has dealt with all calls so far, so its fields may be changed. */
static void settle(void) {
        CHECK(sd_bus_call_method(f.client_bus, NULL, "/", "org.example.Test", "Settle", NULL, NULL, "") >= 0);
}

/* The service is honest from now on, and the connection as good as new. */
static void check_recovery(void) {
        sqlipc_cursor *c;

        settle();
        f.on_call = NULL;
        f.close_pipe = false;
        fake_set_result(&f, 1, 2);
        CHECK_INT(sqlipc_set_blocking(f.connection, 1), 0);
        CHECK_INT(sqlipc_set_timeout(f.connection, 120000000), 0);
        CHECK_INT(sqlipc_set_transport(f.connection, SQLIPC_TRANSPORT_PIPE), 0);
        CHECK_INT(sqlipc_query(f.connection, "db", "SELECT 1", &c, NULL), 0);
        for (int i = 1; i <= 2; i++) {
                CHECK_INT(sqlipc_cursor_next(c), 1);
                CHECK_INT(sqlipc_column_int64(c, 0), i);
        }
        CHECK_INT(sqlipc_cursor_next(c), 0);
        sqlipc_cursor_close(c);
}

static void finish(void) {
        check_recovery();
        fake_done(&f);
}

/* ---- Replies that cannot be --------------------------------------------------------------------------------------- */

static const char *attacked;     /* the method */
static int attack;

enum {
        REPLY_ERROR, REPLY_UNKNOWN_ERROR, REPLY_NOTHING, REPLY_STRING, REPLY_NUMBER, REPLY_DICTIONARY, REPLY_ROWS,
        REPLY_NUMBER_AND_STRING, REPLY_SILENCE, REPLIES_MAX,
};

static void reply_wrong(sd_bus_message *m, int how) {
        int r = 0;

        switch (how) {
        case REPLY_ERROR:
                r = sd_bus_reply_method_errorf(m, "org.sqlipc1.Error.Internal", "No.");
                break;
        case REPLY_UNKNOWN_ERROR:
                r = sd_bus_reply_method_errorf(m, "org.example.Nonsense", "%s", "");
                break;
        case REPLY_NOTHING:
                r = sd_bus_reply_method_return(m, "");
                break;
        case REPLY_STRING:
                r = sd_bus_reply_method_return(m, "s", "what?");
                break;
        case REPLY_NUMBER:
                r = sd_bus_reply_method_return(m, "t", UINT64_MAX);
                break;
        case REPLY_DICTIONARY:
                r = sd_bus_reply_method_return(m, "a{sv}", 1, "columns", "s", "none");
                break;
        case REPLY_ROWS:
                r = sd_bus_reply_method_return(m, "aavba{sv}", 0, 1, 0);
                break;
        case REPLY_NUMBER_AND_STRING:
                r = sd_bus_reply_method_return(m, "tsa{sv}", (uint64_t) 1, "not a descriptor", 0);
                break;
        default: /* silence */
                break;
        }
        CHECK(r >= 0);
}

static int reply_to_attacked(FakeService *service, sd_bus_message *m, const char *member) {
        (void) service;
        if (strcmp(member, attacked) != 0)
                return 0;
        if (sd_bus_message_get_expect_reply(m))
                reply_wrong(m, attack);
        return 1;
}

static void check_replies(const char *method, sqlipc_transport transport, void (*program)(bool blocking)) {
        attacked = method;
        for (attack = 0; attack < REPLIES_MAX; attack++)
                for (int blocking = 0; blocking < 2; blocking++) {
                        begin(transport, blocking, reply_to_attacked);
                        fake_set_result(&f, 1, 2);
                        program(blocking);
                        finish();
                }
}

static void test_replies(void) {
        check_replies("Prepare", SQLIPC_TRANSPORT_PIPE, run_statement);
        check_replies("Fetch", SQLIPC_TRANSPORT_PIPE, run_statement);
        check_replies("Query", SQLIPC_TRANSPORT_PIPE, run_query);
        check_replies("OpenChannel", SQLIPC_TRANSPORT_CHANNEL, run_query);
        check_replies("OpenChannel", SQLIPC_TRANSPORT_CHANNEL, run_statement);
        check_replies("OpenRows", SQLIPC_TRANSPORT_DBUS, run_query);
        check_replies("ListDatabases", SQLIPC_TRANSPORT_AUTO, list_databases);
}

static int answer_next_rows(FakeService *service, sd_bus_message *m, const char *member) {
        if (strcmp(member, "OpenRows") == 0) {
                CHECK(sd_bus_reply_method_return(m, "ta{sv}", (uint64_t) FAKE_RUN, 0) >= 0);
                return 1;
        }
        return reply_to_attacked(service, m, member);
}

static void test_replies_to_next_rows(void) {
        attacked = "NextRows";
        for (attack = 0; attack < REPLIES_MAX; attack++)
                for (int blocking = 0; blocking < 2; blocking++) {
                        begin(SQLIPC_TRANSPORT_DBUS, blocking, answer_next_rows);
                        run_query(blocking);
                        finish();
                }
}

/* ---- Descriptors that are no pipe or socket ----------------------------------------------------------------------- */

enum {
        FD_SOCKET, FD_DATAGRAM_SOCKET, FD_LISTENING_SOCKET, FD_FILE, FD_FOLDER, FD_EVENT, FD_NULL, FD_PATH, FD_WRITE_END,
        FD_CLOSED_PIPE, FD_FIFO_BOTH_WAYS, FDS_MAX,
};

static int wrong_pair(int type, bool close_other) {
        int fds[2];

        CHECK(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds) >= 0);
        if (close_other)
                close(fds[1]);
        return fds[0];
}

static int wrong_pipe(bool write_end) {
        int fds[2];

        CHECK(pipe2(fds, O_CLOEXEC) >= 0);
        close(fds[!write_end]);
        return fds[write_end];
}

static int wrong_fifo(void) {
        char path[64];
        int fd, fds[2];

        CHECK(pipe2(fds, O_CLOEXEC) >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fds[0]);
        fd = open(path, O_RDWR | O_CLOEXEC);
        close(fds[0]);
        close(fds[1]);
        return fd;
}

static int wrong_descriptor(int which) {
        int fd;

        switch (which) {
        case FD_SOCKET:
                return wrong_pair(SOCK_STREAM, true);
        case FD_DATAGRAM_SOCKET:
                return wrong_pair(SOCK_DGRAM, true);
        case FD_LISTENING_SOCKET:
                fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
                CHECK(fd >= 0 && bind(fd, &(struct sockaddr) { .sa_family = AF_UNIX }, sizeof(sa_family_t)) >= 0);
                CHECK_INT(listen(fd, 1), 0);
                return fd;
        case FD_FILE:
                return memfd_create("hostile", MFD_CLOEXEC);
        case FD_FOLDER:
                return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        case FD_EVENT: /* a read() would wait */
                return eventfd(0, EFD_CLOEXEC);
        case FD_NULL:
                return open("/dev/null", O_RDWR | O_CLOEXEC);
        case FD_PATH:
                return open("/", O_PATH | O_CLOEXEC);
        case FD_WRITE_END:
                return wrong_pipe(true);
        case FD_CLOSED_PIPE:
                return wrong_pipe(false);
        default:
                return wrong_fifo();
        }
}

static void reply_descriptor(sd_bus_message *m, const char *member, int fd) {
        const char *page_size = "page-size";
        uint32_t size = 65536;

        if (strcmp(member, "OpenChannel") == 0)
                CHECK(sd_bus_reply_method_return(m, "ha{sv}", fd, 1, page_size, "u", size) >= 0);
        else
                CHECK(sd_bus_reply_method_return(m, "tha(ssa{sv})a{sv}", (uint64_t) FAKE_RUN, fd, 1, "c", "", 0, 1,
                                                 page_size, "u", size) >= 0);
        close(fd);
}

static int pass_wrong_descriptor(FakeService *service, sd_bus_message *m, const char *member) {
        int fd;

        (void) service;
        if (strcmp(member, attacked) != 0)
                return 0;
        fd = wrong_descriptor(attack);
        CHECK(fd >= 0);
        reply_descriptor(m, member, fd);
        return 1;
}

static void check_descriptors(const char *method, sqlipc_transport transport, void (*program)(bool blocking)) {
        attacked = method;
        for (attack = 0; attack < FDS_MAX; attack++)
                for (int blocking = 0; blocking < 2; blocking++) {
                        begin(transport, blocking, pass_wrong_descriptor);
                        program(blocking);
                        finish();
                }
}

static void test_descriptors(void) {
        check_descriptors("Prepare", SQLIPC_TRANSPORT_PIPE, run_statement);
        check_descriptors("Query", SQLIPC_TRANSPORT_PIPE, run_query);
        check_descriptors("OpenChannel", SQLIPC_TRANSPORT_CHANNEL, run_query);
        check_descriptors("OpenChannel", SQLIPC_TRANSPORT_CHANNEL, run_statement);
}

/* ---- Frames ------------------------------------------------------------------------------------------------------- */

static const unsigned frame_kinds[] = { 0, FRAME_COLUMNS, FRAME_ROWS, FRAME_BIG_ROW, FRAME_END, FRAME_ERROR, FRAME_STATEMENT,
                                        77 };

enum {
        FRAME_IS_VALID, FRAME_IS_EMPTY, FRAME_IS_SHORT, FRAME_IS_LONG, FRAME_IS_ENORMOUS, FRAME_GOES_ON, FRAME_HAS_FLAGS,
        FRAME_IS_NEWER, FRAME_IS_OF_ANOTHER_RUN, FRAME_IS_OF_NO_RUN, FRAME_IS_CUT, DEFECTS_MAX,
};

static void add_statement(Stream *s, uint64_t number) {
        Stream payload = STREAM_INIT;

        for (int i = 0; i < 4; i++)
                stream_add_le32(&payload, i == 0);
        for (int i = 0; i < 2; i++)
                stream_add_le32(&payload, 2);
        stream_add(&payload, "c", 2);
        stream_take_frame(s, FRAME_STATEMENT, 0, number, &payload);
}

/* A whole and valid frame, if there is one of that kind. */
static void add_valid(Stream *s, unsigned kind, uint64_t number) {
        Stream payload = STREAM_INIT;

        switch (kind) {
        case FRAME_COLUMNS:
                stream_add_columns(s, number, 1, SQLIPC_PAGE_SIZE_MIN);
                return;
        case FRAME_ROWS:
                fake_add_rows(s, number, 1, 2);
                return;
        case FRAME_BIG_ROW:
                stream_add_blob_row(&payload, 100);
                stream_take_frame(s, FRAME_BIG_ROW, 0, number, &payload);
                return;
        case FRAME_END:
                stream_add_end(s, number, 2);
                return;
        case FRAME_ERROR:
                stream_add_error(s, number, ERROR_INTERNAL, "No.");
                return;
        case FRAME_STATEMENT:
                add_statement(s, number);
                return;
        default:
                stream_add_frame(s, kind, 0, number, "12345678", 8);
        }
}

static void add_frame(Stream *s, unsigned kind, int defect, uint64_t number) {
        size_t at = s->size, payload_size;
        uint8_t *header;

        add_valid(s, kind, number);
        header = s->bytes + at;
        payload_size = load_le32(header);
        switch (defect) {
        case FRAME_IS_EMPTY:
                store_le32(header, 0);
                s->size = at + FRAME_HEADER_SIZE;
                break;
        case FRAME_IS_SHORT:
                store_le32(header, (uint32_t) payload_size - 1);
                break;
        case FRAME_IS_LONG:
                store_le32(header, (uint32_t) (s->size - at - FRAME_HEADER_SIZE + 8));
                stream_extend(s, 8);
                break;
        case FRAME_IS_ENORMOUS:
                store_le32(header, 0xfffffff0);
                break;
        case FRAME_GOES_ON:
                store_le16(header + 6, FRAME_MORE);
                break;
        case FRAME_HAS_FLAGS:
                store_le16(header + 6, 0xffff);
                break;
        case FRAME_IS_NEWER:
                header[5]++;
                break;
        case FRAME_IS_OF_ANOTHER_RUN:
                store_le64(header + 8, number + 1);
                break;
        case FRAME_IS_OF_NO_RUN:
                store_le64(header + 8, 0);
                break;
        case FRAME_IS_CUT:
                s->size -= 4;
                break;
        default: /* valid */
                break;
        }
}

/* The bytes before the frame, as the start of an honest result. */
static void add_beginning(Stream *s, int n_frames, uint64_t number) {
        if (n_frames > 0)
                add_valid(s, FRAME_COLUMNS, number);
        if (n_frames > 1)
                add_valid(s, FRAME_ROWS, number);
}

/* Where the frame comes. */
typedef enum Place {
        IN_QUERY,           /* down the pipe of a query */
        IN_FETCH,           /* of a statement */
        IN_CHANNEL_QUERY,
        IN_CHANNEL_PREPARE,
        IN_CHANNEL_FETCH,
        PLACES_MAX,
} Place;

static struct {
        Place place;
        unsigned kind;
        int defect, n_before;
        bool ends;          /* end-of-file follows; else silence */
} lie;

static int channel_end = -1; /* the service's, if it stays open */

/* The library numbers its requests from 1, so the answer can lie there before the request does. */
static int open_lying_channel(FakeService *service, sd_bus_message *m, const char *member) {
        uint64_t number = lie.place == IN_CHANNEL_FETCH ? 2 : 1;
        Stream s = STREAM_INIT;
        int fds[2];

        (void) service;
        if (strcmp(member, "OpenChannel") != 0)
                return 0;
        if (lie.place == IN_CHANNEL_FETCH)
                add_statement(&s, 1);
        add_beginning(&s, lie.n_before, number);
        add_frame(&s, lie.kind, lie.defect, number);
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) >= 0);
        CHECK_INT(send(fds[1], s.bytes, s.size, MSG_NOSIGNAL), s.size);
        stream_done(&s);
        if (lie.ends)
                CHECK_INT(shutdown(fds[1], SHUT_WR), 0);
        reply_descriptor(m, member, fds[0]);
        if (channel_end >= 0)
                close(channel_end);
        channel_end = fds[1];
        return 1;
}

static void tell_lie(bool blocking) {
        bool channel = lie.place >= IN_CHANNEL_QUERY;

        begin(channel ? SQLIPC_TRANSPORT_CHANNEL : SQLIPC_TRANSPORT_PIPE, blocking, channel ? open_lying_channel : NULL);
        if (!channel) {
                add_beginning(&f.rows, lie.n_before, FAKE_RUN);
                add_frame(&f.rows, lie.kind, lie.defect, FAKE_RUN);
                f.close_pipe = lie.ends;
        }
        if (lie.place == IN_QUERY || lie.place == IN_CHANNEL_QUERY)
                run_query(blocking);
        else
                run_statement(blocking);
        settle();
        if (channel_end >= 0)
                close(channel_end);
        channel_end = -1;
        finish();
}

static void check_frames(Place place) {
        int n_descriptors = count_descriptors();

        lie.place = place;
        for (size_t i = 0; i < N_ELEMENTS(frame_kinds); i++)
                for (lie.defect = 0; lie.defect < DEFECTS_MAX; lie.defect++)
                        for (lie.n_before = 0; lie.n_before < 3; lie.n_before++) {
                                lie.kind = frame_kinds[i];
                                lie.ends = true;
                                tell_lie((lie.defect + lie.n_before) % 2);
                                if (lie.n_before > 0 || (lie.defect != FRAME_IS_VALID && lie.defect != FRAME_GOES_ON))
                                        continue;
                                lie.ends = false;
                                tell_lie(false);
                                tell_lie(true);
                        }
        CHECK_INT(count_descriptors(), n_descriptors);
}

static void test_frames_in_pipes(void) {
        check_frames(IN_QUERY);
        check_frames(IN_FETCH);
}

static void test_frames_in_channels(void) {
        check_frames(IN_CHANNEL_QUERY);
        check_frames(IN_CHANNEL_PREPARE);
        check_frames(IN_CHANNEL_FETCH);
}

/* ---- Bytes without end -------------------------------------------------------------------------------------------- */

/* A row under way, of which a byte comes each millisecond: for at most as long as a test should take to fail. */
static void trickle(int fd, uint64_t number) {
        uint8_t header[FRAME_HEADER_SIZE];
        Stream s = STREAM_INIT;

        stream_add_columns(&s, number, 1, SQLIPC_PAGE_SIZE_MIN);
        CHECK_INT(write(fd, s.bytes, s.size), s.size);
        s.size = 0;
        stream_add_frame(&s, FRAME_ROWS, 0, number, NULL, 0);
        memcpy(header, s.bytes, sizeof header);
        store_le32(header, SQLIPC_PAGE_SIZE_MIN - FRAME_HEADER_SIZE);
        CHECK_INT(write(fd, header, sizeof header), sizeof header);
        for (int i = 0; i < 3000 && write(fd, "", 1) == 1; i++)
                usleep(1000);
        (void) poll(&(struct pollfd) { .fd = fd }, 1, -1); /* a library that was kept from running may not meet the end */
        stream_done(&s);
}

/* Parts of one row, of one byte each, until the library closes its end. */
static void flood(int fd, uint64_t number) {
        Stream s = STREAM_INIT;

        stream_add_columns(&s, number, 1, SQLIPC_PAGE_SIZE_MIN);
        CHECK_INT(write(fd, s.bytes, s.size), s.size);
        s.size = 0;
        for (int i = 0; i < 2048; i++)
                stream_add_frame(&s, FRAME_BIG_ROW, FRAME_MORE, number, "", 1);
        while (write(fd, s.bytes, s.size) > 0)
                ;
        stream_done(&s);
}

/* Rows, until the library closes its end, whatever it cancels. */
static void send_rows_for_ever(int fd, uint64_t number) {
        Stream s = STREAM_INIT;

        stream_add_columns(&s, number, 1, SQLIPC_PAGE_SIZE_MIN);
        for (int i = 0; i < 10; i++)
                fake_add_rows(&s, number, 1, 100);
        CHECK_INT(write(fd, s.bytes, s.size), s.size);
        s.size = 0;
        fake_add_rows(&s, number, 1, 100);
        while (write(fd, s.bytes, s.size) > 0)
                ;
        stream_done(&s);
}

static void (*send_endlessly)(int fd, uint64_t number);
static pthread_t sender;
static int sender_fd = -1;
static uint64_t sender_number;

static void *sender_thread(void *userdata) {
        (void) userdata;
        send_endlessly(sender_fd, sender_number);
        close(sender_fd);
        return NULL;
}

static void start_sender(int fd, uint64_t number) {
        CHECK_INT(sender_fd, -1);
        sender_fd = fd;
        sender_number = number;
        CHECK_INT(pthread_create(&sender, NULL, sender_thread, NULL), 0);
}

static int answer_endlessly(FakeService *service, sd_bus_message *m, const char *member) {
        int fds[2];

        if (strcmp(member, "OpenChannel") == 0) {
                CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) >= 0);
                reply_descriptor(m, member, fds[0]);
                start_sender(fds[1], 1);
                return 1;
        }
        if (strcmp(member, "Query") == 0)
                fake_reply_pipe(service, m, FAKE_RUN);
        else if (strcmp(member, "Fetch") == 0 && sender_fd < 0)
                CHECK(sd_bus_reply_method_return(m, "ta{sv}", (uint64_t) FAKE_RUN, 0) >= 0);
        else
                return 0;
        start_sender(dup(service->write_fd), FAKE_RUN);
        fake_close_pipe(service);
        return 1;
}

static void finish_endless(void) {
        check_recovery();
        fake_done(&f);
        CHECK_INT(pthread_join(sender, NULL), 0);
        sender_fd = -1;
}

/* A blocking call ends at the connection's timeout, although bytes come all the time. */
static void check_timeout(sqlipc_transport transport, void (*send_bytes)(int fd, uint64_t number)) {
        sqlipc_cursor *c;

        send_endlessly = send_bytes;
        begin(transport, true, answer_endlessly);
        CHECK_INT(sqlipc_set_timeout(f.connection, 120000000), 0);
        CHECK_INT(sqlipc_query(f.connection, "db", "SELECT 1", &c, NULL), 0);
        CHECK_INT(sqlipc_set_timeout(f.connection, SILENCE_USEC), 0);
        CHECK_INT(sqlipc_cursor_next(c), -ETIMEDOUT);
        sqlipc_cursor_close(c);
        finish_endless();
}

static void test_timeout_while_bytes_come(void) {
        check_timeout(SQLIPC_TRANSPORT_PIPE, trickle);
        check_timeout(SQLIPC_TRANSPORT_PIPE, flood);
        check_timeout(SQLIPC_TRANSPORT_CHANNEL, trickle);
        check_timeout(SQLIPC_TRANSPORT_CHANNEL, flood);
}

/* A pipe that is never empty: blocking calls end at their timeout, others after a few reads. */
static void test_pipe_that_is_never_empty(void) {
        sqlipc_cursor *c;

        for (int blocking = 0; blocking < 2; blocking++) {
                begin(SQLIPC_TRANSPORT_PIPE, true, NULL);
                CHECK_INT(sqlipc_set_timeout(f.connection, 120000000), 0);
                fake_set_unfinished(&f, 1, 1);
                n_honest = f.rows.size;
                n_endless = 0;
                stream_add_frame(&f.rows, FRAME_BIG_ROW, FRAME_MORE, FAKE_RUN, "", 1); /* keeps the pipe readable */
                endless = true;
                CHECK_INT(sqlipc_query(f.connection, "db", "SELECT 1", &c, NULL), 0);
                CHECK_INT(sqlipc_cursor_next(c), 1);
                CHECK_INT(sqlipc_set_timeout(f.connection, SILENCE_USEC), 0);
                CHECK_INT(sqlipc_set_blocking(f.connection, blocking), 0);
                n_preadv2 = 0;
                CHECK_INT(sqlipc_cursor_next(c), blocking ? -ETIMEDOUT : -EAGAIN);
                CHECK(blocking || n_preadv2 <= 100);
                CHECK(blocking || turn() > 0); /* there is more to do at once */
                sqlipc_cursor_close(c);
                endless = false;
                finish();
        }
}

/* A program with a loop gets back to it, however fast bytes come that are no row. */
static void test_loop_while_bytes_come(void) {
        static const sqlipc_transport transports[] = { SQLIPC_TRANSPORT_PIPE, SQLIPC_TRANSPORT_CHANNEL };
        sqlipc_cursor *c;

        send_endlessly = flood;
        for (size_t i = 0; i < N_ELEMENTS(transports); i++) {
                begin(transports[i], false, answer_endlessly);
                CHECK_INT(sqlipc_query(f.connection, "db", "SELECT 1", &c, NULL), 0);
                for (int j = 0; j < 100; j++) {
                        CHECK_INT(sqlipc_cursor_next(c), -EAGAIN);
                        (void) turn();
                }
                sqlipc_cursor_close(c);
                finish_endless();
        }
}

/* A run that was given up, and goes on all the same, keeps neither the next one nor the program's loop. */
static void test_drain_without_end(void) {
        sqlipc_statement *s;
        sqlipc_cursor *c;

        send_endlessly = send_rows_for_ever;
        begin(SQLIPC_TRANSPORT_PIPE, false, answer_endlessly);
        CHECK_INT(sqlipc_prepare(f.connection, "db", "SELECT 1", &s), 0);
        CHECK_INT(sqlipc_execute(s, &c), 0);
        while (sqlipc_cursor_next(c) == -EAGAIN)
                (void) turn();
        sqlipc_cursor_close(c);
        CHECK_INT(sqlipc_execute(s, &c), 0);
        for (int i = 0; i < 100; i++) {
                CHECK_INT(sqlipc_cursor_next(c), -EAGAIN);
                (void) turn();
        }
        CHECK_INT(sqlipc_set_blocking(f.connection, 1), 0);
        CHECK_INT(sqlipc_cursor_next(c), -ETIMEDOUT);
        sqlipc_cursor_close(c);
        sqlipc_finalize(s);
        finish_endless();
}

/* ---- Descriptors that the service keeps a copy of ----------------------------------------------------------------- */

static int kept_fd = -1; /* a copy of the descriptor that the library reads */

static int keep_copy(FakeService *service, sd_bus_message *m, const char *member) {
        int fds[2];

        if (strcmp(member, "Query") == 0)
                CHECK(pipe2(fds, O_CLOEXEC) >= 0);
        else if (strcmp(member, "OpenChannel") == 0)
                CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) >= 0);
        else
                return 0;
        kept_fd = dup(fds[0]);
        service->write_fd = fds[1];
        reply_descriptor(m, member, fds[0]);
        return 1;
}

/* Waits for bytes that the service does not send. */
static void check_kept_copy(sqlipc_transport transport, bool blocking) {
        const struct timeval for_ever = { .tv_sec = 0 };
        sqlipc_cursor *c;

        begin(transport, false, keep_copy);
        CHECK_INT(sqlipc_query(f.connection, "db", "SELECT 1", &c, NULL), 0);
        do /* until it waits for bytes */
                CHECK_INT(sqlipc_cursor_next(c), -EAGAIN);
        while (turn() > 0 || kept_fd < 0);
        CHECK(sqlipc_cursor_get_transport(c) != SQLIPC_TRANSPORT_AUTO);
        CHECK_INT(fcntl(kept_fd, F_SETFL, 0), 0);
        if (transport == SQLIPC_TRANSPORT_CHANNEL) {
                CHECK_INT(setsockopt(kept_fd, SOL_SOCKET, SO_RCVTIMEO, &for_ever, sizeof for_ever), 0);
                CHECK_INT(setsockopt(kept_fd, SOL_SOCKET, SO_RCVLOWAT, &(int) { 1 << 20 }, sizeof(int)), 0);
        }
        if (blocking)
                CHECK_INT(sqlipc_set_timeout(f.connection, 200000), 0);
        CHECK_INT(sqlipc_set_blocking(f.connection, blocking), 0);
        CHECK_INT(sqlipc_cursor_next(c), blocking ? -ETIMEDOUT : -EAGAIN);
        sqlipc_cursor_close(c);
        close(kept_fd);
        kept_fd = -1;
        finish();
}

static void test_kept_copies(void) {
        for (int blocking = 0; blocking < 2; blocking++) {
                check_kept_copy(SQLIPC_TRANSPORT_PIPE, blocking);
                check_kept_copy(SQLIPC_TRANSPORT_CHANNEL, blocking);
        }
}

/* The same on an old kernel, or with a strict filter of system calls. */
static void test_kept_copies_without_calls(void) {
        n_preadv2 = n_vmsplice = 0;
        no_preadv2 = true;
        test_kept_copies();
        CHECK(n_preadv2 > 0 && n_vmsplice > 0);
        no_vmsplice = true;
        test_kept_copies();
        no_preadv2 = no_vmsplice = false;
}

int main(void) {
        static const Test tests[] = {
                TEST(test_replies),
                TEST(test_replies_to_next_rows),
                TEST(test_descriptors),
                TEST(test_frames_in_pipes),
                TEST(test_frames_in_channels),
                TEST(test_timeout_while_bytes_come),
                TEST(test_pipe_that_is_never_empty),
                TEST(test_loop_while_bytes_come),
                TEST(test_drain_without_end),
                TEST(test_kept_copies),
                TEST(test_kept_copies_without_calls),
        };

        (void) signal(SIGPIPE, SIG_IGN); /* the service's, which writes into pipes that we close */
        return test_main(tests, N_ELEMENTS(tests));
}
