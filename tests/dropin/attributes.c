/* Attributes of the program on communicators that are used: copied and deleted as the standard says, seen as they were set, with
 * callbacks that call collectives themselves, MPI_Finalize's on MPI_COMM_SELF among them. */
#include "suite.h"

static int copied, deleted, deleted_last, at_end;

static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    (void)comm, (void)key, (void)extra;
    copied++;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)extra;
    deleted++, deleted_last = (int)(intptr_t)value;
    return MPI_SUCCESS;
}

/* The communicator is whole while its attributes are deleted. */
static int delete_collectively(MPI_Comm comm, int key, void *value, void *extra) {
    (void)key, (void)value, (void)extra;
    exercise_count(comm, 10, 3, "a callback in MPI_Comm_free");
    deleted++;
    return MPI_SUCCESS;
}

/* The first that MPI_Finalize does is to free MPI_COMM_SELF's attributes: all of MPI works yet. */
static int delete_at_end(MPI_Comm comm, int key, void *value, void *extra) {
    (void)key, (void)value, (void)extra;
    exercise_count(comm, 20, 1, "self, at the end");
    exercise_count(MPI_COMM_WORLD, 2000, 5, "the world, at the end");
    exercise_count(MPI_COMM_WORLD, 1, 6, "the world, at the end");
    at_end++;
    /* This is the last that is known to run. */
    if (rank == 0) {
        printf("ok %s: %d ranks, %ld answers\n", program, ranks, answers);
        fflush(stdout);
    }
    return MPI_SUCCESS;
}

static void user_attributes(void) {
    int key, found;
    void *value;
    MPI_Comm a, b, c;
    CALL(MPI_Comm_create_keyval(copy, delete, &key, NULL));
    CALL(MPI_Comm_dup(MPI_COMM_WORLD, &a));
    CALL(MPI_Comm_set_attr(a, key, (void *)100));
    exercise(a, 1, "with an attribute");
    CALL(MPI_Comm_dup(a, &b));
    CHECK(copied == 1, "the copy callback was called %d times", copied);
    exercise(b, 2, "with a copied attribute");
    CALL(MPI_Comm_get_attr(b, key, &value, &found));
    CHECK(found && value == (void *)101, "the copied attribute is %p", value);
    CALL(MPI_Comm_split(b, 0, rank, &c));
    CALL(MPI_Comm_get_attr(c, key, &value, &found));
    CHECK(!found && copied == 1, "split copied an attribute");
    exercise(c, 3, "split of one with an attribute");
    CALL(MPI_Comm_set_attr(b, key, (void *)7));
    CHECK(deleted == 1 && deleted_last == 101, "setting anew deleted %d times, last %d", deleted, deleted_last);
    CALL(MPI_Comm_delete_attr(b, key));
    CHECK(deleted == 2 && deleted_last == 7, "delete_attr deleted %d times, last %d", deleted, deleted_last);
    CALL(MPI_Comm_free(&a));
    CHECK(deleted == 3 && deleted_last == 100, "free deleted %d times, last %d", deleted, deleted_last);
    CALL(MPI_Comm_free(&b));
    CALL(MPI_Comm_free(&c));
    CHECK(deleted == 3, "free without an attribute deleted %d times", deleted);
    CALL(MPI_Comm_free_keyval(&key));
}

static void predefined_attributes(void) {
    int *value, found;
    CALL(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &found));
    CHECK(found && *value >= 32767, "MPI_TAG_UB is not there");
    CALL(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &found));
    CHECK(found, "MPI_WTIME_IS_GLOBAL is not there");
}

/* Names, handlers and comparisons are the program's own. */
static void properties(void) {
    MPI_Comm a;
    char name[MPI_MAX_OBJECT_NAME];
    int length, result;
    CALL(MPI_Comm_dup(MPI_COMM_WORLD, &a));
    CALL(MPI_Comm_set_name(a, "mine"));
    exercise(a, 4, "with a name");
    CALL(MPI_Comm_get_name(a, name, &length));
    CHECK(strcmp(name, "mine") == 0, "the name is %s", name);
    CALL(MPI_Comm_compare(a, MPI_COMM_WORLD, &result));
    CHECK(result == MPI_CONGRUENT, "a dup compares as %d", result);
    CALL(MPI_Comm_free(&a));
}

static void callbacks(void) {
    int key, last, before = deleted;
    MPI_Comm a;
    CALL(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_collectively, &key, NULL));
    for (int used = 0; used < 2; used++) {
        CALL(MPI_Comm_dup(MPI_COMM_WORLD, &a));
        /* Set before the first use, or after it. */
        if (used) exercise(a, 5, "before an attribute");
        CALL(MPI_Comm_set_attr(a, key, NULL));
        if (!used) exercise(a, 6, "after an attribute");
        CALL(MPI_Comm_free(&a));
    }
    CHECK(deleted == before + 2, "callbacks were called %d times", deleted - before);
    CALL(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_at_end, &last, NULL));
    CALL(MPI_Comm_set_attr(MPI_COMM_SELF, last, NULL));
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    exercise(MPI_COMM_WORLD, 0, "world");
    user_attributes();
    predefined_attributes();
    properties();
    callbacks();
    CALL(MPI_Finalize());
    if (at_end != 1) {
        fprintf(stderr, "FAIL %s: MPI_Finalize called %d callbacks\n", program, at_end);
        return 1;
    }
    return 0;
}
