/* MPI 4's sessions: communicators without a world, beside the world and without one.
 *
 * usage: sessions [alone]   alone: MPI_Init is never called */
#include "suite.h"

#if MPI_VERSION >= 4
static void by_session(int turn) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    CALL(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
    CALL(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    CALL(MPI_Comm_create_from_group(group, "suite", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
    CALL(MPI_Group_free(&group));
    CALL(MPI_Comm_rank(comm, &rank));
    CALL(MPI_Comm_size(comm, &ranks));
    for (int call = 0; call < 12; call++) {
        long in[300], out[300];
        int root = call % ranks;
        for (int i = 0; i < 300; i++) in[i] = given(rank, (size_t)i, turn + call);
        CALL(MPI_Allreduce(in, out, 300, MPI_LONG, MPI_SUM, comm));
        for (int i = 0; i < 300; i++) {
            long sum = 0;
            for (int r = 0; r < ranks; r++) sum += given(r, (size_t)i, turn + call);
            CHECK(out[i] == sum, "a session's allreduce: [%d] is %ld, not %ld", i, out[i], sum);
        }
        CALL(MPI_Bcast(in, 300, MPI_LONG, root, comm));
        for (int i = 0; i < 300; i++) CHECK(in[i] == given(root, (size_t)i, turn + call), "a session's broadcast: [%d] is %ld", i, in[i]);
        CALL(MPI_Barrier(comm));
    }
    CALL(MPI_Comm_free(&comm));
    CALL(MPI_Session_finalize(&session));
}
#endif

int main(int argc, char **argv) {
#if MPI_VERSION >= 4
    if (argc > 1 && strcmp(argv[1], "alone") == 0) {
        set_alarm(argv[0]);
        by_session(0);
        /* MPICH 4.0 begins one session, and no second. */
        if (!library_is("MPICH Version: 4.0")) by_session(7);
        if (rank == 0) printf("ok %s: %d ranks, %ld answers\n", program, ranks, answers);
        return 0;
    }
#endif
    begin(&argc, &argv);
#if MPI_VERSION >= 4
    exercise(MPI_COMM_WORLD, 1, "before a session");
    by_session(0);
    exercise(MPI_COMM_WORLD, 2, "after a session");
#endif
    return finish();
}
