#!/usr/bin/env bash
# scalecalc 0.1.0: a launch file of Megatron-LM, by what is known of megatron 0.19 (2026-08-19)
# asked: scalecalc train llama3-8b --chips 16 --hw h100-sxm --mtbf 5000h --tokens 1T
# plan: fsdp 16; mb 1 x 32, remat none, zero 3
# predicted: step 30.6 s, MFU 44.6% (6N and causal attention, of the dense peak), 67.8 GB of 85.9 GB a chip, 512 sequences of 8192 tokens a step on 16 x NVIDIA H100 SXM5 80GB
# arguments: NVIDIA/Megatron-LM d98e8a6: megatron/training/arguments.py, core/transformer/transformer_config.py, core/model_parallel_config.py
set -euo pipefail
torchrun \
  --nnodes 2 \
  --nproc_per_node 8 \
  --rdzv_backend c10d \
  --rdzv_endpoint "${HEAD_NODE:-localhost}:29500" \
  pretrain_gpt.py \
  --num-layers 32 \
  --hidden-size 4096 \
  --num-attention-heads 32 \
  --group-query-attention \
  --num-query-groups 8 \
  --ffn-hidden-size 14336 \
  --swiglu \
  --seq-length 8192 \
  --max-position-embeddings 8192 \
  --micro-batch-size 1 \
  --global-batch-size 512 \
  --tensor-model-parallel-size 1 \
  --pipeline-model-parallel-size 1 \
  --context-parallel-size 1 \
  --use-distributed-optimizer \
  --use-megatron-fsdp \
  --data-parallel-sharding-strategy optim_grads_params \
  --ckpt-format fsdp_dtensor \
  --overlap-grad-reduce \
  --overlap-param-gather \
  --bf16
