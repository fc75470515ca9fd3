/* Beneath is an MPI that packs nothing (`liar`): the root cannot send, and all ranks hear of it instead of waiting. */
#include "suite.h"

int main(int argc, char **argv) {
    begin(&argc, &argv);
    int words[200] = {0};
    MPI_Datatype type;
    CALL(MPI_Type_vector(100, 1, 2, MPI_INT, &type));
    CALL(MPI_Type_commit(&type));
    for (int turn = 0; turn < 2; turn++) {
        MPI_Comm comm;
        CALL(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        CALL(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
        int code = MPI_Bcast(words, 1, type, turn % ranks, comm);
        CHECK(code != MPI_SUCCESS, "turn %d: a broadcast that was not sent went well", turn);
        CALL(MPI_Comm_free(&comm));
    }
    CALL(MPI_Type_free(&type));
    return finish();
}
