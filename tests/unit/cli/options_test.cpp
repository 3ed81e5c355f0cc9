#include "cli/options.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/diagnostic.h"
#include "cli/commands.h"
#include "cli/outputs.h"
#include "train/train_options.h"

namespace scalecalc::cli {
namespace {

using Words = std::vector<std::string>;

Arguments parse(const Words& words) { return parse_arguments(words, train_command()); }

/// Every message with its hint, a line each.
std::string complaint(const std::function<void()>& work) {
  try {
    work();
  } catch (const UserError& error) {
    std::string out;
    for (const Diagnostic& d : error.diagnostics()) out += render(d);
    return out;
  }
  return "";
}

std::string complaint_about(Words words) {
  return complaint([&] { train_question(parse(words)); });
}

/// A right question, and more words.
Words with(Words more) {
  Words out{"llama3-8b", "--hw", "h100-sxm", "--chips", "64"};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

TEST(Options, AcceptsFlagsInEveryForm) {
  for (const Words& words : {Words{"m", "--hw", "x"}, Words{"--hw=x", "m"}, Words{"--hw", "x", "--", "m"}}) {
    const Arguments arguments = parse(words);
    EXPECT_EQ(arguments.value("--hw"), "x");
    EXPECT_EQ(arguments.positionals(), Words{"m"});
  }
  EXPECT_EQ(parse({"-ojson", "-o", "csv=a=b", "--output=html=x", "-qo", "table"}).values("--output"),
            (Words{"json", "csv=a=b", "html=x", "table"}));
  EXPECT_TRUE(parse({"-q"}).has("--quiet"));
  EXPECT_FALSE(parse({}).has("--quiet"));
  EXPECT_EQ(parse({"--", "--hw"}).positionals(), Words{"--hw"});
}

TEST(Options, WhatIsSaidButOneFlagIsAKey) {
  const auto said = [](const Words& words) { return parse(words).said_but("--chips"); };
  EXPECT_EQ(said({"m", "--hw", "x", "--chips", "8"}), said({"m", "--chips", "16", "--hw=x"}));
  EXPECT_EQ(said({"m", "--hw", "x", "--chips", "8"}), said({"m", "--hw", "x"}));
  EXPECT_NE(said({"m", "--hw", "x"}), said({"m", "--hw", "y"}));
  EXPECT_NE(said({"m", "--hw", "x"}), said({"n", "--hw", "x"}));
  EXPECT_NE(said({"m", "--hw", "x"}), said({"m", "--hw", "x", "--variants"}));
  EXPECT_NE(said({"m", "--set", "a=1", "--set", "b=2"}), said({"m", "--set", "a=1 3:b=2"})) << "values may hold blanks";
  EXPECT_NE(said({"m", "n"}), said({"m 1:n"}));
}

TEST(Options, KeepsValuesAsTheyAreWritten) {
  EXPECT_EQ(parse({"--chips", "010"}).value("--chips"), "010");
  EXPECT_EQ(parse({"--chips", "-4"}).value("--chips"), "-4");
  EXPECT_EQ(parse({"--chips", "-.5"}).value("--chips"), "-.5");
  EXPECT_EQ(parse({"--hw", "-"}).value("--hw"), "-");
  EXPECT_EQ(parse({"-", "-4"}).positionals(), (Words{"-", "-4"}));
  EXPECT_EQ(parse({"--set", "[a,b]"}).value("--set"), "[a,b]");
  EXPECT_EQ(parse({"--set", "a b"}).value("--set"), "a b");
  EXPECT_EQ(parse({"--set=--x"}).value("--set"), "--x");
}

TEST(Options, ExplainMayStandAlone) {
  EXPECT_EQ(parse({"--explain", "m"}).value("--explain"), "0");
  EXPECT_EQ(parse({"--explain", "m"}).positionals(), Words{"m"});
  EXPECT_EQ(parse({"--explain", "3"}).value("--explain"), "3");
  EXPECT_EQ(parse({"--explain=4", "m"}).value("--explain"), "4");
  EXPECT_EQ(parse({"--ep-overlap", "m"}).value("--ep-overlap"), "on");
  EXPECT_EQ(parse({"--ep-overlap", "m"}).positionals(), Words{"m"});
  EXPECT_EQ(parse({"--ep-overlap", "off"}).value("--ep-overlap"), "off");
  EXPECT_EQ(parse({"--ep-overlap=auto", "m"}).value("--ep-overlap"), "auto");
  EXPECT_EQ(parse({"--explain", "--json"}).value("--explain"), "0");
}

TEST(Options, ComplainsInItsOwnWords) {
  EXPECT_EQ(complaint([] {
              parse({"--chisp", "4"});
            }),
            "error: unknown flag '--chisp'\nhint: did you mean '--chips'? scalecalc train --help lists the flags\n");
  EXPECT_EQ(complaint([] {
              parse({"-hw", "x"});
            }),
            "error: unknown flag '-hw'\nhint: scalecalc train --help lists the flags\n");
  EXPECT_EQ(complaint([] { parse({"--hw"}); }), "error: --hw needs a value\nhint: for example --hw tpu-v5p\n");
  EXPECT_EQ(complaint([] {
              parse({"--hw", "--chips", "4"});
            }),
            "error: --hw needs a value\nhint: for example --hw tpu-v5p\n");
  EXPECT_EQ(complaint([] { parse({"--hw="}); }), "error: --hw needs a value\nhint: for example --hw tpu-v5p\n");
  EXPECT_EQ(complaint([] { parse({"--json=x"}); }), "error: --json takes no value\n");
  EXPECT_EQ(complaint([] { parse({"--hw", "a", "--hw", "b"}); }), "error: --hw is given twice: 'a' and 'b'\n");
}

TEST(TrainOptions, ReadsAQuestion) {
  const TrainQuestion q = train_question(parse(with({"--seq",
                                                     "8Ki",
                                                     "--batch-tokens",
                                                     "4M",
                                                     "--tokens",
                                                     "15T",
                                                     "--price",
                                                     "$4.20",
                                                     "--slices",
                                                     "2",
                                                     "--fix",
                                                     "tp=8,sp=1,remat=full,mb=2",
                                                     "--fix",
                                                     "grad_accum=4,schedule=auto",
                                                     "--max",
                                                     "pp=4",
                                                     "--zero",
                                                     "3",
                                                     "--schedule",
                                                     "1f1b",
                                                     "--objective",
                                                     "cost",
                                                     "--top",
                                                     "20",
                                                     "--variants",
                                                     "--efficiency",
                                                     "ideal",
                                                     "--explain",
                                                     "2",
                                                     "--set",
                                                     "hw.a=1",
                                                     "--set",
                                                     "model.b=2",
                                                     "--precision",
                                                     "fp8",
                                                     "--optimizer",
                                                     "muon"})));
  EXPECT_EQ(q.model, "llama3-8b");
  EXPECT_EQ(q.hardware, "h100-sxm");
  EXPECT_EQ(q.chips, 64);
  EXPECT_EQ(q.slices, 2);
  EXPECT_EQ(q.seq, 8192);
  EXPECT_EQ(q.batch_tokens, 4e6);
  EXPECT_EQ(q.tokens, 15e12);
  EXPECT_EQ(q.price, 4.2);
  EXPECT_EQ(q.fix.tp, 8);
  EXPECT_EQ(q.fix.sp, 1);
  EXPECT_EQ(q.fix.remat, Remat::kFull);
  EXPECT_EQ(q.fix.micro_batch_seqs, 2);
  EXPECT_EQ(q.fix.grad_accum, 4);
  EXPECT_EQ(q.fix.zero, 3);
  EXPECT_EQ(q.fix.schedule, Schedule::k1F1B);
  EXPECT_EQ(q.max.pp, 4);
  EXPECT_EQ(q.objective, Objective::kCost);
  EXPECT_EQ(q.top, 20U);
  EXPECT_TRUE(q.variants);
  EXPECT_TRUE(q.ideal);
  EXPECT_TRUE(q.explain);
  EXPECT_EQ(q.plan, 2U);
  EXPECT_EQ(q.set, (Words{"hw.a=1", "model.b=2"}));
  EXPECT_EQ(q.precision, "fp8");
  EXPECT_EQ(q.optimizer, "muon");
}

TEST(TrainOptions, LeavesOpenWhatIsNotSaid) {
  const TrainQuestion q = train_question(parse(with({"--remat", "auto", "--zero", "auto"})));
  EXPECT_FALSE(q.seq || q.batch_tokens || q.batch_seqs || q.tokens || q.price || q.topology || q.precision);
  EXPECT_FALSE(q.fix.remat || q.fix.zero || q.fix.schedule);
  EXPECT_EQ(q.explain, 0U);
  EXPECT_EQ(q.top, 10U);
  EXPECT_FALSE(q.ideal);
}

TEST(TrainOptions, APolicyOfRematMeansAllLayersUnlessItSaysHowMany) {
  const auto fix = [](Words words) { return train_question(parse(with(std::move(words)))).fix; };
  for (const Words& words :
       {Words{"--remat", "full"}, Words{"--fix", "remat=full"}, Words{"--fix", "remat=full:8"},
        Words{"--remat", "full:8"}, Words{"--fix", "remat=full,remat_layers=8"},
        Words{"--fix", "remat_layers=8,remat=full"}, Words{"--fix", "remat_layers=8", "--remat", "full"}}) {
    const bool some = words.back().find('8') != std::string::npos || words.size() == 4;
    EXPECT_EQ(fix(words).remat, Remat::kFull) << words.back();
    EXPECT_EQ(fix(words).remat_layers, some ? 8 : 0) << words.back();
  }
  EXPECT_EQ(fix({"--remat", "mlp:auto"}).remat, Remat::kMlp);
  EXPECT_FALSE(fix({"--remat", "mlp:auto"}).remat_layers);
  const TrainQuestion q = train_question(parse(with({"--why-not", "remat=full", "--from", "tp=8,remat=attention:2"})));
  EXPECT_EQ(q.why_not.front().remat_layers, 0);
  EXPECT_EQ(q.from->pins.remat_layers, 2);
}

TEST(TrainOptions, ATopologyCountsTheChips) {
  const TrainQuestion q = train_question(parse({"m", "--hw", "tpu-v5p", "--topology", "4x4x8", "--slices", "2"}));
  EXPECT_EQ(q.chips, 256);
  EXPECT_EQ(q.topology, "4x4x8");
}

TEST(TrainOptions, ReportsEveryProblemAtOnce) {
  EXPECT_EQ(complaint_about({"--chips", "0", "--seq", "4GB"}),
            "error: MODEL is missing: which model is to be trained?\n"
            "hint: for example: scalecalc train llama3-70b --hw tpu-v5p --chips 8960\n"
            "error: --hw is missing: on which hardware?\n"
            "hint: for example: scalecalc train llama3-70b --hw tpu-v5p --chips 8960\n"
            "error: --seq: '4GB' is not a count: 'GB' is a unit of size\n"
            "hint: accepted: 8960, 4M, 70B, 15T, 128k, 16e6, 4Mi; from 1 to 1,000,000,000\n"
            "error: --chips '0' is out of range\n"
            "hint: a whole number from 1 to 16,777,216\n");
}

struct Wrong {
  Words words;
  std::string message;
};

TEST(TrainOptions, WholeMessages) {
  const std::string count = "hint: accepted: 8960, 4M, 70B, 15T, 128k, 16e6, 4Mi; from 1 to 16,777,216\n";
  const std::vector<Wrong> all{
      {{"m", "--hw", "x", "--chips", "-4"}, "error: --chips: '-4' is not a count: it is negative\n" + count},
      {{"m", "--hw", "x", "--chips", "2.5"},
       "error: --chips: '2.5' is not a count: it is not a whole number\n" + count},
      {{"m", "--hw", "x", "--chips", "1e18"},
       "error: --chips '1e18' is out of range\nhint: a whole number from 1 to 16,777,216\n"},
      {{"m", "--hw", "x", "--chips", "64..8"},
       "error: --chips: '64..8' ends below its start\n"
       "hint: a value, a list 8,16,64, or a range 8..8192*2, 0..4096+512 or 1..512 (doubling)\n"},
      {with({"--fix", "tq=8"}),
       "error: --fix has no dimension 'tq'\nhint: did you mean 'tp'? dimensions: dp, fsdp, tp, sp, cp, pp, vpp, ep, "
       "etp, ep_overlap, zero, mb, ga, split, remat, cp_comm, offload, schedule, loss\n"},
      {with({"--fix", "tp=8,tp=4"}), "error: --fix gives 'tp' twice\n"},
      {with({"--fix", "tp"}), "error: --fix: 'tp' is not KEY=VALUE\nhint: for example --fix tp=8,pp=16\n"},
      {with({"--max", "schedule=1f1b"}),
       "error: --max cannot bound schedule, which has no order\nhint: pin it: --fix schedule=1f1b\n"},
      {with({"--fix", "remat=full", "--remat", "none"}),
       "error: --remat and --fix remat= say different things\nhint: give one of them\n"},
      {with({"--fix", "remat=full:8,remat_layers=4"}),
       "error: --fix remat full:8 and remat_layers=4 say different things\nhint: give one of them\n"},
      {with({"--remat", "full:0"}),
       "error: --remat: 'full:0' is no number of layers\n"
       "hint: full (all layers), full:8 (the first 8 of each stage) or full:auto (as many as must be)\n"},
      {with({"--remat", "ful:8"}),
       "error: --remat cannot be 'ful'\nhint: did you mean 'full'? accepted: auto, none, selective, attention, mlp, "
       "full\n"},
      {with({"--schedule", "interleave"}),
       "error: --schedule cannot be 'interleave'\nhint: did you mean 'interleaved'? accepted: auto, gpipe, 1f1b, "
       "interleaved, zero-bubble, dualpipe\n"},
      {with({"--batch-seqs", "0"}),
       "error: --batch-seqs '0' is not above zero\nhint: a whole number such as 8960, 4M, 70B, 15T or 4Mi\n"},
      {with({"--price", "4GB"}),
       "error: --price: '4GB' is not a price per hour: 'GB' is a unit of size\n"
       "hint: accepted: 4.2, $4.20, 4.2USD/h\n"},
      {with({"--explain", "12"}), "error: plan 12 is beyond the 10 plans shown\nhint: add --top 12\n"},
      {{"m", "n", "--hw", "x", "--chips", "8"},
       "error: unexpected argument 'n': train takes one MODEL, and that is 'm'\n"
       "hint: for example: scalecalc train llama3-70b --hw tpu-v5p --chips 8960\n"},
  };
  for (const Wrong& wrong : all) EXPECT_EQ(complaint_about(wrong.words), wrong.message);
}

TEST(AsksForJson, LooksBeforeParsing) {
  EXPECT_TRUE(asks_for_json({"train", "--json"}));
  EXPECT_TRUE(asks_for_json({"-o", "json"}));
  EXPECT_TRUE(asks_for_json({"-ojson"}));
  EXPECT_TRUE(asks_for_json({"--output=json=-"}));
  EXPECT_FALSE(asks_for_json({"-o", "json=a.json"}));
  EXPECT_FALSE(asks_for_json({"-o", "jsonl"}));
  EXPECT_FALSE(asks_for_json({"--", "--json"}));
  EXPECT_FALSE(asks_for_json({"-o"}));
}

}  // namespace
}  // namespace scalecalc::cli
