/* Every predefined type with every operator that the standard allows for it (MPI 4.1, section 6.9.2), beside a loop over all
 * ranks' contributions; all other pairs beside what the library itself answers: the same error class, or the same bytes.
 * Broadcasts of every type. */
#include "suite.h"

#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <wchar.h>

enum { INTEGER = 1, FORTRAN_INTEGER = 2, REAL = 4, LOGICAL = 8, COMPLEX = 16, OCTET = 32, PAIR = 64, OTHER = 128 };
enum operation { MAX, MIN, SUM, PROD, LAND, BAND, LOR, BOR, LXOR, BXOR, MAXLOC, MINLOC, OPERATIONS };

static const struct {
    const char *name;
    int kinds;
} operations[OPERATIONS] = {
    [MAX] = {"MAX", INTEGER | FORTRAN_INTEGER | REAL},
    [MIN] = {"MIN", INTEGER | FORTRAN_INTEGER | REAL},
    [SUM] = {"SUM", INTEGER | FORTRAN_INTEGER | REAL | COMPLEX},
    [PROD] = {"PROD", INTEGER | FORTRAN_INTEGER | REAL | COMPLEX},
    [LAND] = {"LAND", INTEGER | LOGICAL},
    [LOR] = {"LOR", INTEGER | LOGICAL},
    [LXOR] = {"LXOR", INTEGER | LOGICAL},
    [BAND] = {"BAND", INTEGER | FORTRAN_INTEGER | OCTET},
    [BOR] = {"BOR", INTEGER | FORTRAN_INTEGER | OCTET},
    [BXOR] = {"BXOR", INTEGER | FORTRAN_INTEGER | OCTET},
    [MAXLOC] = {"MAXLOC", PAIR},
    [MINLOC] = {"MINLOC", PAIR},
};

static MPI_Op operator_of(enum operation operation) {
    switch (operation) {
    case MAX: return MPI_MAX;
    case MIN: return MPI_MIN;
    case SUM: return MPI_SUM;
    case PROD: return MPI_PROD;
    case LAND: return MPI_LAND;
    case LOR: return MPI_LOR;
    case LXOR: return MPI_LXOR;
    case BAND: return MPI_BAND;
    case BOR: return MPI_BOR;
    case BXOR: return MPI_BXOR;
    case MAXLOC: return MPI_MAXLOC;
    default: return MPI_MINLOC;
    }
}

/* A contribution that no operator carries out of 8 bits over 16 ranks, or out of what a float holds exactly. */
static int small(enum operation operation, int from, size_t index) {
    size_t mixed = (size_t)from * 13 + index * 5;
    switch (operation) {
    case SUM: return (int)(mixed % 6);
    case PROD: return from < 6 && mixed % 2 ? 2 : 1;
    case LAND:
    case LOR:
    case LXOR: return mixed % 5 ? (int)(mixed % 3) : 0;
    default: return (int)(mixed % 97);
    }
}

typedef void put_function(void *at, size_t index, enum operation, int from);
typedef void fold_function(void *at, size_t index, enum operation, int from);
typedef bool same_function(const void *one, const void *other, size_t index);

#define SAME(name, type)                                                                                                      \
    static bool same_##name(const void *one, const void *other, size_t i) {                                                   \
        return ((const type *)one)[i] == ((const type *)other)[i];                                                            \
    }

#define INTEGERS(name, type)                                                                                                  \
    static void put_##name(void *at, size_t i, enum operation o, int from) { ((type *)at)[i] = (type)small(o, from, i); }     \
    static void fold_##name(void *at, size_t i, enum operation o, int from) {                                                 \
        type a = ((type *)at)[i], b = (type)small(o, from, i), c = a;                                                         \
        switch (o) {                                                                                                          \
        case MAX: c = a > b ? a : b; break;                                                                                   \
        case MIN: c = a < b ? a : b; break;                                                                                   \
        case SUM: c = (type)(a + b); break;                                                                                   \
        case PROD: c = (type)(1L * a * b); break;                                                                             \
        case LAND: c = a && b; break;                                                                                         \
        case LOR: c = a || b; break;                                                                                          \
        case LXOR: c = !a != !b; break;                                                                                       \
        case BAND: c = (type)(a & b); break;                                                                                  \
        case BOR: c = (type)(a | b); break;                                                                                   \
        case BXOR: c = (type)(a ^ b); break;                                                                                  \
        default: break;                                                                                                       \
        }                                                                                                                     \
        ((type *)at)[i] = c;                                                                                                  \
    }                                                                                                                         \
    SAME(name, type)

#define REALS(name, type)                                                                                                     \
    static void put_##name(void *at, size_t i, enum operation o, int from) {                                                  \
        ((type *)at)[i] = (type)small(o, from, i) * (o == MAX || o == MIN ? (type)-0.5 : (type)1);                            \
    }                                                                                                                         \
    static void fold_##name(void *at, size_t i, enum operation o, int from) {                                                 \
        type b, *a = (type *)at + i;                                                                                          \
        b = (type)small(o, from, i) * (o == MAX || o == MIN ? (type)-0.5 : (type)1);                                          \
        switch (o) {                                                                                                          \
        case MAX: *a = *a > b ? *a : b; break;                                                                                \
        case MIN: *a = *a < b ? *a : b; break;                                                                                \
        case SUM: *a += b; break;                                                                                             \
        case PROD: *a *= b; break;                                                                                            \
        default: break;                                                                                                       \
        }                                                                                                                     \
    }                                                                                                                         \
    SAME(name, type)

/* Products of 1 and 1+i, whose parts stay small powers of two. */
#define COMPLEXES(name, type)                                                                                                 \
    static type one_##name(enum operation o, int from, size_t i) {                                                            \
        int v = small(o, from, i);                                                                                            \
        return o == PROD ? (v == 2 ? (type)(1 + I) : (type)1) : (type)(v + (2 - v) * I);                                      \
    }                                                                                                                         \
    static void put_##name(void *at, size_t i, enum operation o, int from) { ((type *)at)[i] = one_##name(o, from, i); }      \
    static void fold_##name(void *at, size_t i, enum operation o, int from) {                                                 \
        if (o == SUM) ((type *)at)[i] += one_##name(o, from, i);                                                              \
        if (o == PROD) ((type *)at)[i] *= one_##name(o, from, i);                                                             \
    }                                                                                                                         \
    SAME(name, type)

/* Values meet often, so that the index decides: the lower one wins, whatever the operator. */
#define PAIRS(name, type, where)                                                                                              \
    struct name {                                                                                                             \
        type value;                                                                                                           \
        where index;                                                                                                          \
    };                                                                                                                        \
    static void put_##name(void *at, size_t i, enum operation o, int from) {                                                  \
        ((struct name *)at)[i].value = (type)(small(o, from, i) % 4);                                                         \
        ((struct name *)at)[i].index = (where)((from * 7 + 3) % 16);                                                          \
    }                                                                                                                         \
    static void fold_##name(void *at, size_t i, enum operation o, int from) {                                                 \
        struct name *a = (struct name *)at + i, b = {(type)(small(o, from, i) % 4), (where)((from * 7 + 3) % 16)};            \
        bool better = o == MAXLOC ? b.value > a->value : b.value < a->value;                                                  \
        if (better || (b.value == a->value && b.index < a->index)) a->value = b.value, a->index = b.index;                    \
    }                                                                                                                         \
    static bool same_##name(const void *one, const void *other, size_t i) {                                                   \
        const struct name *a = (const struct name *)one + i, *b = (const struct name *)other + i;                             \
        return a->value == b->value && a->index == b->index;                                                                  \
    }

INTEGERS(i8, int8_t)
INTEGERS(u8, uint8_t)
INTEGERS(i16, int16_t)
INTEGERS(u16, uint16_t)
INTEGERS(i32, int32_t)
INTEGERS(u32, uint32_t)
INTEGERS(i64, int64_t)
INTEGERS(u64, uint64_t)
/* Truths are not multiplied. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wint-in-bool-context"
INTEGERS(truth, bool)
#pragma GCC diagnostic pop
REALS(f32, float)
REALS(f64, double)
REALS(fx, long double)
COMPLEXES(c32, float complex)
COMPLEXES(c64, double complex)
COMPLEXES(cx, long double complex)
PAIRS(float_int, float, int)
PAIRS(double_int, double, int)
PAIRS(long_int, long, int)
PAIRS(int_int, int, int)
PAIRS(short_int, short, int)
PAIRS(long_double_int, long double, int)
PAIRS(float_float, float, float)
PAIRS(double_double, double, double)

static struct type {
    const char *name;
    MPI_Datatype type;
    int kind;
    size_t bytes, extent;
    put_function *put;
    fold_function *fold;
    same_function *same;
} types[100];
static size_t count_of_types;

static void add(const char *name, MPI_Datatype type, int kind, size_t bytes, size_t extent, put_function *put, fold_function *fold,
                same_function *same) {
    /* A library without Fortran, or without a type of such a size, has the name alone. */
    int size = 0;
    if (type == MPI_DATATYPE_NULL) return;
    CALL(MPI_Type_size(type, &size));
    if ((size_t)size != bytes) {
        if (rank == 0) printf("left out: %s has %d bytes here, not %zu\n", name, size, bytes);
        return;
    }
    types[count_of_types++] = (struct type){name, type, kind, bytes, extent, put, fold, same};
}

#define ADD(type, kind, of, c) add(#type, type, kind, sizeof(c), sizeof(c), put_##of, fold_##of, same_##of)
#define ADD_PAIR(type, bytes, of) add(#type, type, PAIR, bytes, sizeof(struct of), put_##of, fold_##of, same_##of)

static void list_types(void) {
    ADD(MPI_SIGNED_CHAR, INTEGER, i8, int8_t);
    ADD(MPI_UNSIGNED_CHAR, INTEGER, u8, uint8_t);
    ADD(MPI_SHORT, INTEGER, i16, short);
    ADD(MPI_UNSIGNED_SHORT, INTEGER, u16, short);
    ADD(MPI_INT, INTEGER, i32, int);
    ADD(MPI_UNSIGNED, INTEGER, u32, int);
    ADD(MPI_LONG, INTEGER, i64, long);
    ADD(MPI_UNSIGNED_LONG, INTEGER, u64, long);
    ADD(MPI_LONG_LONG, INTEGER, i64, long long);
    ADD(MPI_LONG_LONG_INT, INTEGER, i64, long long);
    ADD(MPI_UNSIGNED_LONG_LONG, INTEGER, u64, long long);
    ADD(MPI_INT8_T, INTEGER, i8, int8_t);
    ADD(MPI_INT16_T, INTEGER, i16, int16_t);
    ADD(MPI_INT32_T, INTEGER, i32, int32_t);
    ADD(MPI_INT64_T, INTEGER, i64, int64_t);
    ADD(MPI_UINT8_T, INTEGER, u8, uint8_t);
    ADD(MPI_UINT16_T, INTEGER, u16, uint16_t);
    ADD(MPI_UINT32_T, INTEGER, u32, uint32_t);
    ADD(MPI_UINT64_T, INTEGER, u64, uint64_t);
    ADD(MPI_AINT, FORTRAN_INTEGER, i64, MPI_Aint);
    ADD(MPI_OFFSET, FORTRAN_INTEGER, i64, MPI_Offset);
    ADD(MPI_COUNT, FORTRAN_INTEGER, i64, MPI_Count);
    ADD(MPI_INTEGER, FORTRAN_INTEGER, i32, int);
    ADD(MPI_INTEGER1, FORTRAN_INTEGER, i8, int8_t);
    ADD(MPI_INTEGER2, FORTRAN_INTEGER, i16, int16_t);
    ADD(MPI_INTEGER4, FORTRAN_INTEGER, i32, int32_t);
    ADD(MPI_INTEGER8, FORTRAN_INTEGER, i64, int64_t);
    ADD(MPI_FLOAT, REAL, f32, float);
    ADD(MPI_DOUBLE, REAL, f64, double);
    ADD(MPI_LONG_DOUBLE, REAL, fx, long double);
    ADD(MPI_REAL, REAL, f32, float);
    ADD(MPI_REAL4, REAL, f32, float);
    ADD(MPI_REAL8, REAL, f64, double);
    ADD(MPI_DOUBLE_PRECISION, REAL, f64, double);
    ADD(MPI_C_BOOL, LOGICAL, truth, bool);
    ADD(MPI_LOGICAL, LOGICAL, i32, int);
    ADD(MPI_C_COMPLEX, COMPLEX, c32, float complex);
    ADD(MPI_C_FLOAT_COMPLEX, COMPLEX, c32, float complex);
    ADD(MPI_C_DOUBLE_COMPLEX, COMPLEX, c64, double complex);
    ADD(MPI_C_LONG_DOUBLE_COMPLEX, COMPLEX, cx, long double complex);
    ADD(MPI_COMPLEX, COMPLEX, c32, float complex);
    ADD(MPI_DOUBLE_COMPLEX, COMPLEX, c64, double complex);
    ADD(MPI_COMPLEX8, COMPLEX, c32, float complex);
    ADD(MPI_COMPLEX16, COMPLEX, c64, double complex);
#ifdef MPI_CXX_BOOL
    ADD(MPI_CXX_BOOL, LOGICAL, truth, bool);
    ADD(MPI_CXX_FLOAT_COMPLEX, COMPLEX, c32, float complex);
    ADD(MPI_CXX_DOUBLE_COMPLEX, COMPLEX, c64, double complex);
    ADD(MPI_CXX_LONG_DOUBLE_COMPLEX, COMPLEX, cx, long double complex);
#endif
    ADD(MPI_BYTE, OCTET, u8, uint8_t);
    ADD(MPI_CHAR, OTHER, i8, char);
    ADD(MPI_WCHAR, OTHER, i32, wchar_t);
    ADD(MPI_CHARACTER, OTHER, i8, char);
    ADD(MPI_PACKED, OTHER, u8, char);
    ADD_PAIR(MPI_FLOAT_INT, 8, float_int);
    ADD_PAIR(MPI_DOUBLE_INT, 12, double_int);
    ADD_PAIR(MPI_LONG_INT, 12, long_int);
    ADD_PAIR(MPI_2INT, 8, int_int);
    ADD_PAIR(MPI_SHORT_INT, 6, short_int);
    ADD_PAIR(MPI_LONG_DOUBLE_INT, 20, long_double_int);
    ADD_PAIR(MPI_2REAL, 8, float_float);
    ADD_PAIR(MPI_2DOUBLE_PRECISION, 16, double_double);
    ADD_PAIR(MPI_2INTEGER, 8, int_int);
}

enum { MOST = 3000 };
static char in[MOST * 32 + 64], out[MOST * 32 + 64], should[MOST * 32 + 64], native[MOST * 32 + 64];

static void expect(const struct type *t, enum operation o, size_t count) {
    for (size_t i = 0; i < count; i++) {
        t->put(should, i, o, 0);
        for (int r = 1; r < ranks; r++) t->fold(should, i, o, r);
    }
}

static void compare(const struct type *t, enum operation o, size_t count, const char *what) {
    for (size_t i = 0; i < count; i++)
        CHECK(t->same(out, should, i), "%s of %zu x %s with MPI_%s: element %zu is wrong", what, count, t->name,
              operations[o].name, i);
    for (size_t i = count * t->extent; i < count * t->extent + 16; i++)
        CHECK(out[i] == 0x5a, "%s of %zu x %s wrote past its end", what, count, t->name);
}

static void allowed(const struct type *t, enum operation o, size_t count, int root) {
    memset(in, 0, count * t->extent);
    for (size_t i = 0; i < count; i++) t->put(in, i, o, rank);
    expect(t, o, count);
    size_t bytes = count * t->extent;
    memset(out, 0x5a, bytes + 16);
    CALL(MPI_Allreduce(in, out, (int)count, t->type, operator_of(o), MPI_COMM_WORLD));
    compare(t, o, count, "allreduce");
    memset(out, 0x5a, bytes + 16);
    memcpy(out, in, bytes);
    CALL(MPI_Allreduce(MPI_IN_PLACE, out, (int)count, t->type, operator_of(o), MPI_COMM_WORLD));
    compare(t, o, count, "allreduce in place");
    memset(out, 0x5a, bytes + 16);
    CALL(MPI_Reduce(in, out, (int)count, t->type, operator_of(o), root, MPI_COMM_WORLD));
    if (rank == root) compare(t, o, count, "reduce");
}

/* A pair that the standard does not allow: what the library says to it is said here too. All that differ are listed. */
static int different;

static void not_allowed(const struct type *t, enum operation o) {
    size_t count = 3, bytes = count * t->extent;
    /* MPICH lets these pass its own check, and then ends the job. */
    if (t->kind == REAL && operations[o].kinds & LOGICAL) return;
    memset(in, 0, sizeof in), memset(out, 0, bytes), memset(native, 0, bytes);
    for (size_t i = 0; i < count; i++) t->put(in, i, t->kind == COMPLEX ? SUM : o, rank);
    int theirs = PMPI_Allreduce(in, native, (int)count, t->type, operator_of(o), MPI_COMM_WORLD);
    int ours = MPI_Allreduce(in, out, (int)count, t->type, operator_of(o), MPI_COMM_WORLD);
    answers++;
    if (class_of(ours) == class_of(theirs) && memcmp(out, native, bytes) == 0) return;
    different++;
    if (rank == 0)
        fprintf(stderr, "allreduce of %s with MPI_%s: error class %d, the library's is %d%s\n", t->name, operations[o].name,
                class_of(ours), class_of(theirs), memcmp(out, native, bytes) ? "; another answer" : "");
}

static void broadcast(const struct type *t, size_t count, int root) {
    memset(in, 0, count * t->extent);
    for (size_t i = 0; i < count; i++) t->put(in, i, BXOR, root);
    memset(out, 0x5a, count * t->extent + 16);
    if (rank == root) memcpy(out, in, count * t->extent);
    CALL(MPI_Bcast(out, (int)count, t->type, root, MPI_COMM_WORLD));
    memcpy(should, in, count * t->extent);
    compare(t, BXOR, count, "broadcast");
}

int main(int argc, char **argv) {
    static const size_t counts[] = {1, 5, 130};
    begin(&argc, &argv);
    CALL(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    list_types();
    for (size_t t = 0; t < count_of_types; t++) {
        for (int o = 0; o < OPERATIONS; o++) {
            if (!(operations[o].kinds & types[t].kind)) {
                not_allowed(&types[t], o);
                continue;
            }
            for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
                allowed(&types[t], o, counts[c], (int)(t + c + (size_t)o) % ranks);
            if (o == SUM || o == MINLOC || o == LXOR || o == BXOR) allowed(&types[t], o, MOST, (int)t % ranks);
        }
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) broadcast(&types[t], counts[c], (int)(t + c) % ranks);
        broadcast(&types[t], MOST, (int)t % ranks);
    }
    CHECK(different == 0, "%d pairs of type and operator differ from the library beneath", different);
    if (rank == 0) printf("%zu types\n", count_of_types);
    return finish();
}
