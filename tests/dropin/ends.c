/* How a job ends.
 *
 * usage: ends pending    MPI_Finalize while communicators, operators and types are not freed
 *        ends atexit     calls, and MPI_Finalize, in functions given to atexit before MPI_Init, and when a thread ends
 *        ends late       a rank comes to MPI_Finalize long after the others
 *        ends early      the last rank frees a communicator that the others go on with, which waits for ever without the library
 *        ends abort      MPI_Abort in the last rank, while the others are in a collective: status 7
 *        ends exit       the last rank exits with status 5 without MPI_Finalize, while the others are in a collective
 *        ends kill       the last rank is killed while the others are in a collective
 *        ends fatal      a wrong root under MPI_ERRORS_ARE_FATAL
 *        ends fork       children of ranks that end, in several ways, while their parents go on
 *        ends plain      collectives, then exit without MPI_Finalize on all ranks: status 4 */
#include "suite.h"

#include <pthread.h>
#include <sys/wait.h>

static void warm(void) {
    for (int turn = 0; turn < 4; turn++) exercise(MPI_COMM_WORLD, turn, "before the end");
}

/* Communicators that are freed late. */
static MPI_Comm kept, by_thread;

static void free_when_a_thread_ends(void *comm) {
    CALL(MPI_Comm_free(comm));
}

static void *free_one_now_and_one_later(void *later) {
    pthread_key_t key;
    MPI_Comm now;
    CALL(MPI_Comm_dup(MPI_COMM_WORLD, &now));
    exercise(now, 1, "of a thread");
    CHECK(pthread_key_create(&key, free_when_a_thread_ends) == 0, "no key");
    CHECK(pthread_setspecific(key, later) == 0, "no place");
    CALL(MPI_Comm_free(&now));
    return NULL;
}

static void finish_late(void) {
    /* Others wait for this rank, and look what has become of it. */
    if (rank == ranks - 1) usleep(300000);
    for (int turn = 0; turn < 8; turn++) exercise(kept, turn, "by a function given to atexit");
    CALL(MPI_Comm_free(&kept));
    CALL(MPI_Comm_dup(MPI_COMM_WORLD, &kept));
    for (int turn = 0; turn < 8; turn++) exercise(kept, turn, "made by a function given to atexit");
    CALL(MPI_Comm_free(&kept));
    finish();
}

int main(int argc, char **argv) {
    long mine = 1, sum = 0;
    const char *how = argc > 1 ? argv[1] : "";
    int is_late = strcmp(how, "atexit") == 0, provided = MPI_THREAD_SINGLE;
    if (is_late) {
        CHECK(atexit(finish_late) == 0, "no place");
        provided = begin_threads(&argc, &argv, MPI_THREAD_SERIALIZED);
    } else {
        begin(&argc, &argv);
    }
    int last = rank == ranks - 1;
    warm();
    if (strcmp(how, "pending") == 0) {
        MPI_Comm comms[20];
        MPI_Datatype type;
        for (int i = 0; i < 20; i++) {
            CALL(MPI_Comm_split(MPI_COMM_WORLD, rank % (i % 3 + 1), rank, &comms[i]));
            if (i % 2) exercise(comms[i], i, "not freed");
        }
        CALL(MPI_Type_contiguous(2, MPI_INT, &type));
        CALL(MPI_Type_commit(&type));
        return finish();
    }
    if (is_late) {
        pthread_t thread;
        MPI_Comm now;
        CALL(MPI_Comm_dup(MPI_COMM_WORLD, &kept));
        for (int turn = 0; turn < 8; turn++) exercise(kept, turn, "before the end");
        if (provided >= MPI_THREAD_SERIALIZED) {
            CALL(MPI_Comm_dup(MPI_COMM_WORLD, &by_thread));
            exercise(by_thread, 1, "freed when a thread ends");
            CHECK(pthread_create(&thread, NULL, free_one_now_and_one_later, &by_thread) == 0, "no thread");
            CHECK(pthread_join(thread, NULL) == 0, "the thread is not over");
        }
        CALL(MPI_Comm_dup(MPI_COMM_WORLD, &now));
        exercise(now, 1, "freed before the end");
        CALL(MPI_Comm_free(&now));
        return 0;
    }
    if (strcmp(how, "early") == 0) {
        MPI_Comm comm;
        CALL(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        CALL(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
        for (int turn = 0; turn < 4; turn++) exercise(comm, turn, "before it is freed");
        CALL(MPI_Barrier(MPI_COMM_WORLD));
        if (!last) CHECK(MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm) != MPI_SUCCESS, "a rank was not there");
        CALL(MPI_Comm_free(&comm));
        for (int turn = 0; turn < 4; turn++) exercise(MPI_COMM_WORLD, turn, "after another was freed");
        return finish();
    }
    if (strcmp(how, "late") == 0) {
        say_ok();
        if (last) sleep(1);
        CALL(MPI_Finalize());
        return 0;
    }
    if (strcmp(how, "fork") == 0) {
        for (int way = 0; way < 4; way++) {
            fflush(NULL);
            pid_t child = way == 3 ? -1 : fork();
            if (way == 3) CHECK(system("true") == 0, "no shell");
            if (child == 0) {
                if (way == 2) raise(SIGKILL);
                way ? _exit(0) : exit(0);
            }
            if (child > 0) waitpid(child, NULL, 0);
            for (int turn = 0; turn < 3; turn++) exercise(MPI_COMM_WORLD, turn, "after the end of a child");
        }
        return finish();
    }
    if (strcmp(how, "fatal") == 0) {
        CALL(MPI_Bcast(&mine, 1, MPI_LONG, ranks + 3, MPI_COMM_WORLD));
        return finish();
    }
    if (strcmp(how, "plain") == 0) {
        say_ok();
        exit(4);
    }
    if (last) {
        usleep(300000);
        if (strcmp(how, "abort") == 0) MPI_Abort(MPI_COMM_WORLD, 7);
        if (strcmp(how, "exit") == 0) exit(5);
        if (strcmp(how, "kill") == 0) raise(SIGKILL);
        fail(__FILE__, __LINE__, "unknown end \"%s\"", how);
    }
    CALL(MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    printf("rank %d came out of a collective that one rank never entered\n", rank);
    return finish();
}
