// A step assembled by hand from known parts.
#include "cost/step.h"

#include <gtest/gtest.h>

#include "cost/step_bound.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

Plan first(const PlanRequest& request) {
  const PlanResult result = plan(request);
  EXPECT_FALSE(result.plans.empty());
  return result.plans.empty() ? Plan{} : result.plans.front();
}

class Step : public testing::Test {
 protected:
  ModelSpec model = test::dense_model();
  HardwareSpec torus = test::torus_chip();
  HardwareSpec nodes = test::switched_chip();
};

TEST_F(Step, CausesSumToTheStep) {
  const Plan p = first(test::request(model, nodes, 64));
  const StepTime<double>& t = p.time;
  const Seconds sum =
      t.compute + t.hbm + t.tp + t.fsdp + t.dp + t.cp + t.ep + t.pp + t.bubble + t.optimizer + t.overhead;
  EXPECT_EQ(sum.value(), p.step_s);
}

/// One chip, ideal: the step is at least model FLOPs over the peak, and the matmuls are all compute-bound here.
TEST_F(Step, OneChipIsTheRoofline) {
  PlanRequest request = test::request(model, nodes, 1);
  request.fix.remat = Remat::kNone;
  request.fix.micro_batch_seqs = 1;
  const Plan p = first(request);
  const double tokens = p.batch_seqs * 2048;
  // Forward and backward matmuls: 3 x 2 x parameters without the embedding lookup and norms; causal attention at half
  // the context with five matmuls backward against two forward.
  const double d = 1024, f = 4096, h = 64, v = 32000;
  const double matmul = 8 * (18 * d * f + 12 * d * 20 * h) + 6 * d * v;
  const double attention = 8 * (2 * 1024.0 * 2 * 1024) * (1 + 2.5);
  EXPECT_NEAR(p.time.compute.value(), tokens * (matmul + attention) / 100e12, 1e-3 * p.time.compute.value());
  EXPECT_EQ(p.time.tp.value() + p.time.fsdp.value() + p.time.dp.value() + p.time.bubble.value(), 0);
}

/// Book, chapter 5: with everything else hidden, FSDP is bound by max(compute, gather) per layer.
TEST_F(Step, IdealFsdpIsTheLargerOfComputeAndCommunication) {
  PlanRequest request = test::request(model, nodes, 64);
  request.workload.batch_seqs = 64;
  request.fix = {.dp = 1, .tp = 1, .cp = 1, .pp = 1, .zero = 3, .remat = Remat::kNone};
  const Plan slow = first(request);
  EXPECT_GT(slow.time.spilled[kFsdp], 0) << "64 sequences of 2048 on 64 chips over 50 GB/s cannot hide the gathers";
  request.workload.batch_seqs = 64 * 64;
  request.fix.micro_batch_seqs = 4;
  const Plan fast = first(request);
  EXPECT_LT(fast.time.fsdp.value() / fast.step_s, slow.time.fsdp.value() / slow.step_s);
}

/// Narayanan et al. 2021: with equal stages the bubble is (pp - 1) / (vpp m) of the work.
TEST_F(Step, BubbleOfEqualStages) {
  ModelSpec deep = test::dense_model(64);
  deep.vocab = 64;  // the head weighs nothing, so all stages are alike
  PlanRequest request = test::request(deep, nodes, 8);
  request.fix = {
      .tp = 1, .cp = 1, .pp = 8, .vpp = 1, .micro_batch_seqs = 1, .remat = Remat::kNone, .schedule = Schedule::k1F1B};
  const Plan flat = first(request);
  const double work = flat.time.compute.value() + flat.time.hbm.value();
  EXPECT_NEAR(flat.time.bubble.value() / work, 7.0 / 64, 2e-3);
  request.fix.schedule.reset();
  request.fix.vpp = 4;
  const Plan interleaved = first(request);
  EXPECT_NEAR(interleaved.time.bubble.value(), flat.time.bubble.value() / 4, 2e-2 * flat.time.bubble.value());
}

/// Kernels of a microbatch on one chip, as docs/model.md counts them: one an operation forward, two backward, of which
/// attention has one; a head of its own.
double launches_of_microbatch(const ModelSpec& model) {
  const ModelOps<double> ops = read_model(Reader<double>{}, model);
  double out = 0;
  const auto add = [&](const std::vector<Op<double>>& list, double times) {
    for (const Op<double>& op : list) {
      if (op.kind == OpKind::kVector && op.reads <= 0) continue;
      out += times * (op.kind == OpKind::kAttention ? 2 : 3);
    }
  };
  for (const std::uint8_t kind : model.layer_kind) add(ops.kinds[kind], 1);
  add(ops.embedding, 1);
  add(ops.head, 1);
  return out;
}

/// [HOST] Where launching takes a second each, it is all that a step takes; where it takes a nanosecond, nothing.
TEST_F(Step, TakesTheLongerOfChipAndHost) {
  PlanRequest request = test::request(model, nodes, 1);
  request.fix.remat = Remat::kNone;
  request.fix.micro_batch_seqs = 1;
  const Plan free = first(request);
  const double microbatches = static_cast<double>(free.layout.grad_accum);
  request.efficiency.host_overhead.value = 1e-9;
  EXPECT_EQ(first(request).step_s, free.step_s);
  request.efficiency.host_overhead.value = 1;
  const double rest = free.time.optimizer.value() + request.efficiency.step_overhead.value;
  EXPECT_NEAR(first(request).step_s, microbatches * launches_of_microbatch(model) + rest, 1e-9 * microbatches);
  // Norm, q, k, v, output, sum, norm, gate, up, activation, down and sum of three, attention of two; at the ends
  // lookup, norm, projection and loss.
  EXPECT_EQ(launches_of_microbatch(model), 8 * (12 * 3 + 2) + 4 * 3);
}

TEST_F(Step, HostLaunchesNothingThatIsCapturedOrCompiled) {
  PlanRequest request = test::request(model, nodes, 1);
  request.fix.remat = Remat::kNone;
  request.fix.micro_batch_seqs = 1;
  const double free = first(request).step_s;
  request.efficiency.host_overhead.value = 1;
  request.workload.runtime.compiled = true;
  EXPECT_EQ(first(request).step_s, free);
  request.workload.runtime.compiled = false;
  request.workload.graphs = GraphCapture::kLayer;
  const Plan layer = first(request);
  const double replays = 2 * (8 + 2);  // forward and backward of eight layers and two ends
  const double rest = layer.time.optimizer.value() + request.efficiency.step_overhead.value;
  EXPECT_NEAR(layer.step_s, static_cast<double>(layer.layout.grad_accum) * replays + rest, 1e-9 * layer.step_s);
  request.workload.graphs = GraphCapture::kStep;
  EXPECT_EQ(first(request).step_s, free);
}

/// [HOST] Gate, up and down of 100 experts in two layers, one launch forward and two backward of each, behind the
/// counts that the host waits for: added to what else a phase takes. A nanosecond each is less than the chip takes.
TEST_F(Step, LaunchesOfEachExpertAreAdded) {
  ModelSpec experts = test::moe_model(3);
  experts.moe->experts = 100;
  PlanRequest request = test::request(experts, nodes, 1);
  request.fix.remat = Remat::kNone;
  request.fix.micro_batch_seqs = 1;
  request.efficiency.host_overhead.value = 1e-9;
  const Plan grouped = first(request);
  request.workload.runtime.launches_each_expert = true;
  const double microbatches = static_cast<double>(grouped.layout.grad_accum);
  EXPECT_NEAR(first(request).step_s - grouped.step_s, microbatches * 2 * 3 * 3 * 100 * 1e-9, 1e-9 * grouped.step_s);
  request.workload.graphs = GraphCapture::kStep;
  const double captured = first(request).step_s;
  request.workload.runtime.launches_each_expert = false;
  EXPECT_EQ(first(request).step_s, captured);
}

/// [HOST] A cast of the input forward and of the output's gradient backward, of all matmuls but the head's and the
/// router's: q, k with v, output, gate, up and down of eight layers.
TEST_F(Step, CastsToEightBitsAreLaunched) {
  PlanRequest request = test::request(model, nodes, 1);
  request.fix.remat = Remat::kNone;
  request.fix.micro_batch_seqs = 1;
  request.efficiency.host_overhead.value = 1;
  const Plan wide = first(request);
  request.workload.precision = precision_of("fp8");
  const Plan narrow = first(request);
  const double microbatches = static_cast<double>(wide.layout.grad_accum);
  ASSERT_EQ(narrow.layout.grad_accum, wide.layout.grad_accum);
  const double optimizers = narrow.time.optimizer.value() - wide.time.optimizer.value();
  EXPECT_NEAR(narrow.step_s - wide.step_s, microbatches * 8 * 6 * 2 + optimizers, 1e-6 * narrow.step_s);
}

TEST_F(Step, FullRematCostsAThirdMoreCompute) {
  PlanRequest request = test::request(model, nodes, 8);
  request.fix = {.tp = 1, .cp = 1, .pp = 1, .zero = 1, .micro_batch_seqs = 1, .remat = Remat::kNone};
  const Plan none = first(request);
  request.fix.remat = Remat::kFull;
  const Plan full = first(request);
  // The layers' forward runs again, the head's does not; attention's backward is 2.5 forwards.
  const double d = 1024, f = 4096, h = 64, v = 32000;
  const double layers = 8 * (6 * d * f + 4 * d * 20 * h);
  const double attention = 8 * (2 * 1024.0 * 2 * 1024);
  const double once = 3 * layers + 3.5 * attention + 6 * d * v;
  EXPECT_NEAR(full.time.compute.value() / none.time.compute.value(), 1 + (layers + attention) / once, 1e-3);
  EXPECT_LT(full.memory.activations.value(), none.memory.activations.value());
}

/// A stack that gathers tensor by tensor waits 10 us for each: norms, q, k with v, output, gate, up and down of eight
/// layers, norm and projection of the head, where one gather of each had brought them; forward and backward.
TEST_F(Step, GathersByTensorWaitForEachOfThem) {
  PlanRequest request = test::request(model, nodes, 8);
  request.fix = {.dp = 1, .tp = 1, .cp = 1, .pp = 1, .zero = 3, .micro_batch_seqs = 1, .remat = Remat::kNone};
  request.efficiency.overlap_fsdp.value = 1e-9;
  const Plan together = first(request);
  request.workload.runtime.gathers.by_tensor = true;
  const Plan alone = first(request);
  const double microbatches = static_cast<double>(together.layout.grad_accum);
  EXPECT_NEAR((alone.time.fsdp - together.time.fsdp).value(), microbatches * 2 * (8 * (8 - 1) + (2 - 1)) * 10e-6, 1e-9);
  request.workload.runtime.gathers.elements = 1e12;
  EXPECT_EQ(first(request).step_s, together.step_s) << "a bucket holds them all";
}

/// Gathers that every layer waits for are shown whole, whatever the stack's overlap.
TEST_F(Step, GathersThatWaitAreExposed) {
  PlanRequest request = test::request(model, nodes, 8);
  request.fix = {.dp = 1, .tp = 1, .cp = 1, .pp = 1, .zero = 3, .micro_batch_seqs = 1, .remat = Remat::kNone};
  request.workload.runtime.hides_gathers = false;
  const double waiting = first(request).time.fsdp.value();
  request.workload.runtime.hides_gathers = true;
  EXPECT_LT(first(request).time.fsdp.value(), waiting);
  request.efficiency.overlap_fsdp.value = 0;
  EXPECT_DOUBLE_EQ(first(request).time.fsdp.value(), waiting);
}

/// Where owners send the tensors that they updated, chips wait for them, each with a latency of 10 us.
TEST_F(Step, UpdatesOfOwnersAreExposed) {
  PlanRequest request = test::request(model, nodes, 8);
  request.fix = {.dp = 8, .tp = 1, .cp = 1, .pp = 1, .zero = 1, .micro_batch_seqs = 1, .remat = Remat::kNone};
  const auto exposed = [&](bool owners) {
    request.workload.runtime.updates.by_rank = owners;
    return first(request).time.dp.value();
  };
  EXPECT_LT(exposed(false), exposed(true));
  request.efficiency.overlap_dp.value = 0;
  EXPECT_NEAR(exposed(true) - exposed(false), (8 - 1) * 10e-6, 1e-9) << "nothing hides";
}

/// Pieces pass through memory that the ranks map from each other: a tensor group over two nodes hides as others do.
TEST_F(Step, PiecesOfATensorGroupStayInItsDomain) {
  const auto exposed = [&](std::int64_t tp, CommOverlap overlap) {
    PlanRequest request = test::request(model, nodes, tp);
    request.efficiency.overlap_tp.value = 0.2;
    request.efficiency.overlap_tp_pipelined.value = 0.8;
    request.workload.tp_overlap = overlap;
    request.fix = {.tp = tp, .cp = 1, .pp = 1, .zero = 0, .micro_batch_seqs = 1, .remat = Remat::kNone};
    return first(request).time.tp.value();
  };
  EXPECT_LT(exposed(8, CommOverlap::kPipelined), exposed(8, CommOverlap::kStack));
  EXPECT_DOUBLE_EQ(exposed(16, CommOverlap::kPipelined), exposed(16, CommOverlap::kStack));
}

/// 64 chips in hosts of eight: three doublings, of which each takes 1 % of the slowest stage's work.
TEST_F(Step, HostsLoseAShareWithEachDoubling) {
  nodes.chips_per_host = 8;
  PlanRequest request = test::request(model, nodes, 64);
  request.efficiency.step_overhead.value = 0.5;
  request.fix = {.tp = 1, .cp = 1, .pp = 1, .zero = 0, .micro_batch_seqs = 1, .remat = Remat::kNone};
  const StepTime<double> without = first(request).time;
  request.efficiency.scale_loss.value = 0.01;
  const StepTime<double> with = first(request).time;
  const double work = (without.compute + without.hbm + without.tp + without.cp + without.ep + without.fsdp).value() +
                      without.overhead.value() - 0.5;
  EXPECT_NEAR((with.overhead - without.overhead).value(), 0.03 * work, 1e-12);
  EXPECT_EQ(with.compute.value(), without.compute.value());
}

/// ZeRO, arXiv:1910.02054: 2 + 4 + 12 bytes per parameter, each divided from its stage on.
TEST_F(Step, ZeroStagesDivideStates) {
  PlanRequest request = test::request(model, nodes, 8);
  request.fix = {.tp = 1, .cp = 1, .pp = 1, .zero = 0, .micro_batch_seqs = 1, .remat = Remat::kNone};
  const MemoryUse<double> zero0 = first(request).memory;
  request.fix.zero = 1;
  const MemoryUse<double> zero1 = first(request).memory;
  request.fix.zero = 2;
  const MemoryUse<double> zero2 = first(request).memory;
  request.fix.zero = 3;
  request.fix.dp = 1;
  const MemoryUse<double> zero3 = first(request).memory;
  EXPECT_DOUBLE_EQ(zero0.gradients.value(), 2 * zero0.weights.value());
  EXPECT_DOUBLE_EQ(zero0.optimizer.value(), 6 * zero0.weights.value());
  EXPECT_DOUBLE_EQ(zero1.optimizer.value(), zero0.optimizer.value() / 8);
  EXPECT_DOUBLE_EQ(zero1.gradients.value(), zero0.gradients.value());
  EXPECT_DOUBLE_EQ(zero2.gradients.value(), zero0.gradients.value() / 8);
  EXPECT_DOUBLE_EQ(zero3.weights.value(), zero0.weights.value() / 8);
  EXPECT_GT(zero3.buffers.value(), 0) << "gathered layers";
}

/// Weights of 4 bytes are their own master copy: 4 + 4 + 8 = 16 bytes a parameter with Adam. An update reads the
/// gradient and reads and writes moments and weights, 4 + 2 x 12 bytes.
TEST_F(Step, Fp32WeightsAreTheirOwnMaster) {
  nodes.matmul_peak[static_cast<std::size_t>(DType::kFp32)] = FlopsPerSecond(50e12);
  PlanRequest request = test::request(model, nodes, 8);
  request.workload.precision = precision_of("fp32");
  request.workload.optimizer = optimizer_of("adam", request.workload.precision);
  EXPECT_EQ(request.workload.optimizer.update_bytes, 4 + 2 * 12);
  request.fix = {.tp = 1, .cp = 1, .pp = 1, .zero = 0, .micro_batch_seqs = 1, .remat = Remat::kNone};
  const MemoryUse<double> memory = first(request).memory;
  const double parameters = memory.weights.value() / 4;
  EXPECT_DOUBLE_EQ((memory.weights + memory.gradients + memory.optimizer).value(), 16 * parameters);
  request.workload.memory.sharded_master = true;
  request.fix.zero = 3;
  request.fix.dp = 1;
  const MemoryUse<double> sharded = first(request).memory;
  EXPECT_DOUBLE_EQ((sharded.weights + sharded.gradients + sharded.optimizer).value(), 16 * parameters / 8);
}

/// FSDP shards fp32 weights: 4 + 4 + 8 bytes per parameter; the allocator wastes its share of what comes and goes.
TEST_F(Step, AStacksMemoryIsItsOwn) {
  PlanRequest request = test::request(model, nodes, 8);
  request.fix = {.dp = 1, .tp = 1, .cp = 1, .pp = 1, .zero = 3, .micro_batch_seqs = 1, .remat = Remat::kNone};
  const MemoryUse<double> plain = first(request).memory;
  StackMemory& rules = request.workload.memory;
  rules.sharded_master = true;
  rules.logit_bytes = 4;
  rules.fragmentation.value = 0.1;
  const MemoryUse<double> fsdp = first(request).memory;
  EXPECT_DOUBLE_EQ(fsdp.weights.value(), 2 * plain.weights.value());
  EXPECT_DOUBLE_EQ(fsdp.optimizer.value(), fsdp.gradients.value() * 2);
  EXPECT_DOUBLE_EQ(fsdp.activations.value(), plain.activations.value());
  EXPECT_DOUBLE_EQ(plain.logits.value() - fsdp.logits.value(), 2048 * 32000 * 4.0);
  EXPECT_DOUBLE_EQ(fsdp.allocator.value(), 0.1 * (fsdp.activations + fsdp.logits + fsdp.buffers).value());
  rules.gradient_bytes["bf16"] = 6;
  rules.gathered_layers = 0;
  rules.reduced_layers = 0;
  const MemoryUse<double> bare = first(request).memory;
  EXPECT_DOUBLE_EQ(bare.gradients.value(), 1.5 * fsdp.gradients.value());
  EXPECT_EQ(bare.buffers.value(), 0);
}

/// DDP's buckets of 2 bytes beside accumulators of 4, where several data ranks sum whole gradients.
TEST_F(Step, BucketsLieBesideWholeGradients) {
  PlanRequest request = test::request(model, nodes, 8);
  request.fix = {.dp = 8, .tp = 1, .cp = 1, .pp = 1, .zero = 0, .micro_batch_seqs = 1, .remat = Remat::kNone};
  StackMemory& rules = request.workload.memory;
  rules.gradient_buckets["bf16"] = 2;
  const auto each = [&] {
    const MemoryUse<double> memory = first(request).memory;
    return memory.gradients.value() / (memory.weights.value() / 2);
  };
  EXPECT_DOUBLE_EQ(each(), 4 + 2);
  request.fix.zero = 1;
  EXPECT_DOUBLE_EQ(each(), 4);
  request.fix.zero = 0;
  request.fix.dp = 1;
  request.fix.tp = 8;
  EXPECT_DOUBLE_EQ(each(), 4) << "one data rank sums nothing";
}

/// Eight layers of 1,024 x (1,024 + 512 + 1,024) + 3 x 1,024 x 4,096 weights and two norms are there in two more bytes,
/// by rows and by columns; head and embedding compute in 16 bits.
TEST_F(Step, CopiesThatEightBitMatmulsReadAreKept) {
  PlanRequest request = test::request(model, nodes, 8);
  request.workload.precision = precision_of("fp8");
  request.fix = {.tp = 1, .cp = 1, .pp = 1, .zero = 1, .micro_batch_seqs = 1, .remat = Remat::kNone};
  const double plain = first(request).memory.weights.value();
  request.workload.memory.cached_weights["fp8"] = 2;
  const double layers = 8 * (1024.0 * (1024 + 512 + 1024) + 3 * 1024 * 4096 + 2 * 1024);
  EXPECT_DOUBLE_EQ(first(request).memory.weights.value() - plain, 2 * layers);
  request.fix.zero = 3;
  request.fix.dp = 1;
  const double sharded = first(request).memory.weights.value();
  request.workload.memory.cached_weights.clear();
  EXPECT_EQ(first(request).memory.weights.value(), sharded);
}

/// What waits for the update takes the place of activations that are gone, and counts where it is more.
TEST_F(Step, GradientsOnTheirWayCountBeyondActivations) {
  PlanRequest request = test::request(model, nodes, 8);
  request.fix = {.tp = 1, .cp = 1, .pp = 2, .vpp = 1, .zero = 1, .micro_batch_seqs = 1, .remat = Remat::kFull};
  const MemoryUse<double> plain = first(request).memory;
  EXPECT_EQ(plain.update.value(), 0);
  request.workload.memory.update_bytes = 50;
  const MemoryUse<double> waiting = first(request).memory;
  const double parameters = waiting.weights.value() / 2;
  EXPECT_DOUBLE_EQ((waiting.update + waiting.activations + waiting.logits + waiting.buffers).value(), parameters * 50);
}

/// Two data ranks under ZeRO-1: each updates half of the parameters, and has 12 bytes for each of these beside all
/// else.
TEST_F(Step, AnUpdateWithoutAFusedKernelHasTemporariesOfItsShare) {
  PlanRequest request = test::request(model, nodes, 2);
  request.fix = {.dp = 2, .tp = 1, .cp = 1, .pp = 1, .zero = 1, .micro_batch_seqs = 1, .remat = Remat::kFull};
  const double plain = first(request).memory.optimizer.value();
  request.workload.memory.shard_update_bytes = 12;
  const MemoryUse<double> use = first(request).memory;
  const double parameters = use.weights.value() / 2;
  EXPECT_DOUBLE_EQ(use.optimizer.value() - plain, parameters / 2 * 12);
}

/// [PASSES] Two data ranks under ZeRO-1 and four microbatches, N parameters: a fused update moves 4 + 2 (2 x 4 + 4) + 2
/// = 30 bytes of each of a rank's N / 2, another 100; 8 bytes of all N go into buckets and back, and 6 are moved by
/// each of the three sums of a microbatch's gradients with those before it. HBM: 1 TB/s.
TEST_F(Step, KernelsThatAreNotFusedPassOverParametersOnceMore) {
  PlanRequest request = test::request(model, nodes, 2);
  request.workload.batch_seqs = 8;
  request.fix = {.dp = 2, .tp = 1, .cp = 1, .pp = 1, .zero = 1, .micro_batch_seqs = 1, .remat = Remat::kNone};
  const Plan fused = first(request);
  ASSERT_EQ(fused.layout.grad_accum, 4);
  const double n = fused.memory.weights.value() / 2, hbm = nodes.hbm_bandwidth.value();
  StackRuntime& runtime = request.workload.runtime;
  EXPECT_NEAR(fused.time.optimizer.value(), n / 2 * 30 / hbm, 1e-12);
  runtime.update_traffic = 100;
  EXPECT_NEAR(first(request).time.optimizer.value(), n / 2 * 100 / hbm, 1e-12);
  runtime.update_traffic = 20;
  EXPECT_EQ(first(request).time.optimizer.value(), fused.time.optimizer.value()) << "no fewer than a fused kernel";
  runtime = {};
  runtime.bucket_traffic = 8;
  EXPECT_NEAR((first(request).time.optimizer - fused.time.optimizer).value(), n * 8 / hbm, 1e-12);
  runtime = {};
  runtime.accumulation_traffic = 6;
  EXPECT_NEAR((first(request).time.optimizer - fused.time.optimizer).value(), n * 6 * 3 / hbm, 1e-12);
}

/// [PASSES] Four microbatches of 2,048 tokens, each with a row of 32,000 logits, of which 48 bytes more are moved each.
TEST_F(Step, LogitsThatAreLoggedArePassedOver) {
  PlanRequest request = test::request(model, nodes, 1);
  request.workload.batch_seqs = 4;
  request.fix = {.micro_batch_seqs = 1, .remat = Remat::kNone};
  const StepTime<double> plain = first(request).time;
  request.workload.runtime.logit_traffic = 48;
  const StepTime<double> logged = first(request).time;
  EXPECT_NEAR((logged.hbm - plain.hbm).value(), 4 * 2048.0 * 32000 * 48 / nodes.hbm_bandwidth.value(), 1e-12);
  EXPECT_EQ(logged.compute.value(), plain.compute.value());
}

/// The first and the last of two stages in a node send each other the gradients of 32,000 x 1,024 weights in 4 bytes,
/// at 400 GB/s after 10 us.
TEST_F(Step, StagesExchangeTheGradientsOfATiedEmbedding) {
  PlanRequest request = test::request(model, nodes, 2);
  request.fix = {.dp = 1,
                 .tp = 1,
                 .cp = 1,
                 .pp = 2,
                 .vpp = 1,
                 .zero = 0,
                 .micro_batch_seqs = 1,
                 .remat = Remat::kNone,
                 .schedule = Schedule::k1F1B,
                 .split = ChunkEnds{}};
  EXPECT_EQ(first(request).time.dp.value(), 0);
  model.tied_embeddings = true;
  EXPECT_NEAR(first(request).time.dp.value(), 1e-5 + 32000.0 * 1024 * 4 / 400e9, 1e-9);
  request.slices = slices_of(nodes, 1, 1);
  request.fix.pp = 1;
  request.fix.schedule.reset();
  EXPECT_EQ(first(request).time.dp.value(), 0) << "one stage holds it once";
}

/// A module has logits of its own, 2,048 x 32,000 x 8 bytes, and keeps in 16 bits the embedding, both norms' outputs
/// and the projection's, and of its final norm the input and the output: 6 x 1,024 elements a token. Its layer is one
/// more.
TEST_F(Step, PredictionModulesKeepLogitsOfTheirOwn) {
  PlanRequest request = test::request(model, nodes, 8);
  request.fix = {.tp = 1,
                 .cp = 1,
                 .pp = 1,
                 .zero = 1,
                 .micro_batch_seqs = 1,
                 .remat = Remat::kNone,
                 .offload = 0,
                 .loss = LossKind::kWhole};
  const MemoryUse<double> without = first(request).memory;
  model.mtp_layers = 1;
  model.mtp_kind = 0;
  const MemoryUse<double> with = first(request).memory;
  EXPECT_DOUBLE_EQ((with.logits - without.logits).value(), 2048.0 * (32000 * 8 + 6 * 1024 * 2));
  model = test::dense_model(9);
  EXPECT_DOUBLE_EQ(first(request).memory.activations.value(), with.activations.value());
  request.fix.loss = LossKind::kChunked;
  const MemoryUse<double> chunked = first(request).memory;
  model = test::dense_model();
  model.mtp_layers = 1;
  EXPECT_DOUBLE_EQ((first(request).memory.logits - chunked.logits).value(), 2048.0 * (1024 * 4 + 6 * 1024 * 2))
      << "one chunk of logits at a time, and the input gradients of both heads";
}

TEST_F(Step, ExpertsDivideOverTheirRanks) {
  const ModelSpec moe = test::moe_model();
  PlanRequest request = test::request(moe, nodes, 8);
  request.fix = {.tp = 1, .cp = 1, .pp = 1, .ep = 1, .zero = 0, .micro_batch_seqs = 1, .remat = Remat::kNone};
  const Plan together = first(request);
  request.fix.ep = 8;
  const Plan apart = first(request);
  const double experts = 7 * 8 * 3 * 1024.0 * 1024 * 2;  // bytes of all routed experts
  EXPECT_NEAR(together.memory.weights.value() - apart.memory.weights.value(), experts * 7 / 8, 1);
  EXPECT_GT(apart.time.ep.value() + apart.time.spilled[kEp], -1);
}

TEST_F(Step, LowerBoundIsBelowEveryPlan) {
  for (const HardwareSpec* hw : {&torus, &nodes}) {
    PlanRequest request = test::request(model, *hw, 64);
    request.variants = true;
    request.top = 500;
    for (const Plan& p : plan(request).plans) {
      const Reader<double> reader;
      const ChipRates<double> chip = read_chip(reader, *hw, hw->efficiency, DType::kBf16);
      const NetworkCost<double> cost =
          network_cost(reader, model, read_model(reader, model), chip, request.workload, inner_of(p.layout));
      const OverlapRates<double> overlap = read_overlap(reader, hw->efficiency);
      const std::vector<StageShape> stages = partition(model, p.layout);
      const MeshChannels<double> free;
      const StepInput<double> in{.model = &model,
                                 .workload = &request.workload,
                                 .network = &cost,
                                 .channels = &free,
                                 .overlap = &overlap,
                                 .chip = &chip,
                                 .stages = &stages,
                                 .layout = p.layout};
      const Phases<double> pass = phases(in);
      StepOutline free_step;
      outline(in, totals_of(cost, pass), free_step);
      const double bound = step_lower_bound(free_step);
      EXPECT_LE(bound, p.step_s * (1 + 1e-12));
      // [FAMILY], planner.cpp: the whole pass bounds the time per sequence whatever the pipeline and accumulation.
      const double sequences = static_cast<double>(p.layout.pp * p.layout.data() * p.layout.micro_batch_seqs);
      const std::vector<StageShape> on_one = partition(model, Layout{});
      StepInput<double> whole = in;
      whole.stages = &on_one;
      EXPECT_LE(whole_model_time(whole, totals_of(cost, pass)) / sequences, p.step_s / p.batch_seqs * (1 + 1e-12));
    }
  }
}

}  // namespace
}  // namespace scalecalc
