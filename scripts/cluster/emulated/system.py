"""The system calls that Python's standard library does not have. Each raises OSError when the kernel refuses."""

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)

NEW_MOUNTS = 0x0002_0000
NEW_HOST_NAME = 0x0400_0000
NEW_IPC = 0x0800_0000
NEW_USERS = 0x1000_0000
NEW_PIDS = 0x2000_0000
NEW_NETWORK = 0x4000_0000

_MS_BIND = 0x1000
_MS_REC = 0x4000
_MS_PRIVATE = 0x4_0000
_PR_SET_PDEATHSIG = 1


def _check(result, what):
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def unshare(flags):
    """Moves this process into new namespaces (its children, for NEW_PIDS)."""
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def die_with_parent(signal):
    """This process gets `signal` when its parent ends. A parent that has ended already is not noticed."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal), 0, 0, 0), "prctl(PR_SET_PDEATHSIG)")


def _mount(source, target, kind, flags, data):
    encode = lambda text: None if text is None else os.fsencode(text)
    result = _libc.mount(encode(source), encode(target), encode(kind), ctypes.c_ulong(flags), encode(data))
    _check(result, f"mount {kind or source} on {target}")


def mount(kind, target, options=None):
    """Mounts a new file system of this kind."""
    _mount(kind, target, kind, 0, options)


def bind(source, target):
    """Shows `source`, and what is mounted below it, at `target` too."""
    _mount(source, target, None, _MS_BIND | _MS_REC, None)


def make_mounts_private():
    """What is mounted from here on is not seen by other mount namespaces, nor the other way round."""
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE, None)
