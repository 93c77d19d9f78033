"""The weights that an engine serves, and text made from them.

Axes: B sequences, P prompt tokens, R response tokens, V vocabulary.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from miles.models.transformer import Transformer, TransformerConfig
from miles.rollout.generation_gate import GenerationGate, NotServingError
from miles.utils.tensor_bucket import checksum

_ADAPTER = re.compile(r"(?P<module>.+)\.(?P<part>lora_[AB])(\.weight)?")


class EngineModel:
    """A model that starts without weights, as a server's dummy load format does.

    Every name of the model must have arrived before the engine generates. Adapters
    (`<module>.lora_A`, `<module>.lora_B`) may arrive besides, and are added to their
    module's weight.

    Attributes:
        weight_version: The version last sent by the trainer; 0 before the first.
    """

    def __init__(self, config: TransformerConfig) -> None:
        self.weight_version = 0
        self._model = Transformer(config).requires_grad_(False)
        self._expected = dict(self._model.named_parameters())
        self._weights: dict[str, Tensor] = {}
        self._host_copy: dict[str, Tensor] = {}
        self._adapters: dict[str, Tensor] = {}
        self._scaling = 1.0
        self._is_assembled = False
        # Requests come in threads of their own: no weight may change under a forward pass.
        self._lock = threading.Lock()

    def load(self, named_tensors: Iterable[tuple[str, Tensor]]) -> None:
        """Take over tensors of the model and of adapters that the trainer built itself.

        Raises:
            ValueError: A name or shape that this model does not have; names it.
        """
        with self._changing():
            for name, tensor in named_tensors:
                if _ADAPTER.fullmatch(name):
                    self._take_adapter(name, tensor)
                else:
                    self._take_weight(name, tensor)

    def load_adapter(self, named_tensors: Iterable[tuple[str, Tensor]], scaling: float) -> None:
        """Take over tensors of the LoRA adapter; those that do not come stay as they are.

        Args:
            named_tensors: `<module>.lora_A` [rank, in] and `<module>.lora_B` [out, rank].
            scaling: Factor of the product.

        Raises:
            ValueError: A name that no module of this model has; names it.
        """
        with self._changing():
            self._scaling = scaling
            for name, tensor in named_tensors:
                self._take_adapter(name, tensor)

    def release(self, keep_on_host: bool) -> None:
        """Give up the weights, keeping a copy in host memory or nothing at all."""
        with self._changing():
            self._host_copy = dict(self._weights) if keep_on_host else {}
            self._weights = {}

    def restore(self) -> None:
        """Take back what `release` kept."""
        with self._changing():
            self._weights = {**self._host_copy, **self._weights}
            self._host_copy = {}

    def checksums(self) -> dict[str, int]:
        """The CRC-32 of every tensor held, by name."""
        with self._lock:
            return {n: checksum(t) for n, t in {**self._weights, **self._adapters}.items()}

    def generate(
        self, prompts: Tensor, num_new_tokens: int, seed: int, gate: GenerationGate
    ) -> tuple[Tensor, Tensor]:
        """Sample a continuation of every prompt.

        Args:
            prompts: Token ids [B, P].
            num_new_tokens: R.
            seed: The same seed, prompts and weights give the same tokens.
            gate: Passed before every token; weights may change while it holds the request.

        Returns:
            Token ids [B, P + R] and the log-probabilities of the new ones [B, R].

        Raises:
            NotServingError: Weights are missing, or the request was aborted.
        """
        generator = torch.Generator().manual_seed(seed)
        tokens, scores = prompts, []
        for _ in range(num_new_tokens):
            gate.before_token()
            logits = self._next_logprobs(tokens)
            new = torch.multinomial(logits.exp(), 1, generator=generator)
            scores.append(logits.gather(-1, new))
            tokens = torch.cat([tokens, new], dim=1)
        return tokens, torch.cat(scores, dim=1)

    @torch.no_grad()
    def _next_logprobs(self, tokens: Tensor) -> Tensor:
        with self._lock:
            if not self._is_assembled:
                self._assemble()
            return torch.log_softmax(self._model(tokens)[:, -1], dim=-1)

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        with self._lock:
            self._is_assembled = False
            yield

    def _take_weight(self, name: str, tensor: Tensor) -> None:
        expected = self._expected.get(name)
        if expected is None:
            raise ValueError(f"{name} is not a parameter of this model")
        if tensor.shape != expected.shape:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}, not {tuple(expected.shape)}")
        self._weights[name] = tensor

    def _take_adapter(self, name: str, tensor: Tensor) -> None:
        match = _ADAPTER.fullmatch(name)
        if match is None or f"{match['module']}.weight" not in self._expected:
            raise ValueError(f"{name} is not an adapter of a module of this model")
        self._adapters[f"{match['module']}.{match['part']}"] = tensor

    @torch.no_grad()
    def _assemble(self) -> None:
        missing = sorted(self._expected.keys() - self._weights.keys())
        if missing:
            raise NotServingError(
                f"{len(missing)} of {len(self._expected)} weights are missing, first {missing[0]}"
            )
        for name, parameter in self._expected.items():
            module = name.removesuffix(".weight")
            parameter.copy_(self._weights[name])
            if f"{module}.lora_A" in self._adapters:
                product = self._adapters[f"{module}.lora_B"] @ self._adapters[f"{module}.lora_A"]
                parameter.add_(product, alpha=self._scaling)
        self._is_assembled = True
