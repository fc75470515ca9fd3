/* Where ranks meet between calls, with no collective of the library under test; and looks at the cores: src/gate.rs,
 * src/gate/look.rs. */
#ifndef COLLECTIVES_GATE_H
#define COLLECTIVES_GATE_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collectives_job.h"

#define GATE_LINE 16 /* words */
#define AHEAD 1000 /* nanoseconds */
#define AHEAD_RANK 50
#define ROUNDS_BEFORE 16
#define ROUNDS 64
#define WORK_TIMES 400
#define WORK_TRIES 5

/* The page where ranks meet: src/gate.rs. */
static uint64_t *gate;
static uint64_t gate_round;
static int gate_yields;

static void open_gate(const char *folder) {
    char path[4096];
    size_t bytes = (size_t)(1 + ranks) * GATE_LINE * sizeof *gate;
    int file;
    snprintf(path, sizeof path, "%s/gate", folder);
    file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) give_up(path, strerror(errno));
    gate = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (gate == MAP_FAILED) give_up(path, strerror(errno));
    close(file);
    if (gate[0] != (uint64_t)ranks) give_up(path, "was made for another number of ranks");
    gate_yields = gate[1] != 0;
}

static void pause_a_moment(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

/* What ranks learn of each other: the latest time, and what the longest of their last calls took. */
struct met {
    uint64_t latest, longest;
};

static struct met meet(uint64_t time, uint64_t took) {
    uint64_t *mine = gate + (size_t)(1 + rank) * GATE_LINE;
    struct met met = {time, took};
    size_t turn = ++gate_round & 1;
    __atomic_store_n(mine + 1 + turn, time, __ATOMIC_RELAXED);
    __atomic_store_n(mine + 3 + turn, took, __ATOMIC_RELAXED);
    __atomic_store_n(mine, gate_round, __ATOMIC_RELEASE);
    for (int i = 0; i < ranks; i++) {
        const uint64_t *line = gate + (size_t)(1 + i) * GATE_LINE;
        if (i == rank) continue;
        while (__atomic_load_n(line, __ATOMIC_ACQUIRE) < gate_round) {
            if (gate_yields)
                sched_yield();
            else
                pause_a_moment();
        }
        uint64_t theirs = __atomic_load_n(line + 1 + turn, __ATOMIC_RELAXED);
        uint64_t took_there = __atomic_load_n(line + 3 + turn, __ATOMIC_RELAXED);
        if (theirs > met.latest) met.latest = theirs;
        if (took_there > met.longest) met.longest = took_there;
    }
    return met;
}

/* Returns when all begin, behind calls that took so long: the time of that or, where ranks outnumber cores, when the
 * last one came. */
static uint64_t begin_together(uint64_t took, uint64_t *longest) {
    struct met met = meet(now(), took);
    uint64_t begin = met.latest + AHEAD + AHEAD_RANK * (uint64_t)ranks, time;
    *longest = met.longest;
    if (gate_yields) return met.latest;
    while ((time = now()) < begin) pause_a_moment();
    return time;
}

/* A look at the cores: src/gate/look.rs. First the nanoseconds of a bare exchange between all ranks. */
static double exchange(void) {
    uint64_t begin;
    for (int i = 0; i < ROUNDS_BEFORE; i++) meet(0, 0);
    begin = now();
    for (int i = 0; i < ROUNDS; i++) meet(0, 0);
    return (double)(now() - begin) / ROUNDS;
}

/* Nanoseconds of a fixed number of multiplications, none of which a vector unit makes. */
static uint64_t work(void) {
    uint64_t begin = now(), a = begin, b = a + 1, c = a + 2, d = a + 3, e = a + 4, f = a + 5;
    for (int i = 0; i < WORK_TIMES; i++) {
        a *= a, b *= b, c *= c, d *= d, e *= e, f *= f;
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
    }
    return now() - begin;
}

static double median_of(uint64_t *tries) {
    for (int i = 1; i < WORK_TRIES; i++) {
        for (int j = i; j > 0 && tries[j] < tries[j - 1]; j--) {
            uint64_t less = tries[j];
            tries[j] = tries[j - 1];
            tries[j - 1] = less;
        }
    }
    return (double)tries[WORK_TRIES / 2];
}

/* How many times as long that takes beside the other ranks as alone, on the rank where it is most. */
static double slowdown(void) {
    uint64_t together[WORK_TRIES], alone[WORK_TRIES];
    for (int i = 0; i < WORK_TRIES; i++) {
        meet(0, 0);
        together[i] = work();
    }
    for (int turn = 0; turn < ranks; turn++) {
        meet(0, 0);
        for (int i = 0; turn == rank && i < WORK_TRIES; i++) alone[i] = work();
    }
    return (double)meet(0, (uint64_t)(100 * median_of(together) / median_of(alone))).longest / 100;
}

#endif
