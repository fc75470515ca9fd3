/* Every function of MPI that makes an intracommunicator, and the four collectives on what it has made. */
#include "suite.h"

static int turn;

/* On ranks that are not in it the turn passes too. */
static void use(MPI_Comm *comm, const char *what) {
    turn++;
    if (*comm == MPI_COMM_NULL) return;
    exercise(*comm, turn, what);
    CALL(MPI_Comm_free(comm));
    CHECK(*comm == MPI_COMM_NULL, "%s: the freed handle is not MPI_COMM_NULL", what);
}

static void duplicates(void) {
    MPI_Comm a, b;
    MPI_Info info;
    MPI_Request request;
    CALL(MPI_Comm_dup(MPI_COMM_WORLD, &a));
    CALL(MPI_Comm_dup(a, &b));
    exercise(b, turn++, "dup of dup");
    use(&a, "dup");
    /* A communicator outlives what it was made of. */
    use(&b, "dup of a freed one");
    CALL(MPI_Info_create(&info));
    CALL(MPI_Info_set(info, "mpi_assert_no_any_tag", "true"));
    CALL(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &a));
    CALL(MPI_Info_free(&info));
    use(&a, "dup_with_info");
    CALL(MPI_Comm_idup(MPI_COMM_WORLD, &a, &request));
    exercise(MPI_COMM_WORLD, turn++, "world while it is duplicated");
    CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
    use(&a, "idup");
    CALL(MPI_Comm_dup(MPI_COMM_SELF, &a));
    use(&a, "dup of self");
    exercise(MPI_COMM_SELF, turn++, "self");
}

static void splits(void) {
    MPI_Comm a, b;
    CALL(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &a));
    use(&a, "split by parity");
    CALL(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &a));
    exercise(a, turn++, "split backwards");
    CALL(MPI_Comm_split(a, rank % 3, rank, &b));
    use(&b, "split of a split");
    use(&a, "split backwards, again");
    CALL(MPI_Comm_split(MPI_COMM_WORLD, rank == ranks - 1 ? MPI_UNDEFINED : 4, 0, &a));
    CHECK((a == MPI_COMM_NULL) == (rank == ranks - 1), "split: who is in it?");
    use(&a, "split without the last");
    CALL(MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &a));
    use(&a, "split to single ranks");
    CALL(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &a));
    use(&a, "split_type");
    CALL(MPI_Comm_split_type(MPI_COMM_WORLD, rank % 2 ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &a));
    use(&a, "split_type of the even");
}

static void groups(void) {
    MPI_Group world, part;
    MPI_Comm a;
    int *some = memory((size_t)ranks * sizeof *some), count = 0;
    for (int r = ranks - 1; r >= 0; r -= 2) some[count++] = r;
    int inside = (ranks - 1 - rank) % 2 == 0;
    CALL(MPI_Comm_group(MPI_COMM_WORLD, &world));
    CALL(MPI_Group_incl(world, count, some, &part));
    CALL(MPI_Comm_create(MPI_COMM_WORLD, part, &a));
    CHECK((a != MPI_COMM_NULL) == inside, "create: who is in it?");
    use(&a, "create");
    if (inside) CALL(MPI_Comm_create_group(MPI_COMM_WORLD, part, 17, &a));
    use(&a, "create_group");
#if MPI_VERSION >= 4
    if (inside) CALL(MPI_Comm_create_from_group(part, "suite", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &a));
    use(&a, "create_from_group");
#endif
    CALL(MPI_Group_free(&part));
    CALL(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &a));
    CHECK(a == MPI_COMM_NULL, "create of nobody");
    CALL(MPI_Group_free(&world));
    free(some);
}

static void topologies(void) {
    MPI_Comm a, b;
    int sizes[2] = {0, 0}, periods[2] = {1, 0}, kept[2] = {0, 1};
    CALL(MPI_Dims_create(ranks, 2, sizes));
    CALL(MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, 1, &a));
    exercise(a, turn++, "cart");
    CALL(MPI_Cart_sub(a, kept, &b));
    use(&b, "cart_sub: rows");
    kept[0] = 1, kept[1] = 0;
    CALL(MPI_Cart_sub(a, kept, &b));
    use(&b, "cart_sub: columns");
    kept[0] = 0;
    CALL(MPI_Cart_sub(a, kept, &b));
    use(&b, "cart_sub: points");
    CALL(MPI_Comm_dup(a, &b));
    use(&b, "dup of cart");
    use(&a, "cart, again");
    /* A grid smaller than the world. */
    int fewer[1] = {(ranks + 1) / 2}, open[1] = {0};
    CALL(MPI_Cart_create(MPI_COMM_WORLD, 1, fewer, open, 0, &a));
    CHECK((a != MPI_COMM_NULL) == (rank < fewer[0]), "cart: who is in it?");
    use(&a, "smaller cart");
    /* A ring, as a graph: everybody has two neighbours, itself at worst. */
    int *ends = memory((size_t)ranks * sizeof *ends), *edges = memory(2 * (size_t)ranks * sizeof *edges);
    for (int r = 0; r < ranks; r++) {
        ends[r] = 2 * (r + 1);
        edges[2 * r] = (r + ranks - 1) % ranks;
        edges[2 * r + 1] = (r + 1) % ranks;
    }
    CALL(MPI_Graph_create(MPI_COMM_WORLD, ranks, ends, edges, 1, &a));
    use(&a, "graph");
    free(ends), free(edges);
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks, one = 1;
    CALL(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &a));
    use(&a, "dist_graph_create_adjacent");
    CALL(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &one, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 1, &a));
    int in, out, weighted, around[1], of_weight[1], to[1], to_weight[1];
    CALL(MPI_Dist_graph_neighbors_count(a, &in, &out, &weighted));
    CALL(MPI_Dist_graph_neighbors(a, 1, around, of_weight, 1, to, to_weight));
    exercise(a, turn++, "dist_graph_create");
    int mine = rank, got = -1, where = -1;
    CALL(MPI_Comm_rank(a, &where));
    CALL(MPI_Neighbor_allgather(&mine, 1, MPI_INT, &got, 1, MPI_INT, a));
    int size, *of = members(a, &size);
    CHECK(got == of[around[0]], "dist_graph: the neighbour's number is %d, not %d", got, of[around[0]]);
    free(of);
    use(&a, "dist_graph_create, again");
}

static void merged(void) {
    MPI_Comm half, between, whole;
    if (ranks < 2) return;
    int high = rank >= ranks / 2;
    CALL(MPI_Comm_split(MPI_COMM_WORLD, high, rank, &half));
    CALL(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, high ? 0 : ranks / 2, 5, &between));
    CALL(MPI_Intercomm_merge(between, !high, &whole));
    use(&whole, "intercomm_merge, upper half first");
    CALL(MPI_Intercomm_merge(between, high, &whole));
    CALL(MPI_Comm_free(&between));
    use(&half, "the half of an intercommunicator");
    use(&whole, "intercomm_merge");
}

/* Ways to end one. */
static void ends(void) {
    MPI_Comm a;
    CALL(MPI_Comm_dup(MPI_COMM_WORLD, &a));
    exercise(a, turn++, "dup");
    CALL(MPI_Comm_disconnect(&a));
    CHECK(a == MPI_COMM_NULL, "disconnect leaves a handle");
    /* One that only some have used. */
    CALL(MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &a));
    if (rank / 2 == 0) exercise(a, turn, "split that the others do not use");
    turn++;
    CALL(MPI_Comm_free(&a));
    /* One that nobody has used. */
    CALL(MPI_Comm_dup(MPI_COMM_WORLD, &a));
    CALL(MPI_Comm_free(&a));
}

/* Different communicators in different orders of creation and of freeing. */
static void many_at_once(void) {
    enum { MANY = 24 };
    MPI_Comm comms[MANY];
    for (int i = 0; i < MANY; i++) CALL(MPI_Comm_split(MPI_COMM_WORLD, (rank + i) % (i % 3 + 1), i % 2 ? rank : -rank, &comms[i]));
    for (int i = 0; i < MANY; i++) exercise_count(comms[(i * 7) % MANY], 1 + (size_t)i * 13, turn++, "one of many");
    for (int round = 0; round < 6; round++)
        for (int i = 0; i < MANY; i++) exercise_count(comms[i], (size_t)round * 9, turn++, "one of many in rounds");
    for (int i = 0; i < MANY; i++) CALL(MPI_Comm_free(&comms[(i * 5) % MANY]));
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    exercise(MPI_COMM_WORLD, turn++, "world");
    duplicates();
    splits();
    groups();
    topologies();
    merged();
    ends();
    many_at_once();
    return finish();
}
