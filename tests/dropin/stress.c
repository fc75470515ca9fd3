/* A random sequence of collectives on communicators that come and go, the same on all ranks by a seed; messages between them.
 *
 * usage: stress SEED CALLS LONGEST */
#include "suite.h"

static uint64_t state;

static uint64_t random_word(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

static int below(int limit) { return (int)(random_word() % (uint64_t)limit); }

enum { SLOTS = 6 };
static struct slot {
    MPI_Comm comm;
    int size, me, *of;
} slots[SLOTS];

static void set(int s, MPI_Comm comm) {
    slots[s].comm = comm;
    if (comm == MPI_COMM_NULL) return;
    slots[s].of = members(comm, &slots[s].size);
    CALL(MPI_Comm_rank(comm, &slots[s].me));
}

static void renew(int s) {
    if (slots[s].comm != MPI_COMM_NULL) {
        free(slots[s].of);
        CALL(MPI_Comm_free(&slots[s].comm));
    }
    MPI_Comm made;
    int way = below(4), modulus = 1 + below(3), shift = below(ranks);
    if (way == 0)
        CALL(MPI_Comm_dup(MPI_COMM_WORLD, &made));
    else if (way == 1)
        CALL(MPI_Comm_split(MPI_COMM_WORLD, rank % modulus, (rank + shift) % ranks, &made));
    else
        CALL(MPI_Comm_split(MPI_COMM_WORLD, (rank + shift) % ranks % modulus ? MPI_UNDEFINED : 0, -rank, &made));
    set(s, made);
}

/* An octet of the message of a rank; sums over 64 ranks stay exact in 16 bits. */
static int value(int of, size_t i, int turn) { return (int)given(of, i, turn); }

static void call(int turn, size_t longest) {
    struct slot *slot = &slots[below(SLOTS)];
    int kind = below(7), wide = below(2);
    size_t count = random_word() % ((uint64_t)1 << below(21));
    uint64_t root_word = random_word();
    if (count > longest) count = longest;
    if (slot->comm == MPI_COMM_NULL) return;
    int root = (int)(root_word % (uint64_t)slot->size), me = slot->me;
    size_t bytes = count * (wide ? sizeof(double) : sizeof(short)), step = 1 + count / 200;
    char *in = memory(bytes), *out = memory(bytes);
    MPI_Datatype type = wide ? MPI_DOUBLE : MPI_SHORT;
    const char *what = "barrier";
    for (size_t i = 0; i < count; i++)
        if (wide)
            ((double *)in)[i] = value(slot->of[me], i, turn);
        else
            ((short *)in)[i] = (short)value(slot->of[me], i, turn);
    int checked = 0;
    switch (kind) {
    case 0: CALL(MPI_Barrier(slot->comm)); break;
    case 1:
    case 2:
        what = "allreduce", checked = 1;
        if (kind == 2) memcpy(out, in, bytes);
        CALL(MPI_Allreduce(kind == 2 ? MPI_IN_PLACE : in, out, (int)count, type, MPI_SUM, slot->comm));
        break;
    case 3:
    case 4:
        what = "reduce", checked = me == root;
        if (kind == 4 && (root == 0 || !library_is("MPICH Version: 4.0"))) {
            if (me == root) memcpy(out, in, bytes);
            CALL(MPI_Reduce(me == root ? MPI_IN_PLACE : in, out, (int)count, type, MPI_SUM, root, slot->comm));
        } else {
            CALL(MPI_Reduce(in, out, (int)count, type, MPI_SUM, root, slot->comm));
        }
        break;
    default:
        what = "broadcast", checked = 2;
        if (me == root) memcpy(out, in, bytes);
        CALL(MPI_Bcast(out, (int)count, type, root, slot->comm));
    }
    for (size_t i = 0; checked && i < count; i += step) {
        long should = 0;
        for (int r = 0; r < slot->size; r++)
            if (checked == 1 || r == root) should += value(slot->of[r], i, turn);
        double is = wide ? ((double *)out)[i] : ((short *)out)[i];
        CHECK(is == (double)should, "call %d, %s, %zu x %d bytes, root %d of %d: [%zu] is %g, not %ld", turn, what, count,
              wide ? 8 : 2, root, slot->size, i, is, should);
    }
    free(in), free(out);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int calls = argc > 2 ? atoi(argv[2]) : 1000;
    size_t longest = argc > 3 ? strtoull(argv[3], NULL, 10) : 100000;
    state = seed * 0x9e3779b97f4a7c15u + 1;
    if (rank == 0) printf("seed %llu\n", (unsigned long long)seed);
    for (int s = 0; s < SLOTS; s++) {
        slots[s].comm = MPI_COMM_NULL;
        renew(s);
    }
    for (int turn = 0; turn < calls; turn++) {
        if (below(30) == 0) renew(below(SLOTS));
        call(turn, longest);
        /* Ranks come late, each in its own turn. */
        int late = below(40 * ranks);
        if (late == rank) usleep(500);
    }
    for (int s = 0; s < SLOTS; s++)
        if (slots[s].comm != MPI_COMM_NULL) free(slots[s].of), MPI_Comm_free(&slots[s].comm);
    return finish();
}
