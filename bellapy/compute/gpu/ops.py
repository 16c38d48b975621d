"""What the GPU kernels need beyond plain Numba: two 16-bit numbers in a word, and talk among the lanes of a warp.

Every function has two bodies: PTX for the device, plain Python for Numba's simulator, whose blocks are one small warp of
WARP lanes.  Words are uint32; the packed halves are unsigned and never carry into one another.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import cuda

from bellapy.compute.gpu.devices import SIMULATED

EMPTY_BYTE = 0xC0  # four of them: a number below all scores
WARP = 8 if SIMULATED else 32
U32, U64, I32 = np.uint32, np.uint64, np.int32
BOTH = 0x10001  # times a number: the number in both halves of a word
LOW_HALVES, HIGH_HALVES = U32(0x5410), U32(0x7632)  # what `permute` chooses of two words


inlined = cuda.jit(device=True, **({"inline": "always"} if SIMULATED else {"forceinline": True}))
"""For parts of kernels.  LLVM takes them in.  If Numba did, compiling would take six times as long."""


def on_device(function: Callable) -> Any:
    """A function that is compiled for CPUs, as a part of kernels."""
    return inlined(getattr(function, "py_func", function))


@cache
def kernel_of(function: Callable, device: int):
    """A function as the kernel of a device."""
    return cuda.jit(function) if SIMULATED else Kernel(function)


if SIMULATED:
    driver: Any = cuda
    """What memory, streams and devices are asked of."""

    def current_card() -> Any:
        return cuda.get_current_device()

    def free_memory() -> int:
        return 1 << 34

    def upload(rows: np.ndarray, there, stream) -> None:
        there.copy_to_device(rows, stream=stream)

    def copy_between(source, there, stream, pinned) -> None:
        there.copy_to_device(source)

    def fill_bytes(there, byte: int, stream) -> None:
        there.copy_to_device(np.frombuffer(bytes([byte]) * there.nbytes, there.dtype).reshape(there.shape))

    EVERY = (1 << WARP) - 1
    _box = [0] * WARP  # of the one warp that runs; threads race to make the simulator's shared arrays

    def _halves(word) -> tuple[int, int]:
        return int(word) & 0xFFFF, int(word) >> 16

    def _larger(a: int, b: int, c: int, d: int) -> np.uint32:
        return U32(max(a, c) | max(b, d) << 16)

    @cuda.jit(device=True)
    def max2(a, b):
        return _larger(*_halves(a), *_halves(b))

    @cuda.jit(device=True)
    def max2_any(a, b):
        return max2(a, b)

    @cuda.jit(device=True)
    def add_max2(a, b, c):
        (a0, a1), (b0, b1) = _halves(a), _halves(b)
        return _larger(a0 + b0 & 0xFFFF, a1 + b1 & 0xFFFF, *_halves(c))

    @cuda.jit(device=True)
    def multiply_add(a, b, c):
        return U32(int(a) * int(b) + int(c) & 0xFFFFFFFF)

    def _signed(half: int) -> int:
        return half - (half >> 15 << 16)

    @cuda.jit(device=True)
    def signed_max2(a, b):
        (a0, a1), (b0, b1) = _halves(a), _halves(b)
        low, high = max(_signed(a0), _signed(b0)), max(_signed(a1), _signed(b1))
        return U32(low & 0xFFFF | (high & 0xFFFF) << 16)

    @cuda.jit(device=True)
    def signed_min2(a, b):
        (a0, a1), (b0, b1) = _halves(a), _halves(b)
        low, high = min(_signed(a0), _signed(b0)), min(_signed(a1), _signed(b1))
        return U32(low & 0xFFFF | (high & 0xFFFF) << 16)

    @cuda.jit(device=True)
    def add2(a, b):
        (a0, a1), (b0, b1) = _halves(a), _halves(b)
        return U32(a0 + b0 & 0xFFFF | (a1 + b1 & 0xFFFF) << 16)

    @cuda.jit(device=True)
    def signed_add_max2(a, b, c):
        return signed_max2(add2(a, b), c)

    @cuda.jit(device=True)
    def permute(a, b, selector):
        data, word = int(a) | int(b) << 32, 0
        for i in range(4):
            nibble = int(selector) >> 4 * i & 15
            byte = data >> 8 * (nibble & 7) & 255
            word |= (255 * (byte >> 7) if nibble & 8 else byte) << 8 * i
        return U32(word)

    @cuda.jit(device=True)
    def reverse_bits(word):
        return U32(int(f"{int(word):032b}"[::-1], 2))

    @cuda.jit(device=True)
    def ballot(flag):
        _box[cuda.threadIdx.x] = bool(flag)
        cuda.syncthreads()
        word = U32(sum(_box[i] << i for i in range(WARP)))
        cuda.syncthreads()
        return word

    @cuda.jit(device=True)
    def shuffle(value, lane):
        _box[cuda.threadIdx.x] = int(value)
        cuda.syncthreads()
        word = type(value)(_box[int(lane)])
        cuda.syncthreads()
        return word

    @cuda.jit(device=True)
    def largest(word):
        _box[cuda.threadIdx.x] = int(word)
        cuda.syncthreads()
        most = U32(max(_box))
        cuda.syncthreads()
        return most

    @cuda.jit(device=True)
    def fresh(array, row, column):
        return array[row, column]

    @cuda.jit(device=True)
    def fresh_number(array, i):
        return array[i]

    @cuda.jit(device=True)
    def sync_warp():
        cuda.syncthreads()

    @cuda.jit(device=True)
    def rest():
        pass

else:
    from llvmlite import ir
    from numba.cuda.extending import intrinsic

    from bellapy.compute.gpu import arrays as driver
    from bellapy.compute.gpu.arrays import copy_between, current_card, fill_bytes, free_memory, upload
    from bellapy.compute.gpu.kernels import Kernel

    __all__ = ["copy_between", "current_card", "driver", "fill_bytes", "free_memory", "upload"]
    EVERY = -1

    def _emit(text: str, n: int, among_lanes: bool = False):
        """An intrinsic's code: one piece of PTX with n words in and one word out; `among_lanes`: must stay where it is."""

        def emit(context, builder, signature, arguments):
            word = ir.IntType(32)
            code = ir.InlineAsm(ir.FunctionType(word, [word] * n), text, ",".join(["=r"] + ["r"] * n), among_lanes)
            return builder.call(code, arguments)

        return cuda.types.uint32(*[cuda.types.uint32] * n), emit

    @intrinsic
    def fresh(typing_context, array, row, column):
        """array[row, column], int64, as it is now: other processors change it with atomic operations."""

        def emit(context, builder, signature, arguments):
            of, (array, *at) = signature.args[0], arguments
            whole, find = context.make_array(of)(context, builder, array), cuda.cgutils.get_item_pointer
            pointer = find(context, builder, of, whole, at)
            kind = ir.FunctionType(pointer.type.pointee, [pointer.type])
            code = ir.InlineAsm(kind, "ld.relaxed.gpu.global.b64 $0, [$1];", "=l,l", side_effect=True)
            return builder.call(code, [pointer])

        return cuda.types.int64(array, cuda.types.int64, cuda.types.int64), emit

    @intrinsic
    def fresh_number(typing_context, array, i):
        """array[i], int32, as it is now: other processors, or other devices, change it."""

        def emit(context, builder, signature, arguments):
            of, (array, *at) = signature.args[0], arguments
            whole, find = context.make_array(of)(context, builder, array), cuda.cgutils.get_item_pointer
            pointer = find(context, builder, of, whole, at)
            kind = ir.FunctionType(pointer.type.pointee, [pointer.type])
            code = ir.InlineAsm(kind, "ld.relaxed.sys.global.b32 $0, [$1];", "=r,l", side_effect=True)
            return builder.call(code, [pointer])

        return cuda.types.int32(array, cuda.types.int64), emit

    @cuda.jit(device=True, inline="always")
    def rest():
        cuda.nanosleep(U32(200))

    @intrinsic
    def multiply_add(typing_context, a, b, c):
        """a * b + c: an addition for which the unit of sums is not needed, if b is 1 and the compiler does not know it."""
        return _emit("mad.lo.u32 $0, $1, $2, $3;", 3)

    @intrinsic
    def max2(typing_context, a, b):
        """The larger of each pair of halves; one instruction from compute capability 9.0 on."""
        return _emit("max.u16x2 $0, $1, $2;", 2)

    @intrinsic
    def max2_any(typing_context, a, b):
        """max2 for every compute capability."""
        return _emit("{ .reg .b32 none; mov.b32 none, 0; vmax2.u32.u32.u32 $0, $1, $2, none; }", 2)

    @intrinsic
    def add_max2(typing_context, a, b, c):
        """The larger of each half of a + b and c; one instruction from compute capability 9.0 on."""
        return _emit("{ .reg .b32 sum; add.u16x2 sum, $1, $2; max.u16x2 $0, sum, $3; }", 3)

    @intrinsic
    def largest(typing_context, word):
        """The largest word of all lanes of a warp (compute capability 8.0 and more)."""
        return _emit("redux.sync.max.u32 $0, $1, 0xffffffff;", 1, True)

    @intrinsic
    def signed_max2(typing_context, a, b):
        """The larger of each pair of halves, which have signs; from compute capability 9.0 on."""
        return _emit("max.s16x2 $0, $1, $2;", 2)

    @intrinsic
    def signed_min2(typing_context, a, b):
        """The smaller of each pair of halves, which have signs; from compute capability 9.0 on."""
        return _emit("min.s16x2 $0, $1, $2;", 2)

    @intrinsic
    def add2(typing_context, a, b):
        """Sums of halves, which do not carry into one another; from compute capability 9.0 on."""
        return _emit("add.s16x2 $0, $1, $2;", 2)

    @intrinsic
    def signed_add_max2(typing_context, a, b, c):
        """The larger of each half of a + b and c, which have signs; from compute capability 9.0 on."""
        return _emit("{ .reg .b32 sum; add.s16x2 sum, $1, $2; max.s16x2 $0, sum, $3; }", 3)

    @intrinsic
    def permute(typing_context, a, b, selector):
        """Bytes of b:a chosen by four nibbles; a nibble with its top bit set spreads the sign of the byte."""
        return _emit("prmt.b32 $0, $1, $2, $3;", 3)

    @intrinsic
    def reverse_bits(typing_context, word):
        return _emit("brev.b32 $0, $1;", 1)

    @cuda.jit(device=True, inline="always")
    def ballot(flag):
        return U32(cuda.ballot_sync(I32(EVERY), flag))

    @cuda.jit(device=True, inline="always")
    def shuffle(value, lane):
        return cuda.shfl_sync(I32(EVERY), value, I32(lane))

    @cuda.jit(device=True, inline="always")
    def sync_warp():
        cuda.syncwarp()
