/* Patterns whose data count: each writes its input, makes its calls, loads the result and checks its sum. The argument
 * is the bytes of a rank's buffer, but for `cg`, where it is the points of a rank. */
#define _GNU_SOURCE
#include "steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFERS = 50 };

static double *mine, *result;
static size_t length, block; /* elements of a buffer, and of a rank's part of it */

/* The buffers of each rank; `block` divides them by ranks. */
static void prepare_buffers(void) {
    length = (size_t)argument / sizeof *mine;
    block = length / (size_t)ranks > 0 ? length / (size_t)ranks : 1;
    /* Irregular parts take up to twice as much. */
    mine = memory((2 * length + 16 * (size_t)ranks) * sizeof *mine);
    result = memory((2 * length + 16 * (size_t)ranks) * sizeof *result);
}

static void free_buffers(void) {
    free(mine);
    free(result);
}

/* Conjugate gradients on a line of points: A is the Laplacian, b has a source between every two ranks. A step's support
 * grows by a point to each side of a source, and the residual's square is 1/2 for each of them, until a period is over
 * and all begins anew. */

static double *x, *residual, *direction, *product, square;
static size_t points;

static void prepare_cg(void) {
    points = (size_t)argument;
    if (points < 3 * PERIOD) give_up("cg takes more points:", "96 a rank are the least");
    x = memory((points + 2) * sizeof *x);
    residual = memory((points + 2) * sizeof *residual);
    direction = memory((points + 2) * sizeof *direction);
    product = memory((points + 2) * sizeof *product);
}

static void begin_cg(void) {
    memset(x, 0, (points + 2) * sizeof *x);
    memset(residual, 0, (points + 2) * sizeof *residual);
    if (rank + 1 < ranks) residual[points] = 1;
    memcpy(direction, residual, (points + 2) * sizeof *direction);
    square = ranks - 1;
}

static void exchange_halo(void) {
    int before = rank > 0 ? rank - 1 : MPI_PROC_NULL, behind = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    MPI_Request requests[4];
    MPI_Irecv(&direction[0], 1, MPI_DOUBLE, before, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&direction[points + 1], 1, MPI_DOUBLE, behind, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(&direction[1], 1, MPI_DOUBLE, before, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(&direction[points], 1, MPI_DOUBLE, behind, 0, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

static double sum_over_ranks(double part) {
    double sum;
    MPI_Allreduce(&part, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static void cg(long number) {
    double alpha, beta, part = 0, before;
    if (number % PERIOD == 0) begin_cg();
    before = square;
    exchange_halo();
    for (size_t i = 1; i <= points; i++) {
        product[i] = 2 * direction[i] - direction[i - 1] - direction[i + 1];
        part += direction[i] * product[i];
    }
    alpha = square / sum_over_ranks(part);
    part = 0;
    for (size_t i = 1; i <= points; i++) {
        x[i] += alpha * direction[i];
        residual[i] -= alpha * product[i];
        part += residual[i] * residual[i];
    }
    square = sum_over_ranks(part);
    beta = square / before;
    for (size_t i = 1; i <= points; i++) direction[i] = residual[i] + beta * direction[i];
    check(number, "the residual's square", square, (ranks - 1) / 2.0);
}

static void finish_cg(void) {
    free(x);
    free(residual);
    free(direction);
    free(product);
}

/* Gradients, summed over the ranks. */

static void sum_gradients(long number, double *from, double *to) {
    fill(from, length, value(rank, number));
    MPI_Allreduce(from == to ? MPI_IN_PLACE : from, to, (int)length, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    check(number, "the sum of an allreduce's result", total(to, length), total_of_all(length, number));
}

static void gradients(long number) { sum_gradients(number, mine, result); }

static void gradients_in_place(long number) { sum_gradients(number, mine, mine); }

static void gradients_malloc(long number) {
    double *from = malloc(length * sizeof *from), *to = malloc(length * sizeof *to);
    if (!from || !to) give_up("no memory for", "the buffers of a step");
    sum_gradients(number, from, to);
    free(from);
    free(to);
}

static double *many[BUFFERS];

static void prepare_many(void) {
    length = (size_t)argument / sizeof *mine;
    for (int i = 0; i < BUFFERS; i++) many[i] = memory(length * sizeof *mine);
}

static void gradients_many(long number) { sum_gradients(number, many[number % BUFFERS], many[number % BUFFERS]); }

static void free_many(void) {
    for (int i = 0; i < BUFFERS; i++) free(many[i]);
}

/* Other calls on the whole world. */

static void bcast_lengths(long number) {
    int count = rank == 0 ? 1 + (int)(chance(number, 0, 0) % length) : 0;
    MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    check(number, "a length", count, 1 + chance(number, 0, 0) % length);
    if (rank == 0) fill(mine, (size_t)count, value(0, number));
    MPI_Bcast(mine, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    check(number, "the sum of a broadcast", total(mine, (size_t)count), total_of((size_t)count, value(0, number)));
}

static void reduce(long number) {
    fill(mine, length, value(rank, number));
    MPI_Reduce(mine, result, (int)length, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) check(number, "the sum of a reduction", total(result, length), total_of_all(length, number));
}

static void gather_scatter(long number) {
    double all = 0;
    fill(mine, block, value(rank, number));
    MPI_Gather(mine, (int)block, MPI_DOUBLE, result, (int)block, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int of = 0; of < ranks; of++) all += total_of(block, value(of, number));
    if (rank == 0) check(number, "the sum of a gather", total(result, block * (size_t)ranks), all);
    MPI_Scatter(result, (int)block, MPI_DOUBLE, mine, (int)block, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    check(number, "the sum of a scatter", total(mine, block), total_of(block, value(rank, number)));
}

static void all_to_all(long number) {
    for (int to = 0; to < ranks; to++) fill(mine + (size_t)to * block, block, value(rank + to, number));
    MPI_Alltoall(mine, (int)block, MPI_DOUBLE, result, (int)block, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; from++)
        check(number, "the sum of an alltoall's block", total(result + (size_t)from * block, block),
              total_of(block, value(rank + from, number)));
}

static void reduce_scatter(long number) {
    double all = 0;
    for (int to = 0; to < ranks; to++) fill(mine + (size_t)to * block, block, value(rank + to, number));
    MPI_Reduce_scatter_block(mine, result, (int)block, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    check(number, "the sum of a reduce_scatter's block", total(result, block),
          total_of_all(block, number) + (double)block * ranks * rank);
    MPI_Allgather(result, (int)block, MPI_DOUBLE, mine, (int)block, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int of = 0; of < ranks; of++) all += total_of_all(block, number) + (double)block * ranks * of;
    check(number, "the sum of an allgather", total(mine, block * (size_t)ranks), all);
}

/* The row with the largest pivot goes to all. */
static void pivot(long number) {
    struct {
        double value;
        int rank;
    } own = {(double)((rank + number % PERIOD) % ranks), rank}, largest;
    MPI_Allreduce(&own, &largest, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    check(number, "the pivot", largest.value, ranks - 1);
    check(number, "the pivot's rank", (largest.rank + number % PERIOD) % ranks, ranks - 1);
    if (rank == largest.rank) fill(mine, length, value(rank, number));
    MPI_Bcast(mine, (int)length, MPI_DOUBLE, largest.rank, MPI_COMM_WORLD);
    check(number, "the sum of the pivot's row", total(mine, length), total_of(length, value(largest.rank, number)));
}

/* Irregular parts. */

static int *counts, *places, *counts_there, *places_there;

static void prepare_irregular(void) {
    prepare_buffers();
    counts = memory((size_t)ranks * sizeof *counts);
    places = memory((size_t)ranks * sizeof *places);
    counts_there = memory((size_t)ranks * sizeof *counts_there);
    places_there = memory((size_t)ranks * sizeof *places_there);
}

static void free_irregular(void) {
    free_buffers();
    free(counts);
    free(places);
    free(counts_there);
    free(places_there);
}

/* From none to twice a block; one in three has an eighth of that. */
static int irregular(long number, int from, int to) {
    int count = (int)(chance(number, from, to) % (2 * block + 1));
    return (number + from + to) % 3 == 0 ? count / 8 : count;
}

static int place_all(const int *of, int *at) {
    int all = 0;
    for (int i = 0; i < ranks; i++) {
        at[i] = all;
        all += of[i];
    }
    return all;
}

/* The exchange of a sample-sort. */
static void sort(long number) {
    for (int to = 0; to < ranks; to++) counts[to] = irregular(number, rank, to);
    place_all(counts, places);
    for (int to = 0; to < ranks; to++) fill(mine + places[to], (size_t)counts[to], value(rank + to, number));
    MPI_Alltoall(counts, 1, MPI_INT, counts_there, 1, MPI_INT, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; from++)
        check(number, "a count", counts_there[from], irregular(number, from, rank));
    place_all(counts_there, places_there);
    MPI_Alltoallv(mine, counts, places, MPI_DOUBLE, result, counts_there, places_there, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; from++)
        check(number, "the sum of an alltoallv's part", total(result + places_there[from], (size_t)counts_there[from]),
              total_of((size_t)counts_there[from], value(rank + from, number)));
}

static void gather_counts(long number) {
    int count = irregular(number, rank, 0);
    MPI_Allgather(&count, 1, MPI_INT, counts, 1, MPI_INT, MPI_COMM_WORLD);
    for (int of = 0; of < ranks; of++) check(number, "a count", counts[of], irregular(number, of, 0));
    place_all(counts, places);
    fill(mine, (size_t)count, value(rank, number));
    MPI_Allgatherv(mine, count, MPI_DOUBLE, result, counts, places, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int of = 0; of < ranks; of++)
        check(number, "the sum of an allgatherv's part", total(result + places[of], (size_t)counts[of]),
              total_of((size_t)counts[of], value(of, number)));
}

/* What goes on while others are called. */

static void isend(long number) {
    int from = (rank + ranks - 1) % ranks, to = (rank + 1) % ranks;
    MPI_Request requests[2];
    MPI_Irecv(result, (int)length, MPI_DOUBLE, from, 0, MPI_COMM_WORLD, &requests[0]);
    fill(mine, length, value(rank, number));
    MPI_Isend(mine, (int)length, MPI_DOUBLE, to, 0, MPI_COMM_WORLD, &requests[1]);
    check(number, "an allreduce", sum_over_ranks(value(rank, number)), total_of_all(1, number));
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    check(number, "the sum of a message", total(result, length), total_of(length, value(from, number)));
}

static void iallreduce_long(long number) {
    MPI_Request request;
    fill(mine, length, value(rank, number));
    MPI_Iallreduce(mine, result, (int)length, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    for (int call = 0; call < 4; call++) {
        work(20);
        check(number, "an allreduce", sum_over_ranks(value(rank, number)), total_of_all(1, number));
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(number, "the sum of an iallreduce's result", total(result, length), total_of_all(length, number));
}

static MPI_File file;

static void prepare_write(void) {
    char path[4096];
    prepare_buffers();
    snprintf(path, sizeof path, "%s/written", folder);
    if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        give_up("cannot open", path);
}

static void write_all(long number) {
    MPI_Offset at = (MPI_Offset)rank * (MPI_Offset)(length * sizeof *mine);
    double last;
    fill(mine, length, value(rank, number));
    if (MPI_File_write_at_all(file, at, mine, (int)length, MPI_DOUBLE, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        give_up("cannot write", "the file of the pattern");
    check(number, "an allreduce", sum_over_ranks(value(rank, number)), total_of_all(1, number));
    MPI_File_read_at(file, at + (MPI_Offset)((length - 1) * sizeof last), &last, 1, MPI_DOUBLE, MPI_STATUS_IGNORE);
    check(number, "the last element of the file", last, mine[length - 1]);
}

static void finish_write(void) {
    MPI_File_close(&file);
    free_buffers();
}

const struct pattern data_patterns[] = {
    {"cg", prepare_cg, cg, finish_cg},
    {"gradients", prepare_buffers, gradients, free_buffers},
    {"gradients-in-place", prepare_buffers, gradients_in_place, free_buffers},
    {"gradients-malloc", prepare_buffers, gradients_malloc, free_buffers},
    {"gradients-many", prepare_many, gradients_many, free_many},
    {"bcast-lengths", prepare_buffers, bcast_lengths, free_buffers},
    {"reduce", prepare_buffers, reduce, free_buffers},
    {"gather-scatter", prepare_buffers, gather_scatter, free_buffers},
    {"alltoall", prepare_buffers, all_to_all, free_buffers},
    {"reduce-scatter", prepare_buffers, reduce_scatter, free_buffers},
    {"sort", prepare_irregular, sort, free_irregular},
    {"gather-counts", prepare_irregular, gather_counts, free_irregular},
    {"pivot", prepare_buffers, pivot, free_buffers},
    {"isend", prepare_buffers, isend, free_buffers},
    {"iallreduce-long", prepare_buffers, iallreduce_long, free_buffers},
    {"write", prepare_write, write_all, finish_write},
    {NULL, NULL, NULL, NULL},
};
