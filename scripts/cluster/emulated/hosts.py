"""The hosts: one process each, which holds the host's network, host name, ipc and mount namespaces while it lives.

A host is made in two steps, as its link can only be made when its network namespace exists, and be set up when the link does.
Hosts of a cluster are made side by side.
"""

import os
import select
import signal
import socket
import subprocess

from . import system
from .containment import Forbidden, Trouble
from .layout import LONGEST_TRAIN

# What belongs to every host alone; all the rest of the file system is one for all, as by NFS.
OWN = ("/tmp", "/var/tmp", "/dev/shm")
# Seconds in which a host must answer.
PATIENCE = 60


def shown_again(directories):
    """Those of `directories` that lie in what each host has of its own, and so must be shown there again: the outer ones first."""
    real = sorted({os.path.realpath(directory) for directory in directories})
    hidden = [path for path in real if any(path.startswith(own + "/") for own in OWN)]
    return [path for path in hidden if not any(path.startswith(outer + "/") for outer in hidden)]


def batch(tool, lines):
    """Gives lines to `ip` or `tc`."""
    if not lines:
        return
    done = subprocess.run([tool, "-batch", "-"], input="\n".join(lines) + "\n", capture_output=True, text=True)
    if done.returncode != 0:
        said = " / ".join(done.stderr.split("\n")[:3]).strip()
        if "Unknown device type" in said or "Specified qdisc" in said or "not permitted" in said:
            raise Forbidden(f"this kernel does not have what `{tool}` needs (veth, bridge, tbf): {said}")
        raise Trouble(f"`{tool}` failed: {said}")


def write_setting(path, value):
    """A sysctl, where this kernel has it."""
    try:
        with open(path, "w") as file:
            file.write(str(value))
    except OSError:
        pass


class Host:
    """One host. `pid` is the process that holds it."""

    def __init__(self, layout, index, directory, shown):
        self.name = layout.names()[index]
        ours, its = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                ours.close()
                _be_a_host(its, layout, index, directory, shown)
            except (OSError, Trouble, Forbidden) as error:
                its.sendall(f"{type(error).__name__} {error}".encode())
            finally:
                os._exit(status)
        its.close()
        self._socket = ours

    def wait(self):
        """Until the step that the host is at is done."""
        if not select.select([self._socket], [], [], PATIENCE)[0]:
            raise Trouble(f"host {self.name} did not answer for {PATIENCE} s: is the machine overloaded?")
        said = self._socket.recv(4096).decode()
        if said != "done":
            kind = Forbidden if said.startswith("Forbidden") else Trouble
            raise kind(f"host {self.name} could not be made: {said.partition(' ')[2] or 'its process ended'}")

    def connect(self):
        """Tells the host that its link is there."""
        self._socket.sendall(b"link")


def _be_a_host(starter, layout, index, directory, shown):
    name = layout.names()[index]
    system.unshare(system.NEW_NETWORK | system.NEW_HOST_NAME | system.NEW_IPC | system.NEW_MOUNTS)
    socket.sethostname(name)
    _mount_own(name, directory, shown)
    _tune()
    starter.sendall(b"done")
    if starter.recv(16) != b"link":
        return
    batch("ip", _address_lines(layout, index))
    batch("tc", layout.host_rate.qdisc("eth0"))
    # Who reads this process's output must not wait for it.
    quiet = os.open("/dev/null", os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(quiet, standard)
    starter.sendall(b"done")
    starter.close()
    while True:
        signal.pause()


def _mount_own(name, directory, shown):
    for target in OWN:
        if os.path.isdir(target):
            system.mount("tmpfs", target, "mode=1777,size=1g")
    for number, path in enumerate(shown):
        os.makedirs(path, exist_ok=True)
        system.bind(f"{directory}/shown/{number}", path)
    own_name = f"{directory}/names/{name}"
    with open(own_name, "w") as file:
        file.write(name + "\n")
    for source, target in ((f"{directory}/hosts_file", "/etc/hosts"), (own_name, "/etc/hostname")):
        if os.path.exists(target):
            system.bind(source, target)
    # Network interfaces of this host in /sys/class/net; the limits of processor and memory are still the machine's.
    try:
        system.mount("sysfs", "/sys")
        system.bind(f"{directory}/cgroup", "/sys/fs/cgroup")
    except OSError:
        pass


def _tune():
    ipv4, ipv6 = "/proc/sys/net/ipv4", "/proc/sys/net/ipv6"
    write_setting(f"{ipv6}/conf/all/disable_ipv6", 1)
    # A new network namespace may choose this one and bbr only.
    write_setting(f"{ipv4}/tcp_congestion_control", "reno")
    # A pause between two collectives must not make the second one slower, nor one run the next.
    write_setting(f"{ipv4}/tcp_slow_start_after_idle", 0)
    write_setting(f"{ipv4}/tcp_no_metrics_save", 1)


def _address_lines(layout, index):
    own = layout.address(index)
    lines = ["link set lo up", "link set eth0 up", f"addr add {own}/24 dev eth0"]
    if layout.host_rate.bits:
        # A train never exceeds the bucket of any link on its way.
        rates = [layout.host_rate] + ([layout.trunk_rate] if layout.has_trunks() and layout.trunk_rate.bits else [])
        train = min([LONGEST_TRAIN] + [rate.train() for rate in rates])
        lines.append(f"link set eth0 gso_max_size {train} gso_max_segs 64")
    lines.append(f"route change 10.77.0.0/24 dev eth0 src {own} initcwnd 40 initrwnd 40")
    # Everybody knows everybody: nothing is asked for, and nothing but ranks' data is counted.
    for other in range(layout.hosts):
        if other != index:
            hardware = layout.hardware_address(other)
            lines.append(f"neigh add {layout.address(other)} lladdr {hardware} dev eth0 nud permanent")
    return lines
