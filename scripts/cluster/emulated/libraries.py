"""Open MPI and MPICH on the cluster: where they are, the shims that their ranks need, and their settings.

All settings are environment variables, so that a plain `mpirun PROGRAM` on host n0 starts ranks on all hosts.
"""

import hashlib
import os
import shlex
import shutil
import subprocess

from .containment import Trouble

NAMES = ("openmpi", "mpich")
PACKAGES = {"openmpi": "openmpi-bin libopenmpi-dev", "mpich": "mpich libmpich-dev"}
# What `mpirun --version` says.
SIGNS = {"openmpi": "Open MPI", "mpich": "HYDRA"}
# Larger than any message that is measured: Open MPI needs a number.
EVERYTHING = 4 << 20
# MPICH's launcher answers in lines of 1024 bytes.
LONGEST_PATTERN = 900
# Where the programs of a library are, of which another version than the installed one was asked for.
FOLDERS = {}


def choose(word):
    """The library that `openmpi`, `mpich`, or one of them with `=FOLDER` of its commands, asks for."""
    library, _, folder = word.partition("=")
    if library not in NAMES:
        raise ValueError(f"--mpi is {' or '.join(NAMES)}, with =FOLDER for another than the installed one, or both; not {word!r}")
    if folder:
        FOLDERS[library] = os.path.abspath(folder)
    return library


def find(library, program="mpirun"):
    """The path of a program of this library, or None."""
    if library in FOLDERS:
        return shutil.which(f"{FOLDERS[library]}/{program.removesuffix('.' + library)}")
    found = shutil.which(f"{program}.{library}")
    if found or program != "mpirun":
        return found
    plain = shutil.which(program)
    if plain:
        said = subprocess.run([plain, "--version"], capture_output=True, text=True).stdout
        if SIGNS[library] in said:
            return plain
    return None


def _build(source, cache, compiler):
    """The shared library made of a C file; made once for each text, compiler and place."""
    with open(source, "rb") as file:
        text = file.read()
    mark = hashlib.sha256(text + " ".join(compiler).encode()).hexdigest()[:12]
    built = os.path.join(cache, f"{os.path.basename(source)[:-2]}-{mark}.so")
    if os.path.exists(built):
        return built
    os.makedirs(cache, exist_ok=True)
    scratch = f"{built}.{os.getpid()}"
    # Ranks need not be MPI programs: what a shim calls is looked up when it is called.
    flags = ["-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-Wl,-z,lazy"]
    done = subprocess.run([*compiler, *flags, "-o", scratch, source], capture_output=True, text=True)
    if done.returncode != 0:
        raise Trouble(f"{shlex.join(compiler)} could not compile {source}:\n{done.stderr}")
    os.rename(scratch, built)
    return built


def _mpich_headers():
    """The C compiler with MPICH's header files, but without its library."""
    wrapper = find("mpich", "mpicc") or find("mpich", "mpicc.mpich")
    if wrapper is None:
        raise Trouble(f"mpicc.mpich is missing: apt-get install --no-install-recommends {PACKAGES['mpich']}")
    shown = subprocess.run([wrapper, "-show"], capture_output=True, text=True).stdout
    return ["cc"] + [word for word in shlex.split(shown) if word.startswith("-I")]


def shims(library, sources, cache, placement):
    """The shims that ranks of this library are given, as LD_PRELOAD wants them. Builds what is not built."""
    if shutil.which("cc") is None:
        raise Trouble("no C compiler for the shims: apt-get install --no-install-recommends gcc libc6-dev")
    chosen = [_build(f"{sources}/idle.c", cache, ["cc"])]
    if library == "mpich":
        chosen.insert(0, _build(f"{sources}/finalize.c", cache, _mpich_headers()))
        if placement.startswith("random"):
            chosen.append(_build(f"{sources}/scatter.c", cache, ["cc"]))
    return ":".join(chosen)


def launcher_shim(library, sources, cache):
    """What mpirun itself is given as LD_PRELOAD."""
    return _build(f"{sources}/launch.c", cache, ["cc"]) if library == "openmpi" else ""


def _pattern(ranks):
    """Who shares a host, as MPICH's launcher would say it: neighbours of one host are one entry."""
    runs = []
    for host in ranks:
        if runs and runs[-1][0] == host:
            runs[-1][1] += 1
        else:
            runs.append([host, 1])
    return "(vector," + ",".join(f"({host},1,{count})" for host, count in runs) + ")"


def _open_mpi_settings(layout, directory, eager):
    names = layout.names()
    if layout.placement.startswith("random"):
        lines, mapping = [names[host] for host in layout.ranks()], "seq"
    else:
        lines = [f"{name} slots={layout.slots}" for name in names]
        mapping = "slot" if layout.placement == "block" else "node"
    hostfile = f"{directory}/hostfile.openmpi"
    settings = {
        "plm": "rsh",
        "plm_rsh_agent": f"{directory}/bin/rsh",
        "plm_rsh_no_tree_spawn": 1,
        "plm_rsh_num_concurrent": 256,
        "orte_default_hostfile": hostfile,
        "rmaps_base_mapping_policy": mapping,
        "rmaps_base_oversubscribe": 1,
        # Every host believes that all cores are its own, and would bind its first rank to the first of them.
        "hwloc_base_binding_policy": "none",
        "oob_tcp_if_include": "eth0",
        "btl_tcp_if_include": "eth0",
        "pml": "ob1",
        "btl": "self,vader,tcp",
        "mpi_yield_when_idle": 1,
    }
    if eager:
        limits = ("eager_limit", "rndv_eager_limit", "max_send_size")
        settings |= {f"btl_tcp_{limit}": EVERYTHING for limit in limits}
    if _is_prrte():
        settings, prrte = _of_prrte(settings, hostfile, mapping, directory)
    else:
        prrte = {}
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return hostfile, lines, {f"OMPI_MCA_{name}": str(value) for name, value in settings.items()} | prrte | root


def _is_prrte():
    """Whether Open MPI's launcher is that of version 5 on."""
    said = subprocess.run([find("openmpi"), "--version"], capture_output=True, text=True).stdout
    version = said.partition("(Open MPI) ")[2].partition(".")[0]
    return version.isdigit() and int(version) >= 5


def _of_prrte(settings, hostfile, mapping, directory):
    """The same for the launcher of Open MPI 5, which has names of its own; the rest is MPI's."""
    launcher = {
        "plm": "ssh",
        "plm_ssh_agent": f"{directory}/bin/rsh",
        "plm_ssh_no_tree_spawn": 1,
        "plm_ssh_num_concurrent": 256,
        "prte_default_hostfile": hostfile,
        "rmaps_default_mapping_policy": f"{mapping}:oversubscribe",
        "hwloc_default_binding_policy": "none",
        "prte_if_include": "eth0",
    }
    kept = {name: value for name, value in settings.items() if name.startswith(("btl", "pml", "mpi_"))}
    kept["btl"] = "self,sm,tcp"
    return kept, {f"PRTE_MCA_{name}": str(value) for name, value in launcher.items()}


def _mpich_settings(layout, directory, eager):
    names = layout.names()
    settings = {}
    if layout.placement == "block":
        lines = [f"{name}:{layout.slots}" for name in names]
    elif layout.placement == "round-robin":
        lines = [f"{name}:1" for name in names]
    else:
        lines = [names[host] for host in layout.ranks()]
        settings["CLUSTER_PATTERN"] = _pattern(layout.ranks())
        if len(settings["CLUSTER_PATTERN"]) > LONGEST_PATTERN:
            raise Trouble("MPICH places about 100 ranks at random, not more: use fewer, another placement, or Open MPI")
    hostfile = f"{directory}/hostfile.mpich"
    settings |= {
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXEC": f"{directory}/bin/rsh",
        "HYDRA_HOST_FILE": hostfile,
        "HYDRA_IFACE": "eth0",
        "HYDRA_BINDING": "none",
        "UCX_TLS": "tcp,self,sm",
        "UCX_NET_DEVICES": "eth0",
    }
    if eager:
        settings["UCX_RNDV_THRESH"] = "inf"
    return hostfile, lines, settings


def settle(library, layout, directory, eager):
    """Writes the library's host file; returns its environment variables."""
    make = {"openmpi": _open_mpi_settings, "mpich": _mpich_settings}[library]
    hostfile, lines, settings = make(layout, directory, eager)
    with open(hostfile, "w") as file:
        file.write("\n".join(lines) + "\n")
    return settings
