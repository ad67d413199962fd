"""What a mail sends: what has changed, and neighbours by one copy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lumi.backends.cuda.mail import Mail


class Host:
    """Stands in for a GPU: notes copies within it."""

    def __init__(self) -> None:
        self.copies: list[tuple[int, int, int]] = []

    def allocate(self, size: int) -> int:
        return 1 << 20

    def copy(self, target: int, source: int, size: int) -> None:
        self.copies.append((target, source, size))


@pytest.fixture
def mail() -> Mail:
    gpu: Any = Host()
    return Mail(gpu, 3, (4, 300, 8))


BASE = 1 << 20
"""Where the block lies; parts begin at 0 (dims), 256, 512 and 1024 of it."""


def sent(mail: Mail) -> list[tuple[int, int]]:
    """Offset and size of each piece."""
    return [(address - BASE, raw.nbytes) for address, raw in mail.pieces()]


def test_nothing_is_sent_twice(mail: Mail) -> None:
    mail.set_dims([1, 2, 3])
    assert sent(mail) == [(0, 256)]
    assert sent(mail) == []
    mail.set_dims([1, 2, 3])
    assert sent(mail) == []


def test_dims_and_neighbours_go_together(mail: Mail) -> None:
    mail.set_dims([1, 2, 3])
    for slot in mail.slots:
        slot.write(np.ones(slot.size, np.uint8))
    assert sent(mail) == [(0, 1280)]


def test_parts_that_did_not_change_stay_at_home(mail: Mail) -> None:
    mail.slots[0].write(np.ones(1, np.int32))
    mail.slots[2].write(np.ones(2, np.int32))
    assert sent(mail) == [(256, 256), (1024, 256)]


def test_part_filled_on_the_device_is_not_overwritten(mail: Mail) -> None:
    mail.set_dims([4, 5, 6])
    for slot in mail.slots:
        slot.write(np.ones(slot.size, np.uint8))
    mail.fill(2, 77, 300, 0)
    assert mail._gpu.copies == [(BASE + 512, 77, 300)]  # type: ignore[attr-defined]
    assert sent(mail) == [(0, 512), (1024, 256)]


def test_bytes_are_those_written(mail: Mail) -> None:
    mail.set_dims([7, -8, 9])
    mail.slots[0].write(np.array([5], np.int32))
    mail.slots[1].write(np.array([6], np.int64), 8)
    ((_, sent),) = mail.pieces()
    raw = np.frombuffer(sent, np.uint8)
    assert raw[:24].view(np.int64).tolist() == [7, -8, 9]
    assert raw[256:260].view(np.int32).tolist() == [5]
    assert raw[520:528].view(np.int64).tolist() == [6]
    mail.slots[1].clear()
    ((_, sent),) = mail.pieces()
    assert not any(sent)


def test_slots_lie_where_they_are_sent(mail: Mail) -> None:
    assert [slot.address - BASE for slot in mail.slots] == [256, 512, 1024]
    assert [slot.size for slot in mail.slots] == [4, 300, 8]
