/* Ranks that were not there at the start: MPI_Comm_spawn, collectives between both worlds, and on one merged of them. */
#include "suite.h"

int main(int argc, char **argv) {
    MPI_Comm parent, between, merged;
    begin(&argc, &argv);
    CALL(MPI_Comm_get_parent(&parent));
    exercise(MPI_COMM_WORLD, 1, parent == MPI_COMM_NULL ? "the first world" : "the spawned world");
    if (parent == MPI_COMM_NULL)
        CALL(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between, MPI_ERRCODES_IGNORE));
    else
        between = parent;
    long mine = parent == MPI_COMM_NULL ? 1 : 100, theirs = -1;
    int others;
    CALL(MPI_Comm_remote_size(between, &others));
    CALL(MPI_Allreduce(&mine, &theirs, 1, MPI_LONG, MPI_SUM, between));
    CHECK(theirs == others * (parent == MPI_COMM_NULL ? 100 : 1), "the other world's sum is %ld", theirs);
    CALL(MPI_Intercomm_merge(between, parent != MPI_COMM_NULL, &merged));
    for (int call = 0; call < 10; call++) {
        int size, me, first = parent == MPI_COMM_NULL ? ranks : others;
        long sum = 0, word;
        CALL(MPI_Comm_size(merged, &size));
        CALL(MPI_Comm_rank(merged, &me));
        CALL(MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, merged));
        CHECK(sum == first + 100L * (size - first), "the sum of both worlds is %ld", sum);
        word = me == call % size ? call : -1;
        CALL(MPI_Bcast(&word, 1, MPI_LONG, call % size, merged));
        CHECK(word == call, "broadcast over both worlds: %ld", word);
        CALL(MPI_Barrier(merged));
    }
    exercise(MPI_COMM_WORLD, 2, "beside another world");
    CALL(MPI_Comm_free(&merged));
    CALL(MPI_Comm_disconnect(&between));
    if (parent == MPI_COMM_NULL) return finish();
    CALL(MPI_Finalize());
    return 0;
}
