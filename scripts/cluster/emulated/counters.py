"""Bytes per link, from the counters of the interfaces at the switches.

What counts is what the interface saw: Ethernet, IP and TCP headers included, but once for a train of packets (up to 10,000 bytes), as
packets of a train are cut where they leave the machine, which here they never do.
"""

import json

# The counters of the first process's network namespace, in which the switches are: all hosts can read them.
FILE = "/proc/1/net/dev"


def read(path=FILE):
    """Received and sent bytes by interface."""
    counts = {}
    with open(path) as file:
        for line in file.readlines()[2:]:
            name, _, numbers = line.partition(":")
            fields = numbers.split()
            counts[name.strip()] = (int(fields[0]), int(fields[8]))
    return counts


def between(layout, before, after):
    """What each link carried from one reading to another: `up` is away from the host, `down` towards it."""
    links = []
    for name, kind, lower, upper in layout.links():
        # The interface `name` is at the host's switch, so that it receives what the host sends; that of a trunk is at the
        # lower switch, and sends what goes up.
        received, sent = (after[name][way] - before[name][way] for way in (0, 1))
        up, down = (received, sent) if kind == "host" else (sent, received)
        links.append({"link": name, "kind": kind, "from": lower, "to": upper, "up": up, "down": down})
    return links


def table(links):
    """A line per link, and a sum per kind."""
    rows = [("link", "ends", "bytes up", "bytes down")]
    rows += [(link["link"], f"{link['from']} - {link['to']}", f"{link['up']:,}", f"{link['down']:,}") for link in links]
    for kind in ("host", "trunk"):
        some = [link for link in links if link["kind"] == kind]
        if len(some) > 1:
            rows.append((f"{kind} links", "sum", *(f"{sum(link[way] for link in some):,}" for way in ("up", "down"))))
            rows.append(("", "most", *(f"{max(link[way] for link in some):,}" for way in ("up", "down"))))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    aligned = (
        f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]:>{widths[3]}}" for row in rows
    )
    return "\n".join(line.rstrip() for line in aligned)


def as_json(layout, library, seconds, links):
    """One object on one line."""
    described = {
        "mpi": library,
        "hosts": layout.hosts,
        "slots": layout.slots,
        "placement": layout.placement,
        "host_rate_bits": layout.host_rate.bits,
        "trunk_rate_bits": layout.trunk_rate.bits if layout.has_trunks() else None,
        "seconds": round(seconds, 6),
        "links": links,
    }
    return json.dumps(described)
