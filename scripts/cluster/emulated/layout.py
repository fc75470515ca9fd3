"""The cluster as a pure value: names, addresses, switches, and which rank goes where.

    n0 .. n(s-1) -- sw0 --+
                          +-- top        with one switch only, there is no top and no trunk
    n(s) ..      -- sw1 --+

Every host has one link to its switch, and every switch one trunk to `top`. Each link is shaped in both directions.
"""

import random
import re
from dataclasses import dataclass

MOST_HOSTS = 250

# A packet train is as long as what a token bucket lets through at once: small messages feel the rate too.
SHORTEST_TRAIN = 10_000
# The largest train that Linux forms.
LONGEST_TRAIN = 65_536
# A timer fires that late, or less: the bucket must hold what the link carries meanwhile.
TIMER_SLACK = 80e-6
# Nothing is dropped: senders are allowed less than that in flight. Bytes per direction of a link.
QUEUE = 4_000_000


@dataclass(frozen=True)
class Rate:
    """Bits a second as `tc` writes them; 0 stands for a link that is not shaped."""

    text: str
    bits: float

    @staticmethod
    def parse(text):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(bit|kbit|mbit|gbit)?", text.strip().lower())
        if not match or (match[2] is None and float(match[1]) != 0):
            raise ValueError(f"{text!r} is no rate: write it like 100mbit, 2.5gbit, 500kbit, or 0 for no limit")
        unit = {"bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9, None: 1}[match[2]]
        bits = float(match[1]) * unit
        if 0 < bits < 100e3:
            raise ValueError(f"{text!r} is less than 100kbit: ranks would give up before they are connected")
        return Rate(f"{bits:.0f}bit" if bits else "0", bits)

    def __str__(self):
        if not self.bits:
            return "unlimited"
        for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
            if self.bits >= size:
                return f"{self.bits / size:g} {unit}"
        return f"{self.bits:g} bit/s"

    def train(self):
        """The bytes that may pass at once."""
        return max(SHORTEST_TRAIN, int(self.bits / 8 * TIMER_SLACK))

    def qdisc(self, device):
        """The line for `tc -batch` that shapes what leaves `device`."""
        if not self.bits:
            return []
        return [f"qdisc add dev {device} root tbf rate {self.text} burst {self.train()} limit {QUEUE}"]


@dataclass(frozen=True)
class Layout:
    """`hosts` hosts, `per_switch` on each switch (the last may have fewer), `slots` ranks on each host."""

    hosts: int
    per_switch: int
    slots: int
    host_rate: Rate
    trunk_rate: Rate
    placement: str

    def __post_init__(self):
        if not 1 <= self.hosts <= MOST_HOSTS:
            raise ValueError(f"{self.hosts} hosts: there can be 1 to {MOST_HOSTS}")
        if self.per_switch < 1:
            raise ValueError(f"{self.per_switch} hosts per switch: at least 1 is needed")
        if self.slots < 1:
            raise ValueError(f"{self.slots} slots per host: at least 1 is needed")
        if not re.fullmatch(r"block|round-robin|random:\d+", self.placement):
            raise ValueError(f"{self.placement!r} is no placement: it is block, round-robin or random:SEED")

    def names(self):
        return [f"n{i}" for i in range(self.hosts)]

    def switches(self):
        return [f"sw{w}" for w in range(-(-self.hosts // self.per_switch))]

    def has_trunks(self):
        return len(self.switches()) > 1

    def switch_of(self, host):
        return f"sw{host // self.per_switch}"

    @staticmethod
    def address(host):
        return f"10.77.0.{host + 1}"

    @staticmethod
    def hardware_address(host):
        return f"02:00:00:00:00:{host + 1:02x}"

    def links(self):
        """(name, kind, lower end, upper end) of each link. The name is that of its interface at the switch."""
        links = [(name, "host", name, self.switch_of(i)) for i, name in enumerate(self.names())]
        if self.has_trunks():
            links += [(f"up{w}", "trunk", switch, "top") for w, switch in enumerate(self.switches())]
        return links

    def ranks(self):
        """The host of each rank, by rank."""
        if self.placement == "block":
            return [i for i in range(self.hosts) for _ in range(self.slots)]
        ranks = [i for _ in range(self.slots) for i in range(self.hosts)]
        if self.placement != "round-robin":
            random.Random(int(self.placement.split(":")[1])).shuffle(ranks)
        return ranks

    def hosts_file(self):
        lines = ["127.0.0.1 localhost"] + [f"{self.address(i)} {name}" for i, name in enumerate(self.names())]
        return "\n".join(lines) + "\n"

    def topology_conf(self):
        """The switches as Slurm's topology.conf describes them."""
        lines = []
        for w, switch in enumerate(self.switches()):
            first, last = w * self.per_switch, min((w + 1) * self.per_switch, self.hosts) - 1
            lines.append(f"SwitchName={switch} Nodes=" + (f"n[{first}-{last}]" if first < last else f"n{first}"))
        if self.has_trunks():
            lines.append(f"SwitchName=top Switches=sw[0-{len(self.switches()) - 1}]")
        return "\n".join(lines) + "\n"

    def __str__(self):
        count = len(self.switches())
        trunks = f", trunks {self.trunk_rate}" if self.has_trunks() else ""
        return (
            f"{self.hosts} host{'s'[:self.hosts > 1]} x {self.slots} slot{'s'[:self.slots > 1]} on {count}"
            f" switch{'es'[:2 * (count > 1)]}, host links {self.host_rate}{trunks}"
        )
