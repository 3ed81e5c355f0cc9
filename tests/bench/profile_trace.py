"""Writes a Chrome trace of the size asked for, made up event by event as PyTorch's profiler writes them: half of it Python
frames, then operations with shapes, launches, kernels and their flows. python3 tests/bench/profile_trace.py OUT MEGABYTES"""
import sys


def events(limit):
    step, at, call = 0, 0, 0
    yield '{"ph":"M","name":"process_name","pid":1,"tid":0,"ts":0,"args":{"name":"python3"}}'
    while limit():
        start = at
        for layer in range(200):
            for name, kernel, dims, length in (
                    ("aten::mm", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", [[8192, 4096], [4096, 4096]], 400),
                    ("aten::mul", "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<c10::BFloat16> >(int)", [[8192, 4096], [8192, 4096]], 70),
                    ("aten::add", "void at::native::elementwise_kernel<128, 4, at::native::CUDAFunctor_add<c10::BFloat16> >(int)", [[8192, 4096], [8192, 4096]], 60)):
                call += 1
                ts = 1428625731896 + at
                for depth in range(3):
                    yield (f'{{"ph":"X","cat":"python_function","name":"torch/nn/modules/module.py({1700 + depth}): _wrapped_call_impl","pid":1,"tid":1,'
                           f'"ts":{ts}.{depth}79,"dur":41.395,"args":{{"Python parent id":{call},"Python id":{call + depth},"Ev Idx":{call}}}}}')
                yield (f'{{"ph":"X","cat":"cpu_op","name":"{name}","pid":1,"tid":1,"ts":{ts}.5,"dur":12.25,"args":{{"External id":{call},'
                       f'"Record function id":0,"Concrete Inputs":["",""],"Input type":["c10::BFloat16","c10::BFloat16"],'
                       f'"Input Strides":[[4096,1],[4096,1]],"Input Dims":{dims},"Ev Idx":{call}}}}}')
                yield (f'{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{ts}.7,"dur":4.3,'
                       f'"args":{{"External id":{call},"cbid":211,"correlation":{call}}}}}')
                yield f'{{"ph":"s","id":{call},"pid":1,"tid":1,"ts":{ts}.7,"cat":"ac2g","name":"ac2g"}}'
                yield (f'{{"ph":"X","cat":"kernel","name":"{kernel}","pid":0,"tid":7,"ts":{ts + 20}.125,"dur":{length}.5,"args":'
                       f'{{"External id":{call},"queued":0,"device":0,"context":1,"stream":7,"correlation":{call},'
                       f'"registers per thread":168,"shared memory":0,"blocks per SM":15.5,"warps per SM":62.0,"grid":[2048,1,1],'
                       f'"block":[128,1,1],"est. achieved occupancy %":100}}}}')
                at += length + 2
        yield (f'{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{step}","pid":1,"tid":1,"ts":{1428625731896 + start},'
               f'"dur":{at - start},"args":{{"External id":{10**9 + step}}}}}')
        step += 1


def main():
    size = int(float(sys.argv[2]) * 1e6)
    with open(sys.argv[1], "w") as out:
        out.write('{"schemaVersion":1,"deviceProperties":[{"id":0,"name":"NVIDIA H100 80GB HBM3"}],"record_shapes":1,"traceEvents":[\n')
        first = True
        for event in events(lambda: out.tell() < size):
            out.write(event if first else ",\n" + event)
            first = False
        out.write("\n]}\n")


main()
