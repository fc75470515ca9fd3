/* What `check` asks of real MPI on the cluster.
 *
 * probe nodes                            a line per rank: its rank, host, and its rank and size among those that share memory with it
 * probe stream FROM TO BYTES [..]        all streams at once, FROM and TO are ranks: a line per stream with Mbit/s; with
 *                                        marks `start` and `end` around the streams
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MESSAGE 32768 /* bytes: short enough for both libraries to send at once */
#define TAG 7

static int rank, size;

static void fail(const char *text)
{
    fprintf(stderr, "probe: %s\n", text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Rank 0 prints everybody's line, in the order of ranks. */
static void print_in_order(const char *line)
{
    char all[256];
    if (rank != 0) {
        snprintf(all, sizeof all, "%s", line);
        MPI_Send(all, sizeof all, MPI_CHAR, 0, TAG, MPI_COMM_WORLD);
        return;
    }
    printf("%s", line);
    for (int other = 1; other < size; other++) {
        MPI_Recv(all, sizeof all, MPI_CHAR, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("%s", all);
    }
}

static void nodes(void)
{
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    int node_rank, node_size, *own, *next, unit;
    MPI_Comm_rank(node, &node_rank);
    MPI_Comm_size(node, &node_size);

    /* They do share memory: everybody reads what the next one wrote. */
    MPI_Win window;
    MPI_Aint bytes;
    MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, node, &own, &window);
    MPI_Win_fence(0, window);
    *own = rank;
    MPI_Win_fence(0, window);
    MPI_Win_shared_query(window, (node_rank + 1) % node_size, &bytes, &unit, &next);
    int neighbour = *next;
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);

    int one = 1, sum;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum != size)
        fail("a sum over all ranks is wrong");
    char line[256], host[64];
    gethostname(host, sizeof host);
    snprintf(line, sizeof line, "%d %s %d %d %d\n", rank, host, node_rank, node_size, neighbour);
    print_in_order(line);
}

static void mark(const char *name)
{
    char command[512];
    snprintf(command, sizeof command, "mark %s", name);
    if (rank == 0 && system(command) != 0)
        fail("mark failed");
    MPI_Barrier(MPI_COMM_WORLD);
}

static void stream(int count, char **words)
{
    static char data[MESSAGE];
    char done = 0, line[256] = "";
    /* Connections are made before. */
    for (int k = 0; k + 2 < count; k += 3) {
        int from = atoi(words[k]), to = atoi(words[k + 1]);
        if (from < 0 || to < 0 || from >= size || to >= size || from == to)
            fail("a stream needs two different ranks of this job");
        if (rank == from)
            MPI_Ssend(&done, 1, MPI_CHAR, to, TAG, MPI_COMM_WORLD);
        if (rank == to)
            MPI_Recv(&done, 1, MPI_CHAR, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    mark("start");
    for (int k = 0; k + 2 < count; k += 3) {
        int from = atoi(words[k]), to = atoi(words[k + 1]);
        long bytes = atol(words[k + 2]), left = bytes;
        if (rank != from && rank != to)
            continue;
        double start = MPI_Wtime();
        for (; left > 0; left -= MESSAGE) {
            int now = left < MESSAGE ? (int)left : MESSAGE;
            if (rank == from)
                MPI_Send(data, now, MPI_CHAR, to, TAG, MPI_COMM_WORLD);
            else
                MPI_Recv(data, now, MPI_CHAR, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        /* The sender's time ends when the last byte has arrived. */
        if (rank == from) {
            MPI_Recv(&done, 1, MPI_CHAR, to, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            snprintf(line, sizeof line, "%d %d %.3f\n", from, to, bytes * 8e-6 / (MPI_Wtime() - start));
        } else {
            MPI_Send(&done, 1, MPI_CHAR, from, TAG, MPI_COMM_WORLD);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    mark("end");
    print_in_order(line);
}

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (count == 2 && !strcmp(words[1], "nodes"))
        nodes();
    else if (count > 2 && !strcmp(words[1], "stream") && count % 3 == 2)
        stream(count - 2, words + 2);
    else
        fail("what is wanted? nodes, or stream FROM TO BYTES ..");
    MPI_Finalize();
    return 0;
}
