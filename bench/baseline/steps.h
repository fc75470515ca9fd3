/* What the files of the program `steps` share: the job, what a pattern is, work, and data with their checks. */
#ifndef STEPS_H
#define STEPS_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/* What varies from step to step repeats after so many steps, so that all jobs do the same. */
enum { PERIOD = 32 };

/* One pattern of an application. */
struct pattern {
    const char *name;
    void (*prepare)(void); /* before the first step; NULL: nothing */
    void (*step)(long number);
    void (*finish)(void); /* after the last one; NULL: nothing */
};

/* The patterns, by file; the last one has no name. */
extern const struct pattern data_patterns[], waiting_patterns[];

extern int rank, ranks;
extern long argument;      /* of the pattern: bytes, microseconds, points, calls or messages */
extern const char *folder; /* where files go */

/* Ends the job with an error. */
void give_up(const char *what, const char *detail);

/* Ends the job with a wrong answer, unless `is` is what it should be. */
void check(long number, const char *what, double is, double should);

/* Computes for about so many microseconds: a fixed number of operations, the same in every job. */
void work(double microseconds);

/* A number that looks like chance and is the same in every job. */
uint32_t chance(long number, int one, int other);

/* Memory that has been written to. */
void *memory(size_t bytes);

/* The data of rank `of` in a step: so much more than the place of each element modulo 8. */
double value(int of, long number);
void fill(double *at, size_t length, double value);

/* The sum of all elements, each of which is loaded, and what it is after `fill`. */
double total(const double *at, size_t length);
double total_of(size_t length, double value);

/* The same of the sum over all ranks. */
double total_of_all(size_t length, long number);

#endif
