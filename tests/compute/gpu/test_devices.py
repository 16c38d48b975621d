"""Which device extends: what is said when no GPU can be used, and what happens then."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest
from cases import run

from bellapy.compute.gpu import devices
from bellapy.compute.gpu.devices import (
    ADDRESSES,
    LEAST_FREE,
    SIMULATED,
    Gpu,
    choose_beside,
    choose_device,
    find_gpus,
    known_gpus,
)
from bellapy.compute.gpu.errors import DriverError
from bellapy.errors import DeviceError

PAIRS = b"ACGTACGTTGCA\t4\tACGTACGTTGCC\t4\tn\n"
BIG = Gpu(0, "Big GPU", 100 * LEAST_FREE, 200 * LEAST_FREE)
FULL = Gpu(1, "Full GPU", LEAST_FREE - 1, 200 * LEAST_FREE)


@pytest.fixture
def machine(monkeypatch):
    """A machine with all that is needed, and two GPUs; call it to change something."""

    def change(installed=True, problem="", versions=((13, 0), (13, 4)), gpus=(BIG, FULL)):
        monkeypatch.setattr(devices, "_installed", lambda: installed)
        monkeypatch.setattr(devices, "_driver_problem", lambda: problem)
        monkeypatch.setattr(devices, "_cuda_versions", lambda: versions)
        monkeypatch.setattr(devices, "_list_gpus", lambda: list(gpus))
        monkeypatch.setattr(devices, "_found", [])

    change()
    return change


PROBLEMS = {
    "numba-cuda is not installed; pip install": {"installed": False},
    "no NVIDIA GPU can be used: CUDA_ERROR_NO_DEVICE": {"problem": "CUDA_ERROR_NO_DEVICE"},
    "supports CUDA 12.4, the installed CUDA libraries need 13: update the driver": {"versions": ((12, 4), (13, 0))},
    "too little GPU memory is free (Full GPU: 537 of 107374 MB)": {"gpus": (FULL,)},
}


def test_gpus_with_free_memory_are_used(machine, said):
    assert find_gpus() == [BIG]
    assert choose_device("auto") == choose_device("cuda") == "cuda"
    assert "aligning on Big GPU (54 GB free)" in said.text


@pytest.mark.parametrize("message", PROBLEMS)
def test_cuda_without_a_usable_gpu_is_an_error(machine, message):
    machine(**PROBLEMS[message])
    with pytest.raises(DeviceError) as caught:
        choose_device("cuda")
    assert str(caught.value).startswith("--device cuda: ") and message in str(caught.value)


@pytest.mark.parametrize("message", PROBLEMS)
@pytest.mark.parametrize("driver", [True, False])
def test_auto_falls_back_and_says_so_where_there_is_a_driver(machine, said, monkeypatch, tmp_path, message, driver):
    machine(**PROBLEMS[message])
    monkeypatch.setattr(devices, "DRIVER_FILE", tmp_path if driver else tmp_path / "none")
    assert choose_device("auto") == "cpu"
    assert ("aligning on the CPU: " in said.text and message in said.text) == driver


def test_cpu_asks_for_no_gpu(machine, monkeypatch):
    monkeypatch.setattr(devices, "find_gpus", lambda: pytest.fail("looked for GPUs"))
    monkeypatch.setattr(devices, "_found", [])
    assert choose_device("cpu") == "cpu"


def test_memory_that_this_process_holds_does_not_take_a_gpu_away(machine, monkeypatch):
    assert known_gpus() == [BIG]
    monkeypatch.setattr(devices, "_list_gpus", lambda: [BIG._replace(free=0)])
    assert known_gpus() == [BIG] and choose_device("cuda") == "cuda"


def test_command_line(machine, tmp_path):
    machine(installed=False)
    failed = run("extend", "-", "-k", 4, "-x", 5, "--device", "cuda", "-o", tmp_path / "x.tsv", stdin=PAIRS)
    assert failed.code == 1 and "error: --device cuda: numba-cuda is not installed" in failed.err
    assert not (tmp_path / "x.tsv").exists()
    fine = run("extend", "-", "-k", 4, "-x", 5, "--device", "auto", "--report", tmp_path / "r.json", stdin=PAIRS)
    assert fine.code == 0 and fine.out == b"0\t11\t0\t11\t0\t11\n"
    assert json.loads((tmp_path / "r.json").read_text())["devices"] == []
    wrong = run("extend", "-", "-k", 4, "-x", 5, "--device", "tpu", stdin=PAIRS)
    assert wrong.code == 2 and "--device tpu: choose from auto, cpu, cuda" in wrong.err


def test_info_lists_devices(machine):
    assert "cpu, Big GPU (53.7 of 107.4 GB free)" in run("info").out.decode()
    machine(problem="no driver")
    assert "cpu (no NVIDIA GPU can be used: no driver)" in run("info").out.decode()


class Cards:
    """Two GPUs of 24 GB; says which were asked for, and lets nobody in on those that are taken."""

    def __init__(self, taken=()):
        self.taken, self.asked = taken, []

    def __len__(self):
        return 2

    def __getitem__(self, index):
        self.asked.append(index)
        if index in self.taken:
            raise DriverError("CUDA_ERROR_DEVICE_UNAVAILABLE")
        return SimpleNamespace(id=index, name=f"GPU {40 + index}", free_and_total=lambda: (20 << 30, 24 << 30))


@pytest.fixture
def cards(monkeypatch, tmp_path):
    """A machine with these cards and a driver; call it with the numbers of those that are taken."""

    def change(taken=()):
        its = Cards(taken)
        monkeypatch.setitem(sys.modules, "bellapy.compute.gpu.arrays", SimpleNamespace(gpus=its))
        monkeypatch.setitem(sys.modules, "bellapy.compute.gpu.kernels", SimpleNamespace())
        return its

    (tmp_path / "version").write_text("a driver")
    monkeypatch.setattr(devices, "DRIVER_FILE", tmp_path / "version")
    monkeypatch.setattr(devices, "CDLL", lambda name: None)
    monkeypatch.setattr(devices, "_installed", lambda: True)
    monkeypatch.setattr(devices, "_cuda_versions", lambda: ((13, 0), (13, 0)))
    monkeypatch.setattr(devices, "_found", [])
    return change


def wait_for_waking():
    for thread in threading.enumerate():
        if thread.name == "waking":
            thread.join(60)  # what goes wrong in threads is an error of the test


def test_every_gpu_is_woken(cards, monkeypatch):
    its = cards()
    devices.wake()
    wait_for_waking()
    assert its.asked == [0, 1]
    monkeypatch.setattr(devices, "Thread", lambda **given: pytest.fail("nothing uses the contexts"))
    monkeypatch.setattr(devices, "DRIVER_FILE", devices.DRIVER_FILE.parent / "none")
    devices.wake()


@pytest.mark.skipif(SIMULATED, reason="the simulator has one GPU, always")
@pytest.mark.parametrize("taken", [{1}, {0, 1}])
def test_gpus_that_let_nobody_in_are_left_out(cards, said, taken):
    """Full of other programs' contexts, or for one program at a time: no traceback, whichever thread comes first."""
    broken = "CUDA_ERROR_DEVICE_UNAVAILABLE"
    cards(taken)
    devices.wake()
    wait_for_waking()
    if taken == {1}:
        assert choose_device("auto") == "cuda" and [gpu.name for gpu in known_gpus()] == ["GPU 40"]
        assert f"GPU 1: {broken}: it is left out" in said.text
        return
    assert choose_device("auto") == "cpu"
    assert f"aligning on the CPU: no NVIDIA GPU can be used: GPU 0: {broken}; GPU 1: {broken}" in said.text
    with pytest.raises(DeviceError, match=f"--device cuda: no NVIDIA GPU can be used: GPU 0: {broken}"):
        choose_device("cuda")


AT_ONCE = """
from threading import Thread
from bellapy.compute.gpu import devices
devices.CDLL = lambda name: None
waking = Thread(target=devices._start_contexts)
waking.start()
try:
    devices.find_gpus()
except devices.DeviceError as error:
    print(error)
waking.join()
"""


@pytest.mark.skipif(SIMULATED, reason="the simulator loads nothing")
def test_gpus_are_looked_for_while_they_are_woken():
    pytest.importorskip("numba_cuda")
    told = subprocess.run([sys.executable, "-c", AT_ONCE], capture_output=True, text=True, check=True)
    assert "cannot import" not in told.stdout + told.stderr


@pytest.mark.skipif(SIMULATED, reason="the simulator has no driver")
def test_nothing_is_loaded_for_gpus_where_there_is_no_driver(monkeypatch):
    monkeypatch.setattr(devices, "DRIVER_LIBRARY", "libnone.so.1")
    monkeypatch.setattr(devices, "_installed", lambda: True)
    monkeypatch.setattr(devices, "_cards", lambda: pytest.fail("cuda.core is loaded"))
    monkeypatch.setattr(devices, "_found", [])
    with pytest.raises(DeviceError, match="no NVIDIA GPU can be used: the driver cannot be loaded: libnone.so.1"):
        find_gpus()


def test_the_device_is_chosen_beside_other_work(monkeypatch):
    chosen = threading.Event()

    def choose(wanted):
        assert chosen.wait(60)
        if wanted == "cuda":
            raise DeviceError("none is there")
        return "cpu"

    monkeypatch.setattr(devices, "choose_device", choose)
    assert choose_beside("cpu").result(0) == "cpu", "no thread is needed"
    choice = choose_beside("auto")
    assert not choice.done()
    chosen.set()
    assert choice.result(60) == "cpu"
    with pytest.raises(DeviceError, match="none is there"):
        choose_beside("cuda").result(60)


@pytest.mark.skipif(SIMULATED, reason="the simulator has no driver")
def test_no_driver_is_started_where_addresses_are_few(said, monkeypatch, tmp_path):
    limit = ADDRESSES - 1
    monkeypatch.setattr(devices, "address_limit", lambda: limit)
    monkeypatch.setattr(devices, "DRIVER_FILE", tmp_path)
    monkeypatch.setattr(devices, "_installed", lambda: True)
    monkeypatch.setattr(devices, "_found", [])
    monkeypatch.setattr(devices, "Thread", lambda **given: pytest.fail("it was"))
    devices.wake()
    assert choose_device("auto") == "cpu"
    assert f"ulimit -v {limit >> 10}: the NVIDIA driver takes {ADDRESSES >> 10} of addresses" in said.text


def test_what_goes_wrong_on_a_gpu_is_told_without_a_traceback(machine, monkeypatch, tmp_path):
    error = DriverError("CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable ECC error encountered")
    again = pickle.loads(pickle.dumps(error))
    assert (again.problem, str(again)) == (error.problem, str(error))

    def fail():
        raise error

    monkeypatch.setattr(devices, "find_gpus", fail)
    failed = run("extend", "-", "-k", 4, "-x", 5, "--device", "cuda", "-o", tmp_path / "x.tsv", stdin=PAIRS)
    assert failed.code == 1 and "ECC error encountered; run again, or without a GPU: --device cpu\n" in failed.err
    assert "Traceback" not in failed.err and not (tmp_path / "x.tsv").exists()
