// Encoders, and decoders beside one: expected values are sums over the matrices of the class, written out.
#include <gtest/gtest.h>

#include <cmath>

#include "base/diagnostic.h"
#include "serve/requests.h"
#include "serve/serve_output.h"
#include "serve/serve_search.h"

namespace scalecalc {
namespace {

const std::string kFiles = SCALECALC_SOURCE_DIR "/tests/data/hf/";

ServeQuestion asked_of(const std::string& file, double prompt, double generate) {
  ServeQuestion out;
  out.model = kFiles + file + ".json";
  out.hardware = {"h100-sxm"};
  out.chips = 1;
  out.prompt = prompt;
  out.generate = generate;
  return out;
}

/// FLOPs of one request's prompt on one chip.
double flops_of_prompt(const ServeAnswer& answer) {
  const ServingSystem& system = answer.systems.front().serving;
  const ServeBasis<double> basis(Reader<double>{}, system);
  const Slice slice = slices_of(*system.hw, 1, 1).front();
  const ServeLayout layout;
  const StepTerms<double> terms = step_terms(basis, layout, slice, placed(*system.hw, slice, layout).front());
  StepRows<double> rows;
  rows.prefill = decoder_prompt(answer);
  rows.prompts = 1;
  return prompt_flops(terms, rows).value();
}

std::string refusal_of(const ServeQuestion& question) {
  try {
    resolve_serving(question, Catalog());
  } catch (const UserError& error) {
    return error.diagnostics().front().message;
  }
  return "";
}

/// 24 layers of 1024 and 4096: 12 x 1024^2 weights a token, and each of 128 tokens attends to all of them.
TEST(ServeEncoder, PassesItsTextOnce) {
  const ServeAnswer answer = resolve_serving(asked_of("bge-large-en", 128, 512), Catalog());
  EXPECT_TRUE(one_pass(answer));
  EXPECT_EQ(answer.question.generate, 1);
  const double token = 24 * (2.0 * 12 * 1024 * 1024 + 4.0 * 128 * 1024);
  EXPECT_DOUBLE_EQ(flops_of_prompt(answer), 128 * token);
}

TEST(ServeEncoder, IsNotSaidToAnswerInTokens) {
  const Output output = serve_output(serve_answer(asked_of("bge-large-en", 512, 1), Catalog()), false);
  EXPECT_TRUE(output.title.ends_with(": texts of 512 tokens, one pass and one answer each")) << output.title;
}

/// What is counted is named in every format; keys of JSON stay.
TEST(ServeEncoder, CountsTextsUnderEveryColumn) {
  const Output output = serve_output(serve_answer(asked_of("bge-large-en", 512, 1), Catalog()), true);
  std::size_t texts = 0;
  for (const Block& block : output.blocks) {
    for (const Record& record : block.records) {
      for (const Figure& figure : record.figures) {
        EXPECT_EQ(figure.label.find("tok/s"), std::string::npos) << figure.key;
        EXPECT_EQ(figure.label.find("M out"), std::string::npos) << figure.key;
        if (figure.key == "tokens_per_s_per_chip" && figure.label == "texts/s/chip") ++texts;
      }
    }
  }
  EXPECT_GE(texts, 2U) << "points and the best";
  ASSERT_EQ(output.plots.size(), 1U);
  EXPECT_EQ(output.plots.front().y.title, "texts/s per chip");
  const Output words = serve_output(serve_answer(asked_of("llama-3.2-1b", 512, 64), Catalog()), false);
  EXPECT_EQ(words.plots.front().y.title, "tokens/s per chip");
}

/// As many texts in a pass as a step takes tokens of; the others wait, so the throughput stays and the time grows.
TEST(ServeEncoder, TextsBeyondAStepWait) {
  ServeQuestion question = asked_of("bge-large-en", 512, 1);
  question.batches = {4, 8, 64};
  const ServeAnswer answer = serve_answer(question, Catalog());
  ASSERT_EQ(answer.points.size(), 3U);
  const auto of = [&](double batch) {
    for (const ServePoint& p : answer.points) {
      if (p.batch == batch) return p;
    }
    return ServePoint{};
  };
  const double step = answer.systems.front().serving.chunk_tokens / 512;
  EXPECT_LT(of(4).request_s, of(8).request_s);
  ASSERT_LT(step, 64);
  EXPECT_NEAR(of(64).request_s, of(64).decode_step_s * 64 / step, 1e-9 * of(64).request_s);
  EXPECT_EQ(of(8).memory.kv, 0);
  for (const ServePoint& p : answer.points) {
    EXPECT_NEAR(p.requests_per_s, p.batch / p.request_s, 1e-9 * p.requests_per_s);
    EXPECT_LE(p.floor_s, p.decode_step_s);
    EXPECT_LE(p.memory.total(), p.capacity);
  }
}

/// t5-base, 512 tokens of text: 12 layers of 4 x 768^2 + 2 x 768 x 3072 in the encoder, keys and values of its output
/// in each of 12 decoder layers, and one token through 6 x 768^2 + 2 x 768 x 3072 and the head.
TEST(ServeEncoder, ComesBeforeTheFirstTokenOfT5) {
  const ServeAnswer answer = resolve_serving(asked_of("t5-base", 512, 64), Catalog());
  EXPECT_FALSE(one_pass(answer));
  EXPECT_EQ(decoder_prompt(answer), 1);
  EXPECT_EQ(decode_context(answer), 33);
  const double d = 768, f = 3072, text = 512;
  const double encoder = 12 * (2 * (4 * d * d + 2 * d * f) + 4 * text * d) * text;
  const double keys = 12 * 2 * d * 2 * d * text;
  const double token = 12 * (2 * (6 * d * d + 2 * d * f) + 4 * text * d + 4 * 0.5 * d) + 2 * d * 32128;
  EXPECT_NEAR(flops_of_prompt(answer), encoder + keys + token, 1e-12 * encoder);
}

/// What stays of a request: keys and values of 12 layers for each token of the text, and for those generated.
TEST(ServeEncoder, KeepsKeysAndValuesOfTheText) {
  const ServeAnswer answer = resolve_serving(asked_of("t5-base", 512, 64), Catalog());
  const ServeMemory memory(ServeBasis<double>(Reader<double>{}, answer.systems.front().serving), ServeLayout{});
  EXPECT_DOUBLE_EQ(memory.sequence_bytes(0), 12 * 2 * 768 * 512 * 2.0);
  EXPECT_DOUBLE_EQ(memory.sequence_bytes(33), 12 * 2 * 768 * (512 + 33) * 2.0);
}

/// A decode step reads them too: with them empty it takes less.
TEST(ServeEncoder, DecodingReadsTheText) {
  const auto step = [](double text) {
    const ServeAnswer answer = resolve_serving(asked_of("t5-base", text, 64), Catalog());
    const ServingSystem& system = answer.systems.front().serving;
    const Slice slice = slices_of(*system.hw, 1, 1).front();
    return serving_cost(system, ServeLayout{}, slice).decode_step(64, 32);
  };
  const double more = (step(2048).kv - step(1024).kv).value();
  // 64 sequences, 12 layers, 1024 tokens of 2 x 768 elements of two bytes, at no more than 3.35 TB/s.
  EXPECT_GT(more, 64.0 * 12 * 1024 * 2 * 768 * 2 / 3.35e12);
  EXPECT_LT(more, 3 * 64.0 * 12 * 1024 * 2 * 768 * 2 / 3.35e12);
}

/// 1,500 frames whatever the decoder is prompted with; their stem and 32 layers once.
TEST(ServeEncoder, WhisperReadsItsFramesOnce) {
  const ServeAnswer answer = resolve_serving(asked_of("whisper-large-v3", 4, 100), Catalog());
  const double d = 1280, f = 5120, frames = 1500;
  // The first convolution takes 128 bands of twice as many frames, the second halves them; each has three taps.
  const double stem = 2 * (2 * 3 * 128 * d + 3 * d * d);
  const double encoder = (stem + 32 * (2 * (4 * d * d + 2 * d * f) + 4 * frames * d)) * frames;
  const double keys = 32 * 2 * d * 2 * d * frames;
  const double tokens = 4 * 32 * (2 * (6 * d * d + 2 * d * f) + 4 * frames * d + 4 * 2 * d) + 2 * d * 51866;
  EXPECT_NEAR(flops_of_prompt(answer), encoder + keys + tokens, 1e-3 * encoder);
}

/// Without images no layer attends to any, and none of their keys and values stay.
TEST(ServeEncoder, TextAloneNeedsNoImages) {
  const auto kept = [](const std::string& images) {
    ServeQuestion question = asked_of("llama-3.2-11b-vision", 4096, 64);
    question.images = images;
    const ServeAnswer answer = resolve_serving(question, Catalog());
    return ServeMemory(ServeBasis<double>(Reader<double>{}, answer.systems.front().serving), ServeLayout{})
        .sequence_bytes(4096);
  };
  const double text = kept("");
  EXPECT_DOUBLE_EQ(text, 32 * 2 * 8 * 128 * 4096 * 2.0);  // 40 layers, of which 8 attend to images alone
  EXPECT_GT(kept("1x560x560"), text);
}

/// Four stages wait for the first, which has the tower: a prompt takes no less than four times the tower alone.
TEST(ServeEncoder, TowersStandOnTheFirstStage) {
  const auto prefill = [](const std::string& images, std::int64_t stages) {
    ServeQuestion question = asked_of("llava-1.5-7b", 1024, 64);
    question.images = images;
    question.chips = stages;
    const ServeAnswer answer = resolve_serving(question, Catalog());
    const ServingSystem& system = answer.systems.front().serving;
    const Slice slice = slices_of(*system.hw, stages, 1).front();
    return serving_cost(system, ServeLayout{.pp = stages}, slice).prefill(1024).total().value();
  };
  const double tower = prefill("1x336x336", 1) - prefill("", 1);
  EXPECT_GT(tower, 0);
  EXPECT_GT(prefill("1x336x336", 4), 4 * tower);
  EXPECT_GT(prefill("1x336x336", 4) - prefill("", 4), 3 * tower);
}

/// CLIP's 24 layers of 1024 and 4096 have 16 heads: on 8 ranks each has an eighth of their matrices, and the ends
/// whole.
TEST(ServeEncoder, TensorRanksDivideTowers) {
  const auto weights = [](const char* file, std::int64_t ranks) {
    ServeQuestion question = asked_of(file, 1024, 64);
    question.chips = ranks;
    const ServeAnswer answer = resolve_serving(question, Catalog());
    const ServeBasis<double> basis(Reader<double>{}, answer.systems.front().serving);
    return ServeMemory(basis, ServeLayout{.tp = ranks, .etp = ranks}).parts(0, 1).weights;
  };
  const double layers = 24 * 12.0 * 1024 * 1024 * 2;
  const double one = weights("llava-1.5-7b", 1) - weights("llama-2-7b", 1);
  const double eight = weights("llava-1.5-7b", 8) - weights("llama-2-7b", 8);
  EXPECT_NEAR(one - eight, layers * 7 / 8, 5e-3 * layers);
}

/// With a chunk of a fraction of the text, too: it passes whole, and memory holds that.
TEST(ServeEncoder, OfHeadlessDecodersIsOnePassToo) {
  ServeQuestion question = asked_of("bge-large-en", 8192, 1);
  question.model = "llama3-8b";
  question.set = {"model.head_outputs=0"};
  question.chunk = 1024;
  const ServeAnswer answer = resolve_serving(question, Catalog());
  EXPECT_TRUE(one_pass(answer));
  EXPECT_EQ(answer.systems.front().serving.chunk_tokens, 8192);
}

TEST(ServeEncoder, IsExplainedAsItIsRanked) {
  ServeQuestion question = asked_of("bge-large-en", 512, 1);
  question.batches = {8, 64};
  const ServeAnswer answer = serve_answer(question, Catalog());
  ASSERT_EQ(answer.points.size(), 2U);
  for (const ServePoint& point : answer.points) {
    EXPECT_NEAR(explain_point(answer, point).decode_step.value().value(), point.decode_step_s, 1e-12);
  }
}

/// The mean length is asked, and the decoder holds none of it.
TEST(ServeEncoder, TextsOfSeveralLengthsAreTheEncoders) {
  ServeQuestion question = asked_of("t5-base", 320, 64);
  question.mean_context = 352;
  EXPECT_EQ(decode_context(resolve_serving(question, Catalog())), 33);
  EXPECT_NO_THROW(resolve_serving(
      [&] {
        ServeQuestion encoder = asked_of("bge-large-en", 320, 1);
        encoder.mean_context = 320;
        return encoder;
      }(),
      Catalog()));
}

TEST(ServeEncoder, ARequestIsAsLongAsItsLongerStack) {
  EXPECT_EQ(longest_request(resolve_serving(asked_of("bge-large-en", 512, 300), Catalog())), 512);
  EXPECT_EQ(longest_request(resolve_serving(asked_of("t5-base", 512, 64), Catalog())), 512);
  EXPECT_EQ(longest_request(resolve_serving(asked_of("t5-base", 16, 64), Catalog())), 65);
  EXPECT_EQ(longest_request(resolve_serving(asked_of("whisper-large-v3", 4, 100), Catalog())), 104);
}

/// Answers of two tokens: with as many texts in flight as half of them begin at once, steps take no more of them than
/// the chunk's tokens, so that more in flight are no more a second.
TEST(ServeEncoder, AStepTakesAsManyTextsAsTheEncoderPasses) {
  ServeQuestion question = asked_of("t5-base", 512, 2);
  question.batches = {256, 1024};
  const ServeAnswer answer = serve_answer(question, Catalog());
  ASSERT_EQ(answer.points.size(), 2U);
  const double texts = answer.systems.front().serving.chunk_tokens / 512;
  for (const ServePoint& point : answer.points) {
    const double step = point.batch / point.requests_per_s / (point.batch / texts);  // of as many texts
    const double flops = texts * 512 * 12 * 2 * (4 * 768.0 * 768 + 2 * 768.0 * 3072);
    EXPECT_GT(step, flops / 989e12);
  }
  EXPECT_NEAR(answer.points[0].requests_per_s / answer.points[1].requests_per_s, 1, 0.25);
}

TEST(ServeEncoder, RefusesWhatOnlyDecodersDo) {
  ServeQuestion question = asked_of("bge-large-en", 128, 1);
  question.speculation = SpeculationAsked{"llama3-8b", 4, 0.7};
  EXPECT_NE(refusal_of(question).find("--speculative has no meaning"), std::string::npos) << refusal_of(question);
  question = asked_of("t5-base", 128, 16);
  question.prefix_hit = 0.5;
  EXPECT_NE(refusal_of(question).find("--prefix-hit has no meaning: an encoder reads"), std::string::npos)
      << refusal_of(question);
}

}  // namespace
}  // namespace scalecalc
