"""What rank 0 does with the engines before and after the weights travel."""

from __future__ import annotations

from miles.backends.sglang_utils.sglang_engine import EngineError, SGLangEngine


def pause_engines(engines: list[SGLangEngine], mode: str) -> None:
    """Stop generation everywhere, then wait until nothing runs.

    Args:
        engines: All engines.
        mode: `--pause-generation-mode`.

    Raises:
        EngineError: An engine refused or is gone.
        TimeoutError: Requests did not end.
    """
    for engine in engines:
        engine.pause_generation(mode)
    for engine in engines:
        engine.flush_cache()


def finish_engines(engines: list[SGLangEngine], weight_version: int) -> None:
    """End the update: check that every engine has the new version, and let it generate.

    Raises:
        EngineError: An engine refused, is gone, or missed this version.
    """
    for engine in engines:
        found = engine.get_weight_version()
        if found != weight_version:
            raise EngineError(
                f"engine {engine.index} at {engine.address} has weights of version {found} "
                f"after version {weight_version} was sent"
            )
    for engine in engines:
        engine.continue_generation()
