/* The values of MPI's constants, which its header alone knows. Handles are machine words: pointers in Open MPI and in the
 * standard ABI, integers in MPICH. */

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#if defined OPEN_MPI || (defined MPI_ABI_VERSION && !defined MPICH)
#define WORD(handle) ((uintptr_t) (handle))
#else
#define WORD(handle) ((uintptr_t) (unsigned int) (handle))
#endif

struct constant {
    uintptr_t handle;
    int meaning;
};

/* In the order of `Kind` in types.rs. */
enum { SIGNED, INTEGER, UNSIGNED, REAL, COMPLEX, C_BOOL, LOGICAL, BYTE, OTHER,
       FLOAT_INT, DOUBLE_INT, LONG_INT, TWO_INT, SHORT_INT, LONG_DOUBLE_INT, TWO_REAL, TWO_DOUBLE };

static const struct constant types[] = {
    { WORD(MPI_SIGNED_CHAR), SIGNED },
    { WORD(MPI_SHORT), SIGNED },
    { WORD(MPI_INT), SIGNED },
    { WORD(MPI_LONG), SIGNED },
    { WORD(MPI_LONG_LONG_INT), SIGNED },
    { WORD(MPI_LONG_LONG), SIGNED },
    { WORD(MPI_INT8_T), SIGNED },
    { WORD(MPI_INT16_T), SIGNED },
    { WORD(MPI_INT32_T), SIGNED },
    { WORD(MPI_INT64_T), SIGNED },
    { WORD(MPI_AINT), SIGNED },
    { WORD(MPI_OFFSET), SIGNED },
    { WORD(MPI_COUNT), SIGNED },
    { WORD(MPI_UNSIGNED_CHAR), UNSIGNED },
    { WORD(MPI_UNSIGNED_SHORT), UNSIGNED },
    { WORD(MPI_UNSIGNED), UNSIGNED },
    { WORD(MPI_UNSIGNED_LONG), UNSIGNED },
    { WORD(MPI_UNSIGNED_LONG_LONG), UNSIGNED },
    { WORD(MPI_UINT8_T), UNSIGNED },
    { WORD(MPI_UINT16_T), UNSIGNED },
    { WORD(MPI_UINT32_T), UNSIGNED },
    { WORD(MPI_UINT64_T), UNSIGNED },
    { WORD(MPI_FLOAT), REAL },
    { WORD(MPI_DOUBLE), REAL },
    { WORD(MPI_LONG_DOUBLE), REAL },
    { WORD(MPI_C_COMPLEX), COMPLEX },
    { WORD(MPI_C_FLOAT_COMPLEX), COMPLEX },
    { WORD(MPI_C_DOUBLE_COMPLEX), COMPLEX },
    { WORD(MPI_C_LONG_DOUBLE_COMPLEX), COMPLEX },
    { WORD(MPI_C_BOOL), C_BOOL },
    { WORD(MPI_BYTE), BYTE },
    { WORD(MPI_CHAR), OTHER },
    { WORD(MPI_WCHAR), OTHER },
    { WORD(MPI_PACKED), OTHER },
    { WORD(MPI_FLOAT_INT), FLOAT_INT },
    { WORD(MPI_DOUBLE_INT), DOUBLE_INT },
    { WORD(MPI_LONG_INT), LONG_INT },
    { WORD(MPI_2INT), TWO_INT },
    { WORD(MPI_SHORT_INT), SHORT_INT },
    { WORD(MPI_LONG_DOUBLE_INT), LONG_DOUBLE_INT },

    /* C++ */
    { WORD(MPI_CXX_BOOL), C_BOOL },
    { WORD(MPI_CXX_FLOAT_COMPLEX), COMPLEX },
    { WORD(MPI_CXX_DOUBLE_COMPLEX), COMPLEX },
    { WORD(MPI_CXX_LONG_DOUBLE_COMPLEX), COMPLEX },

    /* Fortran */
    { WORD(MPI_INTEGER), INTEGER },
    { WORD(MPI_INTEGER1), INTEGER },
    { WORD(MPI_INTEGER2), INTEGER },
    { WORD(MPI_INTEGER4), INTEGER },
    { WORD(MPI_INTEGER8), INTEGER },
    { WORD(MPI_REAL), REAL },
    { WORD(MPI_DOUBLE_PRECISION), REAL },
    { WORD(MPI_REAL4), REAL },
    { WORD(MPI_REAL8), REAL },
    { WORD(MPI_REAL16), REAL },
    { WORD(MPI_COMPLEX), COMPLEX },
    { WORD(MPI_DOUBLE_COMPLEX), COMPLEX },
    { WORD(MPI_COMPLEX8), COMPLEX },
    { WORD(MPI_COMPLEX16), COMPLEX },
    { WORD(MPI_COMPLEX32), COMPLEX },
    { WORD(MPI_LOGICAL), LOGICAL },
    { WORD(MPI_CHARACTER), OTHER },
    { WORD(MPI_2INTEGER), TWO_INT },
    { WORD(MPI_2REAL), TWO_REAL },
    { WORD(MPI_2DOUBLE_PRECISION), TWO_DOUBLE },
};

/* In the order of `Op` in operators.rs. */
static const struct constant operators[] = {
    { WORD(MPI_SUM), 0 },  { WORD(MPI_PROD), 1 }, { WORD(MPI_MIN), 2 },  { WORD(MPI_MAX), 3 },
    { WORD(MPI_LAND), 4 }, { WORD(MPI_LOR), 5 },  { WORD(MPI_LXOR), 6 }, { WORD(MPI_BAND), 7 },
    { WORD(MPI_BOR), 8 },  { WORD(MPI_BXOR), 9 }, { WORD(MPI_MINLOC), 10 }, { WORD(MPI_MAXLOC), 11 },
};

const struct constant *phalanx_mpi_types(size_t *count)
{
    *count = sizeof types / sizeof *types;
    return types;
}

const struct constant *phalanx_mpi_operators(size_t *count)
{
    *count = sizeof operators / sizeof *operators;
    return operators;
}

const uintptr_t phalanx_mpi_in_place = (uintptr_t) MPI_IN_PLACE;
const uintptr_t phalanx_mpi_comm_world = WORD(MPI_COMM_WORLD);
const uintptr_t phalanx_mpi_comm_self = WORD(MPI_COMM_SELF);
const uintptr_t phalanx_mpi_comm_null = WORD(MPI_COMM_NULL);
const uintptr_t phalanx_mpi_datatype_null = WORD(MPI_DATATYPE_NULL);
const uintptr_t phalanx_mpi_packed = WORD(MPI_PACKED);
const uintptr_t phalanx_mpi_op_null = WORD(MPI_OP_NULL);
/* Those that fold nothing, but are predefined. */
const uintptr_t phalanx_mpi_replace = WORD(MPI_REPLACE);
const uintptr_t phalanx_mpi_no_op = WORD(MPI_NO_OP);

/* Attributes that duplicates do not have: these are macros of functions, or of none. */
int phalanx_mpi_comm_keyval(int (*forget)(MPI_Comm, int, void *, void *), int *key)
{
    return PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, key, NULL);
}

int phalanx_mpi_type_keyval(int (*forget)(MPI_Datatype, int, void *, void *), int *key)
{
    return PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, forget, key, NULL);
}

/* What an integer of Fortran's stands for. */
uintptr_t phalanx_mpi_info(int number)
{
    return (uintptr_t) MPI_Info_f2c(number);
}

/* The least alignment that an info asks memory to have (MPI 4.1, 10.2); 0, if it asks for none. */
long phalanx_mpi_alignment(uintptr_t word)
{
    MPI_Info info = (MPI_Info) word;
    char text[33] = "";
    int is_there = 0;
    if (info == MPI_INFO_NULL || PMPI_Info_get(info, "mpi_minimum_memory_alignment", 32, text, &is_there) != MPI_SUCCESS)
        return 0;
    return is_there ? strtol(text, NULL, 10) : 0;
}
