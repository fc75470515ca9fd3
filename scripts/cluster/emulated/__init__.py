"""A cluster of network namespaces on one machine: what `run` and `check` are made of.

layout      which hosts, switches, links, addresses and placements there are: pure values
system      the system calls that Python does not have
containment one process tree that dies as a whole, whatever ends it
hosts       a process per host, which holds the host's namespaces
switches    bridges and shaped links between the hosts
counters    bytes per link
libraries   Open MPI and MPICH: what they need to run there, and the shims
"""
