/* Buffers of MPI_Alloc_mem: many, of all sizes, used from their middle, freed in another order; beside the program's own. */
#include "suite.h"

#include <limits.h>

static void used(char *at, size_t bytes, int turn) {
    size_t count = bytes / sizeof(long);
    long *words = (long *)at;
    if (!count) return;
    for (size_t i = 0; i < count; i++) words[i] = given(rank, i, turn);
    CALL(MPI_Allreduce(MPI_IN_PLACE, words, (int)count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    for (size_t i = 0; i < count; i += 1 + count / 64) {
        long sum = 0;
        for (int r = 0; r < ranks; r++) sum += given(r, i, turn);
        CHECK(words[i] == sum, "in place in memory of MPI, %zu bytes: [%zu] is %ld, not %ld", bytes, i, words[i], sum);
    }
}

/* One buffer of MPI, one of the program; which is which differs from rank to rank. */
static void mixed(size_t count, int turn) {
    long *given_by_mpi, *own = memory(count * sizeof *own);
    CALL(MPI_Alloc_mem((MPI_Aint)(count * sizeof(long)), MPI_INFO_NULL, &given_by_mpi));
    long *in = (rank + turn) % 2 ? given_by_mpi : own, *out = (rank + turn) % 2 ? own : given_by_mpi;
    int root = turn % ranks;
    for (int way = 0; way < 3; way++) {
        for (size_t i = 0; i < count; i++) in[i] = given(rank, i, turn + way), out[i] = -1;
        if (way == 0) CALL(MPI_Allreduce(in, out, (int)count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
        if (way == 1) CALL(MPI_Reduce(in, out, (int)count, MPI_LONG, MPI_SUM, root, MPI_COMM_WORLD));
        if (way == 2) {
            if (rank == root) memcpy(out, in, count * sizeof(long));
            CALL(MPI_Bcast(out, (int)count, MPI_LONG, root, MPI_COMM_WORLD));
        }
        /* What a rank does next with its input must not reach the others. */
        memset(in, 0x11, count * sizeof(long));
        for (size_t i = 0; i < count && (way != 1 || rank == root); i += 1 + count / 512) {
            long sum = 0;
            for (int r = 0; r < ranks; r++) sum += given(r, i, turn + way);
            long should = way == 2 ? given(root, i, turn + way) : sum;
            CHECK(out[i] == should, "mixed buffers, way %d, %zu longs: [%zu] is %ld, not %ld", way, count, i, out[i], should);
        }
    }
    CALL(MPI_Free_mem(given_by_mpi));
    free(own);
}

int main(int argc, char **argv) {
    enum { MANY = 40 };
    char *all[MANY];
    begin(&argc, &argv);
    for (int round = 0; round < 4; round++) {
        for (int k = 0; k < MANY; k++) {
            size_t bytes = (size_t)1 << (k % 20);
            /* Ranks need not ask for the same. */
            CALL(MPI_Alloc_mem((MPI_Aint)(bytes + 64 * (size_t)rank), MPI_INFO_NULL, &all[k]));
            CHECK(all[k] != NULL && (uintptr_t)all[k] % 8 == 0, "memory at %p", (void *)all[k]);
            memset(all[k], k, bytes + 64 * (size_t)rank);
        }
        for (int k = 0; k < MANY; k++) {
            size_t bytes = (size_t)1 << (k % 20);
            CHECK(all[k][0] == (char)k && all[k][bytes - 1] == (char)k, "memory of one is another's");
            used(all[k], bytes, k);
            if (bytes > 64) used(all[k] + 8, bytes - 16, k + 1);
        }
        for (int k = 0; k < MANY; k++) CALL(MPI_Free_mem(all[(k * 7 + round) % MANY]));
    }
    for (int n = 0; n < 19; n++) mixed((size_t)1 << n, n);
    /* An info may ask for an alignment: who is asked gives it, if the library does. */
    MPI_Info info;
    CALL(MPI_Info_create(&info));
    CALL(MPI_Info_set(info, "mpi_minimum_memory_alignment", "1048576"));
    int is_aligned[2] = {1, 1};
    for (int k = 0; k < 20; k++) {
        CALL((k % 2 ? MPI_Alloc_mem : PMPI_Alloc_mem)(8192, info, &all[k]));
        is_aligned[k % 2] &= (uintptr_t)all[k] % (1 << 20) == 0;
    }
    CHECK(is_aligned[1] || !is_aligned[0], "memory is not aligned as an info asks, and the library's is");
    for (int k = 0; k < 20; k++) CALL((k % 2 ? MPI_Free_mem : PMPI_Free_mem)(all[k]));
    CALL(MPI_Info_free(&info));
    /* More than there is: an error, and not the end. */
    void *none = NULL;
    CALL(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    CALL(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    int theirs = class_of(PMPI_Alloc_mem(-5, MPI_INFO_NULL, &none)), ours = class_of(MPI_Alloc_mem(-5, MPI_INFO_NULL, &none));
    CHECK(theirs == ours, "-5 bytes: error class %d, the library's is %d", ours, theirs);
    theirs = class_of(PMPI_Alloc_mem(LONG_MAX / 4, MPI_INFO_NULL, &none)), ours = class_of(MPI_Alloc_mem(LONG_MAX / 4, MPI_INFO_NULL, &none));
    CHECK(theirs == ours, "2^61 bytes: error class %d, the library's is %d", ours, theirs);
    CALL(MPI_Alloc_mem(0, MPI_INFO_NULL, &none));
    CALL(MPI_Free_mem(none));
    CALL(MPI_Alloc_mem(100, MPI_INFO_NULL, &none));
    /* What is not freed is MPI_Finalize's. */
    return finish();
}
