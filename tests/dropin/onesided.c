/* One-sided communication whose target is in a collective, and collectives between a window's epochs. */
#include "suite.h"

enum { COUNT = 30000 };

static void with_window(MPI_Win window, long *own, MPI_Comm comm, const char *kind) {
    int me, size;
    static long mine[COUNT], got[COUNT];
    CALL(MPI_Comm_rank(comm, &me));
    CALL(MPI_Comm_size(comm, &size));
    for (int turn = 0; turn < 6; turn++) {
        int target = (me + 1) % size, count = turn % 2 ? COUNT : 3;
        for (int i = 0; i < COUNT; i++) mine[i] = me * 100000 + i + turn;
        /* Fences, with a collective inside of the epoch. */
        CALL(MPI_Win_fence(0, window));
        CALL(MPI_Put(mine, count, MPI_LONG, target, 0, count, MPI_LONG, window));
        exercise_count(comm, 50, turn, kind);
        CALL(MPI_Win_fence(0, window));
        for (int i = 0; i < count; i += 7)
            CHECK(own[i] == ((me + size - 1) % size) * 100000 + i + turn, "%s: put [%d] is %ld", kind, i, own[i]);
        CALL(MPI_Barrier(comm));
        /* A passive target: rank 0 sits in the barrier while the others add to its memory. */
        if (me == 0) own[0] = 0;
        CALL(MPI_Win_fence(0, window));
        if (me != 0) {
            long one = 1, before;
            for (int k = 0; k < 5; k++) {
                CALL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window));
                CALL(MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, window));
                CALL(MPI_Win_unlock(0, window));
                CALL(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window));
                CALL(MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, window));
                CALL(MPI_Win_unlock(0, window));
                CHECK(before >= 2 * k + 1, "%s: fetched %ld in round %d", kind, before, k);
            }
        }
        CALL(MPI_Barrier(comm));
        if (me != 0) {
            CALL(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window));
            CALL(MPI_Get(got, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window));
            CALL(MPI_Win_unlock(0, window));
            CHECK(got[0] == 10L * (size - 1), "%s: the counter is %ld, not %ld", kind, got[0], 10L * (size - 1));
        }
        CALL(MPI_Barrier(comm));
    }
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    MPI_Win window;
    long *own;
    static long plain[COUNT];
    CALL(MPI_Win_allocate(COUNT * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window));
    with_window(window, own, MPI_COMM_WORLD, "window of MPI's memory");
    CALL(MPI_Win_free(&window));
    CALL(MPI_Win_create(plain, sizeof plain, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &window));
    with_window(window, plain, MPI_COMM_WORLD, "window of the program's memory");
    CALL(MPI_Win_free(&window));
    CALL(MPI_Alloc_mem(COUNT * sizeof(long), MPI_INFO_NULL, &own));
    CALL(MPI_Win_create(own, COUNT * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &window));
    with_window(window, own, MPI_COMM_WORLD, "window of MPI_Alloc_mem's memory");
    CALL(MPI_Win_free(&window));
    CALL(MPI_Free_mem(own));
    return finish();
}
