/* A rank that has no part in the data names no type for them, or one that was not committed. MPIs that look at arguments refuse
 * that: they are told not to. */
#include "suite.h"

int main(int argc, char **argv) {
    begin(&argc, &argv);
    int *one = memory((size_t)ranks * sizeof *one), *none = memory((size_t)ranks * sizeof *none), *at = memory((size_t)ranks * sizeof *at);
    int *in = memory((size_t)ranks * sizeof *in), *out = memory((size_t)ranks * sizeof *out);
    MPI_Datatype uncommitted;
    CALL(MPI_Type_contiguous(2, MPI_INT, &uncommitted));
    int last = ranks - 1, is_absent = rank == last, count = !is_absent;
    for (int r = 0; r < ranks; r++) one[r] = r < last, none[r] = 0, at[r] = r;
    for (int turn = 0; turn < 16; turn++) {
        MPI_Datatype type = !is_absent ? MPI_INT : turn / 4 % 2 ? uncommitted : MPI_DATATYPE_NULL;
        int *from = is_absent ? NULL : in, *counts = is_absent ? none : one, what = turn % 4;
        for (int r = 0; r < ranks; r++) in[r] = 1000 * turn + 10 * rank + r, out[r] = -1;
        if (what == 0) CALL(MPI_Allgatherv(from, count, type, out, one, at, MPI_INT, MPI_COMM_WORLD));
        if (what == 1) CALL(MPI_Alltoallv(from, counts, at, type, is_absent ? NULL : out, counts, at, type, MPI_COMM_WORLD));
        if (what == 2) CALL(MPI_Gatherv(from, count, type, out, one, at, MPI_INT, 0, MPI_COMM_WORLD));
        if (what == 3) CALL(MPI_Scatterv(in, one, at, MPI_INT, is_absent ? NULL : out, count, type, 0, MPI_COMM_WORLD));
        for (int r = 0; r < ranks; r++) {
            int should = -1;
            if (what == 0 && r < last) should = 1000 * turn + 10 * r;
            if (what == 1 && r < last && !is_absent) should = 1000 * turn + 10 * r + rank;
            if (what == 2 && r < last && rank == 0) should = 1000 * turn + 10 * r;
            if (what == 3 && r == 0 && !is_absent) should = 1000 * turn + rank;
            CHECK(out[r] == should, "turn %d: [%d] is %d, not %d", turn, r, out[r], should);
        }
    }
    CALL(MPI_Type_free(&uncommitted));
    free(one), free(none), free(at), free(in), free(out);
    return finish();
}
