"""Planned studies carried by engines that are installed: GNU parallel, Snakemake, and a Slurm of two nodes on this host.
Usage: engines_test.py BINARY"""
import getpass
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

import common
from common import BatchTest, sha256

CONFIG = pathlib.Path(__file__).with_name("slurm.conf")
SHARDS = 8


def need(*programs):
    missing = [program for program in programs if shutil.which(program) is None]
    return unittest.skipIf(missing, f"{', '.join(missing)}: not installed")


class Engines(BatchTest):
    def setUp(self):
        super().setUp()
        self.expected = self.whole()
        self.run_it("batch", "plan", "large.yaml", "-o", "out", "--shards", SHARDS)

    def script(self, engine):
        return self.put(f"{engine}.job", self.run_it("batch", "script", "out", "--engine", engine))

    def shell(self, *words, **variables):
        done = subprocess.run(list(map(str, words)), cwd=self.place, env=self.environment(**variables),
                              capture_output=True, text=True, timeout=240, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def check_results(self):
        self.assertEqual(sha256(self.place / "out" / "results.jsonl"), self.expected)

    @need("parallel")
    def test_gnu_parallel(self):
        self.shell("bash", self.script("parallel"), HOME=str(self.place))
        self.check_results()

    @need("snakemake")
    def test_snakemake(self):
        self.shell("snakemake", "--snakefile", self.script("snakemake"), "--cores", "2", HOME=str(self.place))
        self.check_results()

    def test_shell_loop_and_kubernetes_index(self):
        import yaml
        job = yaml.safe_load(self.run_it("batch", "script", "out", "--engine", "kubernetes"))
        self.assertEqual(job["spec"]["completions"], SHARDS)
        container = job["spec"]["template"]["spec"]["containers"][0]
        for index in range(SHARDS):
            self.shell(*container["command"], JOB_COMPLETION_INDEX=str(index))
        self.run_it("batch", "merge", "out", "-o", "out/results.jsonl")
        self.check_results()


@need("slurmctld", "slurmd", "sbatch")
class Slurm(Engines):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("node daemons of Slurm need root")
        host = socket.gethostname().split(".")[0]
        try:
            socket.gethostbyname(host)
        except OSError:
            self.skipTest(f"the host name {host} has no address")
        self.home = self.place / "slurm"
        (self.home / "state").mkdir(parents=True)
        text = CONFIG.read_text()
        for name, value in {"DIR": self.home, "HOST": host, "USER": getpass.getuser(),
                            **{f"PORT{i}": port for i, port in enumerate(free_ports(3))}}.items():
            text = text.replace(f"@{name}@", str(value))
        (self.home / "slurm.conf").write_text(text)
        self.start("slurmctld", "-D")
        self.wait(lambda: "UP" in self.slurm("scontrol", "ping"), "the controller")
        for node in ("n1", "n2"):
            self.start("slurmd", "-D", "-N", node)
        self.wait(lambda: self.slurm("sinfo", "-h", "-o", "%T %D").strip() == "idle 2", "two idle nodes")

    def start(self, program, *words):
        log = open(self.home / f"{program}-{words[-1]}.out", "wb")
        process = subprocess.Popen([program, *words, "-f", self.home / "slurm.conf"], stdout=log, stderr=log,
                                   env=self.environment(SLURM_CONF=str(self.home / "slurm.conf")),
                                   start_new_session=True)
        self.addCleanup(log.close)
        self.addCleanup(process.wait, 20)
        self.addCleanup(process.send_signal, signal.SIGTERM)

    def slurm(self, *words, **variables):
        return subprocess.run(list(map(str, words)), cwd=self.place, capture_output=True, text=True, timeout=60,
                              env=self.environment(SLURM_CONF=str(self.home / "slurm.conf"), **variables),
                              check=False).stdout

    def wait(self, done, what, seconds=45):
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end:
                logs = "".join(f"{f.name}: {f.read_text(errors='replace')[-800:]}\n" for f in self.home.glob("*.log"))
                self.fail(f"no sign of {what} after {seconds} s\n{logs}")
            time.sleep(0.2)

    def queue_is_empty(self):
        return self.slurm("squeue", "-h").strip() == ""

    # The tests of the other engines are not run again here.
    test_gnu_parallel = test_snakemake = test_shell_loop_and_kubernetes_index = None

    def test_an_array_with_one_failed_element(self):
        # A directory in its place keeps shard 3 from landing.
        stone = self.place / "out" / f"shard-00003-of-{SHARDS:05}.jsonl"
        stone.mkdir()
        script = self.script("slurm")
        self.slurm("bash", script)
        self.wait(self.queue_is_empty, "an empty queue")
        stone.rmdir()
        self.assertFalse((self.place / "out" / "results.jsonl").exists())  # the merge was cancelled
        missing = self.run_it("batch", "status", "out", "--missing").strip()
        self.assertEqual(missing, "3")
        self.slurm("bash", script, missing)  # an array of one: the count is still the plan's
        self.wait(self.queue_is_empty, "an empty queue")
        self.check_results()


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


if __name__ == "__main__":
    common.main(sys.argv[1])
