/* MPI as an interpreter has it: the program knows no MPI, and loads a module that is linked with it, whose names are the module's
 * own (RTLD_LOCAL), functions that are called as some of Fortran's are among them. Built twice: as the program, and with
 * -DMODULE -shared as the module, which stands beside it. */
#ifdef MODULE
#include "suite.h"

/* R's Rmpi has functions of these names. */
void *mpi_barrier(void *answer) { return answer; }
void *mpi_bcast(void *answer) { return answer; }

static void *(*volatile own[])(void *) = {mpi_barrier, mpi_bcast};

int run(int argc, char **argv) {
    begin(&argc, &argv);
    for (int i = 0; i < 2; i++) CHECK(own[i](own) == (void *)own, "the module's own function %d does not lead to itself", i);
    for (int turn = 0; turn < 3; turn++) exercise(MPI_COMM_WORLD, turn, "a module");
    MPI_Comm comm;
    CALL(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm));
    exercise(comm, 4, "a module's communicator");
    CALL(MPI_Comm_free(&comm));
    return finish();
}
#else
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    char path[4096];
    snprintf(path, sizeof path, "%s.so", argv[0]);
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module) {
        fprintf(stderr, "FAIL plugin: %s\n", dlerror());
        return 1;
    }
    int (*run)(int, char **) = (int (*)(int, char **))dlsym(module, "run");
    return run ? run(argc, argv) : 1;
}
#endif
