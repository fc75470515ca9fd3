/* The collectives that move blocks, and the scans, each beside the library's own answer to the same call, octet by octet with what lies
 * between blocks: equal and other counts, displacements in any order and before the buffer, in place, types with gaps on one side or on both,
 * different types for the same signature, blocks of no bytes, wrong arguments.
 *
 * usage: family [ROUNDS [SEED]] */
#include "suite.h"

enum { ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, GATHER, GATHERV, SCATTER, SCATTERV, SCAN, EXSCAN, KINDS };
static const char *const names[] = {"allgather", "allgatherv", "alltoall", "alltoallv", "gather", "gatherv", "scatter", "scatterv", "scan", "exscan"};

static MPI_Comm comm;
static int size, me;
static unsigned long state;

/* The same numbers on all ranks. */
static unsigned below(unsigned most) {
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    return (unsigned)(state >> 33) % most;
}

/* Types of four integers: one behind the other, in another order, with gaps, with a gap before them. */
static MPI_Datatype types[4];

static void make_types(void) {
    static const int lengths[] = {1, 3}, places[] = {5, 0}, displacements[] = {4, 0, 5, 2};
    MPI_Datatype made;
    CALL(MPI_Type_contiguous(4, MPI_INT, &types[0]));
    /* The data are not in order, but without gaps. */
    CALL(MPI_Type_indexed(4, (int[]){1, 1, 1, 1}, (int[]){2, 0, 3, 1}, MPI_INT, &types[1]));
    CALL(MPI_Type_indexed(2, lengths, places, MPI_INT, &made));
    CALL(MPI_Type_create_resized(made, 0, 28, &types[2]));
    CALL(MPI_Type_free(&made));
    CALL(MPI_Type_create_indexed_block(4, 1, displacements, MPI_INT, &types[3]));
    for (int t = 0; t < 4; t++) CALL(MPI_Type_commit(&types[t]));
}

/* What a call needs, twice: for MPI_x and for PMPI_x. */
static int *send[2], *recv[2], *counts, *displs, *places;
enum { ROOM = 400000, BEFORE = 3000 };

static void fill(int turn) {
    for (int w = 0; w < 2; w++)
        for (int i = 0; i < ROOM; i++) send[w][i] = (int)given(rank, (size_t)i, turn) + 1000 * rank, recv[w][i] = -i - 1000000 * rank;
}

static int call(int kind, int w, int n, int from, int to, int in_place, int root) {
    int *s = send[w] + BEFORE, *r = recv[w] + BEFORE;
    MPI_Datatype of = types[from], as = types[to];
    void *in = in_place ? MPI_IN_PLACE : (void *)s;
    int here = in_place && me == root;
#define BOTH(name, ...) return w ? PMPI_##name(__VA_ARGS__) : MPI_##name(__VA_ARGS__)
    switch (kind) {
    case ALLGATHER: BOTH(Allgather, in, n, of, r, n, as, comm);
    case ALLGATHERV: BOTH(Allgatherv, in, counts[me], of, r, counts, displs, as, comm);
    case ALLTOALL: BOTH(Alltoall, in, n, of, r, n, as, comm);
    case ALLTOALLV: BOTH(Alltoallv, in, counts, places, of, r, counts, displs, as, comm);
    case GATHER: BOTH(Gather, here ? MPI_IN_PLACE : (void *)s, n, of, r, n, as, root, comm);
    case GATHERV: BOTH(Gatherv, here ? MPI_IN_PLACE : (void *)s, counts[me], of, r, counts, displs, as, root, comm);
    case SCATTER: BOTH(Scatter, s, n, of, here ? MPI_IN_PLACE : (void *)r, n, as, root, comm);
    case SCATTERV: BOTH(Scatterv, s, counts, displs, of, here ? MPI_IN_PLACE : (void *)r, counts[me], as, root, comm);
    case SCAN: BOTH(Scan, in, r, n, MPI_INT, MPI_SUM, comm);
    default: BOTH(Exscan, in, r, n, MPI_INT, MPI_MAX, comm);
    }
}

static void compare(int kind, int turn, int n) {
    for (int i = 0; i < ROOM; i++) {
        if (recv[0][i] == recv[1][i] && send[0][i] == send[1][i]) continue;
        fail(__FILE__, __LINE__, "turn %d: %s of %d on %d ranks: [%d] is %d, the library has %d", turn, names[kind], n, size, i - BEFORE,
             recv[0][i], recv[1][i]);
    }
    answers++;
}

static void one(int turn) {
    int kind = (int)below(KINDS), long_one = below(12) == 0, n = (int)below(long_one ? 3000 : 40), root = (int)below((unsigned)size);
    int from = (int)below(4), to = (int)below(4), in_place = below(4) == 0;
    /* Ranks may describe the same data differently. */
    int mixed = below(3) == 0;
    int own_from = mixed && rank % 2 ? 0 : from, own_to = mixed && rank % 2 ? 1 : to;
    if (kind == ALLTOALLV) {
        /* What i sends to j, j gets from i: as many as the larger and the smaller of both say. */
        unsigned mix = below(97);
        for (int r = 0; r < size; r++) counts[r] = (int)((unsigned)((r + me) * 5 + r * me) + mix) % (n / 4 + 2);
    } else {
        for (int r = 0; r < size; r++) counts[r] = (int)below((unsigned)n / 2 + 2);
    }
    /* Backwards or not, with room between, from before the buffer. */
    int backwards = (int)below(2), before = (int)below(3) ? 0 : -(int)below(300), step = 0;
    for (int r = 0; r < size; r++) step = counts[r] > step ? counts[r] : step;
    step += (int)below(3);
    for (int r = 0; r < size; r++) displs[r] = before + step * (backwards ? size - 1 - r : r), places[r] = step * r;
    /* Open MPI and MPICH disagree on what an in-place alltoallv of different counts is. */
    if (kind == ALLTOALLV && in_place) in_place = 0;
    fill(turn);
    int ours = call(kind, 0, n, own_from, own_to, in_place, root);
    int theirs = call(kind, 1, n, own_from, own_to, in_place, root);
    CHECK(ours == MPI_SUCCESS && theirs == MPI_SUCCESS, "%s: %d, the library %d", names[kind], ours, theirs);
    compare(kind, turn, n);
}

/* All ranks pass the same wrong argument: the library's class. */
static void wrong(void) {
    MPI_Comm quiet, before = comm;
    CALL(MPI_Comm_dup(comm, &quiet));
    CALL(MPI_Comm_set_errhandler(quiet, MPI_ERRORS_RETURN));
    comm = quiet;
    for (int kind = 0; kind < KINDS; kind++) {
        for (int r = 0; r < size; r++) counts[r] = 1, displs[r] = places[r] = r;
        int is_rooted = kind >= GATHER && kind <= SCATTERV;
        /* Some libraries do not look at a count that is not their own business. */
        int own = class_of(call(kind, 0, 1, 0, 0, 0, is_rooted ? size + 3 : 0)), should = class_of(call(kind, 1, 1, 0, 0, 0, is_rooted ? size + 3 : 0));
        CHECK(own == should, "%s with a wrong root: class %d, the library %d", names[kind], own, should);
        if (kind == ALLGATHER || kind == ALLTOALL || kind == SCAN || kind == EXSCAN) {
            own = class_of(call(kind, 0, -1, 0, 0, 0, 0)), should = class_of(call(kind, 1, -1, 0, 0, 0, 0));
            CHECK(own == should && own != MPI_SUCCESS, "%s of -1: class %d, the library %d", names[kind], own, should);
        }
    }
    comm = before;
    CALL(MPI_Comm_free(&quiet));
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 400;
    state = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    for (int w = 0; w < 2; w++) send[w] = memory(ROOM * sizeof(int)), recv[w] = memory(ROOM * sizeof(int));
    counts = memory((size_t)ranks * sizeof(int)), displs = memory((size_t)ranks * sizeof(int)), places = memory((size_t)ranks * sizeof(int));
    make_types();
    for (int shape = 0; shape < 3; shape++) {
        comm = MPI_COMM_WORLD;
        if (shape == 1) CALL(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        if (shape == 2) CALL(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm));
        CALL(MPI_Comm_size(comm, &size));
        CALL(MPI_Comm_rank(comm, &me));
        for (int turn = 0; turn < rounds / 3; turn++) {
            one(turn);
            if (turn % 16 == 0) exercise_count(comm, (size_t)turn % 90, turn, "between blocks");
        }
        if (!library_is("MPICH Version: 4") && !library_is("MPICH Version: 5")) wrong();
        if (shape) CALL(MPI_Comm_free(&comm));
    }
    for (int t = 0; t < 4; t++) CALL(MPI_Type_free(&types[t]));
    return finish();
}
