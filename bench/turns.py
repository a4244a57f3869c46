"""Two benchmark programs that run the same cases in turns, and what the scripts beside this file print of it."""
import json
import math
import os
import signal
import subprocess
import sys
import time

NOISE = 0.05  # a ratio this near 1 is called level
QUIET = 0.15  # of one core: what other processes may use, beyond the cores left to them, in an undisturbed turn
CORES = len(os.sched_getaffinity(0))


def busy_seconds():
    """Seconds of processor time that all cores have spent on anything, or had taken away by a hypervisor."""
    user, nice, system, _, _, irq, softirq, steal = map(int, open("/proc/stat").readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def process_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Program:
    """A benchmark program in `serve` mode. It is stopped whenever it is not asked something, so that threads which
    spin while they wait for work take no core from the other program."""

    def __init__(self, path, threads, environment):
        self.path, self.threads = path, threads
        # LibTorch's set_num_threads does not reach every library it calls; the environment does.
        self.process = subprocess.Popen([path, "serve", "--threads", str(threads)], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env={**environment, "OMP_NUM_THREADS": str(threads)})
        hello = self._read("at its start")
        self.name, self.cases = hello["program"], hello["cases"]
        self.process.send_signal(signal.SIGSTOP)

    def run(self, case, seconds):
        """One turn: the program's reply, and whether other processes left it the cores it was to use."""
        start, others = time.perf_counter(), self._others()
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.write(f"run {case} {seconds}\n")
        self.process.stdin.flush()
        reply = self._read(f"in case {case}")
        self.process.send_signal(signal.SIGSTOP)
        used = (self._others() - others) / (time.perf_counter() - start)
        return {**reply, "quiet": used < QUIET + max(0, CORES - self.threads)}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def _others(self):
        return busy_seconds() - process_seconds(self.process.pid)

    def _read(self, when):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.path} ended {when} with status {self.process.wait()}")
        return json.loads(line)


def compare_case(ours, theirs, case, options):
    """Takes turns until the rounds are over and each program had a quiet turn, or until patience ends."""
    best, quiet = [math.inf, math.inf], [False, False]
    for turn in range(options.rounds + options.patience):
        if turn >= options.rounds and all(quiet):
            break
        for which, program in enumerate((ours, theirs)):
            reply = program.run(case, options.seconds)
            if "error" in reply:
                raise RuntimeError(f"{program.name}: {reply['error']}")
            best[which] = min(best[which], reply["best"])
            quiet[which] = quiet[which] or reply["quiet"]
    row = {"ours_s": best[0], "peer_s": best[1], "ratio": best[1] / best[0]}
    return row if all(quiet) else {**row, "disturbed": True}


def text_of(seconds):
    for unit, size in (("s ", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:9.2f} {unit}"
    return f"{seconds * 1e9:9.2f} ns"


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))
