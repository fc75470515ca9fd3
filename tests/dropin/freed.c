/* A communicator is freed, and some of its ranks go on with another one while the rest wait for a message from them: what is given back
 * with a communicator may wait for nobody. Made for three hosts. */
#include "suite.h"

int main(int argc, char **argv) {
    begin(&argc, &argv);
    enum { COUNT = 40000 };
    long *in = memory(COUNT * sizeof *in), *out = memory(COUNT * sizeof *out);
    for (int turn = 0; turn < 4; turn++) {
        MPI_Comm all, some;
        CALL(MPI_Comm_dup(MPI_COMM_WORLD, &all));
        CALL(MPI_Comm_split(MPI_COMM_WORLD, rank == ranks - 1, rank, &some));
        for (int way = 0; way < 2; way++) {
            MPI_Comm comm = way ? some : all;
            int size = way ? ranks - 1 : ranks;
            if (way) CALL(MPI_Comm_free(&all));
            if (way && rank == ranks - 1) {
                CALL(MPI_Recv(NULL, 0, MPI_INT, 0, turn, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                continue;
            }
            for (int i = 0; i < COUNT; i++) in[i] = given(rank, (size_t)i, turn);
            CALL(MPI_Allreduce(in, out, COUNT, MPI_LONG, MPI_SUM, comm));
            for (int i = 0; i < COUNT; i++) {
                long should = 0;
                for (int r = 0; r < size; r++) should += given(r, (size_t)i, turn);
                CHECK(out[i] == should, "turn %d: allreduce on %d ranks: [%d] is %ld, not %ld", turn, size, i, out[i], should);
            }
            if (way && rank == 0) CALL(MPI_Send(NULL, 0, MPI_INT, ranks - 1, turn, MPI_COMM_WORLD));
        }
        CALL(MPI_Comm_free(&some));
    }
    free(in), free(out);
    return finish();
}
