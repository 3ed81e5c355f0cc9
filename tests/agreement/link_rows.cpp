// Links: a tier's rate, what follows from it, the time of one collective.
#include "agreement/row.h"

namespace scalecalc::agreement {
namespace {

const std::string kOversubscribed = " --set hw.network.leaf.oversubscription=4";

std::string explained(const std::string& words) { return "train " + words + " --top 1 --explain"; }

std::string contraction(const std::string& machine) {
  return "matmul \"A[I, J_X] * B[J_X, K] -> C[I, K]\" --hw " + machine + " --dims I=4096,J=8192,K=8192";
}

/// 64 MiB summed over some chips of a node.
Row all_reduce(const std::string& chips, const std::string& in_network) {
  const std::string set =
      " --set hw.network.node.in_network_reduction=" + std::string(in_network == "on" ? "true" : "false");
  return {"all-reduce of 64 MiB, in the network " + in_network,
          chips + " chips of a node of h100-sxm",
          {{"collective all-reduce --hw h100-sxm --bytes 64MiB --group " + chips + " --in-network " + in_network,
            "points[0].time_s"},
           {contraction("h100-sxm --mesh X=" + chips) + set,
            "strategies[name=multiply, all-reduce C over X].communication_time_s"},
           {"roofline matmul 4096x8192x8192 --hw h100-sxm --split contraction --over scale-up --chips " + chips + set,
            "points[0].link_time_s"}}};
}

}  // namespace

void link_rows(Rows& rows) {
  rows.push_back(
      {"a chip's share of the leaf",
       "h100-sxm",
       {by_hand("50e9"),
        {"hw h100-sxm", "chips[0].bandwidth_bytes_per_s.leaf"},
        {"hw h100-sxm", "chips[0].bandwidth_bytes_per_s.node_egress / 8"},
        {"bounds llama3-70b --hw h100-sxm --chips 64", "989.4e12 / bounds[name=scale_out_intensity].value / 8"}}});
  const std::string h100 = "llama3-70b --hw h100-sxm --chips 64";
  const std::string v5p = "llama3-70b --hw tpu-v5p --chips 8960";
  rows.push_back({"tokens of a chip that FSDP needs",
                  "h100-sxm",
                  {by_hand("2473.5"),  // 989.4e12 / (8 x 50e9)
                   {"bounds " + h100, "bounds[name=fsdp_limit].value"},
                   {explained(h100), rule("FSDP limit, tokens per chip")},
                   {"hw h100-sxm", "chips[0].critical_intensity_flops_per_byte.node_egress"}}});
  rows.push_back({"tokens of a chip that FSDP needs",
                  "tpu-v5p",
                  {by_hand("765"),  // 459e12 / (2 x 100e9) / 3
                   {"bounds " + v5p, "bounds[name=fsdp_limit].value"},
                   {explained(v5p), rule("FSDP limit, tokens per chip")},
                   {"hw tpu-v5p", "chips[0].critical_intensity_flops_per_byte.ici_all_axes"}}});
  rows.push_back({"tokens of a chip that the best split needs",
                  "tpu-v5p",
                  {{"bounds " + v5p, "bounds[name=mixed_limit].value"},
                   {explained(v5p), rule("FSDP x TP limit, tokens per chip")}}});
  rows.push_back(
      {"most tensor ranks in a node",
       "h100-sxm",
       {{"bounds " + h100, "bounds[name=tp_limit].value"}, {explained(h100), rule("TP limit inside a node, chips")}}});
  struct Torus {
    std::string name, rate, peak;
  };
  for (const Torus& torus : {Torus{"tpu-v5p", "200e9", "459e12"}, Torus{"tpu-v4", "100e9", "275e12"},
                             Torus{"book/tpu-v5p", "180e9", "459e12"}}) {
    rows.push_back(
        {"one axis of the torus",
         torus.name,
         {by_hand(torus.rate),
          {"hw " + torus.name, "chips[0].bandwidth_bytes_per_s.ici"},
          {"bounds llama3-70b --hw " + torus.name, torus.peak + " / bounds[name=ici_intensity].value"},
          {"collective all-gather --mesh X=16 --wraparound on --bytes 1GB --hw " + torus.name, "points[0].bytes_per_s"},
          {contraction(torus.name + " --mesh X=16 --wraparound on"), "machine.network_bytes_per_s"}}});
  }
  rows.push_back(
      {"a chip's share of the network between slices",
       "tpu-v5e",
       {by_hand("3.125e9"),
        {"hw tpu-v5e", "chips[0].bandwidth_bytes_per_s.dcn"},
        {"bounds llama3-8b --hw tpu-v5e --chips 512 --slices 2", "197e12 / bounds[name=dcn_intensity].value"},
        {"collective all-reduce --hw tpu-v5e --mesh X=8,dcn=2 --axes dcn --bytes 1GB",
         "points[0].levels[name=dcn].bandwidth_bytes_per_s"}}});
  for (const std::string chips : {"4", "8"}) rows.push_back(all_reduce(chips, "off"));
  rows.push_back({"all-gather of 64 MiB",
                  "8 chips of a node of h100-sxm",
                  {{"collective all-gather --hw h100-sxm --group 8 --bytes 64MiB", "points[0].time_s"},
                   {"matmul \"A[I_X, J] * B[J, K] -> C[I, K]\" --hw h100-sxm --mesh X=8 --dims I=4096,J=8192,K=128",
                    "strategies[name~all-gather A over X].communication_time_s"}}});
}

void waiting_link_rows(Rows& rows) {
  const std::string h100 = "llama3-70b --hw h100-sxm --chips 64" + kOversubscribed;
  rows.push_back({"a chip's share of the leaf",
                  "h100-sxm, oversubscription 4",
                  {by_hand("12.5e9"),
                   {"hw h100-sxm" + kOversubscribed, "chips[0].bandwidth_bytes_per_s.leaf"},
                   {"hw h100-sxm" + kOversubscribed, "chips[0].bandwidth_bytes_per_s.node_egress / 8"},
                   {"bounds " + h100, "989.4e12 / bounds[name=scale_out_intensity].value / 8"}}});
  rows.push_back({"tokens of a chip that FSDP needs",
                  "h100-sxm, oversubscription 4",
                  {by_hand("9894"),  // 989.4e12 / (8 x 12.5e9)
                   {"bounds " + h100, "bounds[name=fsdp_limit].value"},
                   {explained(h100), rule("FSDP limit, tokens per chip")},
                   {"hw h100-sxm" + kOversubscribed, "chips[0].critical_intensity_flops_per_byte.node_egress"}}});
  const std::string experts = "mixtral-8x7b --hw h100-sxm --chips 64 --batch-tokens 4M --tokens 1T" + kOversubscribed;
  rows.push_back({"tokens of a chip that FSDP needs, experts",
                  "h100-sxm, oversubscription 4",
                  {by_hand("39576"),  // 8 experts of which a token visits 2: 4 x 9894
                   {"bounds " + experts, "bounds[name=fsdp_limit].value"},
                   {explained(experts), rule("FSDP limit, tokens per chip")}}});
  for (const std::string chips : {"4", "8"}) rows.push_back(all_reduce(chips, "on"));
}

}  // namespace scalecalc::agreement
