/* Wrong arguments: the error class that the library itself gives, through the communicator's handler, and a communicator that
 * goes on working. All ranks make the same mistake, so that nobody waits. */
#include "suite.h"

static int handled, handled_class, handled_size;
static MPI_Comm comm;

static void handle(MPI_Comm *on, int *code, ...) {
    handled++;
    handled_class = class_of(*code);
    PMPI_Comm_size(*on, &handled_size);
}

/* The same call through the library beneath, and as a program makes it. */
#define SAME(what, call)                                                                                                      \
    do {                                                                                                                      \
        if (getenv("SUITE_VERBOSE") && rank == 0) fprintf(stderr, "%s\n", what);                                              \
        handled = 0;                                                                                                          \
        int theirs = class_of(PMPI_##call), times = handled, heard = handled_class;                                            \
        handled = 0, handled_class = -1;                                                                                      \
        int ours = class_of(MPI_##call);                                                                                      \
        CHECK(ours == theirs, "%s: error class %d, the library's is %d", what, ours, theirs);                                 \
        CHECK(handled == times, "%s: the error handler was called %d times, and %d by the library", what, handled, times);    \
        CHECK(!handled || handled_class == heard, "%s: the handler heard of class %d, not %d", what, handled_class, heard);   \
    } while (0)

/* The world's own: a call on another communicator has nothing to do with it. */
static int noticed;

static void notice(MPI_Comm *on, int *code, ...) {
    (void)on, (void)code;
    noticed++;
}

/* Numbers that are no handles, where handles are numbers. */
static void strangers(void) {
#ifdef MPICH_NAME
    static int in[64], out[64];
    MPI_Op op = (MPI_Op)0x12345678;
    MPI_Datatype type = (MPI_Datatype)0x12345678;
    MPI_Errhandler handler;
    CALL(MPI_Comm_create_errhandler(notice, &handler));
    CALL(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler));
    CALL(MPI_Comm_set_errhandler(MPI_COMM_SELF, handler));
    noticed = 0;
    SAME("broadcast of what is no type", Bcast(in, 1, type, 0, comm));
    SAME("reduce by what is no operator", Reduce(in, out, 1, MPI_INT, op, 0, comm));
    SAME("allreduce by what is no operator", Allreduce(in, out, 1, MPI_INT, op, comm));
    SAME("gather of what is no type", Gather(in, 1, type, out, 1, type, 0, comm));
    CHECK(!noticed, "the world's error handler was called %d times for calls on another communicator", noticed);
    CALL(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    CALL(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    CALL(MPI_Errhandler_free(&handler));
#endif
}

static void mistakes(const char *handler) {
    static int in[64], out[64], more[64];
    MPI_Datatype raw, pair;
    MPI_Op null_op = MPI_OP_NULL;
    MPI_Datatype null_type = MPI_DATATYPE_NULL;
    int openmpi = library_is("Open MPI"), mpich = library_is("MPICH"),
        mpich5 = library_is("MPICH Version: 5");
    CALL(MPI_Type_contiguous(2, MPI_INT, &raw));
    CALL(MPI_Type_contiguous(2, MPI_INT, &pair));
    CALL(MPI_Type_commit(&pair));
    if (rank == 0) printf("errors under %s\n", handler);

    SAME("broadcast, negative count", Bcast(in, -1, MPI_INT, 0, comm));
    SAME("broadcast, root -5", Bcast(in, 1, MPI_INT, -5, comm));
    SAME("broadcast, root beyond the last", Bcast(in, 1, MPI_INT, ranks, comm));
    SAME("broadcast of nothing, root beyond the last", Bcast(in, 0, MPI_INT, ranks, comm));
    SAME("broadcast, no type", Bcast(in, 1, null_type, 0, comm));
    SAME("broadcast, type not committed", Bcast(in, 1, raw, 0, comm));

    /* MPICH 4 and 5 do not look. */
    if (!mpich) SAME("reduce, negative count", Reduce(in, out, -1, MPI_INT, MPI_SUM, 0, comm));
    SAME("reduce, root -5", Reduce(in, out, 1, MPI_INT, MPI_SUM, -5, comm));
    SAME("reduce, root beyond the last", Reduce(in, out, 1, MPI_INT, MPI_SUM, ranks, comm));
    SAME("reduce, no operator", Reduce(in, out, 1, MPI_INT, null_op, 0, comm));
    /* MPICH 5 ends the job. */
    if (!mpich5) SAME("reduce, no type", Reduce(in, out, 1, null_type, MPI_SUM, 0, comm));
    SAME("reduce, maximum of pairs of ints", Reduce(in, out, 1, MPI_2INT, MPI_MAX, 0, comm));
    SAME("reduce, sum of a derived type", Reduce(in, out, 2, pair, MPI_SUM, 0, comm));

    if (!mpich) SAME("allreduce, negative count", Allreduce(in, out, -7, MPI_INT, MPI_SUM, comm));
    SAME("allreduce, no operator", Allreduce(in, out, 1, MPI_INT, null_op, comm));
    SAME("allreduce of nothing, no operator", Allreduce(in, out, 0, MPI_INT, null_op, comm));
    if (!mpich5) SAME("allreduce, no type", Allreduce(in, out, 1, null_type, MPI_SUM, comm));
    SAME("allreduce, type not committed", Allreduce(in, out, 1, raw, MPI_SUM, comm));
    SAME("allreduce, sum of a derived type", Allreduce(in, out, 2, pair, MPI_SUM, comm));
    SAME("allreduce, bitwise and of doubles", Allreduce(in, out, 2, MPI_DOUBLE, MPI_BAND, comm));
    SAME("allreduce, minimum and place of ints", Allreduce(in, out, 2, MPI_INT, MPI_MINLOC, comm));
    SAME("allreduce, MPI_REPLACE", Allreduce(in, out, 2, MPI_INT, MPI_REPLACE, comm));
    SAME("allreduce, MPI_NO_OP", Allreduce(in, out, 2, MPI_INT, MPI_NO_OP, comm));
    SAME("allreduce into MPI_IN_PLACE", Allreduce(in, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm));
    if (!openmpi) {
        /* Open MPI does not look. */
        SAME("allreduce, one buffer for both", Allreduce(more, more, 8, MPI_INT, MPI_SUM, comm));
        SAME("broadcast, no buffer", Bcast(NULL, 4, MPI_INT, 0, comm));
        SAME("allreduce, no buffer", Allreduce(NULL, out, 4, MPI_INT, MPI_SUM, comm));
    }
    strangers();
    CALL(MPI_Type_free(&raw));
    CALL(MPI_Type_free(&pair));
}

/* Errors that belong to no communicator go to MPI_COMM_WORLD's handler, or MPI_COMM_SELF's. */
static void nowhere(void) {
    int in = 1, out = 0;
    MPI_Comm none = MPI_COMM_NULL;
    SAME("barrier on MPI_COMM_NULL", Barrier(none));
    SAME("broadcast on MPI_COMM_NULL", Bcast(&in, 1, MPI_INT, 0, none));
    SAME("reduce on MPI_COMM_NULL", Reduce(&in, &out, 1, MPI_INT, MPI_SUM, 0, none));
    SAME("allreduce on MPI_COMM_NULL", Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, none));
}

int main(int argc, char **argv) {
    MPI_Errhandler handler;
    begin(&argc, &argv);
    CALL(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    CALL(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    CALL(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    CALL(MPI_Comm_create_errhandler(handle, &handler));
    /* First before the communicator was ever used, then after. */
    for (int round = 0; round < 3; round++) {
        CALL(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
        mistakes("MPI_ERRORS_RETURN");
        CALL(MPI_Comm_set_errhandler(comm, handler));
        mistakes("a handler");
        CHECK(handled_size == ranks, "the handler was called with a communicator of %d", handled_size);
        nowhere();
        exercise(comm, round, "after errors");
    }
    CALL(MPI_Errhandler_free(&handler));
    CALL(MPI_Comm_free(&comm));
    return finish();
}
