"""The tuning database beside a compilation: which results it takes from there, and which it leaves there."""

from __future__ import annotations

from lumi.compilation import Compilation
from lumi.egraph.graph import EGraph
from lumi.field.region import Region
from lumi.search.database import Database
from lumi.search.kept import Kept, key_of
from lumi.search.protocol import Backend, Failure
from lumi.search.settings import Mode


class Tuning:
    """What a compilation and its tuning database have to do with each other; nothing without a database.

    Without a search there is nothing to take or leave, and one whose measurements are recorded or replayed is
    made as if there were no database.
    """

    def __init__(self, work: Compilation, is_searched: bool) -> None:
        self._work, options = work, work.options
        self._database: Database | None = None
        self._machine = ""
        if is_searched and options.database is not None and options.record is None and options.replay is None:
            self._database, self._machine = Database(options.database), options.backend().name

    @property
    def troubles(self) -> tuple[str, ...]:
        """What was wrong with the database, and that nothing came of it."""
        return tuple(self._database.troubles) if self._database is not None else ()

    def recall(self, key: str, region: Region) -> bool:
        """Take the result of a distinct region from the database; whether there was one."""
        kept = self._database.find(self._key(key), region) if self._database is not None else None
        if kept is None:
            return False
        work = self._work
        work.found[key], work.rules[key] = kept.found(region.scope), kept.rules
        work.recalled.add(key)
        return True

    def is_right(self, key: str, region: Region, backend: Backend) -> bool:
        """Whether a recalled result may be used: where times decide, it is run and compared once more.

        A wrong one is removed from the database, and forgotten.
        """
        work = self._work
        settings = work.settings(key)
        if settings.mode is not Mode.MEASURE:
            return True
        result = backend.measure(region, work.found[key].graph, settings.hints[0])
        if not isinstance(result, Failure):
            return True
        assert self._database is not None
        self._database.drop(self._key(key), region.scope, f"{result.reason.value}: {result.detail}")
        del work.found[key], work.rules[key]
        work.recalled.discard(key)
        return False

    def keep(self, key: str, region: Region, egraph: EGraph, spent: float) -> None:
        """Leave the result of a search of so many seconds in the database.

        But not one that Ctrl-C cut short, nor one that rests on rules that did not come with Lumi: those are
        proved anew each time.
        """
        found, settings = self._work.found[key], self._work.settings(key)
        if self._database is None or found.explanation.interrupted or egraph.foreign:
            return
        if found.explanation.mode == settings.mode.value:
            variant, _ = self._work.distinct()[key]
            name, kept = f"{region.scope} {variant.box}".strip(), Kept.of(region, settings, found, egraph)
            self._database.keep(self._key(key), name, self._machine, kept, spent)

    def _key(self, key: str) -> str:
        options = self._work.options
        allowed = (options.target,), options.families, options.without, options.barred, options.relaxed
        return key_of(key, self._work.settings(key), self._machine, allowed)
