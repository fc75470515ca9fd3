/* Receives and probes of anything from anybody get what the program sent, and nothing else. */
#include "suite.h"

int main(int argc, char **argv) {
    begin(&argc, &argv);
    MPI_Comm comm;
    CALL(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int round = 0; round < 30; round++) {
        MPI_Comm on = round % 2 ? comm : MPI_COMM_WORLD;
        char got[64];
        int sent = 4000 + round, there = 0, count = -1;
        MPI_Request request;
        MPI_Status status;
        memset(got, 0, sizeof got);
        CALL(MPI_Irecv(got, sizeof got, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, on, &request));
        exercise_count(on, (size_t)round * 40, round, "beside a receive of anything");
        CALL(MPI_Test(&request, &there, &status));
        CHECK(!there, "round %d: a receive of anything is complete before anything was sent", round);
        /* Nobody sends before all have looked. */
        exercise_count(on, 5, round, "before messages");
        CALL(MPI_Send(&sent, 1, MPI_INT, (rank + 1) % ranks, round, on));
        exercise_count(on, 2000, round, "beside messages");
        CALL(MPI_Wait(&request, &status));
        CALL(MPI_Get_count(&status, MPI_BYTE, &count));
        memcpy(&there, got, sizeof there);
        CHECK(count == sizeof sent && there == sent && status.MPI_TAG == round && status.MPI_SOURCE == (rank + ranks - 1) % ranks,
              "round %d: %d bytes from %d with tag %d", round, count, status.MPI_SOURCE, status.MPI_TAG);
        CALL(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, on, &there, &status));
        CHECK(!there, "round %d: a probe finds a message of %d with tag %d", round, status.MPI_SOURCE, status.MPI_TAG);
        exercise_count(on, 1, round, "after messages");
    }
    CALL(MPI_Comm_free(&comm));
    return finish();
}
