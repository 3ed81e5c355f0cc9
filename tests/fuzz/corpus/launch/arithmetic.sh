N=$((1099511627776*8388608/(0-1)))
A=1+2
B=$(( (A<<2 | 0x10) ** 2 % 7 ? ~A : 36#Zz ))
torchrun --nproc_per_node=8 pretrain_gpt.py --tensor-model-parallel-size $((B/1)) --pipeline-model-parallel-size $(( 8 / N ))
