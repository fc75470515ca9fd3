/* Collectives between two groups: what one group contributes, the other gets. */
#include "suite.h"

int main(int argc, char **argv) {
    begin(&argc, &argv);
    if (ranks < 2) return finish();
    MPI_Comm half, between, copy;
    int first = (ranks + 1) / 2, high = rank >= first;
    CALL(MPI_Comm_split(MPI_COMM_WORLD, high, rank, &half));
    CALL(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, high ? 0 : first, 3, &between));
    CALL(MPI_Comm_dup(between, &copy));
    for (int round = 0; round < 8; round++) {
        MPI_Comm on = round % 2 ? copy : between;
        enum { COUNT = 200 };
        long in[COUNT], out[COUNT], other[COUNT];
        for (int i = 0; i < COUNT; i++) {
            in[i] = given(rank, (size_t)i, round), out[i] = -1, other[i] = 0;
            for (int r = high ? 0 : first; r < (high ? first : ranks); r++) other[i] += given(r, (size_t)i, round);
        }
        CALL(MPI_Barrier(on));
        CALL(MPI_Allreduce(in, out, COUNT, MPI_LONG, MPI_SUM, on));
        for (int i = 0; i < COUNT; i++) CHECK(out[i] == other[i], "allreduce between: [%d] is %ld, not %ld", i, out[i], other[i]);
        /* To one rank of the lower group. */
        int target = round % first;
        memset(out, 0, sizeof out);
        int root = high ? target : rank == target ? MPI_ROOT : MPI_PROC_NULL;
        CALL(MPI_Reduce(in, out, COUNT, MPI_LONG, MPI_SUM, root, on));
        for (int i = 0; i < COUNT; i++) {
            long should = rank == target ? other[i] : 0;
            CHECK(out[i] == should, "reduce between: [%d] is %ld, not %ld", i, out[i], should);
        }
        /* From one rank of the upper group. */
        int source = round % (ranks - first);
        root = !high ? source : rank - first == source ? MPI_ROOT : MPI_PROC_NULL;
        memcpy(out, in, sizeof out);
        CALL(MPI_Bcast(out, COUNT, MPI_LONG, root, on));
        for (int i = 0; i < COUNT; i++) {
            long should = given(high ? rank : first + source, (size_t)i, round);
            CHECK(out[i] == should, "broadcast between: [%d] is %ld, not %ld", i, out[i], should);
        }
        exercise_count(half, 77, round, "the half beside");
    }
    CALL(MPI_Comm_free(&copy));
    CALL(MPI_Comm_free(&between));
    CALL(MPI_Comm_free(&half));
    return finish();
}
