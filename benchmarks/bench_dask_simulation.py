"""How rounds on a Dask cluster scale: simulated from constants that are measured here.

A pass of k workers over n rows each has m rounds. On C cores, with c = max(1, k / C), it takes

    c n r(P) + m (c (w(b) + u) + x(b, k) + o + s (3 k - 1) + 2 k b v)

r(P)    seconds of a row with P planes, a line in P; the more learners and rows, the more planes
w(b)    seconds a worker has a model of b bytes at hand besides rows: opened, closed and shared
x(b, k) seconds of the tree of mixtures, whose lower levels share the cores, too
s       seconds of an empty task, of which a round has 3 k - 1
o, u, v seconds that Dask takes besides: of a round, of a worker, of a byte that travels

r, w and x are measured inside workers, with all cores busy; P and b by the same rounds made in one
process; o, u and v are fitted to rounds with next to no rows, of a few numbers of processes and two
sizes of models. Then the formula is held beside real passes of 2, 4 and 8 processes, over digits
that no constant has seen. Seconds inside workers are those of the processor. Of rounds and passes
those with most cores left by other programs count, and these cores are C: each check names them.

A cluster of its own has a core for each worker, and models travel by trees: there 2 k b v becomes
2 ceil(log2 k) (b / B + l), with a network of B bytes a second and l seconds a message, which are
stated.
"""

import math
import os
import time
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import psutil
from dask.delayed import delayed
from distributed import Client, LocalCluster, wait
from scipy.optimize import nnls

from benchmarks.bench_dask import digits, machine
from benchmarks.race import publish, table
from benchmarks.tuning import error
from polyplane.backends import dask_cluster
from polyplane.estimator.files.saving import packed, unpacked
from polyplane.estimator.planes.rounds import travelling_models as rounds
from tests.real_data import mnist_bytes

CORES = os.cpu_count() or 1
MIXES = 4
TINY, FIRST_ROWS = 20, 10_000
ROWS_OF_LEARNER, FITTED_START = 60_000, 10**8  # of generated digits that no check has
FITTED_LEARNERS = 1, 4  # whose models, a small one and a large one, tell what planes cost
TINY_PROCESSES, TINY_ROUNDS, TINY_TURNS = (2, 3, 6), 8, 5
TURNS, N_TASKS = 10, 2000
LEARNERS, N_PASSES, DEEP = (1, 2, 4, 8, 16), 2, 4  # for planes and errors
CHECKED, CHECKED_PASSES = [(k, n) for n in (60_000, 240_000) for k in (2, 4, 8)], 7
BYTES_A_SECOND, LATENCY = 1.25e9, 1e-3  # 10 Gbit/s, and a message of Dask's
ROWS, WORKERS = (10**9, 10**10, 10**11), (10, 30, 100, 300, 1000)
STARTS = "apart", "together"  # learners from no planes, or from those of the first rows


class Line(NamedTuple):
    """A cost that grows with what it is of."""

    fixed: float
    slope: float

    def at(self, x):
        return self.fixed + self.slope * x


class Constants(NamedTuple):
    """What is measured, in seconds."""

    row: Line  # by planes
    worker: Line  # by bytes
    mixture: Line  # by bytes: of two shares
    last_mixture: Line  # by bytes: with what the next round begins with
    task: float
    round: float
    of_worker: float
    byte: float
    model_bytes: Line  # by planes
    planes_by_learners: dict  # lines, for each start
    growth: float  # of planes, for twice the rows of a learner

    def planes(self, n_learners, n_rows, start):
        """Of so many rows a learner."""
        grown = 1 + self.growth * math.log2(n_rows / ROWS_OF_LEARNER)
        return self.planes_by_learners[start].at(n_learners) * grown


class Clock(NamedTuple):
    """Seconds so far: of the wall, of all processors, and of these by us."""

    wall: float
    all: float
    own: float

    @classmethod
    def now(cls):
        times, me = psutil.cpu_times(), psutil.Process()
        own = [one.cpu_times() for one in [me, *me.children(recursive=True)]]
        busy = sum(times) - times.idle - times.iowait
        return cls(time.perf_counter(), busy, sum(one.user + one.system for one in own))

    def since(self, before):
        """Seconds, and cores that others have left to us meanwhile."""
        wall, everyone, own = (a - b for a, b in zip(self, before, strict=True))
        return wall, min(CORES, max(CORES - (everyone - own) / wall, 0.5))


def quietest(clocks):
    """Of the times between them that with most cores left: its seconds, and these cores."""
    times = [after.since(before) for before, after in pairwise(clocks)]
    return max(times, key=lambda one: (one[1], -one[0]))


def low(seconds):
    """Of what is repeated, without what comes between."""
    return float(np.quantile(seconds, 0.2))


# ---- rounds in one process ---------------------------------------------------------------


def pass_of(model, parts, n_passes=1):
    """The model after passes of a learner a part, mixed as often as on the cluster."""
    for n in range(MIXES * n_passes):
        moment = rounds.Moment(n, MIXES * n_passes, int((n + 1) % MIXES == 0))
        ends = [learned(model, part, k, moment) for k, part in enumerate(parts)]
        if len(ends) == 1:
            model = ends[0].alone(moment)
            continue
        level = [end.shares() for end in ends]
        while len(level) > 2:
            pairs = [level[k : k + 2] for k in range(0, len(level), 2)]
            level = [
                rounds.mixed_shares(*pair, dask_cluster.ALIKE) if len(pair) == 2 else pair[0]
                for pair in pairs
            ]
        model = rounds.mixed_model(model, *level, dask_cluster.ALIKE, moment)
    return model


def learned(model, part, learner, moment):
    X, y = part
    counted = rounds.Census(*np.unique(y, return_counts=True))
    task = rounds.Task(learner, counted, moment)
    journey = rounds.Journey(model)
    journey.visit(X, y, task, rounds.Piece(moment.n_done % MIXES, MIXES))
    return journey


def first_model(X, y):
    made = machine()
    rounds.begun(made, X, y, np.arange(10), X.shape[1])
    return packed(made)


def rows_of_learner(k, n_rows=ROWS_OF_LEARNER):
    return digits(FITTED_START + k * n_rows, n_rows)


def growth_of_planes():
    """Share by which two learners have more planes if they have twice the rows."""
    counts = []
    for n_rows in (ROWS_OF_LEARNER, DEEP * ROWS_OF_LEARNER):
        parts = [rows_of_learner(k, n_rows) for k in range(2)]
        counts.append(unpacked(pass_of(first_model(*parts[0]), parts, N_PASSES)).n_planes_)
    return (counts[1] / counts[0] - 1) / math.log2(DEEP)


def start_of(start, X, y):
    if start == "apart":
        return first_model(X, y)
    made = machine().partial_fit(X[:FIRST_ROWS], y[:FIRST_ROWS], classes=np.arange(10))
    return packed(made)


def planes_and_errors():
    """Of more and more learners that have as many rows each: planes, bytes, test error."""
    _, _, X_test, y_test = mnist_bytes()
    parts, found = [], {start: [] for start in STARTS}
    for n_learners in LEARNERS:
        parts += [rows_of_learner(k) for k in range(len(parts), n_learners)]
        for start in STARTS:
            model = pass_of(start_of(start, *parts[0]), parts, N_PASSES)
            made = unpacked(model)
            wrong = error(made, X_test, y_test)
            found[start].append((n_learners, made.n_planes_, model.count_bytes(), wrong))
    return found


# ---- constants ---------------------------------------------------------------------------


def seconds_inside(models):
    """Of a worker, for each model: a row, what there is besides rows, mixtures of two."""
    X, y = rows_of_learner(0)
    moment, found = rounds.Moment(1, 100, 0), []
    for model in models:

        def learn(n, model=model):
            return learned(model, (X[:n], y[:n]), 0, moment)

        end = learn(TINY)
        share = end.shares()
        few, many = seconds_of(learn, TINY), seconds_of(learn, ROWS_OF_LEARNER)
        found.append([
            (many - few) * MIXES / ROWS_OF_LEARNER,
            few + seconds_of(end.shares),
            seconds_of(rounds.mixed_shares, share, share, dask_cluster.ALIKE),
            seconds_of(rounds.mixed_model, model, share, share, dask_cluster.ALIKE, moment),
        ])  # fmt: skip
    return np.array(found)


def seconds_of(job, *words):
    """Of the processor: others may be at work, too."""
    seconds = []
    for _ in range(TURNS):
        begin = time.thread_time()
        job(*words)
        seconds.append(time.thread_time() - begin)
    return low(seconds)


def nothing(k):
    return k


def seconds_of_a_task(client):
    begin = time.perf_counter()
    client.gather(client.map(nothing, range(N_TASKS), pure=False))
    return (time.perf_counter() - begin) / N_TASKS


def cluster_of(n_workers):
    return LocalCluster(
        n_workers=n_workers, threads_per_worker=1, dashboard_address="127.0.0.1:0",
        silence_logs="CRITICAL",
    )  # fmt: skip


def tiny_rounds(client, n_workers, model):
    """Seconds of a round with next to nothing to learn of a whole model, and cores left to it."""
    X, y = (part[: TINY * n_workers] for part in mnist_bytes()[:2])
    parts = [delayed((X[k::n_workers], y[k::n_workers])) for k in range(n_workers)]
    made, clocks = unpacked(model), []
    n_before = int(made.n_iter_)
    n_rounds = n_before + TINY_ROUNDS * TINY_TURNS

    def note(made):
        if (made.n_iter_ - n_before) % TINY_ROUNDS == 0:
            clocks.append(Clock.now())

    dask_cluster.fit(
        made, parts, client=client, rounds=n_rounds, resume=True, mixes=1, learners=n_workers,
        callback=note,
    )  # fmt: skip
    seconds, n_cores = quietest(clocks)
    return seconds / TINY_ROUNDS, n_cores


def line_of(x, y):
    slope, fixed = np.polyfit(x, y, 1)
    return Line(max(float(fixed), 0.0), max(float(slope), 0.0))


def measured(found):
    """All constants, given planes and bytes of more and more learners."""
    parts = [rows_of_learner(k) for k in range(max(FITTED_LEARNERS))]
    models = [pass_of(first_model(*parts[0]), parts[:n], N_PASSES) for n in FITTED_LEARNERS]
    with cluster_of(CORES) as cluster, Client(cluster) as client:
        workers = sorted(client.nthreads())
        tasks = [client.submit(seconds_inside, models, workers=[w], pure=False) for w in workers]
        inside = np.mean(client.gather(tasks), axis=0)  # all at once: they share the memory
        of_task = min(seconds_of_a_task(client) for _ in range(5))
    planes, n_bytes = (
        np.array([float(line[k]) for lines in found.values() for line in lines]) for k in (1, 2)
    )
    bytes_of = [model.count_bytes() for model in models]
    grown = {
        start: line_of([line[0] for line in lines], [line[1] for line in lines])
        for start, lines in found.items()
    }
    of_bytes = [line_of(bytes_of, inside[:, k]) for k in (1, 2, 3)]
    of_row = line_of([unpacked(model).n_planes_ for model in models], inside[:, 0])
    known = Constants(
        of_row, *of_bytes, of_task, 0.0, 0.0, 0.0, line_of(planes, n_bytes), grown,
        growth_of_planes(),
    )  # fmt: skip
    of_round, of_worker, of_byte = fitted_to_tiny_rounds(known, models)
    return known._replace(round=of_round, of_worker=of_worker, byte=of_byte)


def fitted_to_tiny_rounds(known, models):
    """What rounds take that is in none of their parts: of each, of a worker, of a byte."""
    ways, left = [], []
    for n_workers in TINY_PROCESSES:
        with cluster_of(n_workers) as cluster, Client(cluster) as client:
            for model in models:
                tiny_rounds(client, n_workers, model)  # to warm up
                b = model.count_bytes()
                seconds, n_cores = tiny_rounds(client, n_workers, model)
                left.append(seconds - work(known, n_workers, b, n_cores))
                ways.append([1.0, max(1, n_workers / n_cores), 2 * n_workers * b / 1e6])
    (of_round, of_worker, of_megabyte), _ = nnls(np.array(ways), np.array(left))
    return of_round, of_worker, of_megabyte / 1e6


# ---- the formula -------------------------------------------------------------------------


def work(constants, n_workers, n_bytes, n_cores):
    """Seconds of a round besides rows, without what Dask takes but for its tasks."""
    crowd, at_once, mixing = max(1, n_workers / n_cores), n_workers, 0.0
    while at_once > 2:
        at_once = math.ceil(at_once / 2)
        mixing += max(1, at_once / n_cores) * constants.mixture.at(n_bytes)
    mixing += constants.last_mixture.at(n_bytes)
    return crowd * constants.worker.at(n_bytes) + mixing + constants.task * (3 * n_workers - 1)


class Pass(NamedTuple):
    """What a pass takes."""

    learning: float  # seconds
    rest: float
    model_bytes: float

    @property
    def seconds(self):
        return self.learning + self.rest


def seconds_of_a_pass(constants, n_workers, n_rows, start, n_cores, is_network):
    """With so many rows a worker."""
    planes = constants.planes(n_workers, n_rows, start)
    b, hops = constants.model_bytes.at(planes), math.ceil(math.log2(n_workers))
    crowd = max(1, n_workers / n_cores)
    travel = 2 * n_workers * b * constants.byte
    if is_network:
        travel = 2 * hops * (b / BYTES_A_SECOND + LATENCY)
    dask = constants.round + crowd * constants.of_worker
    rest = MIXES * (work(constants, n_workers, b, n_cores) + dask + travel)
    return Pass(crowd * n_rows * constants.row.at(planes), rest, b)


def on_cluster(constants, n_workers, n_rows, start):
    """With a core a worker and a network."""
    return seconds_of_a_pass(constants, n_workers, n_rows / n_workers, start, n_workers, True)


def real_pass(n_workers, n_rows):
    """Of the passes after the first the one with most cores left: seconds, cores; and planes."""
    with cluster_of(n_workers) as cluster, Client(cluster) as client:
        parts = client.persist([delayed(digits)(k * n_rows, n_rows) for k in range(n_workers)])
        wait(parts)
        made, clocks = machine(), []
        dask_cluster.fit(
            made, parts, client=client, rounds=CHECKED_PASSES, learners=n_workers, mixes=MIXES,
            callback=lambda _: clocks.append(Clock.now()),
        )  # fmt: skip
        return *quietest(clocks), made.n_planes_


def checks(constants):
    for n_workers, n_rows in CHECKED:
        seconds, n_cores, n_planes = real_pass(n_workers, n_rows)
        made = seconds_of_a_pass(constants, n_workers, n_rows, "apart", n_cores, False)
        yield [
            n_workers, f"{n_rows:,}", f"{n_cores:.2f}", f"{seconds:.2f}", f"{made.seconds:.2f}",
            f"{made.seconds / seconds:.2f}", f"{made.learning / made.seconds:.0%}",
            n_planes, f"{constants.planes(n_workers, n_rows, 'apart'):.0f}",
        ]  # fmt: skip


# ---- clusters that are not here ----------------------------------------------------------


def simulated(constants):
    for n_rows in ROWS:
        for n_workers in WORKERS:
            apart = on_cluster(constants, n_workers, n_rows, "apart")
            made = on_cluster(constants, n_workers, n_rows, "together")
            yield [
                f"10^{round(math.log10(n_rows))}", f"{n_workers:,}", f"{apart.seconds / 60:,.1f}",
                f"{made.seconds / 60:,.1f}", f"{made.learning / made.seconds:.0%}",
                f"{n_rows / n_workers:,.0f}",
                f"{2 * MIXES * n_workers * made.model_bytes / 1e9:,.2f}",
                f"{n_workers * made.seconds / 3600:,.1f}",
            ]  # fmt: skip


def most_workers(constants, n_rows, start):
    """Workers from which on twice as many save less than a quarter of the time."""
    for n_workers in range(2, 10**5):
        twice = on_cluster(constants, 2 * n_workers, n_rows, start).seconds
        if twice > 0.75 * on_cluster(constants, n_workers, n_rows, start).seconds:
            return n_workers
    return 10**5


def limits(constants, start):
    return ", ".join(f"{most_workers(constants, n, start):,} for {n:.0e} rows" for n in ROWS)


def main():
    found = planes_and_errors()
    constants = measured(found)
    lines = list(checks(constants))
    ratios = [float(line[5]) for line in lines]
    b = constants.model_bytes.at(constants.planes(2, ROWS_OF_LEARNER, "apart"))
    publish(
        "dask_simulation",
        "How a Dask cluster would scale",
        f"AMM on generated digits of 784 bytes, {MIXES} mixtures a pass. Measured: a row takes "
        f"{1e6 * constants.row.fixed:.2f} µs and {1e9 * constants.row.slope:.1f} ns a plane with "
        f"{CORES} cores busy; of a model of {b / 1e6:.2f} MB a worker has "
        f"{1e3 * constants.worker.at(b):.1f} ms of work in a round besides rows, and the last "
        f"mixture takes {1e3 * constants.last_mixture.at(b):.1f} ms. Dask takes "
        f"{1e3 * constants.task:.2f} ms a task, {1e3 * constants.round:.1f} ms a round, "
        f"{1e3 * constants.of_worker:.1f} ms a worker and {1e9 * constants.byte:.2f} ns a byte.",
        f"Real passes after the first of {CHECKED_PASSES}, over rows that no constant has seen, on "
        f"{CORES} cores that all processes share, beside the formula:",
        table(
            ["processes", "rows a process", "cores left", "seconds", "simulated", "ratio",
             "learning", "planes", "expected"],
            lines,
        ),
        f"Simulated times are {min(ratios):.2f} to {max(ratios):.2f} of real ones.",
        "Planes and errors are not simulated but measured: the same rounds, made in one process, "
        f"{ROWS_OF_LEARNER:,} rows a learner, {N_PASSES} passes, errors in percent on MNIST's test "
        f"rows. Learners begin apart, from no planes, as in `fit`, or together, from those of the "
        f"first {FIRST_ROWS:,} rows, as in `partial_fit`:",
        table(
            ["learners", "planes, apart", "MB", "error", "planes, together", "MB", "error"],
            [[one[0], one[1], f"{one[2] / 1e6:.2f}", f"{one[3]:.2f}", two[1],
              f"{two[2] / 1e6:.2f}", f"{two[3]:.2f}"]
             for one, two in zip(*(found[start] for start in STARTS), strict=True)],
        ),
        f"A pass on a cluster with a core a worker and a network of 10 Gbit/s. Planes of more than "
        f"{LEARNERS[-1]} learners are a guess: they grow on as they grew up to there.",
        table(
            ["rows", "workers", "minutes, apart", "minutes, together", "of it learning",
             "depth of a learner", "GB of traffic", "worker hours"],
            list(simulated(constants)),
        ),
        "Twice as many workers save less than a quarter of the time from so many on: apart "
        f"{limits(constants, 'apart')}; together {limits(constants, 'together')}. Two things grow "
        "with the workers: planes, at which every step looks, and tasks, which one scheduler hands "
        "out one by one.",
    )  # fmt: skip
