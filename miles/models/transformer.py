"""A decoder-only transformer, whole or the layers of one pipeline stage.

Axes: B sequences, T tokens, H hidden size, A attention heads, V vocabulary.
Parameter names are Megatron's. One class serves trainer and engine, so that equal weights
mean equal log-probabilities, bit for bit on one machine.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

HEAD_SIZE = 16


@dataclass(frozen=True)
class TransformerConfig:
    """The shape of a model.

    Attributes:
        vocab_size: Tokens in the vocabulary (V).
        hidden_size: Channels (H), a multiple of `HEAD_SIZE`.
        num_layers: Layers of the whole model, however many a stage holds.
        seq_length: Longest sequence in tokens (T).
    """

    vocab_size: int
    hidden_size: int
    num_layers: int
    seq_length: int

    def __post_init__(self) -> None:
        if self.hidden_size % HEAD_SIZE:
            raise ValueError(
                f"hidden_size must be a multiple of {HEAD_SIZE}, not {self.hidden_size}"
            )


class SelfAttention(nn.Module):
    """Causal multi-head attention."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.linear_qkv = nn.Linear(hidden_size, 3 * hidden_size, bias=False)
        self.linear_proj = nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """Mix [B, T, H] along T; no token sees a later one."""
        batch, length, size = hidden.shape
        heads = self.linear_qkv(hidden).view(batch, length, 3, -1, HEAD_SIZE)
        query, key, value = heads.permute(2, 0, 3, 1, 4)  # each [B, A, T, HEAD_SIZE]
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        projected: Tensor = self.linear_proj(mixed.transpose(1, 2).reshape(batch, length, size))
        return projected


class Mlp(nn.Module):
    """Two linear layers around a GELU."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.linear_fc1 = nn.Linear(hidden_size, 4 * hidden_size, bias=False)
        self.linear_fc2 = nn.Linear(4 * hidden_size, hidden_size, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """Map [B, T, H] to the same shape, token by token."""
        out: Tensor = self.linear_fc2(functional.gelu(self.linear_fc1(hidden)))
        return out


class Layer(nn.Module):
    """Attention and MLP, each behind a norm and a residual connection."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.input_layernorm = nn.LayerNorm(hidden_size, bias=False)
        self.self_attention = SelfAttention(hidden_size)
        self.pre_mlp_layernorm = nn.LayerNorm(hidden_size, bias=False)
        self.mlp = Mlp(hidden_size)

    def forward(self, hidden: Tensor) -> Tensor:
        """Map [B, T, H] to the same shape."""
        hidden = hidden + self.self_attention(self.input_layernorm(hidden))
        out: Tensor = hidden + self.mlp(self.pre_mlp_layernorm(hidden))
        return out


class Embedding(nn.Module):
    """Token and position embeddings."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.position_embeddings = nn.Embedding(config.seq_length, config.hidden_size)

    def forward(self, tokens: Tensor) -> Tensor:
        """Embed token ids [B, T] as [B, T, H]."""
        positions = torch.arange(tokens.shape[1])
        hidden: Tensor = self.word_embeddings(tokens) + self.position_embeddings(positions)
        return hidden


class Decoder(nn.Module):
    """A contiguous run of layers, each under its number in the whole model."""

    def __init__(self, config: TransformerConfig, layers: range) -> None:
        super().__init__()
        self.layers = nn.ModuleDict({str(i): Layer(config.hidden_size) for i in layers})
        if layers.stop == config.num_layers:
            self.final_layernorm = nn.LayerNorm(config.hidden_size, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """Map [B, T, H] to the same shape."""
        for layer in self.layers.values():
            hidden = layer(hidden)
        return self.final_layernorm(hidden) if hasattr(self, "final_layernorm") else hidden


class Transformer(nn.Module):
    """The model, or the stage of it that holds `layers`.

    Attributes:
        pre_process: Whether this stage embeds the tokens.
        post_process: Whether this stage yields logits.
    """

    def __init__(self, config: TransformerConfig, layers: range | None = None) -> None:
        super().__init__()
        layers = range(config.num_layers) if layers is None else layers
        self.config = config
        self.pre_process = layers.start == 0
        self.post_process = layers.stop == config.num_layers
        if self.pre_process:
            self.embedding = Embedding(config)
        self.decoder = Decoder(config, layers)
        if self.post_process:
            self.output_layer = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def forward(self, inputs: Tensor) -> Tensor:
        """Run the stage.

        Args:
            inputs: Token ids [B, T] where `pre_process`, else hidden states [B, T, H].

        Returns:
            Logits [B, T, V] where `post_process`, else hidden states [B, T, H].
        """
        hidden: Tensor = self.decoder(self.embedding(inputs) if self.pre_process else inputs)
        return self.output_layer(hidden) if self.post_process else hidden


def initialise(model: nn.Module, seed: int) -> None:
    """Fill every parameter from `seed` and its own name.

    So the result depends on neither the number of stages nor the order of construction:
    all replicas of a parameter are equal, on whichever rank.
    """
    for name, parameter in model.named_parameters():
        generator = torch.Generator().manual_seed(seed ^ zlib.crc32(name.encode()))
        with torch.no_grad():
            if "layernorm" in name:
                parameter.fill_(1.0)
            elif "lora_B" in name:  # an adapter begins by changing nothing
                parameter.zero_()
            else:
                parameter.normal_(0.0, parameter.shape[-1] ** -0.5, generator=generator)


def log_probabilities(logits: Tensor, tokens: Tensor) -> Tensor:
    """The log-probability of each token but the first, given those before it.

    Args:
        logits: [B, T, V].
        tokens: Token ids [B, T].

    Returns:
        [B, T - 1].
    """
    scores = functional.log_softmax(logits[:, :-1], dim=-1)
    return scores.gather(-1, tokens[:, 1:].unsqueeze(-1)).squeeze(-1)
