from __future__ import annotations

import json
from dataclasses import replace

from lumi.compiler import Options, Stage, compile_model
from lumi.errors import Source
from lumi.llir.json import decode, encode
from lumi.search.origin import Origin
from lumi.search.settings import Mode, Settings

MODEL = """
(defdim n :min 0 :max 4096 :hint [64 2048])
(defmodel weighed [(x f32 [n 32]) (w f32 [32])]
  "Rows weighed by the softmax of their products."
  (einsum (softmax (einsum x [n d] w [d] -> [n])) [n] x [n d] -> [d]))
"""


def test_an_origin_says_everything_again_when_it_is_read() -> None:
    options = Options(target="cuda", settings=Settings(mode=Mode.MODEL, evaluations=40, seed=3))
    work = compile_model(Source("weighed.lumi", MODEL), options, Stage.KERNELS)
    for key, (_, region) in work.distinct().items():
        found, settings = work.found[key], work.settings(key)
        origin = Origin.of(region, settings, found)
        again = decode(Origin, json.loads(json.dumps(encode(origin))))
        assert again == origin
        assert replace(again.region, key=region.key) == region
        assert again.goal == found.goal
        assert again.settings == settings and settings.hints and settings.ranges
        assert len(again.stored) == len(found.graph.steps)
