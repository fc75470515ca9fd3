/* Messages that are under way while their senders or receivers are in a collective: the collective must move them on. */
#include "suite.h"

static const int lengths[] = {1, 100, 5000, 70000, 1 << 20, 8 << 20};
enum { LENGTHS = sizeof lengths / sizeof *lengths };
static unsigned char *out, *in, *in2;

static unsigned char octet(int from, size_t i, int turn) { return (unsigned char)(from * 7 + (int)(i % 251) + turn); }

static void fill(unsigned char *at, int length, int turn) {
    for (int i = 0; i < length; i++) at[i] = octet(rank, (size_t)i, turn);
}

static void compare(const unsigned char *at, int length, int from, int turn, const char *what) {
    int step = length > 10000 ? 4093 : 1;
    for (int i = 0; i < length; i += step)
        CHECK(at[i] == octet(from, (size_t)i, turn), "%s: [%d] of %d bytes is %d", what, i, length, at[i]);
}

/* A collective on the world, another one each time. */
static void collective(int turn) {
    static double big[40000], sum[40000];
    long mine = rank + turn, got = -1;
    switch (turn % 5) {
    case 0: CALL(MPI_Barrier(MPI_COMM_WORLD)); break;
    case 1:
        CALL(MPI_Allreduce(&mine, &got, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD));
        CHECK(got == ranks - 1 + turn, "maximum beside messages: %ld", got);
        break;
    case 2:
        got = rank == turn % ranks ? turn : -1;
        CALL(MPI_Bcast(&got, 1, MPI_LONG, turn % ranks, MPI_COMM_WORLD));
        CHECK(got == turn, "broadcast beside messages: %ld", got);
        break;
    case 3:
        for (int i = 0; i < 40000; i++) big[i] = rank + i % 9;
        CALL(MPI_Allreduce(big, sum, 40000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
        for (int i = 0; i < 40000; i += 577)
            CHECK(sum[i] == ranks * (ranks - 1) / 2 + ranks * (i % 9), "long sum beside messages: [%d] is %g", i, sum[i]);
        break;
    default:
        CALL(MPI_Reduce(&mine, &got, 1, MPI_LONG, MPI_SUM, turn % ranks, MPI_COMM_WORLD));
        if (rank == turn % ranks) CHECK(got == ranks * (ranks - 1) / 2 + (long)ranks * turn, "sum beside messages: %ld", got);
    }
}

/* Round the ring: sends and receives are posted before, and completed after. */
static void posted_before(int turn) {
    for (int l = 0; l < LENGTHS; l++, turn++) {
        MPI_Request requests[2];
        int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
        fill(out, lengths[l], turn);
        if (turn % 2) CALL(MPI_Irecv(in, lengths[l], MPI_BYTE, before, l, MPI_COMM_WORLD, &requests[0]));
        CALL(MPI_Isend(out, lengths[l], MPI_BYTE, next, l, MPI_COMM_WORLD, &requests[1]));
        if (turn % 2 == 0) collective(turn + 1);
        if (turn % 2 == 0) CALL(MPI_Irecv(in, lengths[l], MPI_BYTE, before, l, MPI_COMM_WORLD, &requests[0]));
        collective(turn);
        CALL(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        compare(in, lengths[l], before, turn, "posted before");
    }
}

/* The sender is in the collective while the receiver waits for the message, and comes to the collective only then. */
static void sender_is_inside(int turn) {
    for (int l = 0; l < LENGTHS; l++)
        for (int kind = 0; kind < 5; kind++, turn++) {
            int partner = rank ^ 1;
            MPI_Request request = MPI_REQUEST_NULL;
            if (partner < ranks && rank % 2 == turn % 2) {
                fill(out, lengths[l], turn);
                if (kind == 4)
                    CALL(MPI_Issend(out, lengths[l], MPI_BYTE, partner, 50, MPI_COMM_WORLD, &request));
                else
                    CALL(MPI_Isend(out, lengths[l], MPI_BYTE, partner, 50, MPI_COMM_WORLD, &request));
            } else if (partner < ranks) {
                if (kind == 3) {
                    int there = 0;
                    while (!there) CALL(MPI_Iprobe(partner, 50, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE));
                }
                CALL(MPI_Recv(in, lengths[l], MPI_BYTE, partner, 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                compare(in, lengths[l], partner, turn, "the sender is inside");
            }
            collective(kind);
            CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
}

/* The receiver is inside: it has posted its receive, and the sender's blocking send of a long message needs it to answer. */
static void receiver_is_inside(int turn) {
    for (int l = 0; l < LENGTHS; l++)
        for (int kind = 0; kind < 5; kind++, turn++) {
            MPI_Request request = MPI_REQUEST_NULL;
            int to = turn % ranks, from = (to + 1) % ranks;
            if (ranks == 1) continue;
            if (rank == to) CALL(MPI_Irecv(in, lengths[l], MPI_BYTE, from, 60, MPI_COMM_WORLD, &request));
            if (rank == from) {
                fill(out, lengths[l], turn);
                CALL(MPI_Ssend(out, lengths[l], MPI_BYTE, to, 60, MPI_COMM_WORLD));
            }
            collective(kind);
            CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
            if (rank == to) compare(in, lengths[l], from, turn, "the receiver is inside");
        }
}

/* A message that goes from rank to rank; each enters the collective when it has sent it on. */
static void chain(int turn) {
    for (int l = 0; l < LENGTHS; l++, turn++) {
        MPI_Request request = MPI_REQUEST_NULL;
        if (rank > 0) {
            CALL(MPI_Recv(out, lengths[l], MPI_BYTE, rank - 1, 70, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            for (int i = 0; i < lengths[l]; i++) out[i]++;
        } else {
            fill(out, lengths[l], turn);
        }
        if (rank + 1 < ranks) CALL(MPI_Isend(out, lengths[l], MPI_BYTE, rank + 1, 70, MPI_COMM_WORLD, &request));
        collective(turn);
        CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(out[0] == (unsigned char)(octet(0, 0, turn) + rank), "chain: %d at rank %d", out[0], rank);
    }
}

/* On one communicator in one order: message, collective, message .. */
static void in_order(int turn) {
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    for (int round = 0; round < 200; round++) {
        int word = rank * 1000 + round, got = -1;
        CALL(MPI_Sendrecv(&word, 1, MPI_INT, next, 80, &got, 1, MPI_INT, before, 80, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(got == before * 1000 + round, "message %d is %d", round, got);
        if (round % 3 == 0) collective(turn + round);
    }
}

/* Persistent requests that are started around collectives. */
static void persistent(int turn) {
    MPI_Request requests[2];
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks, length = 300000;
    CALL(MPI_Send_init(out, length, MPI_BYTE, next, 90, MPI_COMM_WORLD, &requests[0]));
    CALL(MPI_Recv_init(in2, length, MPI_BYTE, before, 90, MPI_COMM_WORLD, &requests[1]));
    for (int round = 0; round < 10; round++) {
        fill(out, length, turn + round);
        CALL(MPI_Startall(2, requests));
        collective(round);
        collective(round + 1);
        CALL(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        compare(in2, length, before, turn + round, "persistent");
    }
    CALL(MPI_Request_free(&requests[0]));
    CALL(MPI_Request_free(&requests[1]));
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    out = memory(8 << 20), in = memory(8 << 20), in2 = memory(8 << 20);
    for (int turn = 0; turn < 3; turn++) posted_before(turn);
    sender_is_inside(0);
    receiver_is_inside(0);
    chain(0);
    in_order(0);
    persistent(0);
    free(out), free(in), free(in2);
    return finish();
}
