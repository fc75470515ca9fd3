/* Whole steps of application patterns, timed through an MPI.
 *
 * usage: steps PATTERN ARGUMENT MILLISECONDS FOLDER RANKS SECONDS
 *
 * Makes steps that are not timed, then blocks of them that fill the milliseconds. FOLDER/result.txt says how many steps
 * these were and what one took, as the median over the blocks: microseconds on the slowest rank, and microseconds of
 * processor time of all ranks together. Of no milliseconds it makes ARGUMENT steps and times nothing. A rank that gets
 * a wrong answer writes FOLDER/wrong-RANK.txt and ends the job. After so many SECONDS each rank ends itself.
 *
 * What the program itself asks of other ranks it asks by PMPI_ names, which a library in front of the MPI does not see.
 * The patterns are in steps_data.c and steps_waiting.c.
 */
#define _GNU_SOURCE
#include "steps.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define WARMING_PART 0.25
#define BLOCKS 8 /* that fill the time, if a block is as long as the steps before it promise */
#define MOST_BLOCKS 64
#define LEAST_STEPS 3 /* of a block */
#define RUNS 3
#define TOLERANCE 1e-9
/* Operations of a microsecond of work: each waits for the one before, 8 cycles, which at 2.8 GHz is a microsecond. */
#define OPERATIONS 350

int rank, ranks;
long argument;
const char *folder;

void give_up(const char *what, const char *detail) {
    fprintf(stderr, "steps rank %d: %s %s\n", rank, what, detail);
    MPI_Abort(MPI_COMM_WORLD, 3);
    exit(3);
}

static FILE *create(const char *name) {
    char path[4096];
    FILE *file;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "w");
    if (!file) give_up(path, strerror(errno));
    return file;
}

void check(long number, const char *what, double is, double should) {
    char name[32];
    FILE *file;
    if (fabs(is - should) <= TOLERANCE * fabs(should)) return;
    snprintf(name, sizeof name, "wrong-%d.txt", rank);
    file = create(name);
    fprintf(file, "rank %d of %d, step %ld: %s is %.17g and should be %.17g\n", rank, ranks, number, what, is, should);
    fclose(file);
    give_up("wrong answer:", what);
}

void work(double microseconds) {
    static volatile double begun = 0.5; /* the compiler must not know the outcome */
    double value = begun;
    for (long left = (long)(microseconds * OPERATIONS); left > 0; left--) value = value * 0.999999 + 1e-6;
    begun = value < 2 ? 0.5 : 1;
}

uint32_t chance(long number, int one, int other) {
    uint32_t bits = (uint32_t)(number % PERIOD) * 0x9E3779B1u;
    bits += (uint32_t)one * 0x85EBCA77u + (uint32_t)other * 0xC2B2AE3Du;
    bits = (bits ^ bits >> 15) * 0x2C1B3C6Du;
    bits = (bits ^ bits >> 12) * 0x297A2D39u;
    return bits ^ bits >> 15;
}

void *memory(size_t bytes) {
    void *at = malloc(bytes);
    if (!at) give_up("no memory for", "the buffers");
    return memset(at, 0, bytes);
}

double value(int of, long number) { return of + number % PERIOD; }

void fill(double *at, size_t length, double value) {
    size_t i = 0;
    for (; i + 8 <= length; i += 8)
        for (size_t part = 0; part < 8; part++) at[i + part] = value + (double)part;
    for (; i < length; i++) at[i] = value + (double)(i % 8);
}

double total(const double *at, size_t length) {
    double sums[8] = {0}, all = 0;
    size_t i = 0;
    for (; i + 8 <= length; i += 8)
        for (size_t part = 0; part < 8; part++) sums[part] += at[i + part];
    for (; i < length; i++) sums[0] += at[i];
    for (size_t part = 0; part < 8; part++) all += sums[part];
    return all;
}

double total_of(size_t length, double value) {
    size_t rest = length % 8;
    return (double)length * value + 28.0 * (double)(length / 8) + (double)(rest * (rest - (rest > 0)) / 2);
}

double total_of_all(size_t length, long number) {
    double of_all = ranks * (double)(number % PERIOD) + ranks * (ranks - 1) / 2.0;
    return (double)length * of_all + ranks * total_of(length, 0);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static double processor_time(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return 1e6 * (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static long made; /* steps so far */

/* Makes so many steps, and returns the microseconds of one. */
static double make_steps(const struct pattern *pattern, long count) {
    double begin = now();
    for (long i = 0; i < count; i++) pattern->step(made++);
    return (now() - begin) / (double)count;
}

/* The microseconds of one of so many steps: the least of several runs, if they take `enough`, since whatever meets a
 * single one would stand for all steps. */
static double least_of_runs(const struct pattern *pattern, long count, double enough) {
    double least = 0;
    int more = 1;
    for (int run = 0; more && run < RUNS; run++) {
        double one = make_steps(pattern, count);
        if (run == 0 || one < least) least = one;
        more = least * (double)count > enough;
        PMPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    return least;
}

/* Makes steps, twice as many each time, until these take half a block, and a part of the time is over; returns how many
 * are a block. Rank 0 decides all of that. */
static long warm_up(const struct pattern *pattern, double time) {
    double begin = now(), one, enough = time / BLOCKS / 2;
    int over = 0;
    long block;
    for (long count = 1; !over; count *= 2) {
        one = least_of_runs(pattern, count, enough);
        over = one * (double)count > enough && now() - begin > WARMING_PART * time;
        PMPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    block = (long)(time / BLOCKS / one);
    if (block >= PERIOD) block -= block % PERIOD;
    if (block < LEAST_STEPS) block = LEAST_STEPS;
    PMPI_Bcast(&block, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    return block;
}

static int ascending(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, ascending);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static void time_steps(const struct pattern *pattern, double time, FILE *result) {
    static double took[MOST_BLOCKS], used[MOST_BLOCKS], slowest[MOST_BLOCKS], used_by_all[MOST_BLOCKS];
    long count = warm_up(pattern, time);
    double begin = now();
    int blocks = 0, over = 0;
    while (!over) {
        double before;
        PMPI_Barrier(MPI_COMM_WORLD);
        before = processor_time();
        took[blocks] = make_steps(pattern, count);
        used[blocks] = (processor_time() - before) / (double)count;
        over = ++blocks == MOST_BLOCKS || now() - begin > time;
        PMPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    PMPI_Reduce(took, slowest, blocks, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    PMPI_Reduce(used, used_by_all, blocks, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (result)
        fprintf(result, "steps %ld\nwall %.4f\nprocessor %.4f\n", count * blocks, median(slowest, blocks),
                median(used_by_all, blocks));
}

static const struct pattern *find(const struct pattern *patterns, const char *name) {
    for (; patterns->name; patterns++)
        if (strcmp(patterns->name, name) == 0) return patterns;
    return NULL;
}

int main(int argc, char **argv) {
    const struct pattern *pattern;
    FILE *result = NULL;
    Dl_info from;
    pid_t parent = getppid();
    int provided;
    double time;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc != 7 || getppid() != parent) return 2;
    alarm((unsigned)atoi(argv[6]));
    /* Patterns with threads call MPI from one of them alone. */
    if (strncmp(argv[1], "thread", 6) == 0)
        MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != atoi(argv[5])) give_up("this launcher is not of the compiler's MPI: ranks should be", argv[5]);
    pattern = find(data_patterns, argv[1]);
    if (!pattern) pattern = find(waiting_patterns, argv[1]);
    if (!pattern) give_up("there is no pattern", argv[1]);
    argument = atol(argv[2]);
    time = 1e3 * atof(argv[3]);
    folder = argv[4];
    if (rank == 0) {
        result = create("result.txt");
        if (dladdr((void *)(uintptr_t)MPI_Allreduce, &from)) fprintf(result, "calls %s\n", from.dli_fname);
    }
    if (pattern->prepare) pattern->prepare();
    if (time > 0)
        time_steps(pattern, time, result);
    else if (argument > 0)
        make_steps(pattern, argument);
    if (pattern->finish) pattern->finish();
    if (result && (fprintf(result, "end\n") < 0 || fclose(result) != 0)) give_up("cannot write", "the result");
    MPI_Finalize();
    return 0;
}
