"""The switches, and the whole cluster put together: bridges in the first process's network namespace, a pair of interfaces per link.

Both ends of a link are shaped: what leaves a host at the host, what goes to it at its switch, a trunk at both switches.
"""

import os
import time

from . import system
from .hosts import Host, batch, shown_again, write_setting

# Where the cluster's files are, seen by all hosts, and by nobody outside.
DIRECTORY = "/run/cluster"


def _link_lines(layout, hosts):
    lines = []
    for switch in layout.switches() + (["top"] if layout.has_trunks() else []):
        lines.append(f"link add {switch} type bridge stp_state 0 mcast_snooping 0 forward_delay 0")
        lines.append(f"link set {switch} up")
    for name, kind, lower, upper in layout.links():
        if kind == "host":
            index = int(lower[1:])
            address = layout.hardware_address(index)
            lines.append(f"link add {name} type veth peer name eth0 address {address} netns {hosts[index].pid}")
            lines.append(f"link set {name} master {upper} up")
        else:
            far = name.replace("up", "down")
            lines.append(f"link add {name} type veth peer name {far}")
            lines.append(f"link set {name} master {lower} up")
            lines.append(f"link set {far} master {upper} up")
    return lines


def _shaping_lines(layout):
    lines = []
    for name, kind, _, _ in layout.links():
        if kind == "host":
            lines += layout.host_rate.qdisc(name)
        else:
            lines += layout.trunk_rate.qdisc(name) + layout.trunk_rate.qdisc(name.replace("up", "down"))
    return lines


def _write(name, text):
    with open(f"{DIRECTORY}/{name}", "w") as file:
        file.write(text)


def make(layout, directories):
    """Makes hosts, switches and links; `directories` are those that hosts must see although they lie in /tmp or such.
    Returns the seconds it took. Runs in the first process. Raises Forbidden and Trouble."""
    start = time.monotonic()
    shown = shown_again(directories)
    system.mount("tmpfs", "/run", "mode=755")
    for folder in ("hosts", "names", "marks", "bin", "shown", "cgroup"):
        os.makedirs(f"{DIRECTORY}/{folder}")
    for number, path in enumerate(shown):
        os.mkdir(f"{DIRECTORY}/shown/{number}")
        system.bind(path, f"{DIRECTORY}/shown/{number}")
    if os.path.isdir("/sys/fs/cgroup"):
        system.bind("/sys/fs/cgroup", f"{DIRECTORY}/cgroup")
    _write("hosts_file", layout.hosts_file())
    _write("topology.conf", layout.topology_conf())

    write_setting("/proc/sys/net/ipv6/conf/all/disable_ipv6", 1)
    write_setting("/proc/sys/net/ipv6/conf/default/disable_ipv6", 1)
    write_setting("/proc/sys/net/bridge/bridge-nf-call-iptables", 0)
    hosts = [Host(layout, index, DIRECTORY, shown) for index in range(layout.hosts)]
    for host in hosts:
        host.wait()
    batch("ip", _link_lines(layout, hosts))
    batch("tc", _shaping_lines(layout))
    for host in hosts:
        host.connect()
    for host in hosts:
        host.wait()
        _write(f"hosts/{host.name}", f"{host.pid}\n")
    return time.monotonic() - start
