/* The collectives that move blocks, the scans and the reductions that scatter, each beside the library's own answer to the same call, octet by octet with what lies
 * between blocks: equal and other counts, displacements in any order and before the buffer, in place, types with gaps on one side or on both,
 * different types for the same signature, blocks of no bytes, wrong arguments; by counts of four bytes and of eight.
 *
 * usage: family [ROUNDS [SEED]] */
#define _GNU_SOURCE
#include "suite.h"

#include <dlfcn.h>

enum { ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, GATHER, GATHERV, SCATTER, SCATTERV, SCAN, EXSCAN, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, KINDS };
static const char *const names[] = {"allgather", "allgatherv", "alltoall", "alltoallv", "gather", "gatherv", "scatter", "scatterv", "scan", "exscan",
                                    "reduce_scatter", "reduce_scatter_block"};

/* The forms with counts of eight bytes, where they are. A library that does not have them may have something in front of it that does. */
static const char *const wide_names[] = {"MPI_Allgather_c", "MPI_Allgatherv_c", "MPI_Alltoall_c", "MPI_Alltoallv_c", "MPI_Gather_c", "MPI_Gatherv_c",
                                         "MPI_Scatter_c", "MPI_Scatterv_c", "MPI_Scan_c", "MPI_Exscan_c", "MPI_Reduce_scatter_c", "MPI_Reduce_scatter_block_c"};
static int (*wide[KINDS])();

static MPI_Comm comm;
static int size, me;
static unsigned long state;

/* The same numbers on all ranks. */
static unsigned below(unsigned most) {
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    return (unsigned)(state >> 33) % most;
}

/* Types of four integers: one behind the other, in another order, with gaps, with a gap before them; and integers, of which four are taken for one. */
enum { INTS = 4, TYPES };
static MPI_Datatype types[TYPES];

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
    for (int t = 0; t < INTS; t++) CALL(MPI_Type_commit(&types[t]));
    types[INTS] = MPI_INT;
}

/* How many elements of a type four integers are. */
static int units(int type) { return type == INTS ? 4 : 1; }

/* What a call needs, twice: for MPI_x and for PMPI_x. */
static int *send[2], *recv[2], *counts, *displs, *places;
/* The same numbers for a side that passes integers. */
static int *many_counts, *many_displs, *many_places;
enum { ROOM = 400000, BEFORE = 3000 };

static void fill(int turn) {
    for (int w = 0; w < 2; w++)
        for (int i = 0; i < ROOM; i++) send[w][i] = (int)given(rank, (size_t)i, turn) + 1000 * rank, recv[w][i] = -i - 1000000 * rank;
}

/* The same call of MPI_x, with counts of eight bytes. */
static int call_wide(int kind, int n, int from, int to, int in_place, int root) {
    int *s = send[0] + BEFORE, *r = recv[0] + BEFORE;
    MPI_Datatype of = types[from], as = types[to];
    void *in = in_place ? MPI_IN_PLACE : (void *)s, *at_root = in_place && me == root ? MPI_IN_PLACE : (void *)s;
    void *out = in_place && me == root ? MPI_IN_PLACE : (void *)r;
    MPI_Count out_n = (MPI_Count)n * units(from), in_n = (MPI_Count)n * units(to), long_n = n;
    size_t room = (size_t)size * sizeof(MPI_Count);
    MPI_Count *sends = memory(room), *gets = memory(room), *parts = memory(room);
    MPI_Aint *send_displs = memory(room), *get_displs = memory(room), *send_places = memory(room);
    for (int i = 0; i < size; i++) {
        sends[i] = counts[i] * units(from), gets[i] = counts[i] * units(to), parts[i] = counts[i];
        send_displs[i] = displs[i] * units(from), get_displs[i] = displs[i] * units(to), send_places[i] = places[i] * units(from);
    }
    /* What only a root looks at. */
    int there = me == root;
    int (*function)() = wide[kind], code;
    switch (kind) {
    case ALLGATHER:
    case ALLTOALL: code = function(in, out_n, of, r, in_n, as, comm); break;
    case ALLGATHERV: code = function(in, sends[me], of, r, gets, get_displs, as, comm); break;
    case ALLTOALLV: code = function(in, sends, send_places, of, r, gets, get_displs, as, comm); break;
    case GATHER: code = function(at_root, out_n, of, r, in_n, as, root, comm); break;
    case GATHERV: code = function(at_root, sends[me], of, r, there ? gets : NULL, there ? get_displs : NULL, as, root, comm); break;
    case SCATTER: code = function(s, out_n, of, out, in_n, as, root, comm); break;
    case SCATTERV: code = function(s, there ? sends : NULL, there ? send_displs : NULL, of, out, gets[me], as, root, comm); break;
    case REDUCE_SCATTER: code = function(in, r, parts, MPI_INT, MPI_SUM, comm); break;
    default: code = function(in, r, long_n, MPI_INT, kind == EXSCAN ? MPI_MAX : MPI_SUM, comm);
    }
    free(sends), free(gets), free(parts), free(send_displs), free(get_displs), free(send_places);
    return code;
}

static int call(int kind, int w, int n, int from, int to, int in_place, int root) {
    int *s = send[w] + BEFORE, *r = recv[w] + BEFORE;
    MPI_Datatype of = types[from], as = types[to];
    void *in = in_place ? MPI_IN_PLACE : (void *)s;
    int here = in_place && me == root, out_n = n * units(from), in_n = n * units(to);
    int *sends = from == INTS ? many_counts : counts, *gets = to == INTS ? many_counts : counts;
    int *send_displs = from == INTS ? many_displs : displs, *get_displs = to == INTS ? many_displs : displs;
    int *send_places = from == INTS ? many_places : places;
#define BOTH(name, ...) return w ? PMPI_##name(__VA_ARGS__) : MPI_##name(__VA_ARGS__)
    switch (kind) {
    case ALLGATHER: BOTH(Allgather, in, out_n, of, r, in_n, as, comm);
    case ALLGATHERV: BOTH(Allgatherv, in, sends[me], of, r, gets, get_displs, as, comm);
    case ALLTOALL: BOTH(Alltoall, in, out_n, of, r, in_n, as, comm);
    case ALLTOALLV: BOTH(Alltoallv, in, sends, send_places, of, r, gets, get_displs, as, comm);
    case GATHER: BOTH(Gather, here ? MPI_IN_PLACE : (void *)s, out_n, of, r, in_n, as, root, comm);
    case GATHERV: BOTH(Gatherv, here ? MPI_IN_PLACE : (void *)s, sends[me], of, r, gets, get_displs, as, root, comm);
    case SCATTER: BOTH(Scatter, s, out_n, of, here ? MPI_IN_PLACE : (void *)r, in_n, as, root, comm);
    case SCATTERV: BOTH(Scatterv, s, sends, send_displs, of, here ? MPI_IN_PLACE : (void *)r, gets[me], as, root, comm);
    case SCAN: BOTH(Scan, in, r, n, MPI_INT, MPI_SUM, comm);
    case EXSCAN: BOTH(Exscan, in, r, n, MPI_INT, MPI_MAX, comm);
    case REDUCE_SCATTER: BOTH(Reduce_scatter, in, r, counts, MPI_INT, MPI_SUM, comm);
    default: BOTH(Reduce_scatter_block, in, r, n, MPI_INT, MPI_SUM, comm);
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
    int from = (int)below(TYPES), to = (int)below(TYPES), in_place = below(4) == 0;
    /* Most programs pass integers on both sides. */
    if (below(3) == 0) from = to = INTS;
    /* Ranks may describe the same data differently. */
    int mixed = below(3) == 0, other = (int)below(2) * INTS;
    int own_from = mixed && rank % 2 ? other : from, own_to = mixed && rank % 2 ? 1 : to;
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
    for (int r = 0; r < size; r++) many_counts[r] = 4 * counts[r], many_displs[r] = 4 * displs[r], many_places[r] = 4 * places[r];
    /* Open MPI and MPICH disagree on what an in-place alltoallv of different counts is. */
    if (kind == ALLTOALLV && in_place) in_place = 0;
    fill(turn);
    /* One rank may call the one form, another the other: it is the same collective. */
    int is_wide = wide[kind] && (below(2) + (unsigned)(below(2) ? me : 0)) % 2;
    int ours = is_wide ? call_wide(kind, n, own_from, own_to, in_place, root) : call(kind, 0, n, own_from, own_to, in_place, root);
    int theirs = call(kind, 1, n, own_from, own_to, in_place, root);
    CHECK(ours == MPI_SUCCESS && theirs == MPI_SUCCESS, "%s: %d, the library %d", names[kind], ours, theirs);
    if (kind >= REDUCE_SCATTER && in_place) {
        /* What was contributed and is not of this rank's part may hold anything. */
        int own = kind == REDUCE_SCATTER ? counts[me] : n;
        for (int w = 0; w < 2; w++) memset(recv[w] + BEFORE + own, 0, (size_t)(ROOM - BEFORE - own) * sizeof(int));
    }
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
        if (kind == ALLGATHER || kind == ALLTOALL || kind == SCAN || kind == EXSCAN || kind == REDUCE_SCATTER_BLOCK) {
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
    int **arrays[] = {&counts, &displs, &places, &many_counts, &many_displs, &many_places};
    for (int i = 0; i < 6; i++) *arrays[i] = memory((size_t)ranks * sizeof(int));
    make_types();
    for (int kind = 0; kind < KINDS; kind++) wide[kind] = (int (*)())dlsym(RTLD_DEFAULT, wide_names[kind]);
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
    for (int t = 0; t < INTS; t++) CALL(MPI_Type_free(&types[t]));
    return finish();
}
