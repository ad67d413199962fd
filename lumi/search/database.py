"""The tuning database: results of searches, kept from one compilation to the next in one SQLite file.

Processes may use it at the same time; one that is killed leaves it as it was after the last result.  An entry
is checked whenever it is used.  What is damaged is removed, and a database that cannot be used is done
without: both are told of in `troubles`, and neither ends a compilation.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from lumi.errors import LumiError
from lumi.field.region import Region
from lumi.llir.json import decode, encode
from lumi.search.kept import Kept, fingerprint

FORMAT = 2
"""Version of the schema; what an older one holds is forgotten, a newer one is left alone."""

PATIENCE = 20.0
"""Seconds to wait for another process that writes."""

OLD = 30 * 86400.0
"""Seconds after which the results of another Lumi are removed: no one will ask for them."""

_SCHEMA = """
CREATE TABLE results (
    key TEXT PRIMARY KEY,
    machine TEXT NOT NULL,
    region TEXT NOT NULL,
    mode TEXT NOT NULL,
    seconds REAL NOT NULL,
    spent REAL NOT NULL,
    made REAL NOT NULL,
    lumi TEXT NOT NULL,
    digest TEXT NOT NULL,
    content BLOB NOT NULL
) WITHOUT ROWID
"""

_COLUMNS = "key, machine, region, mode, seconds, spent, made, lumi, digest, content"

_INSERT = f"INSERT OR REPLACE INTO results ({_COLUMNS}) VALUES ({', '.join('?' * 10)})"


class Entry(NamedTuple):
    """A line of the database without its content.

    `seconds` are those of the kernels, by the model or as measured, `spent` those of the search, `made` those
    since 1970 when it ended.
    """

    machine: str
    region: str
    mode: str
    seconds: float
    spent: float
    made: float


@dataclass(slots=True)
class Database:
    """The results in a file, which is made when the first one is kept."""

    path: Path
    troubles: list[str] = field(default_factory=list)
    is_usable: bool = True

    def find(self, key: str, region: Region) -> Kept | None:
        """The result of a search, checked; None where there is none that can be used."""
        if not self.is_usable or not self.path.exists():
            return None
        row = None
        with self._guarded(), self._open() as rows:
            row = rows.execute("SELECT digest, content FROM results WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        try:
            digest, content = row
            return _read(digest, content, region)
        except LumiError as error:
            self.drop(key, region.scope, error.message)
            return None

    def keep(self, key: str, name: str, machine: str, kept: Kept, spent: float) -> None:
        """Keep the result of a search that took so many seconds, in the place of an older one.

        `name` is what readers call it.
        """
        if not self.is_usable:
            return
        story = kept.explanation
        content = zlib.compress(json.dumps(encode(kept), separators=(",", ":")).encode(), 6)
        seconds = story.modelled if story.measured is None else story.measured
        now, lumi = time.time(), fingerprint()
        row = (key, machine, name, story.mode, seconds, spent, now, lumi, _digest(content), content)
        with self._guarded(), self._open() as rows:
            rows.execute("DELETE FROM results WHERE lumi != ? AND made < ?", (lumi, now - OLD))
            rows.execute(_INSERT, row)

    def drop(self, key: str, scope: str, reason: str) -> None:
        """Remove an entry that must not be used, and say why."""
        where = f"the tuning database had a wrong result for {scope or '(all)'}"
        self.troubles.append(f"{where}, which was searched again: {reason}")
        with self._guarded(), self._open() as rows:
            rows.execute("DELETE FROM results WHERE key = ?", (key,))

    def entries(self) -> list[Entry]:
        """All entries, the newest first.  Raises `LumiError` where the file cannot be read."""
        if not self.path.exists():
            return []
        with _told(self.path), self._open() as rows:
            found = rows.execute(
                "SELECT machine, region, mode, seconds, spent, made FROM results ORDER BY made DESC"
            )
            return [Entry(*row) for row in found]

    def export(self, target: Path) -> int:
        """Copy all entries to a new file; how many there are.  Raises `LumiError` where that cannot be."""
        if target.exists():
            raise LumiError("file error", f"{target} is there already", hint="name a new file, or remove it")
        other = Database(target)
        with _told(target), self._open() as rows, other._open() as others:
            return _copy(rows, others)

    def take(self, source: Path) -> int:
        """Copy all entries of another file into this one; how many.  Raises `LumiError` where it is none.

        Each is checked when it is used; those of other machines and of another Lumi never are.
        """
        if not source.exists():
            raise LumiError("file error", f"there is no {source}")
        if self.path.exists() and source.samefile(self.path):
            raise LumiError("file error", f"{source} is the tuning database itself", hint="name another file")
        other = Database(source)
        with _told(source), other._open() as others, self._open() as rows:
            return _copy(others, rows)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection within one transaction."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self.path, timeout=PATIENCE, isolation_level="IMMEDIATE")) as rows, rows:
            (version,) = rows.execute("PRAGMA user_version").fetchone()
            if version > FORMAT:
                raise sqlite3.DatabaseError(f"it has format {version}, this Lumi reads {FORMAT}")
            if version < FORMAT:
                rows.execute("DROP TABLE IF EXISTS results")
                rows.execute(_SCHEMA)
                rows.execute(f"PRAGMA user_version = {FORMAT}")
            yield rows

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Do without the database from the first time on that it cannot be used."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            self.is_usable = False
            self.troubles.append(f"the tuning database {self.path} was left out: {error}")


def _copy(source: sqlite3.Connection, target: sqlite3.Connection) -> int:
    every = source.execute(f"SELECT {_COLUMNS} FROM results").fetchall()
    target.executemany(_INSERT, every)
    return len(every)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read(digest: str, content: bytes, region: Region) -> Kept:
    """An entry's content.  Raises `LumiError` where it is damaged or does not suit the region."""
    if _digest(content) != digest:
        raise LumiError("damaged data", "its content is not what was kept")
    try:
        value = json.loads(zlib.decompress(content))
    except (zlib.error, ValueError) as error:
        raise LumiError("damaged data", str(error)) from None
    kept = decode(Kept, value)
    kept.check(region)
    return kept


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Tell of a file that cannot be read or written as any other mistake is told."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        message = f"cannot use the tuning database {path}: {error}"
        raise LumiError("file error", message, hint="name another file, one that lumi tune made") from None
