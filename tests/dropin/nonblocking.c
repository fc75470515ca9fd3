/* Non-blocking collectives under way on the very communicator on which blocking ones are called. */
#include "suite.h"

enum { MOST = 200000, UNDER_WAY = 6 };

int main(int argc, char **argv) {
    static long in[UNDER_WAY][MOST], out[UNDER_WAY][MOST];
    begin(&argc, &argv);
    for (int round = 0; round < 12; round++) {
        MPI_Request requests[UNDER_WAY];
        int count = round % 4 == 3 ? MOST : 1 + round * 37;
        for (int k = 0; k < UNDER_WAY; k++) {
            for (int i = 0; i < count; i++) in[k][i] = given(rank, (size_t)i, k + round), out[k][i] = -1;
            int root = (k + round) % ranks;
            switch (k % 4) {
            case 0: CALL(MPI_Iallreduce(in[k], out[k], count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &requests[k])); break;
            case 1:
                if (rank == root) memcpy(out[k], in[k], (size_t)count * sizeof(long));
                CALL(MPI_Ibcast(out[k], count, MPI_LONG, root, MPI_COMM_WORLD, &requests[k]));
                break;
            case 2: CALL(MPI_Ibarrier(MPI_COMM_WORLD, &requests[k])); break;
            default: CALL(MPI_Ireduce(in[k], out[k], count, MPI_LONG, MPI_MAX, root, MPI_COMM_WORLD, &requests[k]));
            }
            /* Blocking ones between them, while none is complete. */
            if (k % 2) exercise_count(MPI_COMM_WORLD, 1 + (size_t)k * 100, k + round, "beside non-blocking ones");
        }
        exercise_count(MPI_COMM_WORLD, 3000, round, "after non-blocking ones");
        /* Completed in one order here, in another there. */
        for (int k = 0; k < UNDER_WAY; k++)
            CALL(MPI_Wait(&requests[rank % 2 ? UNDER_WAY - 1 - k : k], MPI_STATUS_IGNORE));
        for (int k = 0; k < UNDER_WAY; k++)
            for (int i = 0; i < count; i += 1 + count / 100) {
                int root = (k + round) % ranks;
                long sum = 0, most = -1;
                for (int r = 0; r < ranks; r++) {
                    long one = given(r, (size_t)i, k + round);
                    sum += one;
                    if (one > most) most = one;
                }
                long should = k % 4 == 0 ? sum : k % 4 == 1 ? given(root, (size_t)i, k + round) : most;
                if (k % 4 < 2 || (k % 4 == 3 && rank == root))
                    CHECK(out[k][i] == should, "non-blocking %d, round %d: [%d] is %ld, not %ld", k, round, i, out[k][i], should);
            }
    }
    return finish();
}
