/* Pairs of a value of eight bytes and a place of four: the four bytes behind the place are the program's, and need not be there
 * behind the last pair. */
#include "suite.h"

#include <sys/mman.h>

enum { PAIRS = 300, BYTES = 16, DATA = 12 };

/* The buffer of so many pairs that ends with the data of the last one, right before a page that nobody may touch, `off` bytes
 * from where its pairs would be aligned. */
static char *before_the_end(int count, int off) {
    long page = sysconf(_SC_PAGESIZE), all = (PAIRS * BYTES / page + 2) * page;
    char *memory = mmap(NULL, (size_t)(all + page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED, "no memory");
    CHECK(mprotect(memory + all, (size_t)page, PROT_NONE) == 0, "mprotect");
    char *end = memory + all;
    return off ? end - (count * BYTES - (BYTES - DATA)) : end - count * BYTES;
}

static int is_double;

static void put(char *buffer, int i, int value, int place, int gap, int has_gap) {
    double as_double = value;
    long as_long = value;
    memcpy(buffer + i * BYTES, is_double ? (void *)&as_double : (void *)&as_long, 8);
    memcpy(buffer + i * BYTES + 8, &place, 4);
    if (has_gap) memcpy(buffer + i * BYTES + DATA, &gap, 4);
}

static void compare(const char *buffer, int i, int value, int place, int gap, int has_gap, const char *what) {
    double as_double;
    long as_long;
    int found_place, found_gap = gap;
    memcpy(is_double ? (void *)&as_double : (void *)&as_long, buffer + i * BYTES, 8);
    memcpy(&found_place, buffer + i * BYTES + 8, 4);
    if (has_gap) memcpy(&found_gap, buffer + i * BYTES + DATA, 4);
    long found = is_double ? (long)as_double : as_long;
    CHECK(found == value && found_place == place, "%s: [%d] is %ld at %d, not %d at %d", what, i, found, found_place, value, place);
    CHECK(found_gap == gap, "%s: the gap behind [%d] is %d, not %d", what, i, found_gap, gap);
}

/* The value that a rank gives as its i-th. */
static int value_of(int giver, int i) { return (giver * 7 + i * 3) % 11 - 5; }

/* The greatest of the first `givers` ranks' values, and the least rank that has it. */
static int greatest(int givers, int i, int *at) {
    int best = value_of(0, i);
    *at = 0;
    for (int giver = 1; giver < givers; giver++)
        if (value_of(giver, i) > best) best = value_of(*at = giver, i);
    return best;
}

enum { ALLREDUCE, REDUCE, SCAN, EXSCAN, SCATTER, CALLS };
static const char *names[] = {"an allreduce", "a reduction", "a scan", "an exscan", "a reduce_scatter_block"};

static void reduce(MPI_Datatype type, int call, int count, int off, int in_place) {
    char *send = before_the_end(count * (call == SCATTER ? ranks : 1), off), *recv = before_the_end(count, off);
    int sent = count * (call == SCATTER ? ranks : 1), gets = call == REDUCE ? rank == 0 : call == EXSCAN ? rank > 0 : 1;
    for (int i = 0; i < sent; i++) put(send, i, value_of(rank, i), rank, 100 + i, !off || i + 1 < sent);
    for (int i = 0; i < count; i++) put(recv, i, -1, -1, 7000 + rank + i, !off || i + 1 < count);
    void *from = send;
    if (in_place && (call != REDUCE || rank == 0)) {
        for (int i = 0; i < count; i++) put(recv, i, value_of(rank, i), rank, 0, 0);
        from = MPI_IN_PLACE;
    }
    switch (call) {
    case ALLREDUCE: CALL(MPI_Allreduce(from, recv, count, type, MPI_MAXLOC, MPI_COMM_WORLD)); break;
    case REDUCE: CALL(MPI_Reduce(from, recv, count, type, MPI_MAXLOC, 0, MPI_COMM_WORLD)); break;
    case SCAN: CALL(MPI_Scan(from, recv, count, type, MPI_MAXLOC, MPI_COMM_WORLD)); break;
    case EXSCAN: CALL(MPI_Exscan(from, recv, count, type, MPI_MAXLOC, MPI_COMM_WORLD)); break;
    case SCATTER: CALL(MPI_Reduce_scatter_block(from, recv, count, type, MPI_MAXLOC, MPI_COMM_WORLD)); break;
    }
    for (int i = 0; gets && i < count; i++) {
        int at, givers = call == SCAN ? rank + 1 : call == EXSCAN ? rank : ranks;
        int value = greatest(givers, call == SCATTER ? rank * count + i : i, &at);
        compare(recv, i, value, at, 7000 + rank + i, !off || i + 1 < count, names[call]);
    }
    for (int i = 0; i < sent; i++) compare(send, i, value_of(rank, i), rank, 100 + i, !off || i + 1 < sent, "what was sent");
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    for (is_double = 0; is_double < 2; is_double++)
        for (int call = 0; call < CALLS; call++)
            for (int off = 0; off < 2; off++)
                for (int in_place = 0; in_place < (call == SCATTER ? 1 : 2); in_place++)
                    for (int count = 1; count * (call == SCATTER ? ranks : 1) <= PAIRS; count = count * 7 + 1)
                        reduce(is_double ? MPI_DOUBLE_INT : MPI_LONG_INT, call, count, off, in_place);
    return finish();
}
