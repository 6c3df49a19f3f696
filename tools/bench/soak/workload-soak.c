/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * soak: for a chosen time, hundreds of clients ask for single rows and for all rows, read slowly, cancel, leave statements,
 * reconnect, provoke errors, and are killed. Measures what the service holds under load, at rests, and at the end.
 *
 * A round is load, then a rest: all clients read their remaining rows, finalize their statements, and wait. What the service
 * holds at a rest can be compared between rounds, unlike under load. See soak.h.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bench/core/measure.h"
#include "tools/bench/core/sampler.h"
#include "tools/bench/report/service-facts.h"
#include "tools/bench/soak/soak.h"
#include "tools/bench/workloads/workload.h"

enum {
        CLIENTS_OF_A_PROCESS = 10,
        TICK_USEC = 20 * 1000,
        SAMPLE_EVERY_USEC = 1000 * 1000,
        KILL_EVERY_USEC = 700 * 1000,
        REST_PATIENCE_USEC = 180 * 1000 * 1000, /* time limit for what must happen */
        REST_SETTLE_USEC = 60 * 1000 * 1000,
};

typedef struct Trial {
        Soak soak;
        Service service;
        SoakFindings findings;
        Random random;
        uint64_t n_started;
        double duration_usec;          /* of the load of one round */
        double loaded_usec;            /* of the rounds that are over */
        double next_sample, next_kill;
} Trial;

static size_t state_size(const Soak *soak) {
        return sizeof(SoakState) + soak->n_processes * sizeof(SoakProcess);
}

/* ---- Processes ---------------------------------------------------------------------------------------------------- */

static int start_process(Trial *trial, unsigned number) {
        SoakProcess *process = &trial->soak.state->processes[number];
        uint64_t seed = random_next(&trial->random);
        pid_t pid = fork();

        if (pid < 0)
                return -errno;
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                _exit(soak_process_run(&trial->soak, number, seed) < 0);
        }
        process->pid = pid;
        process->killed = false;
        trial->n_started++;
        return 0;
}

static SoakProcess *find_process(Trial *trial, pid_t pid) {
        for (unsigned i = 0; i < trial->soak.n_processes; i++)
                if (trial->soak.state->processes[i].pid == pid)
                        return &trial->soak.state->processes[i];
        return NULL;
}

/* Handles the end of a process. Its open operations count as given up if we killed it, otherwise as not answered. */
static void bury(SoakProcess *process, int status, SoakFindings *findings) {
        process->pid = 0;
        atomic_store(&process->at_rest, 0);
        if (process->killed) {
                findings->n_killed++;
                for (unsigned i = 0; i < SOAK_KINDS; i++)
                        process->given_up[i] += soak_tally_open(&process->tallies[i]) - process->given_up[i];
        } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
                fprintf(stderr, "sqlipc-bench: soak: a process of clients ended by itself, status %d\n", status);
                findings->n_exited++;
        }
}

/* Buries the processes that have ended, without waiting. Returns the number of the others. */
static unsigned bury_all(Trial *trial) {
        unsigned n = 0;
        pid_t pid;
        int status;

        while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
                SoakProcess *process = find_process(trial, pid);

                if (process)
                        bury(process, status, &trial->findings);
        }
        for (unsigned i = 0; i < trial->soak.n_processes; i++)
                n += trial->soak.state->processes[i].pid > 0;
        return n;
}

static void kill_process(SoakProcess *process) {
        if (process->pid > 0 && kill(process->pid, SIGKILL) >= 0)
                process->killed = true;
}

static int start_missing(Trial *trial) {
        int r = 0;

        for (unsigned i = 0; r >= 0 && i < trial->soak.n_processes; i++)
                if (trial->soak.state->processes[i].pid == 0)
                        r = start_process(trial, i);
        return r;
}

/* ---- Load and rests ----------------------------------------------------------------------------------------------- */

static int take_sample(Trial *trial, double loaded_usec, GArray *samples) {
        SoakSample sample;
        int r = soak_sample(&trial->service, &sample);

        if (r < 0)
                return r;
        sample.minutes = loaded_usec / 60e6;
        sample.operations = (double) soak_count_answers(&trial->soak);
        g_array_append_val(samples, sample);
        return 0;
}

/* Does what is due: kills a process, takes a sample. */
static int act_under_load(Trial *trial, double since) {
        double now = sampler_now_usec();

        if (now >= trial->next_kill) {
                trial->next_kill = now + KILL_EVERY_USEC;
                kill_process(&trial->soak.state->processes[random_next(&trial->random) % trial->soak.n_processes]);
        }
        if (now < trial->next_sample)
                return 0;
        trial->next_sample = now + SAMPLE_EVERY_USEC;
        return take_sample(trial, trial->loaded_usec + now - since, trial->findings.under_load);
}

static int load(Trial *trial) {
        double since = sampler_now_usec();
        int r = 0;

        while (r >= 0 && trial->findings.n_exited == 0 && sampler_now_usec() - since < trial->duration_usec) {
                (void) bury_all(trial);
                r = start_missing(trial);
                if (r >= 0)
                        r = act_under_load(trial, since);
                (void) usleep(TICK_USEC);
        }
        trial->loaded_usec += sampler_now_usec() - since;
        return r < 0 ? r : trial->findings.n_exited > 0 ? -ECHILD : 0;
}

static bool is_held(const SoakSample *sample, bool channels) {
        return sample->n_statements > 0 || sample->n_runs > 0 || (channels && sample->n_channels > 0);
}

/* Waits until the service holds nothing, except channels and workers if these may stay. -ETIMEDOUT: it still holds more. */
static int wait_settled(Trial *trial, bool channels, bool workers, SoakSample *ret) {
        double until = sampler_now_usec() + REST_SETTLE_USEC;

        do {
                int r = soak_sample(&trial->service, ret);

                if (r < 0)
                        return r;
                if (!is_held(ret, !channels) && (workers || ret->n_workers == 0))
                        return 0;
                (void) usleep(TICK_USEC);
        } while (sampler_now_usec() < until);
        return -ETIMEDOUT;
}

static bool all_rest(const Trial *trial, unsigned number) {
        for (unsigned i = 0; i < trial->soak.n_processes; i++)
                if (atomic_load(&trial->soak.state->processes[i].at_rest) != number)
                        return false;
        return true;
}

static int wait_for_rest(Trial *trial, unsigned number) {
        double until = sampler_now_usec() + REST_PATIENCE_USEC;

        while (!all_rest(trial, number)) {
                int r;

                (void) bury_all(trial); /* killed before the load was over */
                r = start_missing(trial);
                if (r < 0)
                        return r;
                if (sampler_now_usec() > until) {
                        fprintf(stderr, "sqlipc-bench: soak: clients wait in vain for what is still to come\n");
                        return -ETIMEDOUT;
                }
                (void) usleep(TICK_USEC);
        }
        return 0;
}

/* All have what they asked for; so the service has no statement and no run, only connections, and channels. */
static int rest(Trial *trial, unsigned number) {
        SoakSample sample;
        int r;

        atomic_store(&trial->soak.state->rest, number);
        r = wait_for_rest(trial, number);
        if (r >= 0) {
                r = wait_settled(trial, true, true, &sample);
                if (r == -ETIMEDOUT)
                        fprintf(stderr, "sqlipc-bench: soak: at rest the service still has %" G_GUINT64_FORMAT
                                " statements and %" G_GUINT64_FORMAT " runs\n", sample.n_statements, sample.n_runs);
        }
        if (r >= 0)
                r = take_sample(trial, trial->loaded_usec, trial->findings.at_rest);
        atomic_store(&trial->soak.state->rest, 0);
        return r;
}

/* Waits until all processes end by themselves, and finally kills them. */
static int stop(Trial *trial) {
        double until = sampler_now_usec() + REST_PATIENCE_USEC;

        atomic_store(&trial->soak.state->stop, true);
        while (bury_all(trial) > 0) {
                if (sampler_now_usec() > until) {
                        fprintf(stderr, "sqlipc-bench: soak: clients do not end\n");
                        for (unsigned i = 0; i < trial->soak.n_processes; i++)
                                kill_process(&trial->soak.state->processes[i]);
                        (void) waitpid(-1, NULL, 0);
                        return -ETIMEDOUT;
                }
                (void) usleep(TICK_USEC);
        }
        return trial->findings.n_exited > 0 ? -ECHILD : 0;
}

static int run_rounds(Trial *trial) {
        const unsigned n_rounds = (unsigned) trial->soak.options->n_rounds;
        int r = 0, stopped;

        for (unsigned i = 0; r >= 0 && i < n_rounds; i++) {
                measure_progress("soak", i, n_rounds);
                r = load(trial);
                if (r >= 0)
                        r = rest(trial, i + 1);
        }
        measure_progress("soak", 1, 1);
        stopped = stop(trial);
        return r < 0 ? r : stopped;
}

/* ---- The whole ---------------------------------------------------------------------------------------------------- */

typedef struct Need {
        const char *limit, *key;
        uint64_t n;
} Need;

/* Checks that the user's limits suffice; otherwise there would be errors that no client provoked. */
static int check_limit(sd_bus_message *limits, const Need *needs, size_t n_needs) {
        const char *name;
        uint64_t value;
        int r = sd_bus_message_read(limits, "{st}", &name, &value);

        for (size_t i = 0; r > 0 && i < n_needs; i++)
                if (g_str_equal(name, needs[i].limit) && value < needs[i].n) {
                        fprintf(stderr, "sqlipc-bench: so many clients of one user need %s%" G_GUINT64_FORMAT " at least: "
                                "give it to the service, or take fewer --clients=, or more --uids=\n", needs[i].key,
                                needs[i].n);
                        return -EDQUOT;
                }
        return r;
}

static int check_limits(Trial *trial) {
        const Soak *soak = &trial->soak;
        /* What a killed process had may not be gone when the next one starts, and a slow reader may ask for more. */
        uint64_t each = soak->n_clients / MAX(soak->uids->len, 1) + 4 * CLIENTS_OF_A_PROCESS;
        const Need needs[] = {
                { "runs-max", "RunsMax=", each },
                { "statements-max", "StatementsMax=", each },
                { "channels-max", "ChannelsMax=", each / 4 },
        };
        sd_bus_message *limits = NULL;
        g_autofree char *path = NULL;
        int r = sd_bus_path_encode("/org/sqlipc1/database", soak->options->database, &path);

        if (r >= 0)
                r = sd_bus_get_property(trial->service.bus, "org.sqlipc1", path, "org.sqlipc1.Database", "Limits", NULL,
                                        &limits, "a{st}");
        if (r >= 0)
                r = sd_bus_message_enter_container(limits, 'a', "{st}");
        if (r < 0)
                fprintf(stderr, "sqlipc-bench: the service does not say what %s allows: %s\n", soak->options->database,
                        g_strerror(-r));
        while (r > 0)
                r = check_limit(limits, needs, G_N_ELEMENTS(needs));
        sd_bus_message_unref(limits);
        return r;
}

static int run(Trial *trial) {
        int r = wait_settled(trial, false, false, &trial->findings.before), k;

        if (r == -ETIMEDOUT)
                fprintf(stderr, "sqlipc-bench: somebody else uses the service, whose counters would not be ours.\n");
        if (r < 0)
                return r;
        r = run_rounds(trial);
        trial->findings.minutes = trial->loaded_usec / 60e6;
        soak_add_up(&trial->soak, &trial->findings);
        trial->findings.broken_off = r < 0;
        k = wait_settled(trial, false, false, &trial->findings.after);
        trial->findings.after.operations = (double) soak_count_answers(&trial->soak);
        return k == -ETIMEDOUT ? 0 : k; /* of that, and of what was broken off, the report tells */
}

static void report_head(const Trial *trial, Report *report) {
        const BenchOptions *options = trial->soak.options;
        g_autoptr(GString) uids = g_string_new(NULL);

        for (guint i = 0; i < trial->soak.uids->len; i++)
                g_string_append_printf(uids, "%s%u", i > 0 ? ", " : " of users ",
                                       (unsigned) g_array_index(trial->soak.uids, uid_t, i));
        service_facts_add(report, &trial->service, options);
        report_fact(report, "clients", "%u in %u processes%s", trial->soak.n_clients, trial->soak.n_processes, uids->str);
        report_fact(report, "method", "%d rounds of load for %.1f s, each with a rest behind it; seed %" G_GINT64_FORMAT,
                    options->n_rounds, trial->duration_usec / 1e6, options->seed);
}

static int parse_uids(const char *text, GArray *uids) {
        g_auto(GStrv) words = text ? g_strsplit(text, ",", -1) : NULL;

        for (char **word = words; word && *word; word++) {
                guint64 number;
                uid_t uid;

                if (!g_ascii_string_to_unsigned(*word, 10, 0, UINT32_MAX - 1, &number, NULL)) {
                        fprintf(stderr, "sqlipc-bench: --uids= is of numbers, with commas: '%s' is none.\n", *word);
                        return -EINVAL;
                }
                uid = (uid_t) number;
                g_array_append_val(uids, uid);
        }
        return 0;
}

/* `*options` is a copy, to be completed here, and not freed: its strings are those of the given ones. */
static void trial_init(Trial *trial, BenchOptions *options) {
        int64_t n = options->n_clients > 0 ? options->n_clients : bench_amount(options, 20, 200, 200);
        unsigned n_clients = (unsigned) n;
        unsigned n_processes = (n_clients + CLIENTS_OF_A_PROCESS - 1) / CLIENTS_OF_A_PROCESS;

        /* The clients of other users would have another default bus. */
        options->system = options->system || (!options->user && !options->address && geteuid() == 0);
        if (options->n_rounds <= 0)
                options->n_rounds = (int) bench_amount(options, 3, 12, 60);
        if (options->seconds <= 0)
                options->seconds = (double) bench_amount(options, 2, 120, 3600);
        *trial = (Trial) {
                .soak = {
                        .options = options, .n_clients = n_clients, .n_processes = n_processes,
                        .uids = g_array_new(FALSE, FALSE, sizeof(uid_t)),
                },
                .duration_usec = options->seconds * 1e6 / options->n_rounds,
                .findings = {
                        .under_load = g_array_new(FALSE, FALSE, sizeof(SoakSample)),
                        .at_rest = g_array_new(FALSE, FALSE, sizeof(SoakSample)),
                },
        };
        random_init(&trial->random, (uint64_t) options->seed);
        trial->soak.state = mmap(NULL, state_size(&trial->soak), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (trial->soak.state == MAP_FAILED)
                g_error("out of memory for %zu bytes", state_size(&trial->soak));
}

static void trial_done(Trial *trial) {
        bench_service_close(&trial->service);
        (void) munmap(trial->soak.state, state_size(&trial->soak));
        g_array_unref(trial->findings.under_load);
        g_array_unref(trial->findings.at_rest);
        g_array_unref(trial->soak.uids);
}

static int measure(const BenchOptions *given, Report *report) {
        BenchOptions options = *given;
        g_autofree SoakRow *rows = NULL;
        Trial trial;
        int r;

        trial_init(&trial, &options);
        r = parse_uids(options.uids, trial.soak.uids);
        if (r >= 0)
                r = soak_read_rows(options.file, &rows, &trial.soak.n_rows);
        trial.soak.rows = rows;
        if (r >= 0)
                r = bench_service_open(&options, &trial.service);
        if (r >= 0)
                r = check_limits(&trial);
        if (r >= 0)
                r = run(&trial);
        if (r >= 0) {
                report_head(&trial, report);
                r = soak_report(&trial.findings, report) ? 0 : BENCH_FAILED;
        }
        trial_done(&trial);
        return r;
}

const Workload workload_soak = {
        .verb = "soak",
        .help = "hundreds of clients that do everything at once, go wrong and are killed; what the service keeps of it",
        .summary = "Has many clients ask for single rows over each transport and for all rows, read slowly, cancel, close, "
                   "leave statements and connections, and provoke errors; kills some of their processes meanwhile. Compares "
                   "every value with what SQLite in process reads, and says what the service holds: under load, at a rest "
                   "behind each round, and at the end, where it has to be what it was before. It has to be the only user of "
                   "the service. Exit status 1: an answer was missing or wrong, an error was not provoked, or something "
                   "was left.",
        .database = "point",
        .measure = measure,
};
