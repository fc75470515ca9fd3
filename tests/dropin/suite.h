/* What the programs of this suite share.
 *
 * Each program has one purpose, runs on any number of ranks, and knows what every answer must be: contributions are functions of
 * (rank in the world, index, turn), so that each rank computes alone what it must get. Rank 0 ends with a line
 *
 *     ok PROGRAM: RANKS ranks, ANSWERS answers
 *
 * The first wrong answer is a line "FAIL PROGRAM: .." on stderr, after which the job is aborted with status 1. So is a
 * program that has not ended after SUITE_SECONDS (90).
 *
 * The programs call MPI_x only, except where the library's own answer to the same call is the oracle: PMPI_x.
 */
#ifndef SUITE_H
#define SUITE_H

#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *program = "?";
static int rank = -1, ranks = -1;
static long answers;

__attribute__((noreturn, format(printf, 3, 4))) static void fail(const char *file, int line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char text[800];
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "FAIL %s: rank %d of %d: %s (%s:%d)\n", program, rank, ranks, text, file, line);
    fflush(stderr);
    int begun = 0, over = 0;
    MPI_Initialized(&begun);
    MPI_Finalized(&over);
    if (begun && !over) MPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}

/* A condition that must hold, and what to say if it does not. */
#define CHECK(condition, ...)                                                                                                 \
    do {                                                                                                                      \
        __atomic_fetch_add(&answers, 1, __ATOMIC_RELAXED);                                                                    \
        if (!(condition)) fail(__FILE__, __LINE__, __VA_ARGS__);                                                              \
    } while (0)

/* An MPI call that must succeed. */
#define CALL(call)                                                                                                            \
    do {                                                                                                                      \
        int status_ = (call);                                                                                                 \
        if (status_ != MPI_SUCCESS) fail(__FILE__, __LINE__, "%s returned %d", #call, status_);                               \
    } while (0)

/* What rank `from` contributes at `index`: small enough that sums over 64 ranks are exact in every type of 16 bits or more. */
static inline long given(int from, size_t index, int turn) {
    return (long)(((size_t)from * 31 + index * 7 + (size_t)turn * 11) % 61);
}

static void stop_by_alarm(int signal_number) {
    static const char text[] = "FAIL: the program has not ended in time\n";
    ssize_t written = write(2, text, sizeof text - 1);
    _exit(written > 0 ? 1 : signal_number);
}

static void set_alarm(const char *path) {
    const char *slash = strrchr(path, '/');
    program = slash ? slash + 1 : path;
    const char *seconds = getenv("SUITE_SECONDS");
    signal(SIGALRM, stop_by_alarm);
    alarm(seconds ? (unsigned)atoi(seconds) : 90);
}

static inline void look_around(void) {
    CALL(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CALL(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
}

static inline void begin(int *argc, char ***argv) {
    set_alarm((*argv)[0]);
    CALL(MPI_Init(argc, argv));
    look_around();
}

/* The same for threads: which of their levels is provided. */
static inline int begin_threads(int *argc, char ***argv, int wanted) {
    int provided;
    set_alarm((*argv)[0]);
    CALL(MPI_Init_thread(argc, argv, wanted, &provided));
    look_around();
    return provided;
}

/* The last line, which only a job whose ranks all got here writes. */
static inline void say_ok(void) {
    CALL(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        printf("ok %s: %d ranks, %ld answers\n", program, ranks, answers);
        fflush(stdout);
    }
}

static inline int finish(void) {
    say_ok();
    CALL(MPI_Finalize());
    return 0;
}

static inline void *memory(size_t bytes) {
    void *at = malloc(bytes ? bytes : 1);
    if (!at) fail(__FILE__, __LINE__, "no memory for %zu bytes", bytes);
    return at;
}

/* The ranks in the world of a communicator's members; their ranks in it where they are not of this world. */
static inline int *members(MPI_Comm comm, int *size) {
    MPI_Group group, world;
    CALL(MPI_Comm_size(comm, size));
    int *of = memory((size_t)*size * sizeof *of), *own = memory((size_t)*size * sizeof *own);
    for (int i = 0; i < *size; i++) own[i] = i;
    CALL(MPI_Comm_group(comm, &group));
    CALL(MPI_Comm_group(MPI_COMM_WORLD, &world));
    CALL(MPI_Group_translate_ranks(group, *size, own, world, of));
    for (int i = 0; i < *size; i++)
        if (of[i] == MPI_UNDEFINED) of[i] = i;
    CALL(MPI_Group_free(&group));
    CALL(MPI_Group_free(&world));
    free(own);
    return of;
}

/* The four collectives on one communicator with `count` longs, and their answers. */
static inline void exercise_count(MPI_Comm comm, size_t count, int turn, const char *what) {
    int size, me;
    int *of = members(comm, &size);
    CALL(MPI_Comm_rank(comm, &me));
    long *in = memory(count * sizeof *in), *out = memory(count * sizeof *out), *sum = memory(count * sizeof *sum),
         *most = memory(count * sizeof *most);
    for (size_t i = 0; i < count; i++) {
        sum[i] = 0, most[i] = -1;
        in[i] = given(of[me], i, turn);
        for (int r = 0; r < size; r++) {
            long one = given(of[r], i, turn);
            sum[i] += one;
            if (one > most[i]) most[i] = one;
        }
    }
    memset(out, 0xa5, count * sizeof *out);
    CALL(MPI_Allreduce(in, out, (int)count, MPI_LONG, MPI_SUM, comm));
    for (size_t i = 0; i < count; i++)
        CHECK(out[i] == sum[i], "%s: allreduce of %zu longs: [%zu] is %ld, not %ld", what, count, i, out[i], sum[i]);
    int root = turn % size;
    memset(out, 0xa5, count * sizeof *out);
    CALL(MPI_Reduce(in, out, (int)count, MPI_LONG, MPI_MAX, root, comm));
    for (size_t i = 0; i < count; i++) {
        long should = me == root ? most[i] : (long)0xa5a5a5a5a5a5a5a5;
        CHECK(out[i] == should, "%s: reduce of %zu longs to %d: [%zu] is %ld, not %ld", what, count, root, i, out[i], should);
    }
    root = (turn + 1) % size;
    if (me == root) memcpy(out, in, count * sizeof *out);
    CALL(MPI_Bcast(out, (int)count, MPI_LONG, root, comm));
    for (size_t i = 0; i < count; i++) {
        long should = given(of[root], i, turn);
        CHECK(out[i] == should, "%s: broadcast of %zu longs from %d: [%zu] is %ld, not %ld", what, count, root, i, out[i], should);
    }
    CALL(MPI_Barrier(comm));
    free(in), free(out), free(sum), free(most), free(of);
}

/* The same at several sizes, often enough that a library which waits for a few calls has begun. */
static inline void exercise(MPI_Comm comm, int turn, const char *what) {
    static const size_t counts[] = {1, 63, 0, 1000, 3, 9000};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) exercise_count(comm, counts[c], turn + (int)c, what);
}

/* Whether the library beneath is of a version whose name begins so. */
static inline int library_is(const char *name) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    CALL(MPI_Get_library_version(text, &length));
    for (char *at = text; *at; at++)
        if (*at == '\t') *at = ' ';
    /* MPICH writes "MPICH Version:      4.0.2": blanks count once. */
    char *to = text;
    for (char *at = text; *at; at++)
        if (*at != ' ' || to == text || to[-1] != ' ') *to++ = *at;
    *to = 0;
    return strncmp(text, name, strlen(name)) == 0;
}

/* The class of an error. */
static inline int class_of(int code) {
    int class = -1;
    CALL(MPI_Error_class(code, &class));
    return class;
}

#endif
