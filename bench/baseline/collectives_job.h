/* What the files of the program `collectives` share: the job, its end by an error, and the time. They are headers, for
 * all that is timed to be one unit to the compiler, as ours is. */
#ifndef COLLECTIVES_JOB_H
#define COLLECTIVES_JOB_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int rank, ranks;
static FILE *sheet; /* what this rank has found */
static long current; /* the case, by its number */

static void give_up(const char *what, const char *detail) {
    fprintf(stderr, "baseline rank %d: %s %s\n", rank, what, detail);
    MPI_Abort(MPI_COMM_WORLD, 3);
    exit(3);
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1000000000 * (uint64_t)t.tv_sec + (uint64_t)t.tv_nsec;
}

#endif
