/* Infinities and NaNs among the contributions to reductions: where MPI leaves nothing open the result is one, too. */
#include "suite.h"

#include <math.h>

enum { COUNT = 6 };

static void sums(int turn) {
    /* A NaN of the last rank, an infinity of the first, two of one kind, two that cancel, none; what is finite beside them. */
    const double inf = INFINITY;
    int is_last = rank == ranks - 1;
    double own[COUNT] = {is_last ? NAN : 2, rank == 0 ? inf : 2, -inf, is_last ? inf : -inf, 2, rank == 0 ? -inf : 1e300};
    double out[COUNT];
    float own_floats[COUNT], out_floats[COUNT];
    for (int i = 0; i < COUNT; i++) own_floats[i] = (float)(i == COUNT - 1 && rank > 0 ? 1e30 : own[i]);
    CALL(MPI_Allreduce(own, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    CALL(MPI_Allreduce(own_floats, out_floats, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
    for (int way = 0; way < 2; way++) {
        const char *what = way ? "floats" : "doubles";
        double is[COUNT];
        for (int i = 0; i < COUNT; i++) is[i] = way ? out_floats[i] : out[i];
        CHECK(isnan(is[0]), "turn %d: the sum of %s with a NaN is %g", turn, what, is[0]);
        CHECK(is[1] == inf && is[2] == -inf, "turn %d: sums of infinite %s are %g, %g", turn, what, is[1], is[2]);
        CHECK(ranks == 1 || isnan(is[3]), "turn %d: the sum of opposite infinite %s is %g", turn, what, is[3]);
        CHECK(is[4] == 2.0 * ranks, "turn %d: the sum of finite %s is %g", turn, what, is[4]);
        CHECK(is[5] == -inf, "turn %d: the sum of large %s and an infinite one is %g", turn, what, is[5]);
    }
}

static void extremes(int turn) {
    const double inf = INFINITY;
    double own[3] = {rank == 0 ? inf : rank, rank == ranks - 1 ? -inf : rank, rank == 0 ? NAN : 1}, most[3], least[3];
    CALL(MPI_Allreduce(own, most, 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
    CALL(MPI_Allreduce(own, least, 3, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD));
    CHECK(most[0] == inf && least[1] == -inf, "turn %d: the greatest is %g, the least %g", turn, most[0], least[1]);
}

static void products(int turn) {
    /* An infinite factor, 0 and an infinite one, a NaN; and factors whose product leaves the numbers in one order and not in another. */
    double own[4] = {rank == 0 ? -INFINITY : 2, rank == 0 ? INFINITY : 0, rank == 0 ? NAN : 2, rank % 2 ? 1e-200 : 1e200}, out[4];
    CALL(MPI_Allreduce(own, out, 4, MPI_DOUBLE, MPI_PROD, MPI_COMM_WORLD));
    CHECK(out[0] == -INFINITY && isnan(out[2]), "turn %d: products are %g, %g", turn, out[0], out[2]);
    CHECK(ranks == 1 || isnan(out[1]), "turn %d: the product of 0 and an infinite one is %g", turn, out[1]);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    for (int turn = 0; turn < 20; turn++) sums(turn), extremes(turn), products(turn);
    return finish();
}
