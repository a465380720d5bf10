# SPDX-License-Identifier: Apache-2.0
"""Two "nodes" on this machine: network namespaces with an address each, joined by a cable (a veth pair) that can be cut.
Each node has its own host name, and both know each other's. Needs root. They end with stop()."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

NODES = ("node-a", "node-b")
ADDRESSES = ("10.213.7.1", "10.213.7.2")


def path():
    return os.environ["PATH"] + ":/usr/sbin:/sbin"


def why_not():
    """Why it cannot run here; empty: it can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [each for each in ("ip", "unshare") if not shutil.which(each, path=path())]
    if missing:
        return f"{', '.join(missing)} not found: apt-get install iproute2 util-linux"
    name = f"stoker-{os.getpid()}-try"
    tried = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, env={**os.environ, "PATH": path()})
    subprocess.run(["ip", "netns", "del", name], capture_output=True, env={**os.environ, "PATH": path()})
    return "" if tried.returncode == 0 else f"no network namespace can be made: {tried.stderr.strip()}"


class TwoNodes:
    def __init__(self):
        self.spaces = [f"stoker-{os.getpid()}-{name}" for name in NODES]
        self.temporary = tempfile.TemporaryDirectory(prefix="stoker-nodes-")
        self.hosts = pathlib.Path(self.temporary.name, "hosts")
        self.hosts.write_text("127.0.0.1 localhost\n" + "".join(f"{a} {n}\n" for a, n in zip(ADDRESSES, NODES)))
        try:
            for space in self.spaces:
                self.ip("netns", "add", space)
            self.ip("link", "add", "cable", "netns", self.spaces[0], "type", "veth", "peer", "name", "cable", "netns",
                    self.spaces[1])
            for space, address in zip(self.spaces, ADDRESSES):
                self.ip("-n", space, "address", "add", f"{address}/24", "dev", "cable")
                self.ip("-n", space, "link", "set", "lo", "up")
                self.ip("-n", space, "link", "set", "cable", "up")
        except BaseException:
            self.stop()
            raise

    def ip(self, *words):
        done = subprocess.run(["ip", *words], env={**os.environ, "PATH": path()}, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"ip {' '.join(words)}: {done.stderr}")

    def words(self, node, line):
        """Runs a line of shell on a node."""
        inside = f'hostname {NODES[node]} && mount --bind "{self.hosts}" /etc/hosts && {line}'
        return ["ip", "netns", "exec", self.spaces[node], "unshare", "--uts", "--mount", "sh", "-c", inside]

    def cut(self):
        self.ip("-n", self.spaces[1], "link", "set", "cable", "down")

    def heal(self):
        self.ip("-n", self.spaces[1], "link", "set", "cable", "up")

    def processes(self, node):
        done = subprocess.run(["ip", "netns", "pids", self.spaces[node]], env={**os.environ, "PATH": path()},
                              capture_output=True, text=True)
        return [int(pid) for pid in done.stdout.split()]

    def stop(self):
        for node in range(len(NODES)):
            for pid in self.processes(node):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        for space in self.spaces:
            subprocess.run(["ip", "netns", "del", space], env={**os.environ, "PATH": path()}, capture_output=True)
        self.temporary.cleanup()
