// What a chip is: peak, memory, critical intensity, price.
#include <optional>

#include "agreement/row.h"

namespace scalecalc::agreement {
namespace {

struct Chip {
  std::string name;
  std::optional<std::string> peak, bandwidth, capacity;  ///< of the data sheet
};

std::vector<Cell> cells(const std::optional<std::string>& by_hand_value, std::vector<Cell> asked) {
  if (by_hand_value) asked.insert(asked.begin(), by_hand(*by_hand_value));
  return asked;
}

void rate_rows(const Chip& chip, Rows& rows) {
  const std::string hw = "hw " + chip.name;
  const std::string on = " --hw " + chip.name;
  const std::string roofline = "roofline matmul 512x8192x28672" + on;
  const std::string matmul =
      "matmul \"A[I, J_X] * B[J_X, K] -> C[I, K]\"" + on + " --mesh X=4 --dims I=4096,J=8192,K=8192";
  const std::string bounds = "bounds llama3-8b" + on + " --chips 64";
  const std::string train = "train llama3-8b" + on + " --chips 64 --top 1 --efficiency ideal";
  rows.push_back({"peak in bf16", chip.name,
                  cells(chip.peak, {{hw, "chips[0].matmul_flops_per_s.bf16"},
                                    {roofline, "machine.peak_flops_per_s"},
                                    {matmul, "machine.compute_flops_per_s"},
                                    {bounds, "bounds[name=total_flops_per_s].value / 64"},
                                    {train, "plans[0].tflops_per_chip * 1e12 / plans[0].mfu"}})});
  rows.push_back({"HBM bandwidth", chip.name,
                  cells(chip.bandwidth, {{hw, "chips[0].memory_bandwidth_bytes_per_s"},
                                         {roofline, "machine.memory_bytes_per_s"},
                                         {matmul, "machine.hbm_bytes_per_s"},
                                         {bounds, "bounds[name=total_hbm_bytes_per_s].value / 64"}})});
  rows.push_back(
      {"HBM capacity", chip.name,
       cells(chip.capacity, {{hw, "chips[0].memory_bytes"},
                             {bounds, "bounds[name=hbm_of_all_chips].value / 64"},
                             {bounds, "bounds[name=total_hbm].value / 64"},
                             {train, "plans[0].memory_bytes.capacity"},
                             {"serve llama3-8b" + on + " --chips 1 --batch 4", "points[0].memory_bytes.capacity"}})});
  rows.push_back({"critical intensity of HBM",
                  chip.name,
                  {{hw, "chips[0].critical_intensity_flops_per_byte.hbm"},
                   {roofline, "machine.critical_intensity_flops_per_byte.hbm"},
                   {roofline, "critical_batch_approximate"},
                   {bounds, "bounds[name=critical_batch].value"}}});
}

}  // namespace

void machine_rows(Rows& rows) {
  const std::string recordings = SCALECALC_SOURCE_DIR "/tests/data/profiles/";
  const std::string recorded = "profile " + recordings + "kineto.json --hw h100-sxm";
  rows.push_back({"a product's least time",
                  "h100-sxm",
                  {by_hand("2 * 1000 * 1000 * 1000 / 989.4e12"),
                   {"roofline matmul 1000x1000x1000 --hw h100-sxm", "points[0].time_s"},
                   {recorded, "kernels[0].roofline_s"}}});
  rows.push_back({"a product's FLOPs",
                  "h100-sxm",
                  {by_hand("2 * 1024 * 512 * 256"),
                   {"roofline matmul 1024x512x256 --hw h100-sxm", "points[0].flops"},
                   {"profile " + recordings + "step.hlo --hw h100-sxm", "products[0].flops / products[0].count"}}});
  for (const Chip& chip :
       {Chip{"h100-sxm", "989.4e12", "3.35e12", "85899345920"}, Chip{"tpu-v5p", "459e12", "2765e9", "102005473280"},
        Chip{"b200", {}, {}, {}}, Chip{"book/tpu-v5p", "459e12", "2.8e12", "96e9"}}) {
    rate_rows(chip, rows);
  }
  const std::string compare = "compare llama3-8b --hw h100-sxm,tpu-v5p --chips 64";
  const std::string distill = "distill llama3-8b --teacher llama3-70b --hw h100-sxm --chips 64 --tokens 100B";
  const std::string rl = "rl llama3-8b --hw h100-sxm --chips 16 --prompts 64 --rollouts 8 --prompt 256 --generate 512";
  const std::string h100 = "systems[hardware=h100-sxm].";
  rows.push_back({"HBM capacity",
                  "h100-sxm, of jobs",
                  {by_hand("85899345920"),
                   {compare, h100 + "memory_bytes.capacity"},
                   {distill, "student.memory_bytes.capacity"},
                   {rl, "trainer.memory_bytes.capacity"},
                   {rl, "rollouts.memory_bytes.capacity"}}});
  rows.push_back({"critical intensity of HBM",
                  "h100-sxm, where rates are moved",
                  {{"hw h100-sxm", "chips[0].critical_intensity_flops_per_byte.hbm"},
                   {"sensitivity llama3-8b --hw h100-sxm --chips 64", "balance[1].flops_per_byte"}}});
  rows.push_back({"peak in fp8",
                  "h100-sxm",
                  {by_hand("1978.9e12"),
                   {"hw h100-sxm", "chips[0].matmul_flops_per_s.fp8"},
                   {"roofline matmul 512x8192x28672 --hw h100-sxm --dtype fp8", "machine.peak_flops_per_s"},
                   {"bounds llama3-8b --hw h100-sxm --chips 64 --flops fp8 --for serving",
                    "bounds[name=total_flops_per_s].value / 64"},
                   {"train llama3-8b --hw h100-sxm --chips 64 --top 1 --precision fp8",
                    "plans[0].tflops_per_chip * 1e12 / plans[0].mfu"}}});
  const std::string train = "train llama3-8b --hw h100-sxm --chips 64 --top 1";
  rows.push_back(
      {"dollars of a chip-hour",
       "h100-sxm",
       {{"hw h100-sxm", "chips[0].usd_per_chip_hour"},
        {train, "query.price_usd_per_chip_hour"},
        {train, "plans[0].run.cost_usd / plans[0].run.chip_hours"},
        {compare, h100 + "price.usd_per_chip_hour"},
        {"bounds llama3-8b --hw h100-sxm --chips 64", "bounds[name=cost].value / bounds[name=chip_hours].value"},
        {"scaling-law llama3-8b --hw h100-sxm --mfu 40%", "query.usd_per_chip_hour"},
        {distill, "run.cost_usd / run.chip_hours"},
        {rl, "run.cost_usd / run.chip_hours"},
        {"model design --hw h100-sxm --chips 64 --deadline 30d",
         "models[0].cost_usd * 3600 / models[0].chips / models[0].run_time_s"},
        {"serve llama3-8b --hw h100-sxm --chips 1 --batch 16",
         "points[0].usd_per_million_output_tokens * points[0].tokens_per_s * 3600 / 1e6 / points[0].chips"}}});
  rows.push_back({"watts of a chip",
                  "h100-sxm",
                  {by_hand("700"),
                   {"hw h100-sxm", "chips[0].tdp_w"},
                   {train, "plans[0].run.power.chip_w"},
                   {compare, h100 + "run.energy_j / " + h100 + "run.chip_hours / 3600"},
                   {distill, "run.energy_j / run.chip_hours / 3600"},
                   {rl, "run.energy_j / run.chip_hours / 3600"},
                   {"serve llama3-8b --hw h100-sxm --chips 1 --batch 16",
                    "points[0].energy_j_per_output_token * points[0].tokens_per_s / points[0].chips"}}});
  rows.push_back({"FLOPs for a dollar",
                  "h100-sxm",
                  {{"hw h100-sxm", "chips[0].flops_per_usd.bf16"},
                   {"bounds llama3-8b --hw h100-sxm", "bounds[name=flops_per_usd].value"},
                   {compare, h100 + "peak_flops_per_usd"}}});
}

}  // namespace scalecalc::agreement
