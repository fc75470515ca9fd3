/* One case of the plan: its elements, buffers, call, and the answer that belongs to it (src/rank/). */
#ifndef COLLECTIVES_CASE_H
#define COLLECTIVES_CASE_H

#include <inttypes.h>
#include <string.h>

#include "collectives_job.h"

#define LINE 64
#define PERIOD 61

enum operation { BARRIER, BROADCAST, REDUCE, ALLREDUCE, GATHER, SCATTER, ALLGATHER, ALLTOALL, REDUCE_SCATTER, SCAN, EMPTY };
enum operator { SUM, MAX, MIN, USER };
enum buffers { WARM, REWRITTEN, COLD };
enum timing { STREAM, EACH, LOADED, STEP };
enum element { I32, I64, F32, F64 };

static const char *const operations[] = {"barrier", "broadcast", "reduce", "allreduce", "gather", "scatter",
                                         "allgather", "alltoall", "reduce-scatter", "scan", "empty", NULL};
static const char *const operators[] = {"sum", "max", "min", "user", NULL};
static const char *const buffer_modes[] = {"warm", "rewritten", "cold", NULL};
static const char *const timings[] = {"stream", "each", "loaded", "step", NULL};
static const char *const elements[] = {"i32", "i64", "f32", "f64", NULL};

struct measurement {
    int operation, buffers, timing, element, root;
    uint64_t bytes;
    long blocks;
    double block; /* nanoseconds */
};

static uint64_t cold_bytes; /* in buffers that take turns */
static int operator; /* by what reductions combine */

/* The buffers of one case: slots that take turns, a power of two of them. */
static char *send_memory, *receive_memory, *send_start, *receive_start;
static size_t length, sent, received, stride, slots; /* of a block; of all that is sent, and received */
static uint64_t calls;

static void wrong(const struct measurement *m, const char *when, size_t index, double is, double should) {
    fprintf(sheet,
            "wrong %ld rank %d of %d, %s of %" PRIu64 " bytes of %s, root %d, %s buffers, %s: "
            "element %zu of %zu is %g and should be %g\n",
            current, rank, ranks, operations[m->operation], m->bytes, elements[m->element], m->root,
            buffer_modes[m->buffers], when, index, received, is, should);
    fflush(sheet);
    give_up("wrong answer:", operations[m->operation]);
}

static int has_bytes(const struct measurement *m) { return m->operation != BARRIER && m->operation != EMPTY; }

static size_t element_bytes(int element) { return element == I32 || element == F32 ? 4 : 8; }

static MPI_Datatype datatype(int element) {
    switch (element) {
    case I32: return MPI_INT32_T;
    case I64: return MPI_INT64_T;
    case F32: return MPI_FLOAT;
    default: return MPI_DOUBLE;
    }
}

static void put(int element, void *at, size_t index, uint32_t value) {
    switch (element) {
    case I32: ((int32_t *)at)[index] = (int32_t)value; break;
    case I64: ((int64_t *)at)[index] = (int64_t)value; break;
    case F32: ((float *)at)[index] = (float)value; break;
    default: ((double *)at)[index] = (double)value; break;
    }
}

static double get(int element, const void *at, size_t index) {
    switch (element) {
    case I32: return (double)((const int32_t *)at)[index];
    case I64: return (double)((const int64_t *)at)[index];
    case F32: return (double)((const float *)at)[index];
    default: return ((const double *)at)[index];
    }
}

/* Elements of one value: the first KiB by a loop, and copies of it by the C library, as ours does (rank/value.rs). A loop
 * alone takes twice as long where it happens to cross a line of code, in one compiler's program and not in another's. */
enum { FILLED = 1024 };

static void fill_constant(int element, void *at, size_t length, uint32_t value) {
    size_t bytes = element_bytes(element), i, first = length < FILLED / bytes ? length : FILLED / bytes;
    switch (element) {
    case I32: for (i = 0; i < first; i++) ((int32_t *)at)[i] = (int32_t)value; break;
    case I64: for (i = 0; i < first; i++) ((int64_t *)at)[i] = (int64_t)value; break;
    case F32: for (i = 0; i < first; i++) ((float *)at)[i] = (float)value; break;
    default: for (i = 0; i < first; i++) ((double *)at)[i] = (double)value; break;
    }
    for (i = first; i < length; i += first)
        memcpy((char *)at + i * bytes, at, (length - i < first ? length - i : first) * bytes);
}

static uint32_t contribution(int of, size_t index, int turn) {
    return (uint32_t)(((size_t)of * 31 + index * 7 + (size_t)turn * 11) % PERIOD);
}

static void *send_slot(uint64_t call, size_t bytes) {
    return send_start + ((call * 0x9E3779B1u) & (slots - 1)) * stride * bytes;
}

static void *receive_slot(uint64_t call, size_t bytes) {
    return receive_start + ((call * 0x9E3779B1u) & (slots - 1)) * stride * bytes;
}

static char *on_a_line(char *at) { return (char *)(((uintptr_t)at + LINE - 1) & ~(uintptr_t)(LINE - 1)); }

static void make_buffers(const struct measurement *m) {
    size_t bytes = element_bytes(m->element), stride_bytes, wanted;
    length = (size_t)m->bytes / bytes;
    sent = received = length;
    if (m->operation == SCATTER || m->operation == ALLTOALL || m->operation == REDUCE_SCATTER) sent *= (size_t)ranks;
    if (m->operation == GATHER || m->operation == ALLGATHER || m->operation == ALLTOALL) received *= (size_t)ranks;
    stride_bytes = ((sent > received ? sent : received) * bytes + LINE - 1) / LINE * LINE;
    if (stride_bytes < LINE) stride_bytes = LINE;
    slots = 1;
    if (m->buffers == COLD) {
        wanted = (size_t)cold_bytes / stride_bytes;
        if (wanted < 2) wanted = 2;
        if (wanted > (1u << 20)) wanted = 1u << 20;
        while (slots * 2 <= wanted) slots *= 2;
    }
    stride = stride_bytes / bytes;
    send_memory = malloc(slots * stride_bytes + LINE);
    receive_memory = malloc(slots * stride_bytes + LINE);
    if (!send_memory || !receive_memory) give_up("no memory for", "the buffers");
    memset(send_memory, 1, slots * stride_bytes + LINE);
    memset(receive_memory, 1, slots * stride_bytes + LINE);
    send_start = on_a_line(send_memory);
    receive_start = on_a_line(receive_memory);
}

static void fill_patterns(const struct measurement *m, int turn) {
    size_t bytes = element_bytes(m->element), i;
    int sends_from_receive = m->operation == BROADCAST && rank == m->root;
    for (uint64_t call = 0; call < slots; call++) {
        void *send = send_slot(call, bytes), *receive = receive_slot(call, bytes);
        for (i = 0; i < sent; i++) put(m->element, send, i, contribution(rank, i, turn));
        if (sends_from_receive)
            for (i = 0; i < length; i++) put(m->element, receive, i, contribution(rank, i, turn));
        else
            fill_constant(m->element, receive, received, 99999);
    }
}

/* The sum again, as a program's own operator. */
static void plus(void *from, void *to, int *count, MPI_Datatype *type) {
    int i;
    if (*type == MPI_INT32_T)
        for (i = 0; i < *count; i++) ((int32_t *)to)[i] += ((int32_t *)from)[i];
    else if (*type == MPI_INT64_T)
        for (i = 0; i < *count; i++) ((int64_t *)to)[i] += ((int64_t *)from)[i];
    else if (*type == MPI_FLOAT)
        for (i = 0; i < *count; i++) ((float *)to)[i] += ((float *)from)[i];
    else
        for (i = 0; i < *count; i++) ((double *)to)[i] += ((double *)from)[i];
}

static MPI_Op operator_handle(void) {
    static MPI_Op own = MPI_OP_NULL;
    switch (operator) {
    case SUM: return MPI_SUM;
    case MAX: return MPI_MAX;
    case MIN: return MPI_MIN;
    default:
        if (own == MPI_OP_NULL) MPI_Op_create(plus, 1, &own);
        return own;
    }
}

static double combined(double one, double other) {
    switch (operator) {
    case MAX: return one > other ? one : other;
    case MIN: return one < other ? one : other;
    default: return one + other;
    }
}

/* Makes a call whose buffers are chosen. */
static void make(const struct measurement *m, void *send, void *receive) {
    switch (m->operation) {
    case EMPTY: break;
    case BARRIER: MPI_Barrier(MPI_COMM_WORLD); break;
    case BROADCAST: MPI_Bcast(receive, (int)length, datatype(m->element), m->root, MPI_COMM_WORLD); break;
    case REDUCE:
        MPI_Reduce(send, receive, (int)length, datatype(m->element), operator_handle(), m->root, MPI_COMM_WORLD);
        break;
    case GATHER:
        MPI_Gather(send, (int)length, datatype(m->element), receive, (int)length, datatype(m->element), m->root,
                   MPI_COMM_WORLD);
        break;
    case SCATTER:
        MPI_Scatter(send, (int)length, datatype(m->element), receive, (int)length, datatype(m->element), m->root,
                    MPI_COMM_WORLD);
        break;
    case ALLGATHER:
        MPI_Allgather(send, (int)length, datatype(m->element), receive, (int)length, datatype(m->element),
                      MPI_COMM_WORLD);
        break;
    case ALLTOALL:
        MPI_Alltoall(send, (int)length, datatype(m->element), receive, (int)length, datatype(m->element),
                     MPI_COMM_WORLD);
        break;
    case REDUCE_SCATTER:
        MPI_Reduce_scatter_block(send, receive, (int)length, datatype(m->element), operator_handle(), MPI_COMM_WORLD);
        break;
    case SCAN:
        MPI_Scan(send, receive, (int)length, datatype(m->element), operator_handle(), MPI_COMM_WORLD);
        break;
    default:
        MPI_Allreduce(send, receive, (int)length, datatype(m->element), operator_handle(), MPI_COMM_WORLD);
        break;
    }
}

static void one_call(const struct measurement *m) {
    size_t bytes = element_bytes(m->element);
    void *send = send_slot(calls, bytes), *receive = receive_slot(calls, bytes);
    calls++;
    make(m, send, receive);
}

static int has_result(const struct measurement *m) {
    return has_bytes(m) && ((m->operation != REDUCE && m->operation != GATHER) || rank == m->root);
}

/* Loads all of a result, as a program does that goes on with it. */
static void read_all(const struct measurement *m, const void *result) {
    static volatile uint64_t sink;
    uint64_t bits[8] = {0};
    size_t i = 0, part;
    if (element_bytes(m->element) == 8) {
        const uint64_t *all = result;
        for (; i + 8 <= received; i += 8)
            for (part = 0; part < 8; part++) bits[part] ^= all[i + part];
        for (; i < received; i++) bits[0] ^= all[i];
    } else {
        const uint32_t *all = result;
        for (; i + 8 <= received; i += 8)
            for (part = 0; part < 8; part++) bits[part] ^= all[i + part];
        for (; i < received; i++) bits[0] ^= all[i];
    }
    for (part = 0; part < 8; part++) sink = bits[part];
}

/* What rank `of` has sent at `index`: by the pattern of `turn`, or a constant (turn -1). */
static double sent_by(int of, size_t index, int turn, uint32_t constant) {
    return turn < 0 ? constant : contribution(of, index, turn);
}

/* What ranks 0 to `last` have sent at `index`, combined. */
static double combined_upto(int last, size_t index, int turn, uint32_t constant) {
    double value = sent_by(0, index, turn, constant);
    for (int of = 1; of <= last; of++) value = combined(value, sent_by(of, index, turn, constant));
    return value;
}

/* Compares what call `call` left here: with the pattern of `turn`, or with a constant (turn -1). */
static void compare(const struct measurement *m, uint64_t call, int turn, uint32_t constant, const char *when) {
    size_t bytes = element_bytes(m->element), blocks = length > 0 ? received / length : 1;
    const void *result = receive_slot(call, bytes);
    double expected[PERIOD];
    if (!has_result(m)) return;
    for (size_t block = 0; block < blocks; block++) {
        for (size_t i = 0; i < PERIOD; i++) {
            size_t mine = (size_t)rank * length + i;
            switch (m->operation) {
            case BROADCAST: expected[i] = sent_by(m->root, i, turn, constant); break;
            case GATHER:
            case ALLGATHER: expected[i] = sent_by((int)block, i, turn, constant); break;
            case SCATTER: expected[i] = sent_by(m->root, mine, turn, constant); break;
            case ALLTOALL: expected[i] = sent_by((int)block, mine, turn, constant); break;
            case REDUCE_SCATTER: expected[i] = combined_upto(ranks - 1, mine, turn, constant); break;
            case SCAN: expected[i] = combined_upto(rank, i, turn, constant); break;
            default: expected[i] = combined_upto(ranks - 1, i, turn, constant); break;
            }
        }
        for (size_t i = 0; i < length; i++)
            if (get(m->element, result, block * length + i) != expected[i % PERIOD])
                wrong(m, when, block * length + i, get(m->element, result, block * length + i), expected[i % PERIOD]);
    }
}

#endif
