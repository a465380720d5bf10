# SPDX-License-Identifier: Apache-2.0
"""A real Slurm with two nodes on this machine, from Debian's slurm-wlm and munge: its own munged, slurmctld and two
slurmds, with ports, keys and state of their own, so a Slurm that is there already is not touched. Needs root. To try
things by hand: python3 local_slurm.py, which prints what to put into the environment and ends with Ctrl-C."""
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scancel", "scontrol", "squeue", "unshare")
NODES = ("stoker-n1", "stoker-n2")


def why_not():
    """Why it cannot run here; empty: it can."""
    missing = [each for each in PROGRAMS if not shutil.which(each, path=path())]
    if missing:
        return f"{', '.join(missing)} not found: apt-get install slurm-wlm munge"
    return "" if os.geteuid() == 0 else "Slurm's daemons need root"


def path():
    return os.environ["PATH"] + ":/usr/sbin:/sbin"


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class LocalSlurm:
    def __init__(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="stoker-slurm-")
        self.folder = pathlib.Path(self.temporary.name)
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": path()}
        self.daemons = []
        try:
            self.start_munge()
            self.start_slurm()
        except BaseException:
            self.stop()
            raise

    def start_munge(self):
        munge = self.folder / "munge"
        munge.mkdir(mode=0o755)
        self.folder.chmod(0o755)
        (munge / "key").write_bytes(secrets.token_bytes(1024))
        (munge / "key").chmod(0o400)
        self.run_daemon(["munged", "--force", "--foreground", "--num-threads=1", f"--socket={munge}/socket",
                         f"--key-file={munge}/key", f"--log-file={munge}/log", f"--pid-file={munge}/pid",
                         f"--seed-file={munge}/seed"])
        self.wait_until(lambda: (munge / "socket").exists(), "munged")

    def start_slurm(self):
        host = socket.gethostname().split(".")[0]
        for name in ("state", *NODES):
            (self.folder / name).mkdir()
        nodes = "\n".join(f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} CPUs=4 State=UNKNOWN"
                          for name in NODES)
        # A job that is queued again begins when what the first one was given has expired: cred_expire.
        (self.folder / "slurm.conf").write_text(f"""ClusterName=stoker
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={free_port()}
AuthType=auth/munge
AuthInfo=socket={self.folder}/munge/socket,cred_expire=10
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmUser=root
SlurmdUser=root
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/%n
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/%n.pid
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
{nodes}
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP
""")
        # The ranks of several nodes look up the name of the first one.
        (self.folder / "hosts").write_text(f"127.0.0.1 {' '.join(NODES)}\n" + pathlib.Path("/etc/hosts").read_text())
        self.run_daemon(["slurmctld", "-D"])
        for name in NODES:
            self.run_daemon(["unshare", "--mount", "sh", "-c",
                             f'mount --bind "{self.folder}/hosts" /etc/hosts && exec slurmd -D -N {name}'])
        self.wait_until(lambda: self.words("sinfo", "-h", "-o", "%T") == "idle", "slurmd")

    def run_daemon(self, words):
        with open(self.folder / "daemons.log", "a") as log:
            self.daemons.append(subprocess.Popen(words, env={**os.environ, **self.environment}, stdin=subprocess.DEVNULL,
                                                 stdout=log, stderr=subprocess.STDOUT))

    def words(self, *words):
        done = subprocess.run(words, env={**os.environ, **self.environment}, capture_output=True, text=True, timeout=60)
        return done.stdout.strip()

    def wait_until(self, holds, what):
        end = time.monotonic() + 60
        while not holds():
            if time.monotonic() > end:
                raise RuntimeError(f"{what} did not come up:\n" + (self.folder / "daemons.log").read_text()[-4000:])
            time.sleep(0.1)

    def stop(self):
        if len(self.daemons) > 1:
            for job in self.words("squeue", "-h", "-o", "%A").split():
                self.words("scancel", job)
            self.wait_until(lambda: self.words("squeue", "-h", "-o", "%A") == "", "the end of all jobs")
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(timeout=20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self.daemons = []
        self.temporary.cleanup()


if __name__ == "__main__":
    if why_not():
        raise SystemExit(why_not())
    slurm = LocalSlurm()
    print(" ".join(f'{name}="{value}"' for name, value in slurm.environment.items()), flush=True)
    try:
        signal.pause()
    finally:
        slurm.stop()
