/* The rest of the family, between calls of the four, on communicators of several shapes: gather, scatter, allgather, alltoall with
 * their vector forms, reduce_scatter, scan. */
#include "suite.h"

static int size, me, *of;
static MPI_Comm comm;

static long word(int from, int i, int turn) { return given(of[from], (size_t)i, turn); }

static void gathers(int n, int turn) {
    int root = turn % size;
    long *in = memory((size_t)n * sizeof *in), *out = memory((size_t)n * (size_t)size * sizeof *out);
    for (int i = 0; i < n; i++) in[i] = word(me, i, turn);
    for (int way = 0; way < 3; way++) {
        memset(out, 0, (size_t)n * (size_t)size * sizeof *out);
        if (way == 0) CALL(MPI_Gather(in, n, MPI_LONG, out, n, MPI_LONG, root, comm));
        if (way == 1) CALL(MPI_Allgather(in, n, MPI_LONG, out, n, MPI_LONG, comm));
        if (way == 2) {
            memcpy(out + (size_t)me * (size_t)n, in, (size_t)n * sizeof *in);
            CALL(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, n, MPI_LONG, comm));
        }
        for (int r = 0; r < size && (way || me == root); r++)
            for (int i = 0; i < n; i++)
                CHECK(out[r * n + i] == word(r, i, turn), "gather, way %d: [%d] of rank %d is %ld", way, i, r, out[r * n + i]);
    }
    free(in), free(out);
}

/* Rank r has r + n words. */
static void uneven(int n, int turn) {
    int *counts = memory((size_t)size * sizeof *counts), *at = memory((size_t)size * sizeof *at), total = 0;
    for (int r = 0; r < size; r++) counts[r] = n + r, at[r] = total + r, total += counts[r];
    long *in = memory((size_t)(total + size) * sizeof *in), *out = memory((size_t)(total + size) * sizeof *out);
    for (int i = 0; i < counts[me]; i++) in[i] = word(me, i, turn);
    memset(out, 0xff, (size_t)(total + size) * sizeof *out);
    CALL(MPI_Allgatherv(in, counts[me], MPI_LONG, out, counts, at, MPI_LONG, comm));
    for (int r = 0; r < size; r++)
        for (int i = 0; i < counts[r]; i++)
            CHECK(out[at[r] + i] == word(r, i, turn), "allgatherv: [%d] of rank %d is %ld", i, r, out[at[r] + i]);
    memset(in, 0, (size_t)(total + size) * sizeof *in);
    CALL(MPI_Scatterv(out, counts, at, MPI_LONG, in, counts[me], MPI_LONG, turn % size, comm));
    for (int i = 0; i < counts[me]; i++) CHECK(in[i] == word(me, i, turn), "scatterv: [%d] is %ld", i, in[i]);
    free(counts), free(at), free(in), free(out);
}

static void exchanges(int n, int turn) {
    long *in = memory((size_t)n * (size_t)size * sizeof *in), *out = memory((size_t)n * (size_t)size * sizeof *out);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < n; i++) in[r * n + i] = word(me, i + r, turn);
    CALL(MPI_Alltoall(in, n, MPI_LONG, out, n, MPI_LONG, comm));
    for (int r = 0; r < size; r++)
        for (int i = 0; i < n; i++)
            CHECK(out[r * n + i] == word(r, i + me, turn), "alltoall: [%d] of rank %d is %ld", i, r, out[r * n + i]);
    CALL(MPI_Reduce_scatter_block(in, out, n, MPI_LONG, MPI_SUM, comm));
    for (int i = 0; i < n; i++) {
        long sum = 0;
        for (int r = 0; r < size; r++) sum += word(r, i + me, turn);
        CHECK(out[i] == sum, "reduce_scatter_block: [%d] is %ld, not %ld", i, out[i], sum);
    }
    CALL(MPI_Scan(in, out, n, MPI_LONG, MPI_SUM, comm));
    for (int i = 0; i < n; i++) {
        long sum = 0;
        for (int r = 0; r <= me; r++) sum += word(r, i, turn);
        CHECK(out[i] == sum, "scan: [%d] is %ld, not %ld", i, out[i], sum);
    }
    CALL(MPI_Exscan(in, out, n, MPI_LONG, MPI_MAX, comm));
    for (int i = 0; i < n && me > 0; i++) {
        long most = -1;
        for (int r = 0; r < me; r++)
            if (word(r, i, turn) > most) most = word(r, i, turn);
        CHECK(out[i] == most, "exscan: [%d] is %ld, not %ld", i, out[i], most);
    }
    free(in), free(out);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    for (int shape = 0; shape < 4; shape++) {
        if (shape == 0) comm = MPI_COMM_WORLD;
        if (shape == 1) CALL(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &comm));
        if (shape == 2) CALL(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        if (shape == 3) comm = MPI_COMM_SELF;
        of = members(comm, &size);
        CALL(MPI_Comm_rank(comm, &me));
        static const int lengths[] = {1, 33, 2000};
        for (int turn = 0; turn < 9; turn++) {
            exercise_count(comm, (size_t)turn * 7, turn, "between others");
            gathers(lengths[turn % 3], turn);
            exercise_count(comm, 1, turn, "between others");
            uneven(lengths[turn % 3], turn);
            exchanges(lengths[turn % 3], turn);
        }
        free(of);
        if (shape == 1 || shape == 2) CALL(MPI_Comm_free(&comm));
    }
    return finish();
}
