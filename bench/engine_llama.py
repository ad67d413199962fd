"""llama.cpp on a GGUF file as it is.  Usage: GGUF THREADS."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from contest import Step, serve


def load() -> tuple[str, Step]:
    import llama_cpp
    import numpy as np

    threads = int(sys.argv[2])
    model = llama_cpp.Llama(
        sys.argv[1], n_ctx=2048, n_batch=512, n_threads=threads, n_threads_batch=threads, verbose=False
    )

    def step(tokens: Sequence[int], past: int) -> int:
        if past == 0:
            model.reset()
        model.eval(list(tokens))
        logits = model._ctx.get_logits_ith(-1)
        return int(np.ctypeslib.as_array(logits, shape=(model.n_vocab(),)).argmax())

    return f"llama-cpp-python {llama_cpp.__version__}", step


if __name__ == "__main__":
    serve(load)
