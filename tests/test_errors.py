from __future__ import annotations

from collections.abc import Callable

from lumi.errors import LumiError, Source, Span

TEXT = """(defn f [x]
  (matmul x w))
(f 1)
"""


def test_error_shows_place_caret_hint_and_calls(golden: Callable[..., None]) -> None:
    source = Source("model.lumi", TEXT)
    inner = Span(source, TEXT.index("w)"), TEXT.index("w)") + 1)
    outer = Span(source, TEXT.index("(f 1)"), TEXT.index("(f 1)") + 5)
    error = LumiError("name error", "`w` is not defined", inner, "f32 [2 3]", "did you mean `x`?")
    golden(error.called("(f 1)", outer).render())


def test_span_knows_its_line_and_column() -> None:
    source = Source("a", "ab\ncd")
    assert [(Span(source, i, i + 1).line, Span(source, i, i + 1).column) for i in (0, 1, 3, 4)] == [
        (1, 1),
        (1, 2),
        (2, 1),
        (2, 2),
    ]
    assert Span(source, 3, 5).text == "cd"


def test_first_place_wins() -> None:
    source = Source("a", "ab")
    error = LumiError("shape error", "no").at(Span(source, 1, 2)).at(Span(source, 0, 1))
    assert str(error.span) == "a:1:2"
