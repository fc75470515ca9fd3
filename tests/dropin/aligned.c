/* Users' operators on elements that their compilers take for aligned: as far as malloc aligns memory, and as their extent lets
 * them lie in it. */
#include "suite.h"

enum { MOST = 20000 };

static int extent, odd;

static int alignment(void) { return extent % 16 == 0 ? 16 : extent & -extent; }

/* Bytes, added up, in elements that could hold what is aligned so far. */
static void add(void *in, void *inout, int *len, MPI_Datatype *type) {
    (void)type;
    odd += (uintptr_t)in % (uintptr_t)alignment() != 0 || (uintptr_t)inout % (uintptr_t)alignment() != 0;
    const unsigned char *left = in;
    unsigned char *right = inout;
    for (long i = 0; i < (long)*len * extent; i++) right[i] = (unsigned char)(left[i] + right[i]);
}

static unsigned char byte_of(int giver, long i) { return (unsigned char)(giver * 3 + i % 7); }

static void compare(const unsigned char *found, long first, long bytes, int givers, const char *what) {
    for (long i = 0; i < bytes; i++) {
        unsigned char sum = 0;
        for (int giver = 0; giver < givers; giver++) sum = (unsigned char)(sum + byte_of(giver, first + i));
        CHECK(found[i] == sum, "%s of elements of %d bytes: byte %ld is %d, not %d", what, extent, i, found[i], sum);
    }
    CHECK(odd == 0, "%s of elements of %d bytes: %d calls of the operator with memory that is not aligned", what, extent, odd);
}

static void reduce(MPI_Datatype type, MPI_Op op, int count) {
    long bytes = (long)count * extent;
    unsigned char *send = aligned_alloc(64, (size_t)(bytes * ranks + 63) / 64 * 64);
    unsigned char *recv = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
    CHECK(send && recv, "no memory");
    for (long i = 0; i < bytes * ranks; i++) send[i] = byte_of(rank, i);
    CALL(MPI_Allreduce(send, recv, count, type, op, MPI_COMM_WORLD));
    compare(recv, 0, bytes, ranks, "an allreduce");
    memcpy(recv, send, (size_t)bytes);
    CALL(MPI_Allreduce(MPI_IN_PLACE, recv, count, type, op, MPI_COMM_WORLD));
    compare(recv, 0, bytes, ranks, "an allreduce in place");
    CALL(MPI_Reduce(send, recv, count, type, op, count % ranks, MPI_COMM_WORLD));
    if (rank == count % ranks) compare(recv, 0, bytes, ranks, "a reduction");
    CALL(MPI_Scan(send, recv, count, type, op, MPI_COMM_WORLD));
    compare(recv, 0, bytes, rank + 1, "a scan");
    CALL(MPI_Exscan(send, recv, count, type, op, MPI_COMM_WORLD));
    if (rank > 0) compare(recv, 0, bytes, rank, "an exscan");
    CALL(MPI_Reduce_scatter_block(send, recv, count, type, op, MPI_COMM_WORLD));
    compare(recv, rank * bytes, bytes, ranks, "a reduce_scatter_block");
    free(send);
    free(recv);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    const int extents[] = {8, 12, 16, 24, 32, 40, 48, 64, 104, 240, 1000, 2400, 4096, 4104, 9600};
    for (size_t i = 0; i < sizeof extents / sizeof *extents; i++) {
        MPI_Datatype type;
        extent = extents[i];
        CALL(MPI_Type_contiguous(extent, MPI_BYTE, &type));
        CALL(MPI_Type_commit(&type));
        for (int commutes = 0; commutes < 2; commutes++) {
            MPI_Op op;
            CALL(MPI_Op_create(add, commutes, &op));
            for (int count = 1; (long)count * extent <= MOST; count = count * 3 + 1) reduce(type, op, count);
            CALL(MPI_Op_free(&op));
        }
        CALL(MPI_Type_free(&type));
    }
    return finish();
}
