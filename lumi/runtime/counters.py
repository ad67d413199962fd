"""What a device was asked for, counted: a call in steady state makes nothing and moves little."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(slots=True)
class Counters:
    """Sums since the device was opened.

    `captures` are graphs that were made, `launches` what was put on the device's queue to compute: graphs,
    kernels on their own and, on the CPU, tables of kernels.  `device_allocations` are blocks of the device's
    memory, `host_allocations` blocks of the host's that copies to and from the device go through.
    `bytes_in`, `bytes_out` and `bytes_within` were copied to, from and within the device's memory, besides
    what kernels do.
    """

    captures: int = 0
    launches: int = 0
    device_allocations: int = 0
    host_allocations: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    bytes_within: int = 0

    def __sub__(self, before: Counters) -> Counters:
        """What came since `before`."""
        pairs = ((getattr(self, f.name), getattr(before, f.name)) for f in fields(self))
        return Counters(*(now - then for now, then in pairs))

    def __copy__(self) -> Counters:
        """The sums as they are now."""
        return self - Counters()
