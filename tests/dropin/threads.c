/* MPI_THREAD_MULTIPLE: threads that call collectives on communicators of their own, all at once; one makes and frees
 * communicators; one passes messages.
 *
 * usage: threads [ROUNDS] */
#include "suite.h"

#include <pthread.h>

enum { THREADS = 3 };
static MPI_Comm comms[THREADS], makers, messages;
static int rounds = 60;

static void *collectives(void *argument) {
    int which = *(int *)argument;
    for (int round = 0; round < rounds; round++)
        exercise_count(comms[which], (size_t)((round * 131 + which * 17) % 3000), round + which, "thread");
    return NULL;
}

static void *making(void *argument) {
    (void)argument;
    for (int round = 0; round < rounds / 4; round++) {
        MPI_Comm made;
        CALL(MPI_Comm_split(makers, rank % (round % 2 + 1), rank, &made));
        exercise_count(made, 100, round, "thread that makes communicators");
        exercise_count(made, 1, round, "thread that makes communicators");
        CALL(MPI_Comm_free(&made));
    }
    return NULL;
}

static void *passing(void *argument) {
    static char out[300000], in[300000];
    (void)argument;
    for (int round = 0; round < rounds; round++) {
        int length = round % 3 ? 300000 : 10;
        memset(out, rank + round, (size_t)length);
        CALL(MPI_Sendrecv(out, length, MPI_BYTE, (rank + 1) % ranks, 1, in, length, MPI_BYTE, (rank + ranks - 1) % ranks, 1, messages,
                          MPI_STATUS_IGNORE));
        CHECK(in[length - 1] == (char)((rank + ranks - 1) % ranks + round), "message %d is wrong", round);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int provided = begin_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
    if (argc > 1) rounds = atoi(argv[1]);
    CHECK(provided == MPI_THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE was asked for, %d is provided", provided);
    pthread_t threads[THREADS + 2];
    int numbers[THREADS];
    for (int t = 0; t < THREADS; t++) numbers[t] = t;
    for (int t = 0; t < THREADS; t++) CALL(MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]));
    CALL(MPI_Comm_dup(MPI_COMM_WORLD, &makers));
    CALL(MPI_Comm_dup(MPI_COMM_WORLD, &messages));
    for (int t = 0; t < THREADS + 2; t++) {
        void *(*work)(void *) = t < THREADS ? collectives : t == THREADS ? making : passing;
        CHECK(pthread_create(&threads[t], NULL, work, t < THREADS ? &numbers[t] : NULL) == 0, "no thread");
    }
    exercise(MPI_COMM_WORLD, 1, "the first thread");
    for (int t = 0; t < THREADS + 2; t++) pthread_join(threads[t], NULL);
    for (int t = 0; t < THREADS; t++) CALL(MPI_Comm_free(&comms[t]));
    CALL(MPI_Comm_free(&makers));
    CALL(MPI_Comm_free(&messages));
    return finish();
}
