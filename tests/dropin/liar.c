/* Stands before the MPI of a job and does wrong what the variable LIAR names:
 *
 *     nan, finite   PMPI_Allreduce of floats: results are NaNs; are 1
 *     pack, unpack  PMPI_Pack refuses; PMPI_Unpack does */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int lies_about(const char *what) {
    const char *lie = getenv("LIAR");
    return lie && strcmp(lie, what) == 0;
}

int PMPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    int (*next)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm) = dlsym(RTLD_NEXT, "PMPI_Allreduce");
    int code = next(in, out, count, type, op, comm);
    int is_nan = lies_about("nan"), is_lie = type == MPI_FLOAT && (is_nan || lies_about("finite"));
    for (int i = 0; i < count && is_lie; i++) ((float *)out)[i] = is_nan ? NAN : 1;
    return code;
}

int PMPI_Pack(const void *in, int count, MPI_Datatype type, void *out, int size, int *at, MPI_Comm comm) {
    int (*next)(const void *, int, MPI_Datatype, void *, int, int *, MPI_Comm) = dlsym(RTLD_NEXT, "PMPI_Pack");
    return count > 0 && lies_about("pack") ? MPI_ERR_OTHER : next(in, count, type, out, size, at, comm);
}

int PMPI_Unpack(const void *in, int size, int *at, void *out, int count, MPI_Datatype type, MPI_Comm comm) {
    int (*next)(const void *, int, int *, void *, int, MPI_Datatype, MPI_Comm) = dlsym(RTLD_NEXT, "PMPI_Unpack");
    return lies_about("unpack") ? MPI_ERR_OTHER : next(in, size, at, out, count, type, comm);
}
