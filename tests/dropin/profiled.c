/* A program that profiles itself: its own MPI_Allreduce and MPI_Finalize stand before all others. What it calls through PMPI is
 * the library's, what it calls by MPI's names is anybody's, on the same communicators. */
#include "suite.h"

static long seen;

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    seen++;
    return PMPI_Allreduce(in, out, count, type, op, comm);
}

int MPI_Finalize(void) {
    fflush(stdout);
    return PMPI_Finalize();
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    MPI_Comm comm;
    for (int turn = 0; turn < 3; turn++) exercise(MPI_COMM_WORLD, turn, "profiled");
    CHECK(seen == 18, "the program's own MPI_Allreduce saw %ld calls of 18", seen);
    CALL(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int turn = 0; turn < 3; turn++) exercise(comm, turn, "profiled");
    CALL(MPI_Comm_free(&comm));
    /* Both names in turns, with different answers. */
    for (int turn = 0; turn < 200; turn++) {
        long word = rank == turn % ranks ? turn : -1;
        if (turn % 2)
            CALL(PMPI_Bcast(&word, 1, MPI_LONG, turn % ranks, MPI_COMM_WORLD));
        else
            CALL(MPI_Bcast(&word, 1, MPI_LONG, turn % ranks, MPI_COMM_WORLD));
        CHECK(word == turn, "broadcast %d by both names: %ld", turn, word);
    }
    return finish();
}
