/* ULFM, for an MPI in which ranks may fail: a communicator that one rank revokes while the others wait for it in a collective, which MPI
 * ends with an error class of its own; and the one that MPI makes of it. Elsewhere there is nothing to see. */
#include "suite.h"
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5
#include <mpi-ext.h>
#endif

int main(int argc, char **argv) {
    begin(&argc, &argv);
#ifdef MPIX_ERR_REVOKED
    MPI_Comm comm, again;
    CALL(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    CALL(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    exercise(comm, 0, "before");
    if (rank == 0 && ranks > 1) {
        usleep(200000);
        CALL(MPIX_Comm_revoke(comm));
    } else if (ranks > 1) {
        int one = 1, sum = 0, class = class_of(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
        CHECK(class == MPIX_ERR_REVOKED, "an allreduce on a communicator that is revoked returned class %d", class);
    }
    CALL(MPIX_Comm_shrink(comm, &again));
    exercise(again, 1, "after");
    CALL(MPI_Comm_free(&again));
    CALL(MPI_Comm_free(&comm));
#endif
    return finish();
}
