/* Thousands of communicators, operators and types that come and go: a handle that was freed comes back as another object,
 * and nothing is kept of what was freed.
 *
 * usage: churn [ROUNDS] */
#include "suite.h"

#include <dirent.h>

struct footprint {
    long resident, shared; /* KiB */
    int descriptors, maps;
};

static struct footprint footprint(void) {
    struct footprint is = {0, 0, 0, 0};
    char line[512];
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file)) {
        sscanf(line, "VmRSS: %ld", &is.resident);
        sscanf(line, "RssShmem: %ld", &is.shared);
    }
    if (file) fclose(file);
    file = fopen("/proc/self/maps", "r");
    while (file && fgets(line, sizeof line, file)) is.maps++;
    if (file) fclose(file);
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder)) is.descriptors++;
    if (folder) closedir(folder);
    return is;
}

static void operate(void *in, void *inout, int *length, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *length; i++) ((long *)inout)[i] = ((long *)inout)[i] * 3 + ((long *)in)[i];
}

static void larger(void *in, void *inout, int *length, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *length; i++)
        if (((long *)in)[i] > ((long *)inout)[i]) ((long *)inout)[i] = ((long *)in)[i];
}

/* The same handle for world-wide, smaller and single communicators in turn. */
static void communicators(int round) {
    MPI_Comm comm;
    switch (round % 4) {
    case 0: CALL(MPI_Comm_dup(MPI_COMM_WORLD, &comm)); break;
    case 1: CALL(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &comm)); break;
    case 2: CALL(MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &comm)); break;
    default: CALL(MPI_Comm_split(MPI_COMM_WORLD, 0, (rank + round) % ranks, &comm)); break;
    }
    int size, me;
    CALL(MPI_Comm_size(comm, &size));
    CALL(MPI_Comm_rank(comm, &me));
    long mine = rank + 1, sum = 0, should = 0;
    for (int calls = round % 5; calls >= 0; calls--) {
        CALL(MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm));
        should = 0;
        for (int r = 0; r < ranks; r++)
            if (round % 4 == 0 || round % 4 == 3 || r == rank || (round % 4 == 1 && r % 2 == rank % 2)) should += r + 1;
        CHECK(sum == should, "round %d: the sum is %ld, not %ld", round, sum, should);
    }
    long word = me == size - 1 ? round : -1;
    CALL(MPI_Bcast(&word, 1, MPI_LONG, size - 1, comm));
    CHECK(word == round, "round %d: broadcast of %ld", round, word);
    CALL(MPI_Comm_free(&comm));
}

static void operators(int round) {
    MPI_Op op;
    int first = round % 2;
    CALL(MPI_Op_create(first ? operate : larger, !first, &op));
    long mine = given(rank, 0, round), got = -1, should = given(0, 0, round);
    for (int r = 1; r < ranks; r++) {
        long one = given(r, 0, round);
        /* The left operand is what lower ranks have made: it comes as `in`. */
        should = first ? one * 3 + should : (one > should ? one : should);
    }
    CALL(MPI_Allreduce(&mine, &got, 1, MPI_LONG, op, MPI_COMM_WORLD));
    /* operate is not associative: only its result on two ranks is settled. */
    if (!first || ranks <= 2) CHECK(got == should, "operator of round %d: %ld, not %ld", round, got, should);
    CALL(MPI_Op_free(&op));
}

static void types(int round) {
    MPI_Datatype type;
    int blocks = round % 3 + 1, root = round % ranks;
    int words[12];
    for (int i = 0; i < 12; i++) words[i] = rank == root ? round + i : -i - 1;
    if (round % 2)
        CALL(MPI_Type_contiguous(blocks, MPI_INT, &type));
    else
        CALL(MPI_Type_vector(blocks, 1, 2, MPI_INT, &type));
    CALL(MPI_Type_commit(&type));
    CALL(MPI_Bcast(words, 1, type, root, MPI_COMM_WORLD));
    for (int i = 0; i < 12; i++) {
        int within = round % 2 ? i < blocks : i < 2 * blocks - 1 && i % 2 == 0;
        int should = rank == root || within ? round + i : -i - 1;
        CHECK(words[i] == should, "type of round %d: [%d] is %d, not %d", round, i, words[i], should);
    }
    CALL(MPI_Type_free(&type));
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 400;
    struct footprint before = {0, 0, 0, 0};
    for (int round = 0; round < rounds; round++) {
        communicators(round);
        operators(round);
        types(round);
        if (round == rounds / 4) before = footprint();
    }
    struct footprint after = footprint();
    CHECK(after.descriptors <= before.descriptors + 2, "descriptors: %d became %d", before.descriptors, after.descriptors);
    CHECK(after.maps <= before.maps + 16, "mappings: %d became %d", before.maps, after.maps);
    CHECK(after.shared <= before.shared + 4096, "shared memory: %ld KiB became %ld", before.shared, after.shared);
    CHECK(after.resident <= before.resident + 16384, "resident memory: %ld KiB became %ld", before.resident, after.resident);
    return finish();
}
