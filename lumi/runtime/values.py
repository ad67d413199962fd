"""Whether the integers of an input are those that its signature tells."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lumi import dim
from lumi.errors import LumiError
from lumi.plan.plan import Signature
from lumi.runtime import dlpack
from lumi.runtime.device import Array


def check_values(signature: Signature, given: Array | dlpack.Borrowed, dims: Mapping[str, int]) -> None:
    """Raise `LumiError` ("input error") for an integer below 0 or above the signature's `most`.

    A tensor that lies on the device is not looked at: what a kernel takes from it for a place is clamped.
    """
    if signature.most is None or not isinstance(given, np.ndarray) or not given.size:
        return
    most = dim.value(signature.most, dims)
    bad = next((v for v in (given.min(), given.max()) if not 0 <= v <= most), None)
    if bad is not None:
        raise LumiError(
            "input error",
            f"input {signature.name} has {bad} in it, outside of 0 … {most}",
            hint=f"the model declares it with :max {signature.most}",
        )
