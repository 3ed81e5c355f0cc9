vllm serve meta-llama/Llama-3.1-8B --tensor-parallel-size 2 --max-num-seqs 64
