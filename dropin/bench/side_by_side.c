/* The drop-in library beside the MPI beneath it, in one process: MPI_x against PMPI_x, block by block in turns.
 *
 * usage: side_by_side [SECONDS [LONGEST [COLLECTIVE]]]     for each size of each collective (0.4; 4194304; all)
 *
 * `all` are barrier, bcast, reduce and allreduce, `family` the others, whose sizes are those of a rank's block
 *
 * For every collective and size: a block of calls by one name, a block by the other, and so on. Input is written anew before
 * each call, the library's barrier stands before each call, and a call's time is that of its slowest rank. Answers are checked
 * after each block. Rank 0 writes values parted by commas:
 *
 *     collective,ranks,bytes,timing,ours_us,theirs_us,ratio,least,most,blocks
 *
 * where times are medians over all calls, ratio (theirs over ours: above 1 the library gains) is the median over pairs of neighbouring
 * blocks, and least and most are its quartiles over pairs. Timing `each` has the library's barrier before each call, `stream` has calls
 * that follow one another (barriers, and 8-byte allreduces), their time that of the block over its calls. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timing.h"

enum collective { BARRIER, BCAST, REDUCE, ALLREDUCE, ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, GATHER, GATHERV, SCATTER, SCATTERV, SCAN, EXSCAN, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, COLLECTIVES };
enum { MOST_BLOCKS = 400, MOST_CALLS = 2000 };
static const char *const names[] = {"barrier", "bcast", "reduce", "allreduce", "allgather", "allgatherv", "alltoall", "alltoallv",
                                    "gather", "gatherv", "scatter", "scatterv", "scan", "exscan", "reduce_scatter", "reduce_scatter_block"};

static int rank, ranks;
static double *in, *out;
static int *counts, *displs;
static double samples[2][MOST_BLOCKS * 64], blocks[2][MOST_BLOCKS];

static void fail(const char *what, const char *name, size_t bytes) {
    fprintf(stderr, "side_by_side: rank %d: %s of %zu bytes: %s\n", rank, name, bytes, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* Microseconds. */
static double now(void) { return 1e-3 * nanoseconds(); }

static void call(enum collective which, int ours, int count) {
    switch (which) {
    case BARRIER: ours ? MPI_Barrier(MPI_COMM_WORLD) : PMPI_Barrier(MPI_COMM_WORLD); break;
    case BCAST:
        ours ? MPI_Bcast(out, count, MPI_DOUBLE, 0, MPI_COMM_WORLD) : PMPI_Bcast(out, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        break;
    case REDUCE:
        ours ? MPI_Reduce(in, out, count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD)
             : PMPI_Reduce(in, out, count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        break;
#define BOTH(name, ...) ours ? MPI_##name(__VA_ARGS__, MPI_COMM_WORLD) : PMPI_##name(__VA_ARGS__, MPI_COMM_WORLD)
    case ALLREDUCE: BOTH(Allreduce, in, out, count, MPI_DOUBLE, MPI_SUM); break;
    case ALLGATHER: BOTH(Allgather, in, count, MPI_DOUBLE, out, count, MPI_DOUBLE); break;
    case ALLGATHERV: BOTH(Allgatherv, in, count, MPI_DOUBLE, out, counts, displs, MPI_DOUBLE); break;
    case ALLTOALL: BOTH(Alltoall, in, count, MPI_DOUBLE, out, count, MPI_DOUBLE); break;
    case ALLTOALLV: BOTH(Alltoallv, in, counts, displs, MPI_DOUBLE, out, counts, displs, MPI_DOUBLE); break;
    case GATHER: BOTH(Gather, in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, 0); break;
    case GATHERV: BOTH(Gatherv, in, count, MPI_DOUBLE, out, counts, displs, MPI_DOUBLE, 0); break;
    case SCATTER: BOTH(Scatter, in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, 0); break;
    case SCATTERV: BOTH(Scatterv, in, counts, displs, MPI_DOUBLE, out, count, MPI_DOUBLE, 0); break;
    case SCAN: BOTH(Scan, in, out, count, MPI_DOUBLE, MPI_SUM); break;
    case EXSCAN: BOTH(Exscan, in, out, count, MPI_DOUBLE, MPI_SUM); break;
    case REDUCE_SCATTER: BOTH(Reduce_scatter, in, out, counts, MPI_DOUBLE, MPI_SUM); break;
    default: BOTH(Reduce_scatter_block, in, out, count, MPI_DOUBLE, MPI_SUM);
    }
}

/* What the program computes before it calls. */
static void write_anew(enum collective which, int count, double value) {
    double *at = which == BCAST ? out : in;
    if (which >= ALLTOALL && which <= SCATTERV && which != GATHER && which != GATHERV) count *= ranks;
    if (which >= REDUCE_SCATTER) count *= ranks;
    if (which != BCAST || rank == 0)
        for (int i = 0; i < count; i++) at[i] = value + rank + i % 7;
}

static void check(enum collective which, int count, double value, size_t bytes) {
    if (which == BARRIER || (which == REDUCE && rank != 0)) return;
    int step = count > 1000 ? count / 500 : 1;
    int is_gathered = which == ALLGATHER || which == ALLGATHERV || which == ALLTOALL || which == ALLTOALLV || which == GATHER || which == GATHERV;
    if (rank != 0 && (which == GATHER || which == GATHERV)) return;
    for (int i = 0; i < count; i += step) {
        double one = value + i % 7, should = which == BCAST ? one : ranks * one + ranks * (ranks - 1) / 2.0;
        if (which == SCAN) should = (rank + 1) * one + rank * (rank + 1) / 2.0;
        if (which == EXSCAN) should = rank == 0 ? out[i] : rank * one + rank * (rank - 1) / 2.0;
        if (which >= REDUCE_SCATTER) should = ranks * (value + (rank * count + i) % 7) + ranks * (ranks - 1) / 2.0;
        if (which == SCATTER || which == SCATTERV) should = value + (rank * count + i) % 7;
        int from = which == ALLTOALL || which == ALLTOALLV ? rank * count + i : i;
        for (int r = 0; is_gathered && r < ranks; r++)
            if (out[r * count + i] != value + r + from % 7) fail("wrong answer", names[which], bytes);
        if (!is_gathered && out[i] != should) fail("wrong answer", names[which], bytes);
    }
}

/* The times of `calls` calls, each that of the slowest rank, in microseconds. */
static void each(enum collective which, int ours, int count, int calls, double *into, size_t bytes) {
    static double own[MOST_CALLS];
    double value = 0;
    for (int c = 0; c < calls; c++) {
        value = c % 16;
        write_anew(which, count, value);
        PMPI_Barrier(MPI_COMM_WORLD);
        double begin = now();
        call(which, ours, count);
        own[c] = now() - begin;
    }
    check(which, count, value, bytes);
    PMPI_Allreduce(own, into, calls, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

static double stream(enum collective which, int ours, int calls) {
    PMPI_Barrier(MPI_COMM_WORLD);
    double begin = now(), own, slowest;
    for (int c = 0; c < calls; c++) call(which, ours, 1);
    own = (now() - begin) / calls;
    PMPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

static void row(enum collective which, size_t bytes, const char *timing, int pairs, int per_block) {
    static double ratios[MOST_BLOCKS];
    if (rank != 0) return;
    for (int b = 0; b < pairs; b++) ratios[b] = blocks[0][b] / blocks[1][b];
    double middle = at_part(ratios, pairs, 0.5), least = at_part(ratios, pairs, 0.25), most = at_part(ratios, pairs, 0.75);
    printf("%s,%d,%zu,%s,%.3f,%.3f,%.3f,%.3f,%.3f,%d\n", names[which], ranks, bytes, timing, at_part(samples[1], pairs * per_block, 0.5),
           at_part(samples[0], pairs * per_block, 0.5), middle, least, most, pairs);
    fflush(stdout);
}

static void measure(enum collective which, size_t bytes, double seconds) {
    int count = (int)(bytes / sizeof(double)), calls = 64, pairs = 0;
    for (int r = 0; r < ranks; r++) counts[r] = count, displs[r] = r * count;
    static double times[MOST_CALLS], sorted[MOST_CALLS];
    for (int ours = 0; ours < 2; ours++) each(which, ours, count, calls / 4, times, bytes);
    /* Blocks of a millisecond or so: the machine changes between neighbours as little as can be. */
    double typical = at_part(times, calls / 4, 0.5), begin = now();
    PMPI_Bcast(&typical, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    while (calls > 8 && calls * typical > 3000) calls /= 2;
    int go = 1;
    while (go) {
        for (int turn = 0; turn < 2; turn++) {
            int ours = (turn + pairs) % 2;
            each(which, ours, count, calls, times, bytes);
            memcpy(samples[ours] + pairs * calls, times, (size_t)calls * sizeof *times);
            memcpy(sorted, times, (size_t)calls * sizeof *times);
            blocks[ours][pairs] = at_part(sorted, calls, 0.5);
        }
        pairs++;
        go = pairs < MOST_BLOCKS && (pairs < 5 || now() - begin < 1e6 * seconds);
        PMPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    row(which, bytes, "each", pairs, calls);
}

static void measure_stream(enum collective which, double seconds) {
    double begin = now();
    int pairs = 0, go = 1;
    while (go) {
        for (int turn = 0; turn < 2; turn++) {
            int ours = (turn + pairs) % 2;
            samples[ours][pairs] = blocks[ours][pairs] = stream(which, ours, 2000);
        }
        pairs++;
        go = pairs < MOST_BLOCKS && (pairs < 5 || now() - begin < 1e6 * seconds);
        PMPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    row(which, which == BARRIER ? 0 : 8, "stream", pairs, 1);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double seconds = argc > 1 ? atof(argv[1]) : 0.4;
    size_t longest = argc > 2 ? strtoull(argv[2], NULL, 10) : 4 << 20;
    const char *only = argc > 3 ? argv[3] : "all";
    size_t room = longest * (size_t)ranks;
    in = aligned_alloc(4096, room + 4096), out = aligned_alloc(4096, room + 4096);
    counts = calloc((size_t)ranks, sizeof *counts), displs = calloc((size_t)ranks, sizeof *displs);
    if (!in || !out || !counts || !displs) fail("no memory", "buffers", room);
    memset(in, 0, room), memset(out, 0, room);
    /* A communicator may be taken over after some calls. */
    for (int c = 0; c < 200; c++) MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("collective,ranks,bytes,timing,ours_us,theirs_us,ratio,least,most,blocks\n");
    for (enum collective which = 0; which < COLLECTIVES; which++) {
        int is_family = strcmp(only, "family") == 0 && which > ALLREDUCE;
        if (strcmp(only, "all") != 0 && strcmp(only, names[which]) != 0 && !is_family) continue;
        if (which == BARRIER || which == ALLREDUCE) measure_stream(which, seconds);
        if (which == BARRIER) measure(which, 0, seconds);
        if (which >= ALLGATHER && strcmp(only, "all") == 0) continue;
        for (size_t bytes = 8; which != BARRIER && bytes <= longest; bytes *= bytes < 64 ? 8 : 4) measure(which, bytes, seconds);
    }
    free(in), free(out), free(counts), free(displs);
    MPI_Finalize();
    return 0;
}
