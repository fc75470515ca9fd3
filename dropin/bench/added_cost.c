/* What a call through MPI's names costs more than by Rust's interface: MPI_x of the drop-in library against the same communicator's own calls, in one
 * process, block by block in turns. Barriers, and broadcasts, reductions and allreductions of one double, that follow one another.
 *
 * usage: added_cost CORE [SECONDS]     the core that is loaded (libphalanx_mpi_core_openmpi.so); for each collective (1)
 *
 * Rank 0 writes values parted by commas:
 *
 *     collective,ranks,bytes,mpi_ns,rust_ns,added_ns,least,most,blocks
 *
 * Times of a call are those of a block over its calls, of the slowest rank; medians over blocks. added_ns is the median over pairs of neighbouring blocks
 * of the difference, least and most its quartiles. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timing.h"

enum { MOST_PAIRS = 2000, CALLS = 2000 };
static const char *const names[] = {"barrier", "bcast", "reduce", "allreduce"};
static int (*direct)(void *, int, int, const double *, double *);
static int rank, ranks;
static double in, out, times[2][MOST_PAIRS], added[MOST_PAIRS];

static void fail(const char *what) {
    fprintf(stderr, "added_cost: rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void by_mpi(int what) {
    for (int c = 0; c < CALLS; c++) {
        switch (what) {
        case 0: MPI_Barrier(MPI_COMM_WORLD); break;
        case 1: MPI_Bcast(&out, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD); break;
        case 2: MPI_Reduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD); break;
        default: MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        }
    }
}

static double block(int what, int by_rust) {
    in = rank + 1, out = rank == 0 ? 7 : -1;
    PMPI_Barrier(MPI_COMM_WORLD);
    double begin = nanoseconds(), own, slowest;
    if (!by_rust) by_mpi(what);
    /* A handle is a word, whatever its type. */
    else if (direct((void *)(size_t)MPI_COMM_WORLD, what, CALLS, &in, &out) != 0) fail("the communicator is not taken over, or a call failed");
    own = (nanoseconds() - begin) / CALLS;
    double sum = ranks * (ranks + 1) / 2.0, should = what == 0 ? out : what == 1 ? 7 : what == 2 && rank != 0 ? out : sum;
    if (out != should) fail("wrong answer");
    PMPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 2) fail("usage: added_cost CORE [SECONDS]");
    double seconds = argc > 2 ? atof(argv[2]) : 1;
    for (int c = 0; c < 100; c++) MPI_Barrier(MPI_COMM_WORLD);
    void *core = dlopen(argv[1], RTLD_NOLOAD | RTLD_NOW);
    direct = core ? (int (*)(void *, int, int, const double *, double *))dlsym(core, "phalanx_mpi_direct") : NULL;
    if (!direct) fail("the core of that name is not loaded: start this with the library preloaded");
    if (rank == 0) printf("collective,ranks,bytes,mpi_ns,rust_ns,added_ns,least,most,blocks\n");
    for (int what = 0; what < 4; what++) {
        int pairs = 0, go = 1;
        for (double begin = nanoseconds(); go; pairs++) {
            for (int turn = 0; turn < 2; turn++) {
                int by_rust = (turn + pairs) % 2;
                times[by_rust][pairs] = block(what, by_rust);
            }
            added[pairs] = times[0][pairs] - times[1][pairs];
            go = pairs + 1 < MOST_PAIRS && (pairs < 5 || nanoseconds() - begin < 1e9 * seconds);
            PMPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
        if (rank != 0) continue;
        double mpi = at_part(times[0], pairs, 0.5), rust = at_part(times[1], pairs, 0.5);
        printf("%s,%d,%d,%.1f,%.1f,%.1f,%.1f,%.1f,%d\n", names[what], ranks, what ? 8 : 0, mpi, rust, at_part(added, pairs, 0.5),
               at_part(added, pairs, 0.25), at_part(added, pairs, 0.75), pairs);
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
