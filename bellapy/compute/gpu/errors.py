"""What NVIDIA's driver says was wrong, as an error of this package.  Nothing here needs a GPU, or cuda.core, to be there."""

from __future__ import annotations

from bellapy.errors import DeviceError

OUT_OF_MEMORY = "CUDA_ERROR_OUT_OF_MEMORY"


class DriverError(DeviceError):
    """What the driver says.  problem : its words."""

    def __init__(self, problem: str):
        self.problem = problem
        super().__init__(f"the NVIDIA driver: {problem}; run again, or without a GPU: --device cpu")

    def __reduce__(self):  # an exception is made again of its message alone, unless it says otherwise
        return type(self), (self.problem,)


class _Telling:
    """A block whose errors of the driver become ours."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and "CUDA_ERROR" in str(error) and not isinstance(error, DriverError):
            raise DriverError(str(error)) from error


telling = _Telling()
