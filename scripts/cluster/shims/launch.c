/* Preloaded into Open MPI's mpirun: it does not warn that a host was quick.
 *
 * mpirun puts each remote shell that it starts into a process group of its own, and so does the remote shell's process itself, before
 * it becomes the remote shell. If that is so quick that mpirun comes second, mpirun is refused (EACCES), and prints
 * a warning. The group is as it should be then.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

int setpgid(pid_t process, pid_t group)
{
    int result = syscall(SYS_setpgid, process, group);
    return result != 0 && errno == EACCES && process == group ? 0 : result;
}
