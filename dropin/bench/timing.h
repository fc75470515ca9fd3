/* What both measurements take of time and of statistics. */
#include <stdlib.h>
#include <time.h>

/* Nanoseconds. */
static double nanoseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int by_value(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

/* Sorts the values, and returns the one at that part of them: 0.5 for the median. */
static double at_part(double *values, int count, double part) {
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[(int)(part * (count - 1) + 0.5)];
}
