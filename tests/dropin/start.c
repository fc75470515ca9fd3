/* Elements whose data begin behind their beginning, and end before their end: what lies before the first data and behind the
 * last need not be there, and what lies between is the program's. */
#include "suite.h"

#include <sys/mman.h>

/* Bytes of the longest vector, to which its gaps count. */
enum { MOST = 200000 };

/* Bytes from one element to the next, to the data of it, which are two numbers. */
static int extent, start;

static int *numbers(char *buffer, int i) { return (int *)(buffer + (long)i * extent + start); }

static void add(void *in, void *inout, int *len, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *len; i++)
        for (int k = 0; k < 2; k++) numbers(inout, i)[k] += numbers(in, i)[k];
}

/* A buffer of so many elements, between pages that nobody may touch: its data begin with the first byte in between, or end with
 * the last one. Gaps hold `gap`. */
static char *between(int count, int at_the_end, int gap) {
    long page = sysconf(_SC_PAGESIZE), data = (long)(count - 1) * extent + 8, all = (data + page - 1) / page * page;
    char *memory = mmap(NULL, (size_t)(all + 2 * page), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED, "no memory");
    CHECK(mprotect(memory + page, (size_t)all, PROT_READ | PROT_WRITE) == 0, "mprotect");
    memset(memory + page, gap, (size_t)all);
    return memory + page + (at_the_end ? all - data : 0) - start;
}

static void give_back(char *buffer, int count, int at_the_end) {
    long page = sysconf(_SC_PAGESIZE), data = (long)(count - 1) * extent + 8, all = (data + page - 1) / page * page;
    CHECK(munmap(buffer + start - (at_the_end ? all - data : 0) - page, (size_t)(all + 2 * page)) == 0, "munmap");
}

static void put(char *buffer, int count) {
    for (int i = 0; i < count; i++)
        for (int k = 0; k < 2; k++) numbers(buffer, i)[k] = (int)given(rank, (size_t)i, k);
}

/* The sums of so many ranks' elements from the `first` on, and the gaps between them. */
static void compare(char *buffer, int first, int count, int givers, char gap, const char *what) {
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < 2; k++) {
            int sum = 0;
            for (int giver = 0; giver < givers; giver++) sum += (int)given(giver, (size_t)(first + i), k);
            int found = numbers(buffer, i)[k];
            CHECK(found == sum, "%s of elements of %d bytes, data from %d: [%d] is %d, not %d", what, extent, start, i, found, sum);
        }
        char *behind = (char *)(numbers(buffer, i) + 2);
        for (int b = 0; i + 1 < count && b < extent - 8; b++)
            CHECK(behind[b] == gap, "%s of elements of %d bytes: a gap behind [%d] holds %d", what, extent, i, behind[b]);
    }
}

enum { ALLREDUCE, REDUCE, SCAN, EXSCAN, SCATTER, CALLS };
static const char *names[] = {"an allreduce", "a reduction", "a scan", "an exscan", "a reduce_scatter"};

static void reduce(MPI_Datatype type, MPI_Op op, int call, int count, int at_the_end, int in_place) {
    int lengths[64], sent = count * (call == SCATTER ? ranks : 1), gets = call == REDUCE ? rank == 0 : call != EXSCAN || rank > 0;
    CHECK(ranks <= 64, "%d ranks are too many", ranks);
    for (int i = 0; i < ranks; i++) lengths[i] = count;
    char *send = between(sent, at_the_end, 0x33), *recv = between(count, !at_the_end, 0x77);
    void *from = send;
    put(send, sent);
    if (in_place && (call != REDUCE || rank == 0)) {
        put(recv, count);
        from = MPI_IN_PLACE;
    }
    switch (call) {
    case ALLREDUCE: CALL(MPI_Allreduce(from, recv, count, type, op, MPI_COMM_WORLD)); break;
    case REDUCE: CALL(MPI_Reduce(from, recv, count, type, op, 0, MPI_COMM_WORLD)); break;
    case SCAN: CALL(MPI_Scan(from, recv, count, type, op, MPI_COMM_WORLD)); break;
    case EXSCAN: CALL(MPI_Exscan(from, recv, count, type, op, MPI_COMM_WORLD)); break;
    case SCATTER: CALL(MPI_Reduce_scatter(from, recv, lengths, type, op, MPI_COMM_WORLD)); break;
    }
    int givers = call == SCAN ? rank + 1 : call == EXSCAN ? rank : ranks;
    if (gets) compare(recv, call == SCATTER ? rank * count : 0, count, givers, 0x77, names[call]);
    give_back(send, sent, at_the_end), give_back(recv, count, !at_the_end);
}

int main(int argc, char **argv) {
    static const int extents[] = {16, 24, 28, 64, 100, 4096};
    begin(&argc, &argv);
    /* Open MPI's own allreduce of two and three ranks writes behind its memory from some 10,000 bytes on, if data begin behind the
     * beginning. */
    int is_open_mpi = library_is("Open MPI");
    MPI_Op op;
    CALL(MPI_Op_create(add, 1, &op));
    for (size_t e = 0; e < sizeof extents / sizeof *extents; e++)
        for (int end = 0; end < 2; end++) {
            extent = extents[e], start = end ? extent - 8 : 4;
            int length = 2;
            MPI_Aint at = start;
            MPI_Datatype bare, type;
            CALL(MPI_Type_create_hindexed(1, &length, &at, MPI_INT, &bare));
            CALL(MPI_Type_create_resized(bare, 0, extent, &type));
            CALL(MPI_Type_commit(&type));
            CALL(MPI_Type_free(&bare));
            for (int call = 0; call < CALLS; call++)
                for (int at_the_end = 0; at_the_end < 2; at_the_end++)
                    for (int in_place = 0; in_place < (call == SCATTER ? 1 : 2); in_place++)
                        for (int count = 1; (long)count * extent < (is_open_mpi && call == ALLREDUCE ? 8000 : MOST); count = count * 9 + 2)
                            reduce(type, op, call, count, at_the_end, in_place);
            CALL(MPI_Type_free(&type));
        }
    CALL(MPI_Op_free(&op));
    return finish();
}
