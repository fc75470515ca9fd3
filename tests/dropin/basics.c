/* The four collectives on the world: every root, lengths from nothing to 8 MiB, in place and not. */
#include "suite.h"

static const size_t lengths[] = {0, 1, 2, 5, 8, 63, 64, 127, 511, 1024, 2047, 4099, 16384, 65537, 1 << 20};

static double *in, *out;

static double sum_at(size_t i, int turn) {
    long sum = 0;
    for (int r = 0; r < ranks; r++) sum += given(r, i, turn);
    return (double)sum;
}

static void fill(double *at, size_t count, int turn) {
    for (size_t i = 0; i < count; i++) at[i] = (double)given(rank, i, turn);
}

static void is_sum(const char *what, size_t count, int turn) {
    /* Of long vectors a part, with both ends. */
    size_t step = count > 5000 ? 97 : 1;
    for (size_t i = 0; i < count; i += step)
        CHECK(out[i] == sum_at(i, turn), "%s of %zu doubles: [%zu] is %g, not %g", what, count, i, out[i], sum_at(i, turn));
    if (count)
        CHECK(out[count - 1] == sum_at(count - 1, turn), "%s of %zu doubles: the last is %g", what, count, out[count - 1]);
    CHECK(out[count] == -7, "%s of %zu doubles wrote past its end", what, count);
}

static void untouched(const char *what, size_t count) {
    for (size_t i = 0; i <= count; i++) CHECK(out[i] == -7, "%s of %zu doubles wrote to [%zu]", what, count, i);
}

static void clear(size_t count) {
    for (size_t i = 0; i <= count; i++) out[i] = -7;
}

static void all(size_t count, int turn) {
    fill(in, count, turn);
    clear(count);
    CALL(MPI_Allreduce(in, out, (int)count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    is_sum("allreduce", count, turn);
    for (size_t i = 0; i < count; i++)
        CHECK(in[i] == (double)given(rank, i, turn), "allreduce of %zu doubles changed its input", count);
    clear(count);
    fill(out, count, turn + 1);
    CALL(MPI_Allreduce(MPI_IN_PLACE, out, (int)count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    is_sum("allreduce in place", count, turn + 1);
}

static void rooted(size_t count, int root, int turn) {
    fill(in, count, turn);
    clear(count);
    /* The result's buffer counts at the root alone. */
    CALL(MPI_Reduce(in, rank == root ? out : NULL, (int)count, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD));
    if (rank == root)
        is_sum("reduce", count, turn);
    else
        untouched("reduce", count);
    clear(count);
    /* MPICH 4.0 reads MPI_IN_PLACE itself at a root other than 0 from 2 KiB on. */
    int broken = root != 0 && count * sizeof *out > 2000 && library_is("MPICH Version: 4.0");
    if (broken) {
        CALL(MPI_Reduce(in, rank == root ? out : NULL, (int)count, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD));
    } else if (rank == root) {
        fill(out, count, turn + 2);
        CALL(MPI_Reduce(MPI_IN_PLACE, out, (int)count, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD));
        is_sum("reduce in place", count, turn + 2);
    } else {
        fill(in, count, turn + 2);
        CALL(MPI_Reduce(in, NULL, (int)count, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD));
    }
    clear(count);
    if (rank == root) fill(out, count, turn + 3);
    CALL(MPI_Bcast(out, (int)count, MPI_DOUBLE, root, MPI_COMM_WORLD));
    size_t step = count > 5000 ? 89 : 1;
    for (size_t i = 0; i < count; i += step)
        CHECK(out[i] == (double)given(root, i, turn + 3), "broadcast of %zu doubles from %d: [%zu] is %g", count, root, i, out[i]);
    CHECK(out[count] == -7, "broadcast of %zu doubles wrote past its end", count);
}

/* Nobody leaves a barrier before the last has come. */
static void barriers(void) {
    int token = 0;
    for (int turn = 0; turn < 20; turn++) {
        int late = turn % ranks;
        MPI_Request request = MPI_REQUEST_NULL;
        if (rank != late) CALL(MPI_Irecv(&token, 1, MPI_INT, late, 7, MPI_COMM_WORLD, &request));
        if (rank == late) {
            usleep(2000);
            for (int r = 0; r < ranks; r++)
                if (r != late) CALL(MPI_Send(&turn, 1, MPI_INT, r, 7, MPI_COMM_WORLD));
        }
        CALL(MPI_Barrier(MPI_COMM_WORLD));
        CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(rank == late || token == turn, "barrier %d: token %d", turn, token);
    }
}

/* With memory that only the owner's store fills: a barrier orders stores to a window of shared memory. */
static void barrier_orders_stores(void) {
    MPI_Comm node;
    MPI_Win window;
    int me, size;
    volatile int *own;
    CALL(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    CALL(MPI_Comm_rank(node, &me));
    CALL(MPI_Comm_size(node, &size));
    CALL(MPI_Win_allocate_shared(sizeof *own, sizeof *own, MPI_INFO_NULL, node, (void *)&own, &window));
    CALL(MPI_Win_lock_all(0, window));
    for (int turn = 1; turn <= 200; turn++) {
        *own = turn;
        CALL(MPI_Barrier(node));
        MPI_Aint bytes;
        int unit;
        volatile int *other;
        CALL(MPI_Win_shared_query(window, (me + 1) % size, &bytes, &unit, (void *)&other));
        CHECK(*other == turn, "after barrier %d the neighbour's word is %d", turn, *other);
        CALL(MPI_Barrier(node));
    }
    CALL(MPI_Win_unlock_all(window));
    CALL(MPI_Win_free(&window));
    CALL(MPI_Comm_free(&node));
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    size_t most = lengths[sizeof lengths / sizeof *lengths - 1];
    in = memory((most + 1) * sizeof *in), out = memory((most + 1) * sizeof *out);
    int turn = 0;
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        all(lengths[l], ++turn);
        /* All roots where that is quick. */
        int roots = lengths[l] > 70000 ? (ranks > 1 ? 2 : 1) : ranks;
        for (int k = 0; k < roots; k++) rooted(lengths[l], lengths[l] > 70000 ? k * (ranks - 1) : k, ++turn);
    }
    barriers();
    barrier_orders_stores();
    free(in), free(out);
    return finish();
}
