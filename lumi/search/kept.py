"""What is kept of the search of a region, and the key under which another search would find the same."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import lumi
from lumi import paths
from lumi.egraph.graph import EGraph
from lumi.errors import LumiError
from lumi.field.region import Region
from lumi.llir.check import check_step
from lumi.llir.json import encode
from lumi.llir.kernel import KernelGraph
from lumi.search.explain import Explanation
from lumi.search.origin import Origin
from lumi.search.search import Found
from lumi.search.settings import Settings

FOLDERS = "rules", "stdlib", "grammar"
"""Beside the package itself, what a result depends on."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The result of a search; `rules` are the rewrites that fired with the number of their matches."""

    graph: KernelGraph
    explanation: Explanation
    origin: Origin
    rules: Mapping[str, int]

    @staticmethod
    def of(region: Region, settings: Settings, found: Found, egraph: EGraph) -> Kept:
        """What is to be kept of a result."""
        rules = {r.name: r.matches for r in egraph.rewrites}
        return Kept(found.graph, found.explanation, Origin.of(region, settings, found), rules)

    def found(self, scope: str) -> Found:
        """The result, as the search of a region of that scope would give it."""
        story = replace(self.explanation, region=scope)
        return Found(self.graph, story, self.origin.goal, self.origin.stored)

    def check(self, region: Region) -> None:
        """Raise `LumiError` where the kernels are not well formed or have other buffers than the region."""
        for number, step in enumerate(self.graph.steps):
            check_step(step, f"number {number}")
        given = {f"B{k}" for k in range(len(region.buffers))}
        stored = {s.access.buffer for s in region.stores}
        made = {name for step in self.graph.steps for name in step.written}
        used = {name for step in self.graph.steps for name in step.buffers}
        if not stored <= made or not used <= given | made or not made <= stored | set(self.graph.temporaries):
            raise LumiError("kernel error", "the kernels do not compute the region's results from its inputs")


def key_of(region: str, settings: Settings, machine: str, allowed: Sequence[Sequence[str]]) -> str:
    """The key of a search: equal where a search would be told, and would find, the same.

    `region` names the terms and the ranges of their dims, `machine` the device, driver and compiler,
    `allowed` are the families of rules and what else the options leave out or let in.
    """
    told = [fingerprint(), region, encode(settings), machine, [list(names) for names in allowed]]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


@functools.cache
def fingerprint() -> str:
    """The SHA-256 of everything that this Lumi consists of: another one may find something else."""
    package = Path(lumi.__file__).parent
    roots = [package, *(f for name in FOLDERS if not (f := paths.data(name)).is_relative_to(package))]
    digest = hashlib.sha256()
    for root in roots:
        for path in sorted(p for p in root.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
            digest.update(f"{path.relative_to(root)}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()
