"""Random models as text: layers one behind another, of sizes that are apt to be mistaken.

Only `crisp` values, which no rounding has touched, are compared or searched: others may tie.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

MOST = 3000  # elements of a tensor
LONGEST = 6  # the greatest value of the dim `n`

MODEL = """(defdim n :min 1 :max {longest} :hint {hint})
(defdim past :min 0 :max 4 :hint 2)
(deflayer cached [x room]
  "The sum of all rows up to now, those of x the last."
  (let [s (state "s" (replace (shape x) 0 room))]
    (set! s (update-slice s x :axis 0 :start past))
    (reduce-sum (slice s :axis 0 :stop (+ past (dim x 0))) :axis 0)))
(deflayer part [x n width]
  "x[i w] → n heads [1 n i width]."
  (rearrange (linear x (* n width)) [i (h d)] -> [1 h i d] :h n))
(deflayer attention [x width heads group :causal true :window nil]
  "x[i w] → [1 heads·group i width]."
  (sdpa (part x (* heads group) width :name "q") (part x heads width :name "k")
        (part x heads width :name "v") :causal causal :window window))
(defmodel random [{inputs}]
  "A random model."
  (let [{lines}]
    (outputs {outputs})))
"""

LAYERS = [f"({name} {{0}})" for name in ("gelu-tanh", "silu", "tanh", "softplus")]
LAYERS += [f"({name} {{0}} :axis {{axis}})" for name in ("softmax", "log-softmax", "standardize", "cumsum")]
LAYERS += [f"({name} :name {{name}})" for name in ("layer-norm {0}", "rms-norm {0}", "group-norm {0} 1")]

Shape = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A value and its name in the text."""

    name: str
    dtype: str
    shape: Shape
    crisp: bool = False

    def without(self, *axes: int) -> Shape:
        return tuple(z for k, z in enumerate(self.shape) if k not in axes)

    def resized(self, axis: int, *sizes: int | str) -> Shape:
        return (*self.shape[:axis], *sizes, *self.shape[axis + 1 :])


def count(shape: Iterable[int | str]) -> int:
    return math.prod(LONGEST if isinstance(z, str) else z for z in shape)


def spell(words: Iterable[object]) -> str:
    return f"[{' '.join(map(str, words))}]"


class Writer:
    """Writes one model of `steps` values; `text` is all of it."""

    def __init__(self, seed: int, steps: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        sizes: list[int | str] = [1, 1, 2, 3, 4, 5, 8, 12, 17, 32]
        sizes += ["n"] * self.pick([0, 0, 4])
        shape = tuple(self.pick(sizes) for _ in range(self.pick([2, 2, 3, 4])))
        shape = shape if count(shape) < MOST else shape[:2]
        self.known = [Tensor(name, "f32", shape, True) for name in "xy"]
        self.known.append(Tensor("ids", "i32", (self.pick(sizes),), True))
        inputs = " ".join(f"({t.name} {t.dtype} {spell(t.shape)})" for t in self.known)
        while len(self.lines) < steps:
            self.pick(STEPS)(self)
        used = set(re.findall(r"\w+", " ".join(line.split(" ", 1)[1] for line in self.lines)))
        made = [t.name for t in self.known[3:]]
        outputs = " ".join(f":{name} {name}" for name in sorted({*made} - used | {self.pick(made)}))
        hint, lines = self.pick(["3", "[1 3]"]), "\n        ".join(self.lines)
        self.text = MODEL.format(longest=LONGEST, hint=hint, inputs=inputs, lines=lines, outputs=outputs)

    def pick(self, options: Iterable[Any]) -> Any:
        return self.rng.choice(list(options))

    def some(self, wanted: Callable[[Tensor], bool] = lambda _: True) -> Tensor:
        """A tensor, more often than not one of the last; `x` if none is as wanted."""
        found = [t for t in self.known if wanted(t)] or self.known[:1]
        return self.pick(found[-3:] if self.rng.random() < 0.7 else found)

    def real(self, least: int = 1) -> Tensor:
        """Of floats, and of so many axes."""
        return self.some(lambda t: t.dtype == "f32" and len(t.shape) >= least)

    def let(self, text: str, dtype: str, shape: Iterable[int | str], crisp: bool = False) -> None:
        """Name a value, unless it would be large or of many axes: then there is none."""
        made = Tensor(f"v{len(self.lines)}", dtype, tuple(shape), crisp)
        if len(made.shape) <= 5 and count(made.shape) <= MOST:
            self.lines.append(f"{made.name} {text}")
            self.known.append(made)

    # -- what a step may be

    def layer(self) -> None:
        x, text, axis = self.real(2), self.pick(LAYERS), self.rng.randrange(2)
        if ":name" not in text or "n" not in x.shape[1:]:
            self.let(text.format(x.name, axis=axis, name=f'"p{len(self.lines)}"'), "f32", x.shape)

    def linear(self) -> None:
        x, out = self.real(), self.pick([1, 2, 3, 5, 8, 16, 20, 33])
        if x.shape[-1] != "n":
            text = f'(linear {x.name} {out} :bias {self.pick(["true", "false"])} :name "p{len(self.lines)}")'
            self.let(text, "f32", (*x.shape[:-1], out))

    def binary(self) -> None:
        x = self.real(0)

        def fits(t: Tensor) -> bool:
            pairs = zip(t.shape[::-1], x.shape[::-1], strict=False)
            return t.dtype == "f32" and len(t.shape) <= len(x.shape) and all(a in (1, b) for a, b in pairs)

        kind = self.pick(["+", "+", "*", "-", "max", "min"])
        self.let(f"({kind} {x.name} {self.pick(filter(fits, self.known)).name})", "f32", x.shape)

    def reduce(self) -> None:
        x, kind = self.real(), self.pick(["reduce-sum", "reduce-max", "reduce-min", "mean", "variance"])
        axes, keep = (
            self.rng.sample(range(len(x.shape)), self.rng.randint(1, len(x.shape))),
            self.pick([0, 1]),
        )
        shape = [1 if k in axes else z for k, z in enumerate(x.shape)] if keep else x.without(*axes)
        text = f"({kind} {x.name} :axis {spell(sorted(axes))} :keepdims {['false', 'true'][keep]})"
        self.let(text, "f32", shape, x.crisp and kind in ("reduce-max", "reduce-min"))

    def move(self) -> None:
        x = self.some(lambda t: len(t.shape) > 0)
        axis, order = self.rng.randrange(len(x.shape)), self.rng.sample(range(len(x.shape)), len(x.shape))
        name, size, at = x.name, x.shape[axis], f":axis {axis}"
        made = [
            (f"permute {name} {spell(order)}", [x.shape[k] for k in order]),
            (f"flip {name} {at}", x.shape),
            (f"expand {name} {spell((3, *x.shape))}", (3, *x.shape)),
            (f"slice {name} {at} :start (- (dim {name} {axis}) 1)", x.resized(axis, 1)),
        ]
        if size != "n":
            low, parts = self.rng.randrange(size), self.pick(f for f in range(1, size + 1) if size % f == 0)
            split = x.resized(axis, parts, size // parts)
            made += [
                (f"slice {name} {at} :start {low}", x.resized(axis, size - low)),
                (f"slice {name} {at} :step 2", x.resized(axis, (size + 1) // 2)),
                (f"pad-axis {name} {at} :low 1 :high 2 :fill 1", x.resized(axis, size + 3)),
                (f"roll {name} 1 {at}", x.shape),
                (f"concat [{name} {name}] {at}", x.resized(axis, 2 * size)),
                (f"reshape {name} {spell(split)}", split),
            ]
        text, shape = self.pick(made)
        self.let(f"({text})", x.dtype, shape, x.crisp)

    def product(self) -> None:
        """Of two tensors over any of their axes; those of one size may be one."""
        x, y = self.real(), self.pick(t for t in self.known if t.dtype == "f32")
        sizes = dict(zip("abcde", x.shape, strict=False))
        theirs: list[str] = []
        for letter, size in zip("ghijk", y.shape, strict=False):
            same = [a for a in sizes if sizes[a] == size and a not in theirs] + [letter]
            theirs.append(same[0] if self.rng.random() < 0.7 else letter)
            sizes[theirs[-1]] = size
        kept = [a for a in sizes if self.rng.random() < 0.6]
        if count(sizes.values()) < 20 * MOST:
            text = f"(einsum {x.name} {spell(list(sizes)[: len(x.shape)])} {y.name} {spell(theirs)}"
            scale = 1 / math.sqrt(count(sizes[a] for a in sizes if a not in kept))
            self.let(f"(* {text} -> {spell(kept)}) {scale:.3f})", "f32", [sizes[a] for a in kept])

    def gather(self) -> None:
        index, x = self.some(lambda t: t.dtype == "i32"), self.real()
        axis = self.rng.randrange(len(x.shape))
        if index.dtype == "i32" and x.shape[axis] != "n":
            text = f"(take {x.name} (mod {index.name} {x.shape[axis]}) :axis {axis})"
            self.let(text, "f32", x.resized(axis, *index.shape), x.crisp)

    def search(self) -> None:
        x = self.some(lambda t: t.crisp and len(t.shape) > 0)
        axis = self.rng.randrange(len(x.shape))
        self.let(f"({self.pick(['argmax', 'argmin'])} {x.name} :axis {axis})", "i32", x.without(axis), True)

    def choose(self) -> None:
        x = self.some(lambda t: t.crisp)
        y = self.some(lambda t: t.shape == x.shape)
        y = y if y.shape == x.shape else x
        self.let(f"(where (< {x.name} 1) (cast {y.name} f32) -1)", "f32", x.shape, y.crisp)

    def layer_of_states(self) -> None:
        x = self.real()
        if "n" not in x.shape[1:]:
            text = f'(cached {x.name} {4 + count(x.shape[:1])} :name "p{len(self.lines)}")'
            self.let(text, "f32", x.shape[1:])

    def attention(self) -> None:
        x = self.some(lambda t: t.dtype == "f32" and len(t.shape) == 2 and t.shape[-1] != "n")
        if len(x.shape) == 2 and x.shape[-1] != "n":
            width, heads, group = self.pick([1, 2, 5]), self.pick([1, 2, 4]), self.pick([1, 1, 2])
            rest = self.pick([":causal false", ":causal true", ":causal true :window 2"])
            text = f'(attention {x.name} {width} {heads} {group} {rest} :name "p{len(self.lines)}")'
            self.let(text, "f32", (1, heads * group, x.shape[0], width))


W = Writer
STEPS = [W.layer, W.layer, W.linear, W.binary, W.reduce, W.product] * 2
STEPS += [W.move] * 3 + [W.gather, W.search, W.choose, W.layer_of_states, W.attention]
