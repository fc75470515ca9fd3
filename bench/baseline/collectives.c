/* The baseline's side of the benchmark: the plan that our own ranks execute, through an MPI.
 *
 * usage: collectives PLAN RESULTS RANKS SECONDS
 *
 * The method is that of src/rank/ and src/gate.rs: the same checks, buffers, calibration, start and timing in
 * the same order, so that a ratio compares collectives and nothing else. A change there belongs here too.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum operation { BARRIER, BROADCAST, REDUCE, ALLREDUCE, GATHER, SCATTER, ALLGATHER, ALLTOALL, REDUCE_SCATTER, SCAN, EMPTY };
enum operator { SUM, MAX, MIN, USER };
enum buffers { WARM, REWRITTEN, COLD };
enum timing { STREAM, EACH, LOADED, STEP };
enum element { I32, I64, F32, F64 };

static const char *const operations[] = {"barrier", "broadcast", "reduce", "allreduce", "gather", "scatter",
                                         "allgather", "alltoall", "reduce-scatter", "scan", "empty", NULL};
static const char *const operators[] = {"sum", "max", "min", "user", NULL};
static const char *const buffer_modes[] = {"warm", "rewritten", "cold", NULL};
static const char *const timings[] = {"stream", "each", "loaded", "step", NULL};
static const char *const elements[] = {"i32", "i64", "f32", "f64", NULL};

#define LINE 64
#define PERIOD 61
#define CHECKED_CALLS 3
#define MOST_CALLS 1e7
#define CALIBRATED_PART 0.25
#define CALIBRATING_RUNS 3
#define LEAST_BLOCKS 3
#define SLEPT_FROM 200
#define SETTLE 2e8 /* nanoseconds */
#define MOST_BLOCKS 4096
#define GATE_LINE 16 /* words */
#define AHEAD 1000 /* nanoseconds */
#define AHEAD_RANK 50
#define ROUNDS_BEFORE 16
#define ROUNDS 64
#define WORK_TIMES 400
#define WORK_TRIES 5

struct measurement {
    int operation, buffers, timing, element, root;
    uint64_t bytes;
    long blocks;
    double block; /* nanoseconds */
};

static int rank, ranks;
static uint64_t cold_bytes;
static uint64_t late; /* microseconds by which this rank comes late */
static int operator; /* by what reductions combine */
static uint64_t first_calls; /* the calls of the only block; 0: as many as fill one */
static FILE *sheet;
static long current;

/* The buffers of one case: slots that take turns, a power of two of them. */
static char *send_memory, *receive_memory, *send_start, *receive_start;
static size_t length, sent, received, stride, slots; /* of a block; of all that is sent, and received */
static uint64_t calls;

static void give_up(const char *what, const char *detail) {
    fprintf(stderr, "baseline rank %d: %s %s\n", rank, what, detail);
    MPI_Abort(MPI_COMM_WORLD, 3);
    exit(3);
}

static void wrong(const struct measurement *m, const char *when, size_t index, double is, double should) {
    fprintf(sheet,
            "wrong %ld rank %d of %d, %s of %" PRIu64 " bytes of %s, root %d, %s buffers, %s: "
            "element %zu of %zu is %g and should be %g\n",
            current, rank, ranks, operations[m->operation], m->bytes, elements[m->element], m->root,
            buffer_modes[m->buffers], when, index, received, is, should);
    fflush(sheet);
    give_up("wrong answer:", operations[m->operation]);
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1000000000 * (uint64_t)t.tv_sec + (uint64_t)t.tv_nsec;
}

/* The page where ranks meet: src/gate.rs. */
static uint64_t *gate;
static uint64_t gate_round;
static int gate_yields;

static void open_gate(const char *folder) {
    char path[4096];
    size_t bytes = (size_t)(1 + ranks) * GATE_LINE * sizeof *gate;
    int file;
    snprintf(path, sizeof path, "%s/gate", folder);
    file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) give_up(path, strerror(errno));
    gate = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (gate == MAP_FAILED) give_up(path, strerror(errno));
    close(file);
    if (gate[0] != (uint64_t)ranks) give_up(path, "was made for another number of ranks");
    gate_yields = gate[1] != 0;
}

static void pause_a_moment(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

/* What ranks learn of each other: the latest time, and what the longest of their last calls took. */
struct met {
    uint64_t latest, longest;
};

static struct met meet(uint64_t time, uint64_t took) {
    uint64_t *mine = gate + (size_t)(1 + rank) * GATE_LINE;
    struct met met = {time, took};
    size_t turn = ++gate_round & 1;
    __atomic_store_n(mine + 1 + turn, time, __ATOMIC_RELAXED);
    __atomic_store_n(mine + 3 + turn, took, __ATOMIC_RELAXED);
    __atomic_store_n(mine, gate_round, __ATOMIC_RELEASE);
    for (int i = 0; i < ranks; i++) {
        const uint64_t *line = gate + (size_t)(1 + i) * GATE_LINE;
        if (i == rank) continue;
        while (__atomic_load_n(line, __ATOMIC_ACQUIRE) < gate_round) {
            if (gate_yields)
                sched_yield();
            else
                pause_a_moment();
        }
        uint64_t theirs = __atomic_load_n(line + 1 + turn, __ATOMIC_RELAXED);
        uint64_t took_there = __atomic_load_n(line + 3 + turn, __ATOMIC_RELAXED);
        if (theirs > met.latest) met.latest = theirs;
        if (took_there > met.longest) met.longest = took_there;
    }
    return met;
}

/* Returns when all begin, behind calls that took so long: the time of that or, where ranks outnumber cores, when the
 * last one came. */
static uint64_t begin_together(uint64_t took, uint64_t *longest) {
    struct met met = meet(now(), took);
    uint64_t begin = met.latest + AHEAD + AHEAD_RANK * (uint64_t)ranks, time;
    *longest = met.longest;
    if (gate_yields) return met.latest;
    while ((time = now()) < begin) pause_a_moment();
    return time;
}

/* A look at the cores: src/gate/look.rs. First the nanoseconds of a bare exchange between all ranks. */
static double exchange(void) {
    uint64_t begin;
    for (int i = 0; i < ROUNDS_BEFORE; i++) meet(0, 0);
    begin = now();
    for (int i = 0; i < ROUNDS; i++) meet(0, 0);
    return (double)(now() - begin) / ROUNDS;
}

/* Nanoseconds of a fixed number of multiplications, none of which a vector unit makes. */
static uint64_t work(void) {
    uint64_t begin = now(), a = begin, b = a + 1, c = a + 2, d = a + 3, e = a + 4, f = a + 5;
    for (int i = 0; i < WORK_TIMES; i++) {
        a *= a, b *= b, c *= c, d *= d, e *= e, f *= f;
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
    }
    return now() - begin;
}

static double median_of(uint64_t *tries) {
    for (int i = 1; i < WORK_TRIES; i++) {
        for (int j = i; j > 0 && tries[j] < tries[j - 1]; j--) {
            uint64_t less = tries[j];
            tries[j] = tries[j - 1];
            tries[j - 1] = less;
        }
    }
    return (double)tries[WORK_TRIES / 2];
}

/* How many times as long that takes beside the other ranks as alone, on the rank where it is most. */
static double slowdown(void) {
    uint64_t together[WORK_TRIES], alone[WORK_TRIES];
    for (int i = 0; i < WORK_TRIES; i++) {
        meet(0, 0);
        together[i] = work();
    }
    for (int turn = 0; turn < ranks; turn++) {
        meet(0, 0);
        for (int i = 0; turn == rank && i < WORK_TRIES; i++) alone[i] = work();
    }
    return (double)meet(0, (uint64_t)(100 * median_of(together) / median_of(alone))).longest / 100;
}

static int has_bytes(const struct measurement *m) { return m->operation != BARRIER && m->operation != EMPTY; }

static size_t element_bytes(int element) { return element == I32 || element == F32 ? 4 : 8; }

static MPI_Datatype datatype(int element) {
    switch (element) {
    case I32: return MPI_INT32_T;
    case I64: return MPI_INT64_T;
    case F32: return MPI_FLOAT;
    default: return MPI_DOUBLE;
    }
}

static void put(int element, void *at, size_t index, uint32_t value) {
    switch (element) {
    case I32: ((int32_t *)at)[index] = (int32_t)value; break;
    case I64: ((int64_t *)at)[index] = (int64_t)value; break;
    case F32: ((float *)at)[index] = (float)value; break;
    default: ((double *)at)[index] = (double)value; break;
    }
}

static double get(int element, const void *at, size_t index) {
    switch (element) {
    case I32: return (double)((const int32_t *)at)[index];
    case I64: return (double)((const int64_t *)at)[index];
    case F32: return (double)((const float *)at)[index];
    default: return ((const double *)at)[index];
    }
}

/* Elements of one value: the first KiB by a loop, and copies of it by the C library, as ours does (rank/value.rs). A loop
 * alone takes twice as long where it happens to cross a line of code, in one compiler's program and not in another's. */
enum { FILLED = 1024 };

static void fill_constant(int element, void *at, size_t length, uint32_t value) {
    size_t bytes = element_bytes(element), i, first = length < FILLED / bytes ? length : FILLED / bytes;
    switch (element) {
    case I32: for (i = 0; i < first; i++) ((int32_t *)at)[i] = (int32_t)value; break;
    case I64: for (i = 0; i < first; i++) ((int64_t *)at)[i] = (int64_t)value; break;
    case F32: for (i = 0; i < first; i++) ((float *)at)[i] = (float)value; break;
    default: for (i = 0; i < first; i++) ((double *)at)[i] = (double)value; break;
    }
    for (i = first; i < length; i += first)
        memcpy((char *)at + i * bytes, at, (length - i < first ? length - i : first) * bytes);
}

static uint32_t contribution(int of, size_t index, int turn) {
    return (uint32_t)(((size_t)of * 31 + index * 7 + (size_t)turn * 11) % PERIOD);
}

static void *send_slot(uint64_t call, size_t bytes) {
    return send_start + ((call * 0x9E3779B1u) & (slots - 1)) * stride * bytes;
}

static void *receive_slot(uint64_t call, size_t bytes) {
    return receive_start + ((call * 0x9E3779B1u) & (slots - 1)) * stride * bytes;
}

static char *on_a_line(char *at) { return (char *)(((uintptr_t)at + LINE - 1) & ~(uintptr_t)(LINE - 1)); }

static void make_buffers(const struct measurement *m) {
    size_t bytes = element_bytes(m->element), stride_bytes, wanted;
    length = (size_t)m->bytes / bytes;
    sent = received = length;
    if (m->operation == SCATTER || m->operation == ALLTOALL || m->operation == REDUCE_SCATTER) sent *= (size_t)ranks;
    if (m->operation == GATHER || m->operation == ALLGATHER || m->operation == ALLTOALL) received *= (size_t)ranks;
    stride_bytes = ((sent > received ? sent : received) * bytes + LINE - 1) / LINE * LINE;
    if (stride_bytes < LINE) stride_bytes = LINE;
    slots = 1;
    if (m->buffers == COLD) {
        wanted = (size_t)cold_bytes / stride_bytes;
        if (wanted < 2) wanted = 2;
        if (wanted > (1u << 20)) wanted = 1u << 20;
        while (slots * 2 <= wanted) slots *= 2;
    }
    stride = stride_bytes / bytes;
    send_memory = malloc(slots * stride_bytes + LINE);
    receive_memory = malloc(slots * stride_bytes + LINE);
    if (!send_memory || !receive_memory) give_up("no memory for", "the buffers");
    memset(send_memory, 1, slots * stride_bytes + LINE);
    memset(receive_memory, 1, slots * stride_bytes + LINE);
    send_start = on_a_line(send_memory);
    receive_start = on_a_line(receive_memory);
}

static void fill_patterns(const struct measurement *m, int turn) {
    size_t bytes = element_bytes(m->element), i;
    int sends_from_receive = m->operation == BROADCAST && rank == m->root;
    for (uint64_t call = 0; call < slots; call++) {
        void *send = send_slot(call, bytes), *receive = receive_slot(call, bytes);
        for (i = 0; i < sent; i++) put(m->element, send, i, contribution(rank, i, turn));
        if (sends_from_receive)
            for (i = 0; i < length; i++) put(m->element, receive, i, contribution(rank, i, turn));
        else
            fill_constant(m->element, receive, received, 99999);
    }
}

/* The sum again, as a program's own operator. */
static void plus(void *from, void *to, int *count, MPI_Datatype *type) {
    int i;
    if (*type == MPI_INT32_T)
        for (i = 0; i < *count; i++) ((int32_t *)to)[i] += ((int32_t *)from)[i];
    else if (*type == MPI_INT64_T)
        for (i = 0; i < *count; i++) ((int64_t *)to)[i] += ((int64_t *)from)[i];
    else if (*type == MPI_FLOAT)
        for (i = 0; i < *count; i++) ((float *)to)[i] += ((float *)from)[i];
    else
        for (i = 0; i < *count; i++) ((double *)to)[i] += ((double *)from)[i];
}

static MPI_Op operator_handle(void) {
    static MPI_Op own = MPI_OP_NULL;
    switch (operator) {
    case SUM: return MPI_SUM;
    case MAX: return MPI_MAX;
    case MIN: return MPI_MIN;
    default:
        if (own == MPI_OP_NULL) MPI_Op_create(plus, 1, &own);
        return own;
    }
}

static double combined(double one, double other) {
    switch (operator) {
    case MAX: return one > other ? one : other;
    case MIN: return one < other ? one : other;
    default: return one + other;
    }
}

/* Makes a call whose buffers are chosen. */
static void make(const struct measurement *m, void *send, void *receive) {
    switch (m->operation) {
    case EMPTY: break;
    case BARRIER: MPI_Barrier(MPI_COMM_WORLD); break;
    case BROADCAST: MPI_Bcast(receive, (int)length, datatype(m->element), m->root, MPI_COMM_WORLD); break;
    case REDUCE:
        MPI_Reduce(send, receive, (int)length, datatype(m->element), operator_handle(), m->root, MPI_COMM_WORLD);
        break;
    case GATHER:
        MPI_Gather(send, (int)length, datatype(m->element), receive, (int)length, datatype(m->element), m->root,
                   MPI_COMM_WORLD);
        break;
    case SCATTER:
        MPI_Scatter(send, (int)length, datatype(m->element), receive, (int)length, datatype(m->element), m->root,
                    MPI_COMM_WORLD);
        break;
    case ALLGATHER:
        MPI_Allgather(send, (int)length, datatype(m->element), receive, (int)length, datatype(m->element),
                      MPI_COMM_WORLD);
        break;
    case ALLTOALL:
        MPI_Alltoall(send, (int)length, datatype(m->element), receive, (int)length, datatype(m->element),
                     MPI_COMM_WORLD);
        break;
    case REDUCE_SCATTER:
        MPI_Reduce_scatter_block(send, receive, (int)length, datatype(m->element), operator_handle(), MPI_COMM_WORLD);
        break;
    case SCAN:
        MPI_Scan(send, receive, (int)length, datatype(m->element), operator_handle(), MPI_COMM_WORLD);
        break;
    default:
        MPI_Allreduce(send, receive, (int)length, datatype(m->element), operator_handle(), MPI_COMM_WORLD);
        break;
    }
}

static void one_call(const struct measurement *m) {
    size_t bytes = element_bytes(m->element);
    void *send = send_slot(calls, bytes), *receive = receive_slot(calls, bytes);
    calls++;
    make(m, send, receive);
}

static int has_result(const struct measurement *m) {
    return has_bytes(m) && ((m->operation != REDUCE && m->operation != GATHER) || rank == m->root);
}

/* Loads all of a result, as a program does that goes on with it. */
static void read_all(const struct measurement *m, const void *result) {
    static volatile uint64_t sink;
    uint64_t bits[8] = {0};
    size_t i = 0, part;
    if (element_bytes(m->element) == 8) {
        const uint64_t *all = result;
        for (; i + 8 <= received; i += 8)
            for (part = 0; part < 8; part++) bits[part] ^= all[i + part];
        for (; i < received; i++) bits[0] ^= all[i];
    } else {
        const uint32_t *all = result;
        for (; i + 8 <= received; i += 8)
            for (part = 0; part < 8; part++) bits[part] ^= all[i + part];
        for (; i < received; i++) bits[0] ^= all[i];
    }
    for (part = 0; part < 8; part++) sink = bits[part];
}

/* What rank `of` has sent at `index`: by the pattern of `turn`, or a constant (turn -1). */
static double sent_by(int of, size_t index, int turn, uint32_t constant) {
    return turn < 0 ? constant : contribution(of, index, turn);
}

/* What ranks 0 to `last` have sent at `index`, combined. */
static double combined_upto(int last, size_t index, int turn, uint32_t constant) {
    double value = sent_by(0, index, turn, constant);
    for (int of = 1; of <= last; of++) value = combined(value, sent_by(of, index, turn, constant));
    return value;
}

/* Compares what call `call` left here: with the pattern of `turn`, or with a constant (turn -1). */
static void compare(const struct measurement *m, uint64_t call, int turn, uint32_t constant, const char *when) {
    size_t bytes = element_bytes(m->element), blocks = length > 0 ? received / length : 1;
    const void *result = receive_slot(call, bytes);
    double expected[PERIOD];
    if (!has_result(m)) return;
    for (size_t block = 0; block < blocks; block++) {
        for (size_t i = 0; i < PERIOD; i++) {
            size_t mine = (size_t)rank * length + i;
            switch (m->operation) {
            case BROADCAST: expected[i] = sent_by(m->root, i, turn, constant); break;
            case GATHER:
            case ALLGATHER: expected[i] = sent_by((int)block, i, turn, constant); break;
            case SCATTER: expected[i] = sent_by(m->root, mine, turn, constant); break;
            case ALLTOALL: expected[i] = sent_by((int)block, mine, turn, constant); break;
            case REDUCE_SCATTER: expected[i] = combined_upto(ranks - 1, mine, turn, constant); break;
            case SCAN: expected[i] = combined_upto(rank, i, turn, constant); break;
            default: expected[i] = combined_upto(ranks - 1, i, turn, constant); break;
            }
        }
        for (size_t i = 0; i < length; i++)
            if (get(m->element, result, block * length + i) != expected[i % PERIOD])
                wrong(m, when, block * length + i, get(m->element, result, block * length + i), expected[i % PERIOD]);
    }
}

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
