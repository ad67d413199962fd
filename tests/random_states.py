"""Random models of states as text: read before and after they are set, set from each other, returned.

Sizes are small and equal, so that a value in the wrong buffer has the right shape.
"""

from __future__ import annotations

import random

MODEL = """(defdim n :min 1 :max 4 :hint {hint})
(defdim past :min 0 :max 8 :hint 2)
(defmodel states [(x f32 [12]) (y f32 [12]) (z f32 [n])]
  "Random states."
  (let [w (param "w" [12])
        {lines}]
    (outputs {outputs} :last (+ past (dim z 0)))))
"""
STATES = "abcd"


class Writer:
    """Writes one model of so many steps; `text` is all of it."""

    def __init__(self, seed: int, steps: int) -> None:
        self.rng = random.Random(seed)
        self.known = ["x", "y", "w"]
        self.part = ["z"]
        self.lines = [f'{s} (state "{s}" [12])' for s in STATES[: self.rng.randint(1, 4)]]
        self.states = [line[0] for line in self.lines]
        self.count = 0
        for _ in range(steps):
            self.rng.choice([self.value, self.value, self.value, self.set, self.old, self.piece])()
        outputs = [*self.rng.sample(self.states, 1), *self.rng.sample(self.known, 2), *self.part[-1:]]
        text = " ".join(f":o{k} {name}" for k, name in enumerate(outputs))
        self.text = MODEL.format(
            hint=self.rng.choice(["2", "[1 3]"]), lines="\n        ".join(self.lines), outputs=text
        )

    def pick(self) -> str:
        """A whole value or what a state holds now."""
        return self.rng.choice([*self.known[-3:], *self.known, *self.states, *self.states])

    def let(self, text: str, kind: list[str]) -> None:
        """Name a value."""
        name = f"v{self.count}"
        self.count += 1
        self.lines.append(f"{name} {text}")
        kind.append(name)

    def value(self) -> None:
        """Something computed from whole values, half of it reading other elements than it writes."""
        a, b = self.pick(), self.pick()
        self.let(
            self.rng.choice(
                [
                    f"(+ (* 0.5 {a}) {b})",
                    f"(tanh {a})",
                    f"(flip {a} :axis 0)",
                    f"(roll {a} 1 :axis 0)",
                    f"(* 0.3 (cumsum {a} :axis 0))",
                    f"(- {a} (mean {b} :axis 0))",
                    f"(* 0.5 (+ {a} (flip {b} :axis 0)))",
                ]
            ),
            self.known,
        )

    def piece(self) -> None:
        """A part of a value, as long as a call is."""
        self.let(f"(+ z (slice {self.pick()} :axis 0 :start past :stop (+ past n)))", self.part)

    def old(self) -> None:
        """A name for what a state holds now, whatever it is set to later."""
        self.let(self.rng.choice(self.states), self.known)

    def set(self) -> None:
        """Set a state: to a value, to what another holds, or a part of it."""
        state, part = self.rng.choice(self.states), self.rng.choice(self.part)
        made = self.rng.choice(
            [
                self.pick(),
                f"(+ {state} {self.pick()})",
                f"(flip {state} :axis 0)",
                f"(update-slice {state} {part} :axis 0 :start past)",
                f"(update-slice {state} {part} :axis 0 :start past)",
                f"(update-slice {self.pick()} {part} :axis 0 :start 3)",
            ]
        )
        self.lines.append(f"_ (set! {state} {made})")
