"""What can be shown: each scenario is a command line of `miles.train` and what must come of it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from watchdog.demo.outcome import Expectation, Fails, Finishes, Hangs

# One pipeline stage a rank and adapters in one layer only: one rank alone reads what cannot
# be read, the others wait for it.
_NATIVE_LORA = (
    "--custom-model-provider-path miles.plugins.native_lora.model_provider "
    "--colocate --offload-train --disable-weights-backuper"
)

# Long enough for every scenario that is ended from outside.
_ENDLESS = "--lora-rank 8 --colocate --offload-train --num-rollout 100000"


@dataclass(frozen=True)
class Disturbance:
    """A signal to one process of the job while it trains.

    Attributes:
        after: The signal is sent when the job prints a line that begins with this.
        signum: The signal.
        command_words: What stands in the command line of the process.
        environ: Variables that the process has.
    """

    after: str
    signum: signal.Signals
    command_words: str
    environ: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Scenario:
    """One thing to show.

    Attributes:
        title: What happens, one sentence for `--list`.
        flags: Flags of `python -m miles.train` beyond the number of ranks, by that number.
        expectation: What must come of it, by the number of ranks.
        disturbance: What is done to the job, `None` for nothing.
    """

    title: str
    flags: Callable[[int], str]
    expectation: Callable[[int], Expectation]
    disturbance: Disturbance | None = None


def hanging_rank(num_ranks: int) -> int:
    """The rank that holds the adapters: neither the first, which is special, nor the last."""
    return num_ranks // 2


def _native_lora(num_ranks: int) -> str:
    rank = hanging_rank(num_ranks)
    targets = f"layers.{rank}.mlp.linear_fc1,layers.{rank}.mlp.linear_fc2"
    stages = f"--pipeline-model-parallel-size {num_ranks} --num-layers {num_ranks}"
    return f"{_NATIVE_LORA} {stages} --target-modules {targets}"


SCENARIOS = {
    "native-lora": Scenario(
        "A LoRA that the flag check cannot see: one rank reads released memory, and all hang.",
        lambda ranks: f"{_native_lora(ranks)} --no-weight-residency-audit",
        lambda ranks: Hangs("missing_backup", "confirmed", (hanging_rank(ranks),)),
    ),
    "audit": Scenario(
        "The same run with the residency audit, which names the tensors and fails at once.",
        _native_lora,
        lambda _: Fails("WeightsUnavailableError"),
    ),
    "fail-fast": Scenario(
        "The flags that the validation knows: refused before anything is started.",
        lambda _: "--lora-rank 8 --colocate --offload-train --disable-weights-backuper",
        lambda _: Fails(
            "--disable-weights-backuper is not supported with LoRA + --colocate + --offload-train"
        ),
    ),
    "stopped-rank": Scenario(
        "Rank 1 is stopped by SIGSTOP, and cannot say so itself: the others wait for it.",
        lambda _: _ENDLESS,
        lambda _: Hangs("other", "confirmed", (1,), rule="member-stopped"),
        Disturbance("rollout 1 ", signal.SIGSTOP, "miles.train_rank", {"RANK": "1"}),
    ),
    "healthy": Scenario(
        "LoRA with the backuper on: trains to the end, and the watchdog stays silent.",
        lambda _: "--lora-rank 8 --colocate --offload-train --num-rollout 3",
        lambda _: Finishes(),
    ),
}
"""By name; the first is what `demo` shows by default."""
