/* The baseline's side of the benchmark: the plan that our own ranks execute, through an MPI.
 *
 * usage: collectives PLAN RESULTS RANKS SECONDS
 *
 * The method is that of src/rank/ and src/gate.rs: the same checks, buffers, calibration, start and timing in
 * the same order, so that a ratio compares collectives and nothing else. A change there belongs here too.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "collectives_case.h"
#include "collectives_gate.h"
#include "collectives_job.h"

#define CHECKED_CALLS 3
#define MOST_CALLS 1e7
#define CALIBRATED_PART 0.25
#define CALIBRATING_RUNS 3
#define LEAST_BLOCKS 3
#define SLEPT_FROM 200
#define SETTLE 2e8 /* nanoseconds */
#define MOST_BLOCKS 4096

static uint64_t late; /* microseconds by which this rank comes late */
static uint64_t first_calls; /* the calls of the only block; 0: as many as fill one */

static void check(const struct measurement *m) {
    for (int turn = CHECKED_CALLS - 1; turn >= 0; turn--) {
        fill_patterns(m, turn);
        MPI_Barrier(MPI_COMM_WORLD);
        calls = (uint64_t)turn;
        one_call(m);
        compare(m, (uint64_t)turn, turn, 0, "before timing");
    }
    calls = 0;
}

static uint32_t rewritten_value(uint64_t call) { return (uint32_t)(call % 50) + 1; }

static void rewrite(const struct measurement *m) {
    size_t bytes = element_bytes(m->element);
    if (m->buffers != REWRITTEN || !has_bytes(m)) return;
    if (m->operation != BROADCAST)
        fill_constant(m->element, send_slot(calls, bytes), sent, rewritten_value(calls));
    else if (rank == m->root)
        fill_constant(m->element, receive_slot(calls, bytes), received, rewritten_value(calls));
}

static void delay(void) {
    if (late >= SLEPT_FROM) {
        struct timespec t = {(time_t)(late / 1000000), (long)(late % 1000000) * 1000};
        while (nanosleep(&t, &t) != 0 && errno == EINTR) {}
    } else if (late > 0) {
        uint64_t until = now() + 1000 * late;
        while (now() < until) {}
    }
}

/* Nanoseconds that calls took, all together: on this rank, and of each on the rank where it took longest (of calls back
 * to back, on the slowest one). */
struct elapsed {
    uint64_t own, slowest;
};

/* Makes `iterations` calls and returns what they took. */
static struct elapsed block(const struct measurement *m, uint64_t iterations) {
    struct elapsed elapsed = {0, 0};
    uint64_t took = 0, longest, start;
    size_t bytes = element_bytes(m->element);
    if (m->timing == STREAM) {
        begin_together(0, &longest);
        start = now();
        if (m->buffers == COLD) {
            for (uint64_t i = 0; i < iterations; i++) one_call(m);
        } else {
            void *send = send_slot(0, bytes), *receive = receive_slot(0, bytes);
            for (uint64_t i = 0; i < iterations; i++) make(m, send, receive);
            calls += iterations;
        }
        elapsed.own = now() - start;
        elapsed.slowest = meet(0, elapsed.own).longest;
        return elapsed;
    }
    for (uint64_t i = 0; i < iterations; i++) {
        void *send = send_slot(calls, bytes), *receive = receive_slot(calls, bytes);
        if (m->timing != STEP) rewrite(m);
        start = begin_together(took, &longest);
        if (m->timing == STEP) rewrite(m);
        calls++;
        elapsed.slowest += longest;
        if (late > 0) {
            delay();
            start = now();
        }
        make(m, send, receive);
        if (m->timing >= LOADED && has_result(m)) read_all(m, receive);
        took = now() - start;
        elapsed.own += took;
    }
    elapsed.slowest += meet(0, took).longest;
    return elapsed;
}

/* What a run of `tried` calls takes with all that goes with it, on the slowest rank: the least of several runs where
 * that fills its part of a block, since whatever meets a single short one would stand for all calls. */
static double least_of_runs(const struct measurement *m, uint64_t tried) {
    double least = 0;
    for (int run = 0; run < CALIBRATING_RUNS; run++) {
        uint64_t start = now();
        double mine, elapsed;
        block(m, tried);
        mine = (double)(now() - start);
        MPI_Allreduce(&mine, &elapsed, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (run == 0 || elapsed < least) least = elapsed;
        if (least < m->block * CALIBRATED_PART) break;
    }
    return least;
}

static void calibrate(const struct measurement *m, uint64_t *iterations, long *blocks) {
    uint64_t tried = 1;
    double elapsed, cost, fitting, affordable;
    while ((elapsed = least_of_runs(m, tried)) < m->block * CALIBRATED_PART) tried *= 2;
    cost = elapsed / (double)tried;
    fitting = m->block / cost;
    if (fitting < 1) fitting = 1;
    if (fitting > MOST_CALLS) fitting = MOST_CALLS;
    *iterations = (uint64_t)fitting;
    affordable = 4.0 * m->block * (double)m->blocks / (cost * (double)*iterations);
    if (affordable < LEAST_BLOCKS) affordable = LEAST_BLOCKS;
    *blocks = affordable < (double)m->blocks ? (long)affordable : m->blocks;
}

static void measure(const struct measurement *m) {
    uint64_t iterations;
    long blocks;
    static double samples[MOST_BLOCKS], slowest[MOST_BLOCKS], exchanges[MOST_BLOCKS + 1], slowdowns[MOST_BLOCKS + 1];
    int looks = ranks > 1 && !gate_yields;
    make_buffers(m);
    check(m);
    if (first_calls > 0)
        iterations = first_calls, blocks = 1;
    else
        calibrate(m, &iterations, &blocks);
    for (long b = 0; b <= blocks; b++) {
        if (looks) {
            exchanges[b] = exchange();
            slowdowns[b] = slowdown();
        }
        if (b < blocks) {
            struct elapsed elapsed = block(m, iterations);
            samples[b] = (double)elapsed.own / (double)iterations;
            slowest[b] = (double)elapsed.slowest / (double)iterations;
        }
    }
    if (calls > 0)
        compare(m, calls - 1, m->buffers == REWRITTEN ? -1 : 0, rewritten_value(calls - 1), "after timing");
    if (looks) {
        fprintf(sheet, "cores %ld", current);
        for (long b = 0; b <= blocks; b++) fprintf(sheet, " %.1f %.2f", exchanges[b], slowdowns[b]);
        fprintf(sheet, "\n");
    }
    fprintf(sheet, "slowest %ld", current);
    for (long b = 0; b < blocks; b++) fprintf(sheet, " %.3f", slowest[b]);
    fprintf(sheet, "\n");
    fprintf(sheet, "times %ld %" PRIu64, current, iterations);
    for (long b = 0; b < blocks; b++) fprintf(sheet, " %.3f", samples[b]);
    fprintf(sheet, "\n");
    if (rank == 0 && fflush(sheet) != 0) give_up("cannot write", strerror(errno));
    free(send_memory);
    free(receive_memory);
}

/* Calls barriers until the kernel has had time to spread the ranks over the cores. */
static void settle(void) {
    uint64_t start = now();
    double mine, least = 0;
    for (long tried = 1; least < SETTLE; tried *= 2) {
        for (long i = 0; i < tried; i++) MPI_Barrier(MPI_COMM_WORLD);
        mine = (double)(now() - start);
        MPI_Allreduce(&mine, &least, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    }
}

static int look_up(const char *const *names, const char *name) {
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0) return i;
    give_up("unknown word in the plan:", name);
    return -1;
}

static void execute(FILE *plan) {
    char text[512], o[32], b[32], t[32], e[32];
    if (!fgets(text, sizeof text, plan) || strcmp(text, "phalanx-bench-plan 1\n") != 0)
        give_up("not a plan of this version:", text);
    while (fgets(text, sizeof text, plan)) {
        struct measurement m;
        int who;
        uint64_t by;
        if (sscanf(text, "cold %" SCNu64, &cold_bytes) == 1) continue;
        if (sscanf(text, "operator %31s", o) == 1) {
            operator = look_up(operators, o);
            continue;
        }
        if (sscanf(text, "calls %" SCNu64, &first_calls) == 1) continue;
        if (sscanf(text, "late %d %" SCNu64, &who, &by) == 2) {
            if (who == rank) late += by;
            continue;
        }
        if (sscanf(text, "case %31s %31s %31s %31s %" SCNu64 " %d %ld %lf", o, b, t, e, &m.bytes, &m.root, &m.blocks,
                   &m.block) != 8)
            give_up("cannot read the plan's line:", text);
        m.operation = look_up(operations, o);
        m.buffers = look_up(buffer_modes, b);
        m.timing = look_up(timings, t);
        m.element = look_up(elements, e);
        if (m.blocks > MOST_BLOCKS) m.blocks = MOST_BLOCKS;
        if (m.bytes / element_bytes(m.element) > INT32_MAX) give_up("too long for an int count:", text);
        measure(&m);
        current++;
    }
}

int main(int argc, char **argv) {
    char path[4096];
    pid_t parent = getppid();
    FILE *plan;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc != 5 || getppid() != parent) return 2;
    alarm((unsigned)atoi(argv[4]));
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != atoi(argv[3])) {
        fprintf(stderr, "a world of %d ranks instead of %s: is this launcher of the same MPI as the compiler?\n",
                ranks, argv[3]);
        MPI_Abort(MPI_COMM_WORLD, 4);
        return 4;
    }
    snprintf(path, sizeof path, "%s/rank-%d.txt", argv[2], rank);
    sheet = fopen(path, "w");
    if (!sheet) give_up(path, strerror(errno));
    setvbuf(sheet, NULL, _IOFBF, 1 << 20);
    plan = fopen(argv[1], "r");
    if (!plan) give_up(argv[1], strerror(errno));
    fprintf(sheet, "rank %d of %d\n", rank, ranks);
    open_gate(argv[2]);
    settle();
    execute(plan);
    fprintf(sheet, "end\n");
    if (fclose(sheet) != 0) give_up(path, strerror(errno));
    fclose(plan);
    MPI_Finalize();
    return 0;
}
