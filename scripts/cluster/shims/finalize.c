/* Preloaded into ranks of MPICH: MPI_Finalize that returns.
 *
 * MPICH 4.0 over UCX's tcp transport (Debian 12) hangs in every second MPI_Finalize: a rank waits for its launcher and no longer
 * serves the connection that a peer wants to flush. So the end is made of parts that do return: callbacks of attributes
 * of MPI_COMM_SELF run first, the last one set first (MPI 4.0, section 11.2.4); a barrier follows; then the network is
 * served for a while, so that nobody's last message is lost; and the launcher is told, in the words of its own protocol
 * (PMI-1, over the descriptor PMI_FD): it kills all ranks when one ends without that word. The PMPI names are defined too,
 * for tools that wrap MPI_Finalize.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SERVED 0.1          /* seconds after the barrier */
#define MOST_ATTRIBUTES 64  /* of MPI_COMM_SELF; later ones are not called back */
#define NOBODYS_TAG 32001

static int finalized;
static int keys[MOST_ATTRIBUTES];
static int key_count;

int MPI_Comm_set_attr(MPI_Comm comm, int key, void *value)
{
    int result = PMPI_Comm_set_attr(comm, key, value);
    if (result == MPI_SUCCESS && comm == MPI_COMM_SELF && key_count < MOST_ATTRIBUTES)
        keys[key_count++] = key;
    return result;
}

/* Tells the launcher that this rank ends properly, and waits for its answer: a line. */
static void tell_launcher(void)
{
    static const char word[] = "cmd=finalize\n";
    const char *number = getenv("PMI_FD");
    char letter = 0;
    if (number == NULL || write(atoi(number), word, strlen(word)) != (ssize_t)strlen(word))
        return;
    while (letter != '\n' && read(atoi(number), &letter, 1) == 1)
        ;
}

int PMPI_Finalize(void)
{
    if (finalized)
        return MPI_SUCCESS;
    PMPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    while (key_count > 0) {
        int key = keys[--key_count], present = 0;
        void *value;
        if (PMPI_Comm_get_attr(MPI_COMM_SELF, key, &value, &present) == MPI_SUCCESS && present)
            PMPI_Comm_delete_attr(MPI_COMM_SELF, key);
    }
    fflush(NULL);
    PMPI_Barrier(MPI_COMM_WORLD);
    for (double start = PMPI_Wtime(); PMPI_Wtime() - start < SERVED; usleep(1000)) {
        int arrived;
        PMPI_Iprobe(MPI_ANY_SOURCE, NOBODYS_TAG, MPI_COMM_WORLD, &arrived, MPI_STATUS_IGNORE);
    }
    tell_launcher();
    finalized = 1;
    return MPI_SUCCESS;
}

int MPI_Finalize(void)
{
    return PMPI_Finalize();
}

int PMPI_Finalized(int *flag)
{
    *flag = finalized;
    return MPI_SUCCESS;
}

int MPI_Finalized(int *flag)
{
    return PMPI_Finalized(flag);
}
