"""What a process of our own leaves out."""

import os
import platform
import subprocess
import sys

import pytest

from bellapy.compute import own_process

AGAIN = """
import os
from bellapy.compute import own_process

print(os.getpid(), flush=True)
if {claimed}:
    own_process.claim()
if own_process.may_start_again():
    own_process.start_again()
"""


@pytest.mark.parametrize("claimed", [True, False])
def test_the_program_starts_again_in_its_place_a_few_times(claimed):
    command = [sys.executable, "-c", AGAIN.format(claimed=claimed)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert len(told) == (1 + own_process.MOST_STARTS if claimed else 1)
    assert len(set(told)) == 1, "the process stays the same"


COMPILES = """
import gc
import numba
from bellapy.compute import own_process

own_process.claim()
print(gc.isenabled())
from bellapy.compute.compiling import watch_compilation
from bellapy.report.run_report import RunReport

with watch_compilation(RunReport()):
    numba.njit(lambda x: x + 1)(1)
print(gc.isenabled())
"""


def test_cycles_are_looked_for_once_something_is_compiled():
    """Else what the compiler leaves would stay: 400 MB in a first run of `correct`."""
    command = [sys.executable, "-c", COMPILES]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == ["False", "True"]


THREADS = """
import resource, sys, threading
from bellapy.compute import own_process
if sys.argv[1] == "claimed":
    own_process.claim()
own_process.spare_addresses()
here, done = threading.Barrier(17), threading.Event()
def hold():
    kept = bytearray(5000)  # by the C library
    here.wait()
    done.wait()
def addresses():
    return int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() >> 20
threading.stack_size(1 << 20)
before = addresses()
for _ in range(16):
    threading.Thread(target=hold).start()
here.wait()
print(addresses() - before)
done.set()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc gives threads addresses of their own")
def test_threads_take_few_addresses_where_these_are_spared():
    ours, others = (
        int(subprocess.run([sys.executable, "-c", THREADS, whose], capture_output=True, text=True, check=True).stdout)
        for whose in ("claimed", "a caller's")
    )
    assert ours < 40 < 128 < others, "megabytes of 16 threads"


CPUINFO = "processor\t: 0\nvendor_id\t: {}\ncpu family\t: {}\nmodel\t\t: 17\n"
CLAIM = """
import sys
from bellapy.compute import own_process
own_process.PROCESSOR = sys.argv[1]
own_process.claim()
import numpy as np
from numpy._core._multiarray_umath import __cpu_features__ as found
print(found.get("X86_V4", found.get("AVX512F")))
"""


@pytest.mark.parametrize(
    "vendor, family, kept", [("AuthenticAMD", 25, False), ("AuthenticAMD", 26, True), ("GenuineIntel", 6, True)]
)
def test_numpy_does_not_sort_with_avx512_where_that_is_slow(tmp_path, vendor, family, kept):
    def has_avx512(path: str) -> bool:
        environment = {name: value for name, value in os.environ.items() if name != "NPY_DISABLE_CPU_FEATURES"}
        command = [sys.executable, "-W", "error", "-c", CLAIM, path]
        told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        return told.strip() == "True"

    (tmp_path / "cpuinfo").write_text(CPUINFO.format(vendor, family))
    assert has_avx512(str(tmp_path / "cpuinfo")) == (kept and has_avx512(str(tmp_path / "there is none")))
