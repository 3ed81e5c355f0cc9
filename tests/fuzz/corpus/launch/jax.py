import jax
DATA = 2
FSDP = 4
EXPERT = 1
TENSOR = 2
REMAT = "full"
X = [1,
 2]
