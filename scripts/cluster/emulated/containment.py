"""One process tree that dies as a whole.

Two processes stand here. The *keeper* stays outside and waits. The *first process* is process 1 of a new pid namespace,
and everything else of the cluster lives below it. When it ends, the kernel kills all that is left in the namespace, and with the
last process go the network namespaces with their interfaces, and the mounts. It ends when its work is done, when the keeper is
told to stop (INT, TERM, HUP), and when the keeper is killed: the kernel then sends it KILL (PR_SET_PDEATHSIG), and a
pipe shows it whether that came too late to be set.
"""

import os
import select
import signal
import sys
import traceback

from . import system

# The exit status that test drivers read as "skipped".
SKIPPED = 77
# The cluster itself failed, not the command in it.
FAILED = 125


class Forbidden(Exception):
    """This machine does not allow what a cluster needs."""


class Trouble(Exception):
    """The cluster could not be made; the text says why and what to try."""


def _become_root_of_a_user_namespace():
    user, group = os.geteuid(), os.getegid()
    system.unshare(system.NEW_USERS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _new_pid_namespace():
    try:
        if os.geteuid() != 0:
            _become_root_of_a_user_namespace()
        system.unshare(system.NEW_PIDS)
    except OSError as error:
        advice = (
            "give the container CAP_SYS_ADMIN (docker: --privileged)"
            if os.geteuid() == 0
            else "run as root, or allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone)"
        )
        raise Forbidden(f"namespaces are not allowed here ({error}): {advice}") from error


def _first_process(alive, body):
    """What process 1 does: returns its exit status."""
    system.die_with_parent(signal.SIGKILL)
    if select.select([alive], [], [], 0)[0]:
        return FAILED  # the keeper has ended before it could take this process along
    # Handlers, not SIG_IGN: programs that are started from here get the default again.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    try:
        try:
            system.unshare(system.NEW_MOUNTS | system.NEW_NETWORK | system.NEW_IPC | system.NEW_HOST_NAME)
        except OSError as error:
            raise Forbidden(f"network and mount namespaces are not allowed here ({error})") from error
        system.make_mounts_private()
        system.mount("proc", "/proc")
        return body()
    except Forbidden as error:
        print(f"cluster: skipped: {error}", file=sys.stderr)
        return SKIPPED
    except (Trouble, OSError) as error:
        print(f"cluster: {error}", file=sys.stderr)
        return FAILED
    except BaseException:
        traceback.print_exc()
        return FAILED


def contain(body):
    """Runs `body` as process 1 of new pid, mount, network, ipc and host name namespaces. Returns the exit status: that
    which `body` returned, or 128 and the number of the signal that the keeper got. Raises Forbidden."""
    _new_pid_namespace()
    sys.stdout.flush()
    sys.stderr.flush()
    alive, keeper = os.pipe()
    stops = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    # A signal between here and the handlers waits.
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    first = os.fork()
    if first == 0:
        os.close(keeper)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, stops)
        status = FAILED
        try:
            status = _first_process(alive, body)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)
    os.close(alive)
    stopped = []

    def stop(number, _frame):
        stopped.append(number)
        os.kill(first, signal.SIGKILL)

    for number in stops:
        signal.signal(number, stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, stops)
    # The first process can be waited for only after all others of its namespace are gone.
    _, status = os.waitpid(first, 0)
    for number in stops:
        signal.signal(number, signal.SIG_IGN)
    if stopped:
        return 128 + stopped[0]
    if os.WIFSIGNALED(status):
        print(f"cluster: its first process was ended by {signal.Signals(os.WTERMSIG(status)).name}", file=sys.stderr)
        return FAILED
    return os.WEXITSTATUS(status)
