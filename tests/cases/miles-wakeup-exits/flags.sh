python3 train.py --colocate --lora-rank 64 --disable-weights-backuper --actor-num-nodes 1 --actor-num-gpus-per-node 8 --megatron-to-hf-mode bridge
