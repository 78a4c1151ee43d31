#!/usr/bin/env python3
"""Measures how the throughput of searches grows with the nodes of a cluster, each held to a share of one core.

    scale_out.py --data FOLDER [--limit 60000] [--nodes 3] [--share 0.5] [--rounds 3] [--seconds 15]

FOLDER is a data folder (README.md). Needs release builds of antiphon, make-data and load in --bin, and root for control
groups (version 1 or 2 of the cpu controller). Every node holds a copy of every shard, so that reads spread evenly; the
coordinator and the load generator are not held. Prints calls a second with 1 to N nodes, medians of the rounds, and the
growth over a line through the first: (calls with n nodes) / (n × calls with one).
"""
import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PERIOD_US = 20_000


class Share:
    """A control group that may use a share of one core."""

    def __init__(self, name, share):
        self.is_first = Path("/sys/fs/cgroup/cpu").is_dir()
        root = Path("/sys/fs/cgroup/cpu" if self.is_first else "/sys/fs/cgroup")
        self.path = root / f"antiphon-{os.getpid()}-{name}"
        if not self.is_first:
            (root / "cgroup.subtree_control").write_text("+cpu")
        self.path.mkdir()
        quota = int(PERIOD_US * share)
        if self.is_first:
            (self.path / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (self.path / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (self.path / "cpu.max").write_text(f"{quota} {PERIOD_US}")

    def take(self, process):
        (self.path / "cgroup.procs").write_text(str(process.pid))

    def throttled(self):
        """Of the periods in which it ran, how many it ran out in."""
        stat = dict(line.split() for line in (self.path / "cpu.stat").read_text().splitlines())
        return int(stat["nr_throttled"]), int(stat["nr_periods"])

    def remove(self):
        self.path.rmdir()


class Cluster:
    """A coordinator and nodes over one folder."""

    def __init__(self, args, work, num_nodes):
        self.args, self.work = args, work
        self.processes, self.shares = [], []
        self.address = f"http://127.0.0.1:{args.port}"
        try:
            self.start("coordinator", "coordinator", 0)
            for number in range(num_nodes):
                self.start("node", f"node-{number}", number + 1)
            self.wait(num_nodes)
        except BaseException:
            self.stop()
            raise

    def start(self, role, name, number):
        command = [self.args.bin / "antiphon", role, "--id", name, "--store", f"file://{self.work}/store"]
        command += ["--data", self.work / name, "--listen", f"127.0.0.1:{self.args.port + number}", "--log", "warn"]
        command += ["--gossip-listen", f"127.0.0.1:{self.args.port + 100 + number}"]
        command += ["--seed", f"127.0.0.1:{self.args.port + 100}"]
        log = open(self.work / f"{name}.log", "a")
        self.processes.append(subprocess.Popen(command, stdout=log, stderr=log))

    def antiphon(self, *command):
        environment = {**os.environ, "ANTIPHON_ADDRESS": self.address}
        command = [self.args.bin / "antiphon", *command]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout

    def wait(self, num_nodes):
        """Until every node serves every shard, and nothing is wrong."""
        for _ in range(600):
            time.sleep(0.2)
            try:
                status = json.loads(self.antiphon("status", "--json"))
            except subprocess.CalledProcessError:
                continue
            nodes = [node for node in status["nodes"] if node["reachable"] and node.get("role") == "node"]
            copies = [sum(replica["serving"] for replica in shard["replicas"]) for shard in status["shards"]]
            if len(nodes) == num_nodes and all(count == num_nodes for count in copies):
                return
        sys.exit(f"the cluster of {num_nodes} was not ready in time: see {self.work}")

    def hold(self):
        """From now on each node has its share of a core."""
        for number, process in enumerate(self.processes[1:]):
            share = Share(f"node-{number}", self.args.share)
            self.shares.append(share)
            share.take(process)

    def stop(self):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGKILL)
        for process in self.processes:
            process.wait()
        for share in self.shares:
            share.remove()


def load(args, cluster, work, method, seconds):
    command = [args.bin / "load", "--address", cluster.address, "--collection", "scale", "--queries", work / "queries"]
    command += ["--method", method, "--concurrency", str(args.concurrency), "--duration", str(seconds)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    if re.search(r"failed:", printed):
        sys.exit(f"calls failed:\n{printed}")
    figure = lambda name: float(re.search(rf"\| {re.escape(name)} +\| +(\S+)", printed)[1])
    return figure("calls/s"), figure("latency ms, 50 %")


def fill(args, work):
    """Imports, and waits until the nodes have sealed all and merged what they would."""
    make = [args.bin / "make-data"]
    limit = ["--limit", str(args.limit)]
    subprocess.run([*make, "documents", "--data", args.data, *limit, "--out", work / "documents"], check=True)
    subprocess.run([*make, "queries", "--data", args.data, *limit, "--out", work / "queries"], check=True)
    with open(work / "documents") as documents:
        dimensions = len(json.loads(documents.readline())["vectors"]["v"])
    cluster = Cluster(args, work, args.nodes)
    try:
        fields = ["--vector", f"v:{dimensions}", "--text", "title:en", "--text", "text:en"]
        copies = ["--shards", str(args.shards), "--replicas", str(args.nodes)]
        cluster.antiphon("collection", "create", "scale", *copies, *fields)
        cluster.antiphon("import", "-c", "scale", str(work / "documents"))
        last, since = None, time.monotonic()
        while time.monotonic() - since < args.quiet:
            status = json.loads(cluster.antiphon("status", "--json"))
            now = sorted(json.dumps(replica, sort_keys=True) for shard in status["shards"] for replica in shard["replicas"])
            if now != last:
                last, since = now, time.monotonic()
            time.sleep(1)
    finally:
        cluster.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--bin", default=Path(__file__).parent.parent / "target/release", type=Path)
    parser.add_argument("--limit", type=int, default=60_000, help="documents")
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--nodes", type=int, default=3, help="at most")
    parser.add_argument("--share", type=float, default=0.5, help="of one core, for each node")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=15, help="of a round")
    parser.add_argument("--concurrency", type=int, default=24)
    parser.add_argument("--quiet", type=int, default=45, help="seconds without a change after which all is merged")
    parser.add_argument("--methods", nargs="+", default=["vector", "keyword", "hybrid"])
    parser.add_argument("--port", type=int, default=17_700)
    parser.add_argument("--work", type=Path, help="keep the data here, and use what is there")
    args = parser.parse_args()
    work = args.work or Path(tempfile.mkdtemp(prefix="antiphon-scale-"))
    work.mkdir(parents=True, exist_ok=True)
    try:
        if not (work / "filled").exists():
            fill(args, work)
            (work / "filled").touch()
        calls = {(method, count): [] for method in args.methods for count in range(1, args.nodes + 1)}
        for _ in range(args.rounds):
            for count in range(1, args.nodes + 1):
                cluster = Cluster(args, work, count)
                try:
                    for method in args.methods:
                        load(args, cluster, work, method, 2)
                    cluster.hold()
                    for method in args.methods:
                        before = [share.throttled() for share in cluster.shares]
                        rate, median = load(args, cluster, work, method, args.seconds)
                        after = [share.throttled() for share in cluster.shares]
                        full = [(b[0] - a[0]) / max(1, b[1] - a[1]) for a, b in zip(before, after)]
                        calls[method, count].append(rate)
                        shown = "/".join(f"{part:.0%}" for part in full)
                        print(f"{method}, {count} nodes: {rate:.0f} calls/s, median {median:.1f} ms, periods used up {shown}",
                              file=sys.stderr)
                finally:
                    cluster.stop()
        print("| method | nodes | calls/s | of linear |\n|---|---|---|---|")
        for (method, count), rates in calls.items():
            linear = count * statistics.median(calls[method, 1])
            rate = statistics.median(rates)
            print(f"| {method} | {count} | {rate:.0f} | {rate / linear:.2f} |")
    finally:
        if args.work is None:
            shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
