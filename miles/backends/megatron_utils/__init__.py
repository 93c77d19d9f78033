"""The Megatron-like backend: buffers, LoRA, actor and weight update."""
