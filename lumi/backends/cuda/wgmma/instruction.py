"""The CUDA function around an instruction `wgmma` of 64 rows, 16 summed positions, and some columns."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

HIGH = (1024 >> 4) | (1 << 30)
"""The upper half of every description: eight lines are 1024 bytes, pieces change places over 128."""

ROWS = 64
"""Rows of an instruction."""

WIDEST = 256
"""Columns of an instruction at most."""

GRAIN = 8
"""Columns come in multiples of this."""


@dataclass(frozen=True, slots=True, order=True)
class Instruction:
    """An instruction that adds to, or begins, `columns` columns of a result.

    Factor a is `computed` and in registers, or in shared memory, where lines of either factor lie along
    the sum or, with `a_across` and `b_across`, across it.
    """

    columns: int
    bf16: bool
    computed: bool
    a_across: bool
    b_across: bool

    @property
    def name(self) -> str:
        """Of the function `void name(float (&v)[2][columns / 4], a, u32 b, int keep)`."""
        a = "r" if self.computed else "t" if self.a_across else "s"
        return f"wgmma_{'bf16' if self.bf16 else 'f16'}_{a}{'t' if self.b_across else 's'}_{self.columns}"

    def text(self) -> str:
        """The function; with `keep` 0 the result starts at 0."""
        count = self.columns // 2
        order = [f"v[{e >> 1}][{2 * t + (e & 1)}]" for t in range(self.columns // 8) for e in range(4)]
        results = ", ".join(f"%{n}" for n in range(count))
        outputs = ", ".join(f'"+f"({v})' for v in order)
        kind = "bf16" if self.bf16 else "f16"
        head = f"wgmma.mma_async.sync.aligned.m64n{self.columns}k16.f32.{kind}.{kind} {{{results}}}"
        if self.computed:
            factor = "{" + ", ".join(f"%{count + n}" for n in range(4)) + "}"
            inputs = ", ".join(f'"r"(a[{n}])' for n in range(4))
            parameter, described, place = "const u32 (&a)[4]", "", count + 4
            ends = f"1, 1, {int(self.b_across)}"
        else:
            factor, inputs = "x", '"r"(a)'
            parameter, place = "u32 a", count + 1
            described = f"mov.b64 x, {{%{count}, {HIGH}}}; "
            ends = f"1, 1, {int(self.a_across)}, {int(self.b_across)}"
        body = (
            f"{{.reg .pred p; .reg .b64 x, y; setp.ne.b32 p, %{place + 1}, 0; {described}"
            f"mov.b64 y, {{%{place}, {HIGH}}}; {head}, {factor}, y, p, {ends};}}"
        )
        return (
            f"INLINE void {self.name}(float (&v)[2][{self.columns // 4}], {parameter}, u32 b, int keep) {{\n"
            f'  asm volatile("{body}"\n'
            f"               : {outputs}\n"
            f'               : {inputs}, "r"(b), "r"(keep));\n}}'
        )


_CALL = re.compile(r"\bwgmma_(bf16|f16)_([rst])([st])_(\d+)\(")


def called(texts: Iterable[str]) -> list[str]:
    """The functions of all instructions that texts call."""
    found = {m.groups() for text in texts for m in _CALL.finditer(text)}
    made = (Instruction(int(n), kind == "bf16", a == "r", a == "t", b == "t") for kind, a, b, n in found)
    return [instruction.text() for instruction in sorted(made)]
