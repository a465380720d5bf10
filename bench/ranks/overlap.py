#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much of the sums of gradients is hidden beside backward, on a network of 1 Gbit/s and 1 ms between two network
namespaces of this machine.

    bench/ranks/overlap.py BUILD [--mbit N] [--delay US] [--repeats N] [--quick]

BUILD: a build folder with overlap_bench and relay. The rate is limited by `tc tbf`; the delay is the relay's, which holds
each packet between two tun devices (this works without netem). Each turn takes a step with buckets beside backward, one
with all sums after backward, and one without sums:
    communication = after - none,  hidden = after - beside,  hideable = min(communication, backward after the first bucket)
Two models: wide layers whose backward computes, and one of as many bytes whose backward sleeps, so that the ranks, Gloo
and the relay do not compete for cores. Prints SKIPPED and exits with 77 where namespaces or tun devices cannot be made.
"""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import runs
import measure

PROMISE = 0.8


class Skipped(Exception):
    pass


def command(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Skipped(f"`{' '.join(map(str, words))}`: {done.stderr.strip() or done.returncode}")
    return done.stdout


class Network:
    """Two namespaces, each with a device that leads to the other one."""
    MTU = 9000  # fewer packets for the relay

    def __init__(self, relay, mbit, delay):
        self.names = [f"stoker-{os.getpid()}-{side}" for side in "ab"]
        self.devices = [f"stk{os.getpid() % 100000}{side}" for side in "ab"]
        self.addresses = ["10.213.0.1", "10.213.0.2"]
        self.relay, self.mbit, self.delay = relay, mbit, delay

    def __enter__(self):
        self.ends = contextlib.ExitStack()
        try:
            self.make()
        except FileNotFoundError as error:
            self.ends.close()
            raise Skipped(f"{error.filename} is not installed") from error
        except BaseException:
            self.ends.close()
            raise
        return self

    def make(self):
        for name in self.names:
            command("ip", "netns", "add", name)
            self.ends.callback(subprocess.run, ["ip", "netns", "delete", name], check=False)
        self.cable = subprocess.Popen([self.relay, *self.devices, str(self.delay)], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.ends.callback(self.cut)
        if self.cable.stdout.readline().strip() != "ready":
            raise Skipped(self.cable.stderr.read().strip())
        for name, device, address in zip(self.names, self.devices, self.addresses):
            command("ip", "link", "set", device, "netns", name)
            inside = ("ip", "netns", "exec", name)
            command(*inside, "ip", "address", "add", f"{address}/24", "dev", device)
            command(*inside, "ip", "link", "set", device, "mtu", self.MTU, "txqueuelen", 1000, "up")
            command(*inside, "ip", "link", "set", "lo", "up")
            command(*inside, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{self.mbit}mbit", "burst", "256kb",
                    "latency", "100ms")

    def cut(self):
        self.cable.stdin.close()
        self.cable.wait()

    def __exit__(self, *_):
        self.ends.close()

    def start(self, side, words):
        """A process on one side of the network."""
        environment = runs.ENVIRONMENT | {"GLOO_SOCKET_IFNAME": self.devices[side]}
        return subprocess.Popen(["ip", "netns", "exec", self.names[side], *map(str, words)], env=environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def round_trip(self):
        """Milliseconds, by ping; None without it."""
        with contextlib.suppress(Skipped, FileNotFoundError):
            said = command("ip", "netns", "exec", self.names[0], "ping", "-c", "20", "-i", "0.02", "-q", self.addresses[1])
            return float(said.rsplit("=", 1)[1].split("/")[1])
        return None


def turns_of(network, program, work, words):
    """The turns that rank 0 prints."""
    meeting = work / f"meeting-{len(list(work.iterdir()))}"
    ranks = [network.start(side, [program, side, 2, meeting, *words]) for side in range(2)]
    try:
        said = [rank.communicate(timeout=600) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    for rank, (_, error) in zip(ranks, said):
        if rank.returncode != 0:
            raise RuntimeError(f"{program} ended with {rank.returncode}: {error[-2000:]}")
    return [json.loads(line) for line in said[0][0].splitlines()]


def shares(turns):
    """Per turn: hidden / hideable, with its parts in milliseconds."""
    found = []
    for turn in turns:
        communication = turn["after"] - turn["none"]
        hideable = min(communication, turn["window"])
        found.append({"share": (turn["after"] - turn["beside"]) / hideable, "communication": 1e3 * communication,
                      "hideable": 1e3 * hideable, "hidden": 1e3 * (turn["after"] - turn["beside"])})
    return found


def tell(name, turns):
    parts = shares(turns)
    share = [each["share"] for each in parts]
    low, high = measure.median_interval(share)
    verdict = "met" if statistics.median(share) >= PROMISE else "MISSED"
    middle = {key: statistics.median(turn[key] for turn in turns) for key in ("beside", "after", "none", "window")}
    print(f"{name}, {len(turns)} turns, median ms: " + ", ".join(f"{key} {1e3 * value:.1f}" for key, value in middle.items()))
    print("  " + ", ".join(f"{key} {statistics.median(each[key] for each in parts):.1f} ms"
                           for key in ("communication", "hideable", "hidden")))
    print(f"  hidden / hideable {statistics.median(share):.3f} [{low:.3f} to {high:.3f}] (by turn "
          + ", ".join(f"{each:.2f}" for each in share) + f"); promise >= {PROMISE}: {verdict}; from the "
          f"medians {shares([middle])[0]['share']:.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--mbit", type=int, default=1000)
    parser.add_argument("--delay", type=int, default=1000, help="microseconds in each direction")
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--batch", type=int, default=512, help="rows in a step: how long backward takes")
    parser.add_argument("--quick", action="store_true", help="2 turns: checks that it runs, proves nothing")
    arguments = parser.parse_args()
    build = arguments.build.absolute()
    measure.tell_machine(build / "apps/stoker/stoker")
    words = [f"steps={2 if arguments.quick else arguments.repeats}", "width=1024", "layers=6", f"batch={arguments.batch}"]
    try:
        with tempfile.TemporaryDirectory() as folder, Network(build / "bench/relay", arguments.mbit, arguments.delay) as network:
            trip = network.round_trip()
            print(f"network: {arguments.mbit} Mbit/s by tc tbf, {arguments.delay} us each way by the relay, round trip "
                  f"{'not measured (no ping)' if trip is None else f'{trip:.2f} ms'}", flush=True)
            for name, more in (("layers of 1,024 x 1,024 that compute", []), ("as many bytes, backward sleeps", ["sleep=1"])):
                tell(name, turns_of(network, build / "bench/overlap_bench", pathlib.Path(folder), words + more))
    except Skipped as reason:
        print(f"SKIPPED: {reason}")
        return 77
    print(f"{measure.load()} at the end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
