/* A tool in the sense of MPI's profiling interface, to be preloaded: it counts what it sees of each of the four collectives, and
 * writes that in MPI_Finalize. Rank 0's line:
 *
 *     tool: BARRIERS barriers, BROADCASTS broadcasts, REDUCES reduces, ALLREDUCES allreduces */
#include <mpi.h>
#include <stdio.h>

static long barriers, broadcasts, reduces, allreduces;

int MPI_Barrier(MPI_Comm comm) {
    barriers++;
    return PMPI_Barrier(comm);
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    broadcasts++;
    return PMPI_Bcast(buffer, count, type, root, comm);
}

int MPI_Reduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
    reduces++;
    return PMPI_Reduce(in, out, count, type, op, root, comm);
}

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    allreduces++;
    return PMPI_Allreduce(in, out, count, type, op, comm);
}

int MPI_Finalize(void) {
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        printf("tool: %ld barriers, %ld broadcasts, %ld reduces, %ld allreduces\n", barriers, broadcasts, reduces, allreduces);
        fflush(stdout);
    }
    return PMPI_Finalize();
}
