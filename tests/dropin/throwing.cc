// An error handler that throws: the exception comes out of the call that was refused, and the communicator goes on. MPI does not promise that, but
// libraries in C let exceptions pass, and programs in C++ do this.
#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <unistd.h>
#include <vector>

namespace {

struct Refusal {
    int code;
};

int rank, ranks;
long answers;

void refuse(MPI_Comm *, int *code, ...) { throw Refusal{*code}; }

void check(bool is_right, const char *what) {
    answers++;
    if (is_right) return;
    std::fprintf(stderr, "FAIL throwing: rank %d of %d: %s\n", rank, ranks, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/// Whether what goes out of scope on an exception's way has done so.
struct Guard {
    int &left;
    ~Guard() { left++; }
};

template <class Call>
void is_refused(const char *what, Call call) {
    int left = 0;
    bool is_caught = false;
    try {
        Guard guard{left};
        call();
    } catch (const Refusal &refusal) {
        is_caught = refusal.code != MPI_SUCCESS;
    }
    check(is_caught && left == 1, what);
}

void right(MPI_Comm comm, int count) {
    std::vector<int> in(count, rank + 1), out(count), all(count * ranks);
    MPI_Allreduce(in.data(), out.data(), count, MPI_INT, MPI_SUM, comm);
    for (int value : out) check(value == ranks * (ranks + 1) / 2, "an allreduce after a refusal");
    MPI_Allgather(in.data(), count, MPI_INT, all.data(), count, MPI_INT, comm);
    for (int i = 0; i < count * ranks; i++) check(all[i] == i / count + 1, "an allgather after a refusal");
    if (rank == 0) out.assign(count, count);
    MPI_Bcast(out.data(), count, MPI_INT, 0, comm);
    for (int value : out) check(value == count, "a broadcast after a refusal");
    MPI_Barrier(comm);
}

} // namespace

int main(int argc, char **argv) {
    const char *seconds = std::getenv("SUITE_SECONDS");
    alarm(seconds ? std::atoi(seconds) : 90);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Errhandler throwing;
    MPI_Comm_create_errhandler(refuse, &throwing);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, throwing);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, throwing);
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_set_errhandler(copy, throwing);
    std::vector<int> in(100), out(100 * ranks);
    for (int turn = 0; turn < 40; turn++) {
        MPI_Comm comm = turn % 2 ? copy : MPI_COMM_WORLD;
        right(comm, turn * 20 + 1);
        is_refused("a broadcast from no rank", [&] { MPI_Bcast(in.data(), 100, MPI_INT, ranks, comm); });
        is_refused("a broadcast of -1", [&] { MPI_Bcast(in.data(), -1, MPI_INT, 0, comm); });
        is_refused("an allreduce by no operator", [&] { MPI_Allreduce(in.data(), out.data(), 100, MPI_INT, MPI_OP_NULL, comm); });
        is_refused("an allgather of no type", [&] { MPI_Allgather(in.data(), 100, MPI_DATATYPE_NULL, out.data(), 100, MPI_INT, comm); });
        is_refused("a gather to no rank", [&] { MPI_Gather(in.data(), 1, MPI_INT, out.data(), 1, MPI_INT, -9, comm); });
        is_refused("a barrier of nobody", [&] { MPI_Barrier(MPI_COMM_NULL); });
    }
    MPI_Comm_free(&copy);
    MPI_Errhandler_free(&throwing);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) std::printf("ok throwing: %d ranks, %ld answers\n", ranks, answers), std::fflush(stdout);
    MPI_Finalize();
}
