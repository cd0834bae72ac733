"""A scheduler and workers that are processes of their own, on loopback, with and without TLS.

`make test-cluster` runs it; it takes longer than the tests of every commit should.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

import polyplane as pp

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'polyplane[dask]'")

from distributed import Client
from distributed.security import Security

from polyplane.backends import dask_cluster
from polyplane.cli.main import main
from polyplane.data.chunks import Chunk
from polyplane.data.writing import write
from tests.backends.small_rows import arrays, machine, rows, same

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.skipif(
        "POLYPLANE_CLUSTER" not in os.environ, reason="of make test-cluster, which takes longer"
    ),
]
PATIENCE = 60  # seconds for a process to start
N_WORKERS = 2


def parts():
    return arrays(*rows(3000), 4)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """One that signs itself, of one day, for the scheduler, the workers and the client."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed, which makes certificates")
    folder = tmp_path_factory.mktemp("certificates")
    key, made = folder / "key.pem", folder / "certificate.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    words += ["-subj", "/CN=polyplane-test", "-keyout", str(key), "-out", str(made)]
    subprocess.run(words, check=True, capture_output=True)
    return {"ca-file": str(made), "cert": str(made), "key": str(key)}


@contextlib.contextmanager
def cluster(folder, tls=None):
    """The address of a scheduler with workers, and the process of the scheduler."""
    options = [word for name, path in (tls or {}).items() for word in (f"--tls-{name}", path)]
    address = folder / "scheduler.json"
    address.unlink(missing_ok=True)
    file = ["--scheduler-file", str(address), *options]
    on_loopback = ["--host", "127.0.0.1"]
    protocol = ["--protocol", "tls"] if tls else []
    scheduler = ["distributed.cli.dask_scheduler", *file, *on_loopback, *protocol, "--port", "0"]
    scheduler += ["--dashboard-address", "127.0.0.1:0"]
    worker = ["distributed.cli.dask_worker", *file, *on_loopback, *protocol, "--nthreads", "1"]
    worker += ["--no-dashboard", "--local-directory", str(folder)]
    processes = []
    try:
        for words in (scheduler, *([worker] * N_WORKERS)):
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            processes.append(subprocess.Popen([sys.executable, "-m", *words], **quiet))
        deadline = time.monotonic() + PATIENCE
        while not address.exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield address, processes[0]
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()


def connected(address, security=None):
    client = Client(scheduler_file=str(address), security=security, timeout=PATIENCE)
    client.wait_for_workers(N_WORKERS, timeout=PATIENCE)
    return client


def test_tls_changes_nothing(tmp_path, certificate):
    security = Security(
        tls_ca_file=certificate["ca-file"], tls_client_cert=certificate["cert"],
        tls_client_key=certificate["key"], require_encryption=True,
    )  # fmt: skip
    with cluster(tmp_path, certificate) as (address, _):
        with connected(address, security) as client:
            assert client.scheduler.address.startswith("tls://")
            assert all(worker.startswith("tls://") for worker in client.nthreads())
            made = dask_cluster.fit(machine(max_iter=4), *parts(), client=client)
            error = dask_cluster.evaluate(made, *parts(), client=client).error
            assert error == pytest.approx(1 - made.score(*rows(3000)))
        call = f"import distributed; distributed.Client(scheduler_file={str(address)!r}, timeout=5)"
        assert subprocess.run([sys.executable, "-c", call], capture_output=True).returncode == 1
    with cluster(tmp_path) as (address, _), connected(address) as client:
        same(dask_cluster.fit(machine(max_iter=4), *parts(), client=client), made)


def test_a_lost_scheduler_is_a_sentence_and_the_model_goes_on(tmp_path):
    path, estimator = tmp_path / "model", machine(max_iter=4)
    with cluster(tmp_path) as (address, process), connected(address) as client:
        undisturbed = dask_cluster.fit(machine(max_iter=4), *parts(), client=client)

        def lose(model):
            if model.n_iter_ == 2:
                process.send_signal(signal.SIGKILL)

        with pytest.raises(ConnectionError, match=r"scheduler.*resume=True"):
            dask_cluster.fit(estimator, *parts(), client=client, checkpoint=path, callback=lose)
    assert estimator.n_iter_ == 2
    with cluster(tmp_path) as (address, _), connected(address) as client:
        made = dask_cluster.fit(pp.load(path), *parts(), client=client, resume=True)
    same(made, undisturbed)


def test_a_client_that_goes_away_comes_back_to_a_cluster_that_works(tmp_path):
    path = tmp_path / "model"
    with cluster(tmp_path) as (address, _):
        with connected(address) as client:
            undisturbed = dask_cluster.fit(machine(max_iter=4), *parts(), client=client)
        with connected(address) as client:
            dask_cluster.fit(
                machine(max_iter=4),
                *parts(),
                client=client,
                rounds=2,
                checkpoint=path,
            )
        with connected(address) as client:
            made = dask_cluster.fit(
                pp.load(path).set_params(max_iter=4),
                *parts(),
                client=client,
                resume=True,
            )
    same(made, undisturbed)


def test_the_command_line_on_a_cluster_elsewhere(tmp_path, capsys, monkeypatch):
    X, y = rows(3000)
    X[:, 0] += 1
    write(tmp_path / "rows.libsvm", [Chunk(X, y)])
    with cluster(tmp_path) as (address, _):
        with connected(address) as client:
            scheduler = client.scheduler.address
        words = ["train", tmp_path / "rows.libsvm", "--cluster", scheduler, "-a", "amm", "--json"]
        assert main([str(word) for word in words]) == 0
        assert '"rows": 3000' in capsys.readouterr().out
    with cluster(tmp_path) as (address, process):
        with connected(address) as client:
            words[3] = client.scheduler.address
        after_round = dask_cluster.after_round

        def after(estimator, *given):
            after_round(estimator, *given)
            if estimator.n_iter_ == 2:
                process.send_signal(signal.SIGKILL)

        monkeypatch.setattr(dask_cluster, "after_round", after)
        assert main([*map(str, words), "-m", str(tmp_path / "model")]) == 130
    err = capsys.readouterr().err
    assert "cannot be reached" in err
    assert f"--resume {tmp_path / 'model'} --cluster" in err
    assert pp.load(tmp_path / "model").n_iter_ == 2
