#!/bin/bash
#SBATCH --nodes=2
TP=${TP:-2}
GBS=$(( TP * 32 ))
A=(--micro-batch-size 1 --seq-length 4096)
cat > c.json <<EOF
{"train_batch_size": $GBS}
EOF
A+=("--bf16")
torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py "${A[@]}" --tensor-model-parallel-size $TP \
  --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*3|(tt|)*2ttL' --global-batch-size $GBS
