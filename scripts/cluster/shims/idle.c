/* Preloaded into ranks: a rank that waits for the network sleeps.
 *
 * MPI libraries poll their sockets without end, with a timeout of zero. With many more ranks than cores that takes the
 * processor from those who have something to do, and from the kernel, which carries the packets of the emulated links.
 * Here a poll that follows two empty ones waits for real, and ends as soon as a socket is ready. A message through shared memory,
 * which no poll sees, can be that late. Waits that start short and grow were slower by a third with 16 ranks a core.
 *
 * CLUSTER_NAP_US   the longest wait in microseconds (1000); 0 leaves polls as they are
 */
#define _GNU_SOURCE
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EMPTY_POLLS_BEFORE_A_NAP 2

static __thread int empty_polls, timer_is_exact;

static long limit(void)
{
    static long cached = -1;
    if (cached < 0) {
        const char *text = getenv("CLUSTER_NAP_US");
        long given = text ? atol(text) : 1000;
        cached = given < 0 ? 0 : given > 100000 ? 100000 : given;
    }
    return cached;
}

/* How long the next poll of this thread may wait. */
static struct timespec patience(void)
{
    if (empty_polls < EMPTY_POLLS_BEFORE_A_NAP || limit() == 0)
        return (struct timespec){0, 0};
    if (!timer_is_exact)
        prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL); /* nanoseconds; 50 microseconds are the default */
    timer_is_exact = 1;
    return (struct timespec){limit() / 1000000, limit() % 1000000 * 1000};
}

static void learn(int found)
{
    if (found != 0)
        empty_polls = 0;
    else if (empty_polls < EMPTY_POLLS_BEFORE_A_NAP)
        empty_polls++;
}

int epoll_wait(int set, struct epoll_event *events, int room, int milliseconds)
{
    if (milliseconds != 0)
        return syscall(SYS_epoll_pwait, set, events, room, milliseconds, NULL, 0);
    struct timespec wait = patience();
    int found = syscall(SYS_epoll_pwait2, set, events, room, &wait, NULL, 0);
    learn(found);
    return found;
}

int poll(struct pollfd *files, nfds_t count, int milliseconds)
{
    if (milliseconds < 0)
        return ppoll(files, count, NULL, NULL);
    if (milliseconds > 0) {
        struct timespec given = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
        return ppoll(files, count, &given, NULL);
    }
    struct timespec wait = patience();
    int found = ppoll(files, count, &wait, NULL);
    learn(found);
    return found;
}
