/* Broadcasts of derived types: gaps, negative lower bounds, types that walk backwards, absolute addresses, nothing at all; and
 * signatures that match while the types differ from rank to rank. And blocks of such types that change places. */
#include "suite.h"

#include <stddef.h>

enum { WORDS = 4000 };
static int words[WORDS + 8], before[WORDS + 8];

static void prepare(int root, int turn) {
    for (int i = 0; i < WORDS + 8; i++) words[i] = rank == root ? (int)given(root, (size_t)i, turn) : -1 - i;
    memcpy(before, words, sizeof words);
}

/* Words that `taken` names are the root's in the order of `taken`; all others are as they were. */
static void compare(int root, int turn, const int *taken, const int *source, int count, const char *what) {
    static char is_taken[WORDS + 8];
    memset(is_taken, 0, sizeof is_taken);
    for (int k = 0; k < count; k++) {
        int should = (int)given(root, (size_t)source[k], turn);
        is_taken[taken[k]] = 1;
        CHECK(words[taken[k]] == should, "%s from %d: [%d] is %d, not %d", what, root, taken[k], words[taken[k]], should);
    }
    for (int i = 0; i < WORDS + 8; i++)
        CHECK(is_taken[i] || words[i] == before[i], "%s from %d: the gap at [%d] was written", what, root, i);
}

/* Broadcasts `count` of a type whose words, in order, are those of `taken`, relative to words + at. */
static void send(MPI_Datatype type, int count, int at, const int *taken, int words_taken, int root, int turn, const char *what) {
    CALL(MPI_Type_commit(&type));
    prepare(root, turn);
    CALL(MPI_Bcast(words + at, count, type, root, MPI_COMM_WORLD));
    compare(root, turn, taken, taken, words_taken, what);
    CALL(MPI_Type_free(&type));
}

static void layouts(int root, int turn) {
    static int taken[WORDS];
    MPI_Datatype type, inner;
    int n = 0;
    CALL(MPI_Type_vector(300, 2, 5, MPI_INT, &type));
    for (int b = 0; b < 300; b++) taken[n++] = 5 * b, taken[n++] = 5 * b + 1;
    send(type, 1, 0, taken, n, root, turn, "vector");
    n = 0;
    /* Several of one with a gap at its end. */
    CALL(MPI_Type_vector(2, 1, 3, MPI_INT, &inner));
    CALL(MPI_Type_create_resized(inner, 0, 6 * sizeof(int), &type));
    for (int k = 0; k < 100; k++) taken[n++] = 6 * k, taken[n++] = 6 * k + 3;
    send(type, 100, 0, taken, n, root, turn, "resized vector");
    CALL(MPI_Type_free(&inner));
    n = 0;
    /* Blocks before the address that is given: the lower bound is negative. */
    int lengths[3] = {2, 1, 3}, at[3] = {-100, 7, -40};
    CALL(MPI_Type_indexed(3, lengths, at, MPI_INT, &type));
    MPI_Aint low, extent;
    CALL(MPI_Type_get_extent(type, &low, &extent));
    CHECK(low == -100 * (MPI_Aint)sizeof(int), "the lower bound is %ld", (long)low);
    int indexed[6] = {400, 401, 507, 460, 461, 462};
    send(type, 1, 500, indexed, 6, root, turn, "indexed with a negative lower bound");
    /* From the last to the first. */
    CALL(MPI_Type_create_hvector(200, 1, -2 * (MPI_Aint)sizeof(int), MPI_INT, &type));
    for (n = 0; n < 200; n++) taken[n] = 900 - 2 * n;
    send(type, 1, 900, taken, n, root, turn, "vector with a negative stride");
    int sizes[2] = {40, 50}, part[2] = {30, 20}, start[2] = {4, 9};
    CALL(MPI_Type_create_subarray(2, sizes, part, start, MPI_ORDER_C, MPI_INT, &type));
    n = 0;
    for (int i = 0; i < 30; i++)
        for (int j = 0; j < 20; j++) taken[n++] = (4 + i) * 50 + 9 + j;
    send(type, 1, 0, taken, n, root, turn, "subarray");
    /* A copy of a predefined type, and a contiguous one: no gaps, and not predefined. */
    CALL(MPI_Type_dup(MPI_INT, &type));
    for (n = 0; n < 700; n++) taken[n] = 10 + n;
    send(type, 700, 10, taken, n, root, turn, "dup of MPI_INT");
    CALL(MPI_Type_contiguous(70, MPI_INT, &type));
    send(type, 10, 10, taken, n, root, turn, "contiguous");
    /* Contiguous in memory, but not in order. */
    int ones[4] = {1, 1, 1, 1}, mixed[4] = {3, 0, 2, 1}, mixed_taken[4] = {53, 50, 52, 51};
    CALL(MPI_Type_indexed(4, ones, mixed, MPI_INT, &type));
    send(type, 1, 50, mixed_taken, 4, root, turn, "indexed out of order");
}

/* Without gaps, but two octets have changed places, far apart: those at 251 and 63001. */
static void exchanged(int root, int turn) {
    enum { OCTETS = 70000, ONE = 251, OTHER = 63001 };
    static unsigned char data[OCTETS];
    int lengths[5] = {ONE, 1, OTHER - ONE - 1, 1, OCTETS - OTHER - 1}, at[5] = {0, OTHER, ONE + 1, ONE, OTHER + 1};
    MPI_Datatype type;
    CALL(MPI_Type_indexed(5, lengths, at, MPI_BYTE, &type));
    CALL(MPI_Type_commit(&type));
    for (int i = 0; i < OCTETS; i++) data[i] = rank == root ? (unsigned char)(i * 13 + i / 255 + turn) : 0;
    if (rank == root)
        CALL(MPI_Bcast(data, 1, type, root, MPI_COMM_WORLD));
    else
        CALL(MPI_Bcast(data, OCTETS, MPI_BYTE, root, MPI_COMM_WORLD));
    for (int i = 0; i < OCTETS; i++) {
        int from = rank == root ? i : i == ONE ? OTHER : i == OTHER ? ONE : i;
        unsigned char should = (unsigned char)(from * 13 + from / 255 + turn);
        CHECK(data[i] == should, "octets that changed places, from %d: [%d] is %d, not %d", root, i, data[i], should);
    }
    CALL(MPI_Type_free(&type));
}

/* Blocks of a type whose elements overlap their neighbours' gaps change places in place. */
static void in_place(int turn) {
    MPI_Datatype inner, type;
    CALL(MPI_Type_vector(2, 1, 100, MPI_INT, &inner));
    CALL(MPI_Type_create_resized(inner, 0, sizeof(int), &type));
    CALL(MPI_Type_commit(&type));
    for (int i = 0; i < WORDS; i++) words[i] = -i;
    for (int r = 0; r < ranks; r++)
        for (int half = 0; half < 2; half++) words[r + 100 * half] = (int)given(rank, (size_t)(2 * r + half), turn);
    CALL(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, words, 1, type, MPI_COMM_WORLD));
    for (int i = 0; i < WORDS; i++) {
        int from = i % 100, half = i / 100, should = -i;
        if (from < ranks && half < 2) should = (int)given(from, (size_t)(2 * rank + half), turn);
        CHECK(words[i] == should, "alltoall in place: [%d] is %d, not %d", i, words[i], should);
    }
    CALL(MPI_Type_free(&type));
    CALL(MPI_Type_free(&inner));
}

/* What follows the last element may be of any extent: elements that overlap their neighbours' gaps. */
static void interlaced(int root, int turn) {
    MPI_Datatype inner, type;
    int taken[40], n = 0;
    CALL(MPI_Type_vector(2, 1, 10, MPI_INT, &inner));
    CALL(MPI_Type_create_resized(inner, 0, sizeof(int), &type));
    for (int k = 0; k < 10; k++) taken[n++] = k, taken[n++] = k + 10;
    send(type, 10, 0, taken, n, root, turn, "interlaced");
    CALL(MPI_Type_free(&inner));
}

/* The root's type is one, the others' is another: the signature is that of `count` ints. */
static void signatures(int root, int turn) {
    static int taken[WORDS], source[WORDS];
    MPI_Datatype strided, struck;
    static const int counts[] = {1, 4, 12, 126, 1200};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        int count = counts[c];
        CALL(MPI_Type_vector(count, 1, 3, MPI_INT, &strided));
        CALL(MPI_Type_commit(&strided));
        int lengths[2] = {count / 2, count - count / 2};
        MPI_Aint at[2] = {0, (count / 2 + 5) * (MPI_Aint)sizeof(int)};
        MPI_Datatype parts[2] = {MPI_INT, MPI_INT};
        CALL(MPI_Type_create_struct(2, lengths, at, parts, &struck));
        CALL(MPI_Type_commit(&struck));
        for (int way = 0; way < 3; way++) {
            int mine = rank == root ? way : (way + 1 + rank) % 3, theirs = way;
            for (int k = 0; k < count; k++) {
                int places[3] = {k, 3 * k, k < count / 2 ? k : k + 5};
                taken[k] = places[mine], source[k] = places[theirs];
            }
            prepare(root, turn);
            switch (mine) {
            case 0: CALL(MPI_Bcast(words, count, MPI_INT, root, MPI_COMM_WORLD)); break;
            case 1: CALL(MPI_Bcast(words, 1, strided, root, MPI_COMM_WORLD)); break;
            default: CALL(MPI_Bcast(words, 1, struck, root, MPI_COMM_WORLD)); break;
            }
            compare(root, turn, taken, source, count, way == 0 ? "ints to others" : way == 1 ? "vector to others" : "struct to others");
        }
        CALL(MPI_Type_free(&strided));
        CALL(MPI_Type_free(&struck));
    }
}

static void absolute(int root, int turn) {
    MPI_Datatype type;
    int lengths[2] = {3, 2}, taken[5] = {20, 21, 22, 600, 601};
    MPI_Aint at[2];
    MPI_Datatype parts[2] = {MPI_INT, MPI_INT};
    CALL(MPI_Get_address(words + 20, &at[0]));
    CALL(MPI_Get_address(words + 600, &at[1]));
    CALL(MPI_Type_create_struct(2, lengths, at, parts, &type));
    CALL(MPI_Type_commit(&type));
    prepare(root, turn);
    CALL(MPI_Bcast(MPI_BOTTOM, 1, type, root, MPI_COMM_WORLD));
    compare(root, turn, taken, taken, 5, "absolute addresses");
    CALL(MPI_Type_free(&type));
}

static void nothing(int root, int turn) {
    MPI_Datatype type;
    /* MPICH 5 divides by the size of an element. */
    if (!library_is("MPICH Version: 5")) {
        CALL(MPI_Type_contiguous(0, MPI_INT, &type));
        send(type, 5, 0, NULL, 0, root, turn, "elements of no words");
    }
    CALL(MPI_Type_vector(3, 1, 4, MPI_INT, &type));
    send(type, 0, 0, NULL, 0, root, turn, "no vectors");
    prepare(root, turn);
    CALL(MPI_Bcast(NULL, 0, MPI_INT, root, MPI_COMM_WORLD));
    compare(root, turn, NULL, NULL, 0, "no ints at no address");
    /* Zero elements here, elements of zero bytes there: Open MPI sends a message for the latter, which the next call gets. */
    if (library_is("Open MPI") || library_is("MPICH Version: 5")) return;
    CALL(MPI_Type_contiguous(0, MPI_DOUBLE, &type));
    CALL(MPI_Type_commit(&type));
    CALL(MPI_Bcast(words, rank % 2 ? 0 : 3, type, root, MPI_COMM_WORLD));
    compare(root, turn, NULL, NULL, 0, "nothing in two ways");
    CALL(MPI_Type_free(&type));
}

/* A structure of several types, padding and all. */
static void structures(int root, int turn) {
    struct record {
        char letter;
        double value;
        short pair[2];
        long double wide;
    } records[50], kept[50];
    MPI_Datatype bare, type, parts[4] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT, MPI_LONG_DOUBLE};
    int lengths[4] = {1, 1, 2, 1};
    MPI_Aint at[4] = {offsetof(struct record, letter), offsetof(struct record, value), offsetof(struct record, pair),
                      offsetof(struct record, wide)};
    CALL(MPI_Type_create_struct(4, lengths, at, parts, &bare));
    CALL(MPI_Type_create_resized(bare, 0, sizeof(struct record), &type));
    CALL(MPI_Type_free(&bare));
    CALL(MPI_Type_commit(&type));
    memset(records, 0x40 + rank, sizeof records);
    memcpy(kept, records, sizeof records);
    for (int i = 0; i < 50 && rank == root; i++) {
        records[i].letter = (char)('a' + (i + turn) % 26), records[i].value = i / 8.0;
        records[i].pair[0] = (short)i, records[i].pair[1] = (short)-i, records[i].wide = i + 0.5L;
    }
    CALL(MPI_Bcast(records, 50, type, root, MPI_COMM_WORLD));
    for (int i = 0; i < 50; i++) {
        CHECK(records[i].letter == (char)('a' + (i + turn) % 26) && records[i].value == i / 8.0 && records[i].pair[0] == i &&
                  records[i].pair[1] == -i && records[i].wide == i + 0.5L,
              "record %d is %c %g %d %d %Lg", i, records[i].letter, records[i].value, records[i].pair[0], records[i].pair[1],
              records[i].wide);
        CHECK(rank == root || memcmp((char *)&records[i] + 1, (char *)&kept[i] + 1, 7) == 0, "record %d: padding was written", i);
    }
    CALL(MPI_Type_free(&type));
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    int turn = 0;
    for (int root = 0; root < ranks; root++) {
        layouts(root, ++turn);
        interlaced(root, ++turn);
        signatures(root, ++turn);
        absolute(root, ++turn);
        nothing(root, ++turn);
        structures(root, ++turn);
        exchanged(root, ++turn);
        in_place(++turn);
    }
    return finish();
}
