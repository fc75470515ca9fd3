/* Communicators that are freed while the program's own callbacks call collectives on them, and whose handles come back as
 * those of other groups: each call is among those who are in it. They are freed by MPI's names, and by the library's own
 * (PMPI_x), as a tool in front of it does. */
#include "suite.h"

enum { FREE, DISCONNECT, FREE_BELOW, WAYS };

static int key, calls_at_end, deleted, is_seen;

/* A sum over the ranks of a communicator, of which there are `size`. */
static void add_up(MPI_Comm comm, int size, int calls, const char *when) {
    for (int call = 0; call < calls; call++) {
        int one = 1 + call, sum = -1;
        CALL(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
        CHECK(sum == size * one, "%s: %d instead of %d", when, sum, size * one);
        CALL(MPI_Barrier(comm));
    }
}

static int delete(MPI_Comm comm, int deleted_key, void *value, void *extra) {
    MPI_Comm other;
    (void)deleted_key, (void)extra;
    add_up(comm, (int)(intptr_t)value, calls_at_end, "in the callback");
    /* One that is made and freed meanwhile. Of a communicator whose end is not seen what is left there is copied, too:
     * MPICH 4.0 copies for ever, while it deletes. */
    if (is_seen) {
        CALL(MPI_Comm_dup(comm, &other));
        add_up(other, (int)(intptr_t)value, 2, "on a duplicate, in the callback");
        CALL(MPI_Comm_free(&other));
    }
    add_up(comm, (int)(intptr_t)value, 1, "in the callback, later");
    deleted++;
    return MPI_SUCCESS;
}

static void let_go(MPI_Comm *comm, int way) {
    is_seen = way != FREE_BELOW;
    switch (way) {
    case FREE: CALL(MPI_Comm_free(comm)); break;
    case DISCONNECT: CALL(MPI_Comm_disconnect(comm)); break;
    default: CALL(PMPI_Comm_free(comm));
    }
}

/* One of the whole world, with a callback: set before its first call, after it, or as each rank likes. */
static void of_all(int way, int order) {
    MPI_Comm comm;
    CALL(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    /* Of what is freed past the library nobody hears in time: there, all ranks do the same. */
    int is_first = order == 2 && way != FREE_BELOW ? rank % 2 : order % 2;
    if (is_first) CALL(MPI_Comm_set_attr(comm, key, (void *)(intptr_t)ranks));
    add_up(comm, ranks, 3, "before its end");
    if (!is_first) CALL(MPI_Comm_set_attr(comm, key, (void *)(intptr_t)ranks));
    let_go(&comm, way);
}

/* One on which nothing is called, of the handle that has just gone, perhaps. */
static void of_nobody(void) {
    MPI_Comm comm;
    CALL(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    CALL(MPI_Comm_free(&comm));
}

/* Others, one after the other, whose handles may be that of the one that has gone. */
static void of_some(int way, int round) {
    MPI_Comm comm;
    CALL(MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &comm));
    add_up(comm, 1, 3, "alone");
    let_go(&comm, way);
    CALL(MPI_Comm_split(MPI_COMM_WORLD, (rank + round) % 2, 0, &comm));
    int half = 0;
    for (int r = 0; r < ranks; r++) half += (r + round) % 2 == (rank + round) % 2;
    add_up(comm, half, 3 + round % 3, "in a half");
    let_go(&comm, way);
    CALL(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    add_up(comm, ranks, 2, "on all");
    let_go(&comm, way);
}

static int refusals;

static int refuse(MPI_Comm comm, int deleted_key, void *value, void *extra) {
    (void)comm, (void)deleted_key, (void)value, (void)extra;
    return refusals-- > 0 ? MPI_ERR_OTHER : MPI_SUCCESS;
}

/* A callback refuses, so that MPI keeps the communicator, which the program goes on with. Ranks have set its attribute before
 * or after their first call: MPI deletes those that were left there in another order on each. */
static void refused(void) {
    int refusing, code;
    CALL(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuse, &refusing, NULL));
    /* MPICH asks the world's handler. MPI_Comm_disconnect of Open MPI passes refusals over. */
    CALL(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int calls = 1; calls <= 40; calls += 39) {
        MPI_Comm comm, kept;
        CALL(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        if (rank % 2) CALL(MPI_Comm_set_attr(comm, refusing, NULL));
        add_up(comm, ranks, calls, "before a refusal");
        if (rank % 2 == 0) CALL(MPI_Comm_set_attr(comm, refusing, NULL));
        refusals = 1;
        kept = comm;
        code = MPI_Comm_free(&comm);
        CHECK(code != MPI_SUCCESS && comm == kept, "a callback's refusal was passed over: %d", code);
        add_up(comm, ranks, calls, "after a refusal");
        CALL(MPI_Comm_free(&comm));
    }
    /* One rank tries what MPI refuses, on it alone. */
    MPI_Comm world = MPI_COMM_WORLD;
    if (rank == 0) CHECK(MPI_Comm_free(&world) != MPI_SUCCESS, "MPI_COMM_WORLD was freed");
    add_up(MPI_COMM_WORLD, ranks, 3, "after one rank has tried to free it");
    CALL(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    CALL(MPI_Comm_free_keyval(&refusing));
}

int main(int argc, char **argv) {
    int ended = 0;
    begin(&argc, &argv);
    CALL(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete, &key, NULL));
    for (int round = 0; round < 4; round++)
        for (int way = 0; way < WAYS; way++)
            for (int order = 0; order < 3; order++) {
                calls_at_end = (int[]){1, 4, 40, 0}[round];
                of_all(way, order);
                CHECK(deleted == ++ended, "callbacks were called %d times, not %d", deleted, ended);
                if (order > 0) of_nobody();
                of_some(way, round);
            }
    CALL(MPI_Comm_free_keyval(&key));
    refused();
    return finish();
}
