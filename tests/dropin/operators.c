/* Operators of the program: commutative or not, on predefined types, on structures with gaps, of any width, in place, on long vectors; what
 * they are called with; that they may be freed while nothing runs. */
#include "suite.h"

#include <stddef.h>

/* x -> slope x + offset, modulo 9973: composition is associative and does not commute. */
struct map {
    char label;
    int slope;
    char gap[9];
    int offset;
};
enum { PRIME = 9973 };

static MPI_Datatype expected_type;
static long called, elements;

static struct map composed(struct map first, struct map then) {
    first.offset = (then.slope * first.offset + then.offset) % PRIME;
    first.slope = then.slope * first.slope % PRIME;
    return first;
}

static void compose(void *in, void *inout, int *length, MPI_Datatype *type) {
    struct map *a = in, *b = inout;
    if (*type != expected_type) fail(__FILE__, __LINE__, "the operator is called with another type than the call's");
    if (*length < 1) fail(__FILE__, __LINE__, "the operator is called for %d elements", *length);
    for (int i = 0; i < *length; i++) {
        struct map made = composed(a[i], b[i]);
        b[i].slope = made.slope, b[i].offset = made.offset;
    }
    called++, elements += *length;
}

static struct map map_of(int from, size_t i, int turn) {
    struct map one;
    memset(&one, 0x33, sizeof one);
    one.slope = (int)(2 + given(from, i, turn));
    one.offset = (int)(3 + given(from, i + 1, turn));
    return one;
}

static MPI_Datatype map_type(void) {
    int blocks[2] = {1, 1};
    MPI_Aint at[2] = {offsetof(struct map, slope), offsetof(struct map, offset)};
    MPI_Datatype parts[2] = {MPI_INT, MPI_INT}, bare, type;
    CALL(MPI_Type_create_struct(2, blocks, at, parts, &bare));
    CALL(MPI_Type_create_resized(bare, 0, sizeof(struct map), &type));
    CALL(MPI_Type_commit(&type));
    CALL(MPI_Type_free(&bare));
    return type;
}

/* The composition of all ranks' maps in rank order; gaps keep what they held. */
static void in_rank_order(size_t count, int turn) {
    static struct map in[60000], out[60000];
    MPI_Op op;
    expected_type = map_type();
    CALL(MPI_Op_create(compose, 0, &op));
    int commutes = 1;
    CALL(MPI_Op_commutative(op, &commutes));
    CHECK(commutes == 0, "the operator is said to commute");
    for (int way = 0; way < 4; way++) {
        int root = (turn + way) % ranks, here = way < 2 || rank == root;
        for (size_t i = 0; i < count; i++) in[i] = map_of(rank, i, turn + way);
        memset(out, 0x77, count * sizeof *out);
        called = elements = 0;
        if (way == 0) CALL(MPI_Allreduce(in, out, (int)count, expected_type, op, MPI_COMM_WORLD));
        if (way == 1) {
            memcpy(out, in, count * sizeof *in);
            CALL(MPI_Allreduce(MPI_IN_PLACE, out, (int)count, expected_type, op, MPI_COMM_WORLD));
        }
        if (way == 2) CALL(MPI_Reduce(in, out, (int)count, expected_type, op, root, MPI_COMM_WORLD));
        if (way == 3) {
            if (rank == root) memcpy(out, in, count * sizeof *in);
            CALL(MPI_Reduce(rank == root ? MPI_IN_PLACE : in, out, (int)count, expected_type, op, root, MPI_COMM_WORLD));
        }
        for (size_t i = 0; here && i < count; i++) {
            struct map should = map_of(0, i, turn + way);
            for (int r = 1; r < ranks; r++) should = composed(should, map_of(r, i, turn + way));
            CHECK(out[i].slope == should.slope && out[i].offset == should.offset,
                  "way %d, %zu maps, root %d: [%zu] is %d x + %d, not %d x + %d", way, count, root, i, out[i].slope, out[i].offset,
                  should.slope, should.offset);
            if (way == 0 || way == 2)
                CHECK(out[i].gap[0] == 0x77 || out[i].gap[0] == 0x33, "way %d: a gap holds %d", way, out[i].gap[0]);
        }
        for (size_t i = 0; way % 2 == 0 && i < count; i++) {
            struct map mine = map_of(rank, i, turn + way);
            CHECK(memcmp(&in[i], &mine, sizeof mine) == 0, "way %d changed its input", way);
        }
    }
    CALL(MPI_Op_free(&op));
    CHECK(op == MPI_OP_NULL, "the freed operator is not MPI_OP_NULL");
    CALL(MPI_Type_free(&expected_type));
}

/* The same, of which each rank gets its part: parts of other lengths, or of the same. */
static void in_rank_order_scattered(int longest, int turn) {
    static struct map in[40000], out[40000];
    int *lengths = memory((size_t)ranks * sizeof *lengths);
    MPI_Op op;
    expected_type = map_type();
    CALL(MPI_Op_create(compose, 0, &op));
    /* MPICH's own MPI_Reduce_scatter_block of elements with gaps is wrong where operands may not change places. */
    int ways = library_is("MPICH") || library_is("Intel(R) MPI") ? 2 : 4;
    for (int way = 0; way < ways; way++) {
        int total = 0, before = 0;
        for (int r = 0; r < ranks; r++) lengths[r] = way < 2 ? (longest + 3 * r + turn) % (longest + 1) : longest;
        for (int r = 0; r < ranks; r++) total += lengths[r], before += r < rank ? lengths[r] : 0;
        for (int i = 0; i < total; i++) in[i] = map_of(rank, (size_t)i, turn + way);
        memset(out, 0x77, sizeof out);
        void *from = way % 2 ? MPI_IN_PLACE : (void *)in;
        if (way % 2) memcpy(out, in, (size_t)total * sizeof *in);
        if (way < 2)
            CALL(MPI_Reduce_scatter(from, out, lengths, expected_type, op, MPI_COMM_WORLD));
        else
            CALL(MPI_Reduce_scatter_block(from, out, longest, expected_type, op, MPI_COMM_WORLD));
        for (int i = 0; i < lengths[rank]; i++) {
            struct map should = map_of(0, (size_t)(before + i), turn + way);
            for (int r = 1; r < ranks; r++) should = composed(should, map_of(r, (size_t)(before + i), turn + way));
            CHECK(out[i].slope == should.slope && out[i].offset == should.offset, "scattered, way %d, %d maps: [%d] is %d x + %d, not %d x + %d",
                  way, total, i, out[i].slope, out[i].offset, should.slope, should.offset);
        }
        struct map beyond;
        memset(&beyond, 0x77, sizeof beyond);
        for (int i = lengths[rank]; way % 2 == 0 && i < total; i++)
            CHECK(memcmp(&out[i], &beyond, sizeof beyond) == 0, "scattered, way %d: [%d] behind the own part was written", way, i);
    }
    CALL(MPI_Op_free(&op));
    CALL(MPI_Type_free(&expected_type));
    free(lengths);
}

static void gcd(void *in, void *inout, int *length, MPI_Datatype *type) {
    if (*type != expected_type) fail(__FILE__, __LINE__, "the operator is called with another type than the call's");
    uint64_t *a = in, *b = inout;
    for (int i = 0; i < *length; i++) {
        uint64_t x = a[i], y = b[i];
        while (y) {
            uint64_t rest = x % y;
            x = y, y = rest;
        }
        b[i] = x;
    }
}

static uint64_t factor(int from, size_t i) { return 60 * (2 + (uint64_t)(from % 3)) * (1 + i % 7); }

/* One that commutes, on a predefined type: each handle comes to it as it was given. */
static void commutative(size_t count) {
    MPI_Op op;
    MPI_Datatype same[] = {MPI_UINT64_T, MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG};
    uint64_t *in = memory(count * sizeof *in), *out = memory(count * sizeof *out);
    CALL(MPI_Op_create(gcd, 1, &op));
    for (size_t t = 0; t < sizeof same / sizeof *same; t++) {
        expected_type = same[t];
        for (size_t i = 0; i < count; i++) in[i] = factor(rank, i);
        CALL(MPI_Allreduce(in, out, (int)count, same[t], op, MPI_COMM_WORLD));
        for (size_t i = 0; i < count; i++) {
            uint64_t should = ranks == 1 ? factor(0, i) : 60 * (1 + i % 7);
            CHECK(out[i] == should, "gcd [%zu] of %zu: %lu, not %lu", i, count, (unsigned long)out[i], (unsigned long)should);
        }
    }
    CALL(MPI_Op_free(&op));
    free(in), free(out);
}

/* Sums of bytes, of elements of any width, which may end in a gap. */
static int data_bytes;

static void sum_bytes(void *in, void *inout, int *length, MPI_Datatype *type) {
    MPI_Aint low, extent;
    PMPI_Type_get_extent(*type, &low, &extent);
    for (int i = 0; i < *length; i++)
        for (int k = 0; k < data_bytes; k++) ((unsigned char *)inout)[i * extent + k] += ((unsigned char *)in)[i * extent + k];
}

/* Joins them in pairs of bytes, a x + b: where operands may not change places. */
static void join_bytes(void *in, void *inout, int *length, MPI_Datatype *type) {
    MPI_Aint low, extent;
    PMPI_Type_get_extent(*type, &low, &extent);
    for (int i = 0; i < *length; i++)
        for (int k = 0; k + 1 < data_bytes; k += 2) {
            unsigned char *a = (unsigned char *)in + i * extent + k, *b = (unsigned char *)inout + i * extent + k;
            b[1] = (unsigned char)(b[0] * a[1] + b[1]), b[0] = (unsigned char)(b[0] * a[0]);
        }
}

static unsigned char byte_of(int from, size_t at) { return (unsigned char)(1 + from * 2 + at % 253 + at / 253 * 5); }

/* What ranks 0 to `last` make of the bytes at `at` and behind. */
static unsigned char bytes_of_all(int last, size_t at, int k, int commutes) {
    if (commutes) {
        unsigned char sum = 0;
        for (int r = 0; r <= last; r++) sum = (unsigned char)(sum + byte_of(r, at));
        return sum;
    }
    size_t first = at - (size_t)(k % 2);
    unsigned char slope = byte_of(0, first), offset = byte_of(0, first + 1);
    for (int r = 1; r <= last; r++) {
        unsigned char then = byte_of(r, first);
        offset = (unsigned char)(then * offset + byte_of(r, first + 1)), slope = (unsigned char)(then * slope);
    }
    return k % 2 ? offset : slope;
}

/* Every way of reducing elements of a width; nothing behind the last one is touched. */
static void of_width(int width, int gap, size_t count, int commutes) {
    size_t extent = (size_t)(width + gap), bytes = count * extent;
    unsigned char *in = memory(bytes), *out = memory(bytes + 64);
    MPI_Datatype bare, type;
    MPI_Op op;
    data_bytes = width;
    CALL(MPI_Type_contiguous(width, MPI_BYTE, &bare));
    CALL(MPI_Type_create_resized(bare, 0, (MPI_Aint)extent, &type));
    CALL(MPI_Type_commit(&type));
    CALL(MPI_Op_create(commutes ? sum_bytes : join_bytes, commutes, &op));
    for (size_t i = 0; i < bytes; i++) in[i] = byte_of(rank, i);
    /* As above: MPICH's own MPI_Reduce_scatter_block is wrong of some, and so is its MPI_Reduce in place at another root than 0. */
    int is_mpich = library_is("MPICH") || library_is("Intel(R) MPI"), ways = is_mpich && gap && !commutes ? 5 : 6;
    for (int way = 0; way < ways; way++) {
        int root = way == 3 && is_mpich ? 0 : way % ranks, gets = way < 2 || way > 3 || rank == root;
        size_t results = way == 5 ? count / (size_t)ranks : count, before = way == 5 ? (size_t)rank * results : 0;
        memset(out, 0x77, bytes + 64);
        if (way % 2 && way < 4 && gets) memcpy(out, in, bytes);
        if (way == 0) CALL(MPI_Allreduce(in, out, (int)count, type, op, MPI_COMM_WORLD));
        if (way == 1) CALL(MPI_Allreduce(MPI_IN_PLACE, out, (int)count, type, op, MPI_COMM_WORLD));
        if (way == 2) CALL(MPI_Reduce(in, out, (int)count, type, op, root, MPI_COMM_WORLD));
        if (way == 3) CALL(MPI_Reduce(rank == root ? MPI_IN_PLACE : in, out, (int)count, type, op, root, MPI_COMM_WORLD));
        if (way == 4) CALL(MPI_Scan(in, out, (int)count, type, op, MPI_COMM_WORLD));
        if (way == 5) CALL(MPI_Reduce_scatter_block(in, out, (int)results, type, op, MPI_COMM_WORLD));
        for (size_t i = 0; gets && i < results; i++)
            for (int k = 0; k < width - (commutes ? 0 : width % 2); k++) {
                unsigned char should = bytes_of_all(way == 4 ? rank : ranks - 1, (before + i) * extent + (size_t)k, k, commutes);
                CHECK(out[i * extent + (size_t)k] == should, "way %d, %zu elements of %d and %d bytes, commutes %d: byte %d of [%zu] is %d, not %d",
                      way, count, width, gap, commutes, k, i, out[i * extent + (size_t)k], should);
            }
        for (size_t i = results * extent; gets && !(way % 2 && way < 4 && i < bytes) && i < bytes + 64; i++)
            CHECK(out[i] == 0x77, "way %d, %zu elements of %d and %d bytes: byte %zu behind them was written", way, count, width, gap, i);
    }
    CALL(MPI_Op_free(&op));
    CALL(MPI_Type_free(&type));
    CALL(MPI_Type_free(&bare));
    free(in), free(out);
}

static void of_all_widths(void) {
    static const int widths[] = {1, 3, 12, 20, 24, 28, 36, 40, 48, 56, 60, 72, 80, 88, 96, 104, 130, 200, 1000};
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (int commutes = 0; commutes < 2; commutes++) {
            of_width(widths[w], 0, (size_t)ranks, commutes);
            of_width(widths[w], 0, 24000 / (size_t)widths[w] + 5, commutes);
            of_width(widths[w], w % 2 ? 8 : 3, 6000 / (size_t)widths[w] + 5, commutes);
        }
    of_width(104, 0, 1000, 1);
    of_width(24, 0, 20000, 1);
}

/* The first operand wins: on every rank that is rank 0's. */
static void first(void *in, void *inout, int *length, MPI_Datatype *type) {
    int bytes;
    PMPI_Type_size(*type, &bytes);
    memcpy(inout, in, (size_t)*length * (size_t)bytes);
}

static void left_projection(void) {
    MPI_Op op;
    CALL(MPI_Op_create(first, 0, &op));
    for (int n = 0; n < 12; n++) {
        int count = 1 << n;
        short *in = memory((size_t)count * sizeof *in), *out = memory((size_t)count * sizeof *out);
        for (int i = 0; i < count; i++) in[i] = (short)(rank * 1000 + i % 1000);
        CALL(MPI_Allreduce(in, out, count, MPI_SHORT, op, MPI_COMM_WORLD));
        for (int i = 0; i < count; i++) CHECK(out[i] == i % 1000, "%d shorts: [%d] is of rank %d", count, i, out[i] / 1000);
        free(in), free(out);
    }
    CALL(MPI_Op_free(&op));
}

/* An operator that asks MPI for things, which programs do; and one that sends its own rank a message and receives it, and calls a
 * collective of its own, which the standard forbids and libraries bear. */
static int talks;

static void asking(void *in, void *inout, int *length, MPI_Datatype *type) {
    MPI_Aint low, extent;
    int bytes, flag;
    CALL(MPI_Type_get_extent(*type, &low, &extent));
    CALL(MPI_Type_size(*type, &bytes));
    CALL(MPI_Initialized(&flag));
    int me, of_world;
    CALL(MPI_Comm_rank(MPI_COMM_WORLD, &me));
    CALL(MPI_Comm_size(MPI_COMM_WORLD, &of_world));
    if (me != rank || of_world != ranks) fail(__FILE__, __LINE__, "within an operator this is rank %d of %d", me, of_world);
    if (talks) {
        MPI_Request request;
        long word = 17 * me, answer = -1, sum = -1;
        CALL(MPI_Irecv(&answer, 1, MPI_LONG, 0, 3, MPI_COMM_SELF, &request));
        CALL(MPI_Send(&word, 1, MPI_LONG, 0, 3, MPI_COMM_SELF));
        CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CALL(MPI_Allreduce(&word, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_SELF));
        if (answer != word || sum != word) fail(__FILE__, __LINE__, "a message to this rank was %ld, a sum %ld, not %ld", answer, sum, word);
    }
    for (MPI_Aint i = 0; i < *length * extent; i++) ((unsigned char *)inout)[i] ^= ((unsigned char *)in)[i];
}

static void operators_that_call_mpi(void) {
    MPI_Op op;
    uint32_t mine[3] = {0x01010101u << (rank % 8), (uint32_t)rank, 5}, out[3], should[3] = {0, 0, 0};
    CALL(MPI_Op_create(asking, 1, &op));
    for (int r = 0; r < ranks; r++) should[0] ^= 0x01010101u << (r % 8), should[1] ^= (uint32_t)r, should[2] ^= 5;
    for (talks = 0; talks < 2; talks++)
        for (int turn = 0; turn < 6; turn++) {
            int root = turn % ranks;
            memset(out, 0, sizeof out);
            if (turn % 2)
                CALL(MPI_Allreduce(mine, out, 3, MPI_UINT32_T, op, MPI_COMM_WORLD));
            else
                CALL(MPI_Reduce(mine, out, 3, MPI_UINT32_T, op, root, MPI_COMM_WORLD));
            if (turn % 2 || rank == root) CHECK(memcmp(out, should, sizeof out) == 0, "exclusive or: %x %x %x", out[0], out[1], out[2]);
        }
    CALL(MPI_Op_free(&op));
}

/* Nothing to combine: an operator that is not called. */
static void never(void *in, void *inout, int *length, MPI_Datatype *type) {
    (void)in, (void)inout, (void)type;
    if (*length != 0) fail(__FILE__, __LINE__, "an operator was called for %d elements of an empty call", *length);
}

static void empty(void) {
    MPI_Op op;
    CALL(MPI_Op_create(never, 0, &op));
    CALL(MPI_Allreduce(NULL, NULL, 0, MPI_INT, op, MPI_COMM_WORLD));
    CALL(MPI_Reduce(NULL, NULL, 0, MPI_INT, op, ranks - 1, MPI_COMM_WORLD));
    CALL(MPI_Op_free(&op));
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    static const size_t counts[] = {1, 2, 7, 63, 1000, 4097, 60000};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        in_rank_order(counts[c], (int)c);
        commutative(counts[c]);
    }
    static const int parts[] = {1, 2, 40, 900};
    for (size_t c = 0; c < sizeof parts / sizeof *parts; c++) in_rank_order_scattered(parts[c], (int)c);
    of_all_widths();
    left_projection();
    operators_that_call_mpi();
    empty();
    return finish();
}
