"""Regions as text: an s-expression that the reader takes back.

```lisp
(region "llama/layers.0"
  (buffers "x" "w" "%7")
  (axes [a seq] [b 64] [c 640])
  (accesses
    [r0 (B0 [a c] [seq 640] f32)]
    [r1 (B1 [b c] [64 640] f32)])
  (let [%0 (mul r0 r1)])
  (stores
    [(B2 [a b] [seq 64] f32) (sum [c] %0)])
  (notes))
```
An access reads `(buffer [index …] [shape …] dtype)`, with `:clamp` when its map may leave the buffer.  In
an index an axis is its name, `(dim e)` a dim expression, `(data k)` the k-th field given as an index, and
`(div i n)`, `(mod i n)` are a quotient and a remainder.  A term is an access by name, `(gather r index)`,
a number, `$past` for a dim, `(position a)`, `(select c a b)`, an operator with its operands, or a reduction
`(sum [axes] term)`.  What is used more than once is bound by `let`.

`parse(show(r))` is `r` with its key made anew, and so is `r` itself when the key is `show_body(r)`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lumi.dtype import I32, DType
from lumi.errors import Source
from lumi.field.access import Access
from lumi.field.axis import AxisTable
from lumi.field.index import Data, Index, Look, Part, Quot, Rem, Sym, index
from lumi.field.region import Note, Region, Store
from lumi.field.term import Bin, Const, Gat, In, Pos, Red, Sel, Term, Un, children
from lumi.field.traverse import postorder
from lumi.syntax import expect
from lumi.syntax.form import Form, Int, Keyword, List, Symbol, Vector
from lumi.syntax.printer import show_string
from lumi.syntax.reader import read_one

DEEP = 12
"""Nesting at which a term is bound though it is used once."""

# -- printing


def show(region: Region) -> str:
    """The region as text."""
    buffers = " ".join(["(buffers", *map(show_string, region.buffers)]) + ")"
    notes = [f"[{show_string(n.what)} {show_string(n.node)} {show_string(n.why)}]" for n in region.notes]
    parts = [buffers, *_body(region), _section("notes", notes)]
    return "\n  ".join([f"(region {show_string(region.scope)}", *parts]) + ")"


def show_body(region: Region) -> str:
    """What equal regions have in common: everything but the scope, the buffers' names and the notes."""
    return "\n".join(_body(region))


def _body(region: Region) -> Iterator[str]:
    axes = " ".join(f"[{a.name} {a.extent}]" for a in region.axes)
    yield f"(axes {axes})" if axes else "(axes)"
    yield _section("accesses", [f"[{k} {show_access(a)}]" for k, a in region.accesses.items()])
    shown = Shown(region.accesses, region.axes)
    bindings, roots = shown.terms([s.term for s in region.stores])
    yield _section("let", [f"[{name} {text}]" for name, text in bindings])
    stores = [f"[{show_access(s.access)} {r}]" for s, r in zip(region.stores, roots, strict=True)]
    yield _section("stores", stores)
    if region.produced != _produced(region.stores):
        yield _section("produced", [f"[{name} {k}]" for name, k in region.produced.items()])


def _section(head: str, lines: Sequence[str]) -> str:
    return "\n    ".join([f"({head}", *lines]) + ")"


def show_access(access: Access) -> str:
    """`(B0 [i (+ j 1)] [seq 8] f32 :clamp)`."""
    at = " ".join(map(show_index, access.index))
    shape = " ".join(map(str, access.shape))
    return f"({access.buffer} [{at}] [{shape}] {access.dtype}{' :clamp' if access.clamp else ''})"


def show_index(at: Index) -> str:
    """`(+ i (* 2 j) 1)`."""
    parts = [_part(p) if c == 1 else f"(* {c} {_part(p)})" for p, c in at.terms]
    if at.offset or not parts:
        parts.append(str(at.offset))
    return parts[0] if len(parts) == 1 else f"(+ {' '.join(parts)})"


def _part(part: Part) -> str:
    match part:
        case str():
            return part
        case Sym(extent):
            return f"(dim {extent})"
        case Data(number):
            return f"(data {number})"
        case Quot(inner, divisor):
            return f"(div {show_index(inner)} {divisor})"
        case Rem(inner, divisor):
            return f"(mod {show_index(inner)} {divisor})"
        case Look(buffer, index, shape, size):
            at, sizes = (" ".join(map(str, found)) for found in (map(show_index, index), shape))
            return f"(look {buffer} [{at}] [{sizes}] {size})"


@dataclass(slots=True)
class Shown:
    """Prints terms over accesses and axes, equal ones once."""

    accesses: Mapping[str, Access]
    axes: AxisTable

    def terms(self, roots: Sequence[Term]) -> tuple[list[tuple[str, str]], list[str]]:
        """Bindings of what is used more than once, in order, and the text of each root."""
        numbers, texts, inner = self._distinct(roots)
        uses = Counter(k for below in inner for k in below)
        uses.update(numbers[id(r)] for r in roots)
        depths = _depths(inner, [k for k, n in uses.items() if n > 1])
        bound = [k for k in range(len(texts)) if inner[k] and (uses[k] > 1 or depths[k] == DEEP)]
        names = {k: f"%{n}" for n, k in enumerate(bound)}
        written: list[str] = []
        bindings: list[tuple[str, str]] = []
        for k, text in enumerate(texts):
            full = text.format(*(written[i] for i in inner[k]))
            written.append(names.get(k, full))
            if k in names:
                bindings.append((names[k], full))
        return bindings, [written[numbers[id(r)]] for r in roots]

    def _distinct(self, roots: Sequence[Term]) -> tuple[dict[int, int], list[str], list[tuple[int, ...]]]:
        """The number of each term, and for each number its text around the numbers inside it."""
        known: dict[tuple[str, tuple[int, ...]], int] = {}
        numbers: dict[int, int] = {}
        for term in postorder(roots):
            key = self._text(term), tuple(numbers[id(c)] for c in children(term))
            numbers[id(term)] = known.setdefault(key, len(known))
        return numbers, [text for text, _ in known], [inner for _, inner in known]

    def _text(self, term: Term) -> str:
        match term:
            case In(name, axes, dtype):
                return name if self._derived(name, axes, dtype) else f"(read {name} {_names(axes)} {dtype})"
            case Gat(name, axes, dtype, _):
                if self._derived(name, axes, dtype):
                    return f"(gather {name} {{}})"
                return f"(gather {name} {_names(axes)} {dtype} {{}})"
            case Const(value):
                return repr(float(value))
            case Pos(axis):
                return f"(position {axis})"
            case Un(op, _):
                return f"({op} {{}})"
            case Bin(op, _, _):
                return f"({op} {{}} {{}})"
            case Sel():
                return "(select {} {} {})"
            case Red(op, axes, _):
                return f"({op} {_names(axes)} {{}})"

    def _derived(self, name: str, axes: tuple[str, ...], dtype: DType) -> bool:
        """Whether a read is over the axes of its access and of its type."""
        return (axes, dtype) == derived(name, self.accesses, self.axes)


def _depths(inner: Sequence[tuple[int, ...]], shared: Sequence[int]) -> list[int]:
    """How deep each term's text nests, counted anew at every term that is bound."""
    bound = set(shared)
    depths: list[int] = []
    for below in inner:
        depths.append(
            1 + max((0 if k in bound or depths[k] == DEEP else depths[k] for k in below), default=-1)
        )
    return depths


def derived(
    name: str, accesses: Mapping[str, Access], axes: AxisTable
) -> tuple[tuple[str, ...], DType | None]:
    """The axes and the dtype of a read through an access, or of a dim; no dtype when there is none."""
    if name.startswith("$"):
        return (), I32
    access = accesses.get(name)
    if access is None:
        return (), None
    found = access.axes()
    return tuple(a.name for a in axes if a.name in found), access.dtype


def _names(axes: Sequence[str]) -> str:
    return f"[{' '.join(axes)}]"


def _produced(stores: Sequence[Store]) -> dict[str, int]:
    return {s.access.buffer: k for k, s in enumerate(stores)}


# -- reading


def parse(source: Source) -> Region:
    """The region of a text that `show` wrote.  Raises `LumiError` where it is malformed."""
    form = read_one(source)
    _, scope, *sections = expect.call(form, "region")
    parts: dict[str, tuple[Form, ...]] = {}
    for section in sections:
        items = expect.call(section)
        parts[expect.symbol(items[0])] = items[1:]
    missing = {"buffers", "axes", "accesses", "let", "stores", "notes"} - parts.keys()
    if missing:
        raise expect.error(form, f"({min(missing)} …) in a region")
    axes = AxisTable()
    for item in parts["axes"]:
        name, size = _pair(item)
        axes.add(expect.symbol(name), expect.extent(size))
    accesses = {expect.symbol(k): parse_access(a, axes) for k, a in map(_pair, parts["accesses"])}
    reader = Reader(accesses, axes)
    for name, value in map(_pair, parts["let"]):
        reader.bound[expect.symbol(name)] = reader.term(value)
    stores = tuple(Store(reader.term(t), parse_access(a, axes)) for a, t in map(_pair, parts["stores"]))
    produced = {expect.symbol(b): expect.integer(k) for b, k in map(_pair, parts.get("produced", ()))}
    notes = tuple(Note(*map(expect.string, expect.vector(n))) for n in parts["notes"])
    buffers = tuple(map(expect.string, parts["buffers"]))
    made = Region(
        expect.string(scope),
        axes,
        accesses,
        stores,
        buffers,
        produced if "produced" in parts else _produced(stores),
        notes,
        "",
    )
    return replace(made, key=show_body(made))


def parse_access(form: Form, axes: AxisTable) -> Access:
    """The access of a form as `show_access` writes it."""
    buffer, at, shape, dtype, *clamp = expect.call(form)
    if clamp not in ([], [Keyword("clamp")]):
        raise expect.error(form, "(buffer [index …] [size …] dtype :clamp)")
    places = tuple(parse_index(i, axes) for i in expect.vector(at))
    return Access(expect.symbol(buffer), places, expect.extents(shape), expect.dtype(dtype), bool(clamp))


def parse_index(form: Form, axes: AxisTable) -> Index:
    """The index of a form as `show_index` writes it."""
    match form:
        case Int(value):
            return Index((), value)
        case Symbol(name) if name in axes:
            return Index(((name, 1),))
        case List((Symbol("dim"), extent)):
            return index([(Sym(expect.extent(extent)), 1)])
        case List((Symbol("data"), Int(number))):
            return Index(((Data(number), 1),))
        case List((Symbol("div"), inner, Int(divisor))):
            return Index(((Quot(parse_index(inner, axes), divisor), 1),))
        case List((Symbol("mod"), inner, Int(divisor))):
            return Index(((Rem(parse_index(inner, axes), divisor), 1),))
        case List((Symbol("look"), Symbol(buffer), Vector(at), sizes, size)):
            place = tuple(parse_index(i, axes) for i in at)
            return index([(Look(buffer, place, expect.extents(sizes), expect.extent(size)), 1)])
        case List((Symbol("*"), Int(factor), inner)):
            return parse_index(inner, axes).scale(factor)
        case List((Symbol("+"), *parts)):
            total = Index()
            for part in parts:
                total = total + parse_index(part, axes)
            return total
        case _:
            raise expect.error(form, "an index")


@dataclass(slots=True)
class Reader:
    """Reads terms over accesses and axes; `bound` are the terms with names."""

    accesses: Mapping[str, Access]
    axes: AxisTable
    bound: dict[str, Term] = field(default_factory=dict)

    def term(self, form: Form) -> Term:
        """The term of a form."""
        match form:
            case Symbol(name) if name in self.bound:
                return self.bound[name]
            case Symbol(name) if name.startswith("$") or name in self.accesses:
                return In(name, *self._derived(form, name))
            case List((Symbol("position"), axis)):
                return Pos(self._axis(axis))
            case List((Symbol("read"), name, axes, dtype)):
                return In(expect.symbol(name), self._axes(axes), expect.dtype(dtype))
            case List((Symbol("gather"), name, at)):
                return Gat(expect.symbol(name), *self._derived(name, expect.symbol(name)), self.term(at))
            case List((Symbol("gather"), name, axes, dtype, at)):
                return Gat(expect.symbol(name), self._axes(axes), expect.dtype(dtype), self.term(at))
            case List((Symbol("select"), c, a, b)):
                return Sel(self.term(c), self.term(a), self.term(b))
            case List((Symbol(op), Vector() as axes, body)):
                return Red(op, self._axes(axes), self.term(body))
            case List((Symbol(op), a)):
                return Un(op, self.term(a))
            case List((Symbol(op), a, b)):
                return Bin(op, self.term(a), self.term(b))
            case _:
                return Const(float(expect.number(form)))

    def _derived(self, form: Form, name: str) -> tuple[tuple[str, ...], DType]:
        axes, dtype = derived(name, self.accesses, self.axes)
        if dtype is None:
            raise expect.error(form, "the name of an access")
        return axes, dtype

    def _axes(self, form: Form) -> tuple[str, ...]:
        return tuple(map(self._axis, expect.vector(form)))

    def _axis(self, form: Form) -> str:
        name = expect.symbol(form)
        if name not in self.axes:
            raise expect.error(form, f"an axis ({' '.join(a.name for a in self.axes)})")
        return name


def _pair(form: Form) -> tuple[Form, Form]:
    items = expect.vector(form)
    if len(items) != 2:
        raise expect.error(form, "[name value]")
    return items[0], items[1]
