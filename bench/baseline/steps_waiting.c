/* Patterns of a few bytes, in which it counts who waits for whom, and how. The argument is microseconds of work or
 * sleep, or a number of calls or messages. */
#define _GNU_SOURCE
#include "steps.h"

#include <pthread.h>
#include <time.h>

static void sum_over(MPI_Comm comm, long number) {
    double own = value(rank, number), sum;
    MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
    check(number, "an allreduce", sum, total_of_all(1, number));
}

static void broadcast_number(long number, int root, MPI_Comm comm) {
    long told = rank == root ? number : -1;
    MPI_Bcast(&told, 1, MPI_LONG, root, comm);
    check(number, "a broadcast", (double)told, (double)number);
}

/* Ranks that come at different times. */

static void imbalance(long number) {
    work(chance(number, rank, 0) % (2 * argument + 1));
    sum_over(MPI_COMM_WORLD, number);
}

static void late(long number) {
    if (rank == ranks - 1) work(argument);
    sum_over(MPI_COMM_WORLD, number);
}

static void root_sleeps(void) {
    struct timespec time = {argument / 1000000, argument % 1000000 * 1000};
    if (rank == 0) nanosleep(&time, NULL);
}

static void io_barrier(long number) {
    (void)number;
    root_sleeps();
    MPI_Barrier(MPI_COMM_WORLD);
}

static void io_bcast(long number) {
    root_sleeps();
    broadcast_number(number, 0, MPI_COMM_WORLD);
}

static void io_allreduce(long number) {
    root_sleeps();
    sum_over(MPI_COMM_WORLD, number);
}

/* Communicators. */

static MPI_Comm row, column;

static void prepare_rows(void) {
    int width = 1;
    for (int i = 2; i * i <= ranks; i++)
        if (ranks % i == 0) width = i;
    MPI_Comm_split(MPI_COMM_WORLD, rank / width, rank, &row);
    MPI_Comm_split(MPI_COMM_WORLD, rank % width, rank, &column);
}

static void rows_columns(long number) {
    double own = value(rank, number), of_row, sum, told = rank == 0 ? own : -1;
    work(argument);
    MPI_Allreduce(&own, &of_row, 1, MPI_DOUBLE, MPI_SUM, row);
    MPI_Allreduce(&of_row, &sum, 1, MPI_DOUBLE, MPI_SUM, column);
    check(number, "an allreduce along rows and columns", sum, total_of_all(1, number));
    MPI_Bcast(&told, 1, MPI_DOUBLE, 0, column);
    MPI_Bcast(&told, 1, MPI_DOUBLE, 0, row);
    check(number, "a broadcast along columns and rows", told, value(0, number));
}

static void finish_rows(void) {
    MPI_Comm_free(&row);
    MPI_Comm_free(&column);
}

static void dup(long number) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (long call = 0; call < argument; call++) sum_over(comm, number + call);
    MPI_Comm_free(&comm);
}

/* Into halves of two ranks and more, or a new world in the reverse order. */
static void split(long number) {
    MPI_Comm comm;
    int colour = ranks < 4 ? 0 : rank < ranks / 2, members;
    double one = 1, sum;
    MPI_Comm_split(MPI_COMM_WORLD, colour, -rank, &comm);
    MPI_Comm_size(comm, &members);
    for (long call = 0; call < argument; call++) {
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
        check(number, "an allreduce over a part of the ranks", sum, members);
    }
    MPI_Comm_free(&comm);
}

/* Several calls in a step. */

static double *gathered;

static void prepare_mixed(void) { gathered = memory((size_t)ranks * sizeof *gathered); }

static void mixed(long number) {
    int root = (int)(number % ranks), next = (root + 1) % ranks;
    double own = value(rank, number), sum, back;
    work(argument);
    broadcast_number(number, root, MPI_COMM_WORLD);
    MPI_Reduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, next, MPI_COMM_WORLD);
    if (rank == next) check(number, "a reduction", sum, total_of_all(1, number));
    MPI_Gather(&own, 1, MPI_DOUBLE, gathered, 1, MPI_DOUBLE, root, MPI_COMM_WORLD);
    if (rank == root)
        for (int of = 0; of < ranks; of++) check(number, "a gather", gathered[of], value(of, number));
    MPI_Scatter(gathered, 1, MPI_DOUBLE, &back, 1, MPI_DOUBLE, root, MPI_COMM_WORLD);
    check(number, "a scatter", back, own);
    MPI_Allgather(&own, 1, MPI_DOUBLE, gathered, 1, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int of = 0; of < ranks; of++) check(number, "an allgather", gathered[of], value(of, number));
}

static void scan(long number) {
    double own = value(rank, number), upto, before = 0, expected = 0;
    work(argument);
    for (int of = 0; of < rank; of++) expected += value(of, number);
    MPI_Exscan(&own, &before, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank > 0) check(number, "an exscan", before, expected);
    MPI_Scan(&own, &upto, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    check(number, "a scan", upto, expected + own);
}

/* A nonblocking allreduce, with a blocking one within. */
static void iallreduce(long number) {
    double own = value(rank, number), sum;
    MPI_Request request;
    MPI_Iallreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    work(argument);
    sum_over(MPI_COMM_WORLD, number + 1);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(number, "an iallreduce", sum, total_of_all(1, number));
}

static void ping_pong(long number) {
    int partner = rank ^ 1;
    double own = value(rank, number), theirs;
    for (long message = 0; message < argument && partner < ranks; message++) {
        MPI_Sendrecv(&own, 1, MPI_DOUBLE, partner, 0, &theirs, 1, MPI_DOUBLE, partner, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        check(number, "a message", theirs, value(partner, number));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Threads: one that works in each step with the rank, and one that always works. Where ranks are bound to cores, a
 * thread shares its rank's. */

static pthread_t worker;
static pthread_barrier_t begin, end;
static int over;

static int is_over(void) { return __atomic_load_n(&over, __ATOMIC_ACQUIRE); }

static void *work_in_steps(void *nothing) {
    for (;;) {
        pthread_barrier_wait(&begin);
        if (is_over()) return nothing;
        work(argument);
        pthread_barrier_wait(&end);
    }
}

static void *work_always(void *nothing) {
    while (!is_over()) work(50);
    return nothing;
}

static void start_worker(void *(*of)(void *)) {
    if (pthread_create(&worker, NULL, of, NULL) != 0) give_up("cannot start", "a thread");
}

static void prepare_thread_steps(void) {
    pthread_barrier_init(&begin, NULL, 2);
    pthread_barrier_init(&end, NULL, 2);
    start_worker(work_in_steps);
}

static void thread_steps(long number) {
    pthread_barrier_wait(&begin);
    work(argument);
    pthread_barrier_wait(&end);
    sum_over(MPI_COMM_WORLD, number);
}

static void prepare_thread_busy(void) { start_worker(work_always); }

static void thread_busy(long number) {
    work(argument);
    sum_over(MPI_COMM_WORLD, number);
}

static void finish_thread_busy(void) {
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    pthread_join(worker, NULL);
}

static void finish_thread_steps(void) {
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    pthread_barrier_wait(&begin);
    pthread_join(worker, NULL);
}

/* Of a job that does nothing else: its whole time is measured by who starts it. */
static void start(long number) { sum_over(MPI_COMM_WORLD, number); }

const struct pattern waiting_patterns[] = {
    {"imbalance", NULL, imbalance, NULL},
    {"late", NULL, late, NULL},
    {"io-barrier", NULL, io_barrier, NULL},
    {"io-bcast", NULL, io_bcast, NULL},
    {"io-allreduce", NULL, io_allreduce, NULL},
    {"rows-columns", prepare_rows, rows_columns, finish_rows},
    {"dup", NULL, dup, NULL},
    {"split", NULL, split, NULL},
    {"mixed", prepare_mixed, mixed, NULL},
    {"scan", NULL, scan, NULL},
    {"iallreduce", NULL, iallreduce, NULL},
    {"ping-pong", NULL, ping_pong, NULL},
    {"thread-steps", prepare_thread_steps, thread_steps, finish_thread_steps},
    {"thread-busy", prepare_thread_busy, thread_busy, finish_thread_busy},
    {"start", NULL, start, NULL},
    {NULL, NULL, NULL, NULL},
};
