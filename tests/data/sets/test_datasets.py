"""Data sets by name: as registered, checked before use, and nothing half done left behind."""

import contextlib
import dataclasses
import gzip
import hashlib
import http.server
import lzma
import re
import socket
import threading
from pathlib import Path

import numpy as np
import pooch
import pytest
import scipy.sparse as sp

from polyplane.data.chunks import DataError
from polyplane.data.sets import datasets
from polyplane.data.sets.datasets import describe, load, names
from polyplane.data.sets.infinite_digits import infinite_digits
from polyplane.data.sets.registry import DataFile, DataSet, registered
from tests.real_data import ROOT, _need

TEXT = b"1 1:1 4:2\n2 2:0.5\n1 3:1\n3 1:7\n"
OTHER_TEXT = b"1 1:1\n2 4:1\n3 2:1\n"
RAW = {"tables"}  # as people find them: not sets with a training and a test part
READ_WITHOUT_JIT = {"australian", "breast-cancer", "german.numer", "mnist", "svmguide1"}
STORED = [
    name if name in READ_WITHOUT_JIT else pytest.param(name, marks=pytest.mark.compiled)
    for name in names()
    if any(file.url is None for file in describe(name).files)
]


def sha256(content):
    return hashlib.sha256(content).hexdigest()


with_and_without_checksum = pytest.mark.parametrize(
    "checksum", [sha256(TEXT), None], ids=["checksum", "no checksum"]
)


def tiny_set(*files, **facts):
    shape = {"rows_train": 4, "n_features": 4, "n_classes": 3}
    words = dict.fromkeys(("title", "source", "licence", "scaling"), "")
    return DataSet(name="tiny", home="http://home", files=files, **words | shape | facts)


def train_file(name="tiny.txt", **facts):
    return DataFile(part="train", name=name, **facts)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The folder that stands for the user's cache; $POLYPLANE_DATA is not set."""
    monkeypatch.delenv("POLYPLANE_DATA", raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "cache" / project)
    return tmp_path / "cache" / "polyplane"


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    """The set's folder inside $POLYPLANE_DATA."""
    monkeypatch.setenv("POLYPLANE_DATA", str(tmp_path / "own"))
    (tmp_path / "own" / "tiny").mkdir(parents=True)
    return tmp_path / "own" / "tiny"


@pytest.fixture
def register(monkeypatch):
    def register(data_set):
        monkeypatch.setattr(datasets, "registered", lambda: {data_set.name: data_set})

    return register


class Pages(http.server.BaseHTTPRequestHandler):
    """/whole is the text, /cut breaks off in its middle, everything else is missing."""

    def do_GET(self):
        self.server.asked.append(self.path)
        if self.path not in ("/whole", "/cut"):
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(TEXT)))
        self.end_headers()
        self.wfile.write(TEXT if self.path == "/whole" else TEXT[:9])

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        server.asked = []
        server.home = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def files_in(folder):
    return [path for path in Path(folder).rglob("*") if path.is_file()]


def assert_is_tiny(rows):
    X, y, *test_part = rows
    assert X.toarray().tolist() == [[1, 0, 0, 2], [0, 0.5, 0, 0], [0, 0, 1, 0], [7, 0, 0, 0]]
    assert y.tolist() == [1, 2, 1, 3]
    assert test_part == [None, None]


# ---- the registry ------------------------------------------------------------------------


@pytest.mark.parametrize("name", STORED)
def test_a_set_at_hand_is_as_registered(name, monkeypatch):
    data_set = describe(name)
    paths = {file.part: ROOT / name / file.name for file in reversed(data_set.files)}
    _need(*paths.values())
    monkeypatch.setenv("POLYPLANE_DATA", str(ROOT))
    X, y, X_test, y_test = load(name)
    parts = [(X, y, data_set.rows_train)]
    if data_set.rows_test is None:
        assert X_test is None
        assert y_test is None
    else:
        parts.append((X_test, y_test, data_set.rows_test))
    for rows, labels, n_rows in parts:
        assert rows.shape == (n_rows, data_set.n_features)
        assert labels.shape == (n_rows,)
        assert labels.dtype == np.int64
        assert rows.dtype == (np.uint8 if data_set.format == "idx" else np.float32)
        assert sp.issparse(rows) == (data_set.format == "libsvm")
        assert np.unique(labels).size == data_set.n_classes


def test_every_folder_of_data_and_the_sets_of_the_papers_are_registered():
    assert {"webspam", "url", "rcv1", "mnist8m"} <= set(names())
    _need(ROOT / "mnist" / "train-images-idx3-ubyte.gz")
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()}
    assert folders - RAW <= set(names())


@pytest.mark.parametrize("name", names())
def test_every_part_has_a_file_and_every_file_can_be_checked(name):
    data_set = describe(name)
    parts = {"train"} if data_set.rows_test is None else {"train", "test"}
    if data_set.format == "idx":
        parts |= {f"{part} labels" for part in parts}
    assert {file.part for file in data_set.files} == parts
    for file in data_set.files:
        assert file.url is not None or file.sha256 is not None
        assert file.sha256 is None or re.fullmatch("[0-9a-f]{64}", file.sha256)
        assert file.sha256 is None or file.size > 0
        assert file.url is None or file.url.endswith("/" + file.name)
    with_url = {file.part for file in data_set.files if file.url}
    assert with_url == (set() if data_set.why_no_download else parts)
    assert data_set.home.startswith("https://")
    assert all([data_set.title, data_set.source, data_set.licence, data_set.scaling])
    assert all(0 < figure.error_percent < 20 for figure in data_set.figures)


def test_facts_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        describe("a9a").n_features = 124
    with pytest.raises(TypeError):
        registered()["a9a"] = None


def test_names_are_sorted_and_each_is_described():
    assert names() == sorted(names())
    assert [describe(name).name for name in names()] == names()


@pytest.mark.parametrize(
    ("name", "guess"),
    [
        ("mnst", "did you mean mnist or mnist8m?"),
        ("A9A", "did you mean a9a"),
        ("covtype", "did you mean covtype-20k?"),
        ("zzzzzzz", "no data set 'zzzzzzz': `datasets.names()` lists all"),
        ("", "no data set ''"),
    ],
)
def test_an_unknown_name_gives_the_closest(name, guess):
    with pytest.raises(DataError, match=re.escape(guess)):
        load(name)


def test_the_page_shows_every_set_as_registered():
    page = (Path(__file__).parents[3] / "docs" / "datasets.md").read_text()
    lines = {line.split("|")[1].strip(): line for line in page.splitlines() if line[:1] == "|"}
    for name in names():
        facts = describe(name)
        cells = [cell.strip() for cell in lines[name].split("|")]
        rows_test = "–" if facts.rows_test is None else f"{facts.rows_test:,}"
        shape = [f"{facts.rows_train:,}", rows_test, f"{facts.n_features:,}"]
        assert cells[2:6] == [*shape, str(facts.n_classes)]
        assert cells[6] == ("no" if facts.why_no_download else "yes")


def test_infinite_digits_are_offered_beside_the_sets():
    assert datasets.infinite_digits is infinite_digits
    with pytest.raises(AttributeError, match="no attribute 'finite_digits'"):
        datasets.finite_digits  # noqa: B018


# ---- files that are here -----------------------------------------------------------------


def test_the_own_folder_is_read_before_the_cache_and_no_other(
    own_folder, cache, register, tmp_path, monkeypatch
):
    register(tiny_set(train_file(sha256=sha256(TEXT))))
    for folder in (tmp_path, tmp_path / "tiny", own_folder.parent, cache):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tiny.txt").write_bytes(TEXT)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"tiny: tiny.txt not found and not to be downloaded"):
        load("tiny")
    (cache / "tiny").mkdir()
    (cache / "tiny" / "tiny.txt").write_bytes(TEXT)
    assert_is_tiny(load("tiny"))
    (own_folder / "tiny.txt").write_bytes(OTHER_TEXT)
    with pytest.raises(DataError, match=re.escape(str(own_folder / "tiny.txt"))):
        load("tiny")


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_any_file_of_a_part_will_do_packed_or_not(pack, own_folder, register):
    content = pack(TEXT)
    register(tiny_set(train_file("other", sha256="0" * 64), train_file(sha256=sha256(content))))
    (own_folder / "tiny.txt").write_bytes(content)
    assert_is_tiny(load("tiny"))


@pytest.mark.parametrize("damage", [TEXT[:-1], TEXT + b"\n", b"", OTHER_TEXT])
def test_a_file_with_a_wrong_checksum_is_refused(damage, own_folder, register):
    register(tiny_set(train_file(sha256=sha256(TEXT))))
    path = own_folder / "tiny.txt"
    path.write_bytes(damage)
    words = f"found SHA-256 {sha256(damage)}, expected {sha256(TEXT)}; remove it"
    with pytest.raises(DataError, match=words) as refusal:
        load("tiny")
    assert refusal.value.path == path
    assert path.read_bytes() == damage


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"rows_train": 5}, "found 4 rows, expected the 5 of tiny"),
        ({"n_classes": 2}, "found 3 classes, expected the 2 of tiny"),
        ({"n_features": 6}, "found 4 features, expected the 6 of tiny"),
        ({"n_features": 3}, "line 1, column 7"),
    ],
)
def test_a_file_without_checksum_is_refused_for_its_facts(facts, words, own_folder, register):
    register(tiny_set(train_file(), **facts))
    (own_folder / "tiny.txt").write_bytes(TEXT)
    with pytest.raises(DataError, match=words):
        load("tiny")
    assert files_in(own_folder)


def test_classes_and_features_may_be_spread_over_both_parts(own_folder, register):
    files = train_file(), DataFile(part="test", name="test.txt")
    register(tiny_set(*files, rows_test=1, n_classes=4, n_features=5))
    (own_folder / "tiny.txt").write_bytes(TEXT)
    (own_folder / "test.txt").write_bytes(b"4 5:1\n")
    X, _, X_test, y_test = load("tiny")
    assert X.shape == (4, 5)
    assert X_test.toarray().tolist() == [[0, 0, 0, 0, 1]]
    assert y_test.tolist() == [4]


def test_images_are_bytes_and_their_facts_are_checked(own_folder, register):
    images = b"\0\0\x08\x03" + bytes([0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 2]) + bytes(range(12))
    (own_folder / "images").write_bytes(images)
    (own_folder / "labels").write_bytes(b"\0\0\x08\x01" + bytes([0, 0, 0, 3, 0, 2, 1]))
    files = train_file("images"), DataFile(part="train labels", name="labels")
    facts = {"n_features": 4, "n_classes": 3, "format": "idx"}
    register(tiny_set(*files, rows_train=3, **facts))
    X, y, *_ = load("tiny")
    np.testing.assert_array_equal(X, np.arange(12, dtype=np.uint8).reshape(3, 4))
    assert X.dtype == np.uint8
    assert y.tolist() == [0, 2, 1]
    assert y.dtype == np.int64
    register(tiny_set(*files, rows_train=2, **facts))
    with pytest.raises(DataError, match="found 3 rows, expected the 2 of tiny"):
        load("tiny")


@pytest.mark.compiled
def test_public_files_whose_checksum_was_worked_out_here_hold_the_same_rows(tmp_path, monkeypatch):
    _need(ROOT / "mushrooms" / "train.libsvm.xz")
    monkeypatch.setenv("POLYPLANE_DATA", str(ROOT))
    X, y, *_ = load("mushrooms")
    with lzma.open(ROOT / "mushrooms" / "train.libsvm.xz") as file:
        public = file.read().replace(b"\n", b" \n")
    (tmp_path / "mushrooms").mkdir()
    (tmp_path / "mushrooms" / "mushrooms").write_bytes(public)
    monkeypatch.setenv("POLYPLANE_DATA", str(tmp_path))
    X_public, y_public, *_ = load("mushrooms")
    assert (X_public != X).nnz == 0
    np.testing.assert_array_equal(y, y_public)


# ---- files that are elsewhere ------------------------------------------------------------


@with_and_without_checksum
def test_what_is_absent_is_downloaded_once_with_a_bar(checksum, server, cache, register, capsys):
    register(tiny_set(train_file("whole", url=server.home + "/whole", sha256=checksum)))
    assert_is_tiny(load("tiny"))
    assert_is_tiny(load("tiny"))
    assert server.asked == ["/whole"]
    assert (cache / "tiny" / "whole").read_bytes() == TEXT
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.search(rf"^whole .*{len(TEXT)}/{len(TEXT)} bytes", printed.err)
    assert len(printed.err.splitlines()) == 1


def test_only_the_absent_part_is_downloaded(server, cache, own_folder, register):
    test_part = DataFile(part="test", name="whole", url=server.home + "/whole")
    register(tiny_set(train_file(url=server.home + "/tiny.txt"), test_part, rows_test=4))
    (own_folder / "tiny.txt").write_bytes(TEXT)
    X, y, X_test, y_test = load("tiny")
    assert server.asked == ["/whole"]
    assert (X_test != X).nnz == 0
    np.testing.assert_array_equal(y, y_test)
    assert files_in(cache) == [cache / "tiny" / "whole"]


def test_a_download_with_a_wrong_checksum_is_not_kept(server, cache, register):
    url = server.home + "/whole"
    register(tiny_set(train_file("whole", url=url, sha256="0" * 64)))
    words = f"{url}: is damaged .* found SHA-256 {sha256(TEXT)}, expected {'0' * 64}; it was not"
    with pytest.raises(DataError, match=words):
        load("tiny")
    assert not (cache / "tiny").exists()


def test_a_download_with_wrong_facts_is_not_kept(server, cache, register):
    register(tiny_set(train_file("whole", url=server.home + "/whole"), rows_train=5))
    with pytest.raises(DataError, match=r"found 4 rows.*what was fetched is removed, see http://"):
        load("tiny")
    assert files_in(cache) == []


def closed_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ("/cut", "the connection broke off"),
        ("/gone", "the server says 404 Not Found"),
        (None, "no connection to the server"),
    ],
)
@with_and_without_checksum
def test_a_failed_download_says_what_to_fetch_and_leaves_nothing(
    page, reason, checksum, server, cache, own_folder, register
):
    url = f"http://127.0.0.1:{closed_port()}/whole" if page is None else server.home + page
    register(tiny_set(train_file(url=url, sha256=checksum)))
    words = (
        f"tiny: the download failed ({reason}): fetch {url} by other means and put it, not "
        f"renamed, into {own_folder} or {cache / 'tiny'}"
    )
    with pytest.raises(DataError, match=f"^{re.escape(words)}$"):
        load("tiny")
    assert not (cache / "tiny").exists()
    assert files_in(own_folder) == []


def test_all_absent_files_are_named_at_once(server, register):
    urls = f"{server.home}/gone", f"{server.home}/away"
    register(
        tiny_set(
            train_file(url=urls[0]), DataFile(part="test", name="away", url=urls[1]), rows_test=1
        )
    )
    with pytest.raises(DataError, match=f"fetch {urls[0]} and {urls[1]} .* put them, not renamed"):
        load("tiny")


def test_an_interrupted_download_leaves_nothing(server, cache, register, monkeypatch):
    def interrupt(bar, n_bytes):
        assert files_in(cache)
        raise KeyboardInterrupt

    register(tiny_set(train_file("whole", url=server.home + "/whole")))
    monkeypatch.setattr(datasets._Bar, "update", interrupt)
    with pytest.raises(KeyboardInterrupt):
        load("tiny")
    assert not (cache / "tiny").exists()


def test_a_cache_that_cannot_be_written_is_one_sentence(server, cache, register):
    cache.parent.mkdir()
    cache.write_text("a file where the folder should be")
    register(tiny_set(train_file("whole", url=server.home + "/whole")))
    with pytest.raises(DataError, match=r"the download failed \(.*\): fetch http.*/whole by"):
        load("tiny")


def test_a_set_without_public_file_says_why_and_where_its_home_is(cache):
    words = (
        "covtype-20k: train.libsvm.xz not found and not to be downloaded, because it is a sample "
        f".*: put a copy into {re.escape(str(cache / 'covtype-20k'))}; the set's home is https://"
    )
    with pytest.raises(DataError, match=words):
        load("covtype-20k")


def test_pooch_speaks_again_after_a_download(server, register):
    level = pooch.get_logger().level
    register(tiny_set(train_file("gone", url=server.home + "/gone")))
    with contextlib.suppress(DataError):
        load("tiny")
    assert pooch.get_logger().level == level
