#!/usr/bin/env bash
# scalecalc 0.1.0: a launch file of Megatron-LM, by what is known of megatron 0.19 (2026-08-19)
# asked: scalecalc train llama3-8b --chips 16 --fix tp=2,sp=1,pp=2,vpp=2 --hw h100-sxm --top 1
# plan: dp 4, tp 2+sp, pp 2, vpp 2; mb 1 x 128, remat none, zero 0, interleaved
# predicted: step 32.8 s, MFU 41.6% (6N and causal attention, of the dense peak), 63.6 GB of 85.9 GB a chip, 512 sequences of 8192 tokens a step on 16 x NVIDIA H100 SXM5 80GB
# arguments: NVIDIA/Megatron-LM d98e8a6: megatron/training/arguments.py, core/transformer/transformer_config.py, core/model_parallel_config.py
set -euo pipefail
export CUDA_DEVICE_MAX_CONNECTIONS=1
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
  --tensor-model-parallel-size 2 \
  --pipeline-model-parallel-size 2 \
  --context-parallel-size 1 \
  --sequence-parallel \
  --num-virtual-stages-per-pipeline-rank 2 \
  --overlap-grad-reduce \
  --bf16
