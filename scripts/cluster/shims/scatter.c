/* Preloaded into ranks of MPICH that are placed at random: they learn who shares a host.
 *
 * MPICH's launcher tells its ranks so by a pattern, PMI_process_mapping: "(vector,(FIRST HOST,HOSTS,RANKS ON EACH),..)".
 * The launcher only makes regular patterns itself: for any other placement it starts several proxies on a host and takes each
 * for a host of its own. Here the true pattern is put into its answer, a line of text on the descriptor PMI_FD.
 *
 * CLUSTER_PATTERN   the pattern, from its opening to its closing parenthesis
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t read(int file, void *buffer, size_t room)
{
    ssize_t got = syscall(SYS_read, file, buffer, room);
    const char *launcher = getenv("PMI_FD"), *truth = getenv("CLUSTER_PATTERN");
    if (got <= 0 || !launcher || !truth || atoi(launcher) != file)
        return got;
    char *stop = (char *)buffer + got;
    char *pattern = memmem(buffer, got, "(vector,", 8);
    char *end = pattern ? memchr(pattern, '\n', stop - pattern) : NULL;
    if (end && got - (end - pattern) + strlen(truth) <= room) {
        memmove(pattern + strlen(truth), end, stop - end);
        memcpy(pattern, truth, strlen(truth));
        got += strlen(truth) - (end - pattern);
    }
    return got;
}
