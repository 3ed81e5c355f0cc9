// The answer of train in the formats that tests read.
#pragma once

#include <string>
#include <string_view>

#include "report/output.h"
#include "train/train_curve_output.h"
#include "train/train_output.h"

namespace scalecalc {

inline Report train_report(const TrainAnswer& answer, bool complete = true, bool all_reasons = false) {
  return output_report(train_output(answer, complete, all_reasons), answer.question.explain > 0);
}

inline std::string train_json(const TrainAnswer& answer, std::string_view tool_version) {
  Output output = train_output(answer);
  output.question = "scalecalc train";  // which the command line gives it
  return output_json(output, tool_version, answer.question.explain > 0);
}

inline std::string train_jsonl(const TrainAnswer& answer, std::string_view tool_version) {
  return output_jsonl(train_output(answer), tool_version);
}

inline Report train_curve_report(const TrainCurve& curve) { return output_report(train_curve_output(curve), false); }

}  // namespace scalecalc
