/* The large-count forms, which take an MPI_Count, where the library has them; and, when asked for, vectors of more than 2 GiB, or
 * single elements of a derived type that are so long.
 *
 * usage: large [long | element] */
#define _GNU_SOURCE
#include "suite.h"

#include <dlfcn.h>

#if MPI_VERSION >= 4
static void forms(MPI_Count count, int turn) {
    int root = turn % ranks;
    double *in = memory((size_t)count * sizeof *in), *out = memory((size_t)count * sizeof *out);
    for (MPI_Count i = 0; i < count; i++) in[i] = (double)given(rank, (size_t)i, turn), out[i] = -1;
    CALL(MPI_Allreduce_c(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    for (int way = 0; way < 4; way++) {
        for (MPI_Count i = 0; i < count; i += 1 + count / 1000) {
            double sum = 0;
            for (int r = 0; r < ranks; r++) sum += (double)given(r, (size_t)i, turn);
            double should = way == 3 ? (double)given(root, (size_t)i, turn) : way == 2 && rank != root ? -1 : sum;
            CHECK(out[i] == should, "way %d, %lld doubles: [%lld] is %g, not %g", way, (long long)count, (long long)i, out[i], should);
        }
        for (MPI_Count i = 0; i < count; i++) out[i] = way == 0 || (way == 2 && rank == root) ? in[i] : -1;
        if (way == 0) CALL(MPI_Allreduce_c(MPI_IN_PLACE, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
        if (way == 1) CALL(MPI_Reduce_c(in, out, count, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD));
        if (way == 2) CALL(MPI_Bcast_c(out, count, MPI_DOUBLE, root, MPI_COMM_WORLD));
    }
    free(in), free(out);
}

/* One rank may call the one form, another the other: it is the same collective. */
static void both_forms(void) {
    for (int turn = 0; turn < 12; turn++) {
        int root = turn % ranks, count = 1 + 100 * turn;
        long *in = memory((size_t)count * sizeof *in), *out = memory((size_t)count * sizeof *out);
        for (int i = 0; i < count; i++) in[i] = given(rank, (size_t)i, turn);
        if ((rank + turn) % 2) {
            CALL(MPI_Allreduce(in, out, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
            CALL(MPI_Bcast(in, count, MPI_LONG, root, MPI_COMM_WORLD));
        } else {
            CALL(MPI_Allreduce_c(in, out, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
            CALL(MPI_Bcast_c(in, count, MPI_LONG, root, MPI_COMM_WORLD));
        }
        for (int i = 0; i < count; i++) {
            long sum = 0;
            for (int r = 0; r < ranks; r++) sum += given(r, (size_t)i, turn);
            CHECK(out[i] == sum, "both forms of allreduce: [%d] is %ld, not %ld", i, out[i], sum);
            CHECK(in[i] == given(root, (size_t)i, turn), "both forms of broadcast: [%d] is %ld", i, in[i]);
        }
        free(in), free(out);
    }
}

static void add_counted(void *in, void *inout, MPI_Count *length, MPI_Datatype *type) {
    (void)type;
    for (MPI_Count i = 0; i < *length; i++) ((long *)inout)[i] += ((long *)in)[i];
}

/* An operator whose function takes an MPI_Count. */
static void counted_operator(void) {
    MPI_Op op;
    CALL(MPI_Op_create_c(add_counted, 1, &op));
    for (int count = 1; count < 5000; count *= 7) {
        long *in = memory((size_t)count * sizeof *in), *out = memory((size_t)count * sizeof *out);
        for (int way = 0; way < 2; way++) {
            for (int i = 0; i < count; i++) in[i] = given(rank, (size_t)i, way);
            if (way)
                CALL(MPI_Allreduce_c(in, out, count, MPI_LONG, op, MPI_COMM_WORLD));
            else
                CALL(MPI_Allreduce(in, out, count, MPI_LONG, op, MPI_COMM_WORLD));
            for (int i = 0; i < count; i++) {
                long sum = 0;
                for (int r = 0; r < ranks; r++) sum += given(r, (size_t)i, way);
                CHECK(out[i] == sum, "operator that counts by MPI_Count: [%d] is %ld, not %ld", i, out[i], sum);
            }
        }
        free(in), free(out);
    }
    CALL(MPI_Op_free(&op));
}
#endif

#if MPI_VERSION < 4
/* A library without these forms may yet find their names in the process, if something stands in front of it: then they work, and
 * refuse what the library cannot do. Programs that look names up while they run ask so. */
static void looked_up(void) {
    int (*sum_of)(const void *, void *, long long, MPI_Datatype, MPI_Op, MPI_Comm) = dlsym(RTLD_DEFAULT, "MPI_Allreduce_c");
    int (*send)(void *, long long, MPI_Datatype, int, MPI_Comm) = dlsym(RTLD_DEFAULT, "MPI_Bcast_c");
    int (*sum_at)(const void *, void *, long long, MPI_Datatype, MPI_Op, int, MPI_Comm) = dlsym(RTLD_DEFAULT, "MPI_Reduce_c");
    if (!sum_of && !send && !sum_at) return;
    CHECK(sum_of && send && sum_at, "some names with large counts are there, others not");
    MPI_Comm other;
    CALL(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    CALL(MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN));
    for (int turn = 0; turn < 3; turn++) {
        MPI_Comm comm = turn == 1 ? MPI_COMM_SELF : other;
        long mine[3] = {rank + 1, 2, 3}, sum[3] = {-1, -1, -1};
        long should = turn == 1 ? rank + 1 : (long)ranks * (ranks + 1) / 2;
        CALL(sum_of(mine, sum, turn == 2 ? 3 : 1, MPI_LONG, MPI_SUM, comm));
        CHECK(sum[0] == should, "allreduce that was looked up: %ld, not %ld", sum[0], should);
        sum[0] = -1;
        CALL(sum_at(mine, sum, 1, MPI_LONG, MPI_SUM, 0, comm));
        CHECK(sum[0] == (rank == 0 || turn == 1 ? should : -1), "reduce that was looked up: %ld, not %ld", sum[0], should);
        CALL(send(mine, 1, MPI_LONG, 0, comm));
        CHECK(mine[0] == (turn == 1 ? rank + 1 : 1), "broadcast that was looked up: %ld", mine[0]);
    }
    long word = 0, result = 0;
    int class = 0;
    MPI_Comm alone;
    CALL(MPI_Comm_dup(MPI_COMM_SELF, &alone));
    CALL(MPI_Comm_set_errhandler(alone, MPI_ERRORS_RETURN));
    int code = sum_of(&word, &result, (long long)1 << 40, MPI_LONG, MPI_BOR, alone);
    if (code != MPI_SUCCESS) CALL(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_COUNT, "2^40 numbers: class %d", class);
    CALL(MPI_Comm_free(&alone));
    CALL(MPI_Comm_free(&other));
}
#endif

/* More octets than an int counts. */
static void beyond_an_int(void) {
    size_t count = ((size_t)1 << 31) / sizeof(double) + 1000;
    double *in = memory(count * sizeof *in), *out = memory(count * sizeof *out);
    for (size_t i = 0; i < count; i++) in[i] = (double)given(rank, i, 1), out[i] = -1;
    CALL(MPI_Allreduce(in, out, (int)count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    for (size_t i = 0; i < count; i += 9973) {
        double sum = 0;
        for (int r = 0; r < ranks; r++) sum += (double)given(r, i, 1);
        CHECK(out[i] == sum, "[%zu] of more than 2 GiB is %g, not %g", i, out[i], sum);
    }
    CALL(MPI_Bcast(in, (int)count, MPI_DOUBLE, ranks - 1, MPI_COMM_WORLD));
    for (size_t i = 0; i < count; i += 9973) CHECK(in[i] == (double)given(ranks - 1, i, 1), "broadcast of more than 2 GiB: [%zu]", i);
    free(in), free(out);
}

/* One element that has more octets than an int counts, with gaps or without; elsewhere the same signature is that of many integers. */
enum { BLOCK = 16 << 20, BLOCKS = 129, MOST_GAP = 4096 };

/* What a rank contributes at a place of the signature. */
static unsigned char octet(int from, size_t at, int turn) { return (unsigned char)(at * 7 + at / BLOCK * 31 + (size_t)from * 13 + (size_t)turn); }

/* Looks at the ends and the middle of each block, and at the gap behind it. */
static void look(const unsigned char *data, size_t gap, int from, int turn, const char *what) {
    static const size_t places[] = {0, 1, BLOCK / 2 + 77, BLOCK - 1};
    for (size_t b = 0; b < BLOCKS; b++) {
        for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
            unsigned char is = data[b * (BLOCK + gap) + places[p]], should = octet(from, b * BLOCK + places[p], turn);
            CHECK(is == should, "%s of one long element: block %zu, octet %zu is %d, not %d", what, b, places[p], is, should);
        }
        for (size_t i = 0; b + 1 < BLOCKS && i < gap; i++)
            CHECK(data[b * (BLOCK + gap) + BLOCK + i] == 0xee, "%s of one long element: the gap behind block %zu was written", what, b);
    }
}

static void prepare(unsigned char *data, size_t gap, int is_mine, int turn) {
    memset(data, 0xee, (size_t)BLOCKS * (BLOCK + gap));
    for (size_t b = 0; b < BLOCKS && is_mine; b++)
        for (size_t i = 0; i < BLOCK; i++) data[b * (BLOCK + gap) + i] = octet(rank, b * BLOCK + i, turn);
}

static void long_elements(void) {
    int *counts = memory((size_t)ranks * sizeof *counts), *displs = memory((size_t)ranks * sizeof *displs);
    unsigned char *data = memory((size_t)BLOCKS * (BLOCK + MOST_GAP));
    MPI_Datatype block;
    CALL(MPI_Type_contiguous(BLOCK, MPI_BYTE, &block));
    for (int turn = 0; turn < 4; turn++) {
        /* Without gaps, with them; from the last rank to the first, and back. */
        size_t gap = turn % 2 ? MOST_GAP : 0;
        int root = turn / 2 ? 0 : ranks - 1, has_element = (rank == root) == (turn < 3);
        MPI_Datatype type;
        if (gap)
            CALL(MPI_Type_create_hvector(BLOCKS, 1, BLOCK + MOST_GAP, block, &type));
        else
            CALL(MPI_Type_contiguous(BLOCKS, block, &type));
        CALL(MPI_Type_commit(&type));
        prepare(data, has_element ? gap : 0, rank == root, turn);
        if (has_element)
            CALL(MPI_Bcast(data, 1, type, root, MPI_COMM_WORLD));
        else
            CALL(MPI_Bcast(data, BLOCKS * (BLOCK / 8), MPI_DOUBLE, root, MPI_COMM_WORLD));
        look(data, has_element ? gap : 0, root, turn, "broadcast");
        if (turn == 3) {
            /* The block of one rank is such an element; all others are empty. */
            int giver = ranks - 1;
            for (int r = 0; r < ranks; r++) counts[r] = r == giver, displs[r] = 0;
            prepare(data, gap, rank == giver, turn + 1);
            if (rank == 0)
                CALL(MPI_Gatherv(NULL, 0, MPI_BYTE, data, counts, displs, type, 0, MPI_COMM_WORLD));
            else
                CALL(MPI_Gatherv(data, rank == giver, type, NULL, NULL, NULL, type, 0, MPI_COMM_WORLD));
            if (rank == 0 || rank == giver) look(data, gap, giver, turn + 1, "gatherv");
        }
        CALL(MPI_Type_free(&type));
    }
    CALL(MPI_Type_free(&block));
    free(data), free(counts), free(displs);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
#if MPI_VERSION >= 4
    static const MPI_Count counts[] = {0, 1, 8, 70, 5000, 300000};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) forms(counts[c], (int)c);
    both_forms();
    counted_operator();
#endif
#if MPI_VERSION < 4
    looked_up();
#endif
    if (argc > 1 && strcmp(argv[1], "long") == 0) beyond_an_int();
    if (argc > 1 && strcmp(argv[1], "element") == 0) long_elements();
    return finish();
}
