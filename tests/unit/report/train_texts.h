// The answer of train in the formats that tests read.
#pragma once

#include <string>
#include <string_view>

#include "report/sheet.h"
#include "report/train_curve_sheet.h"
#include "report/train_sheet.h"

namespace scalecalc {

inline Report train_report(const TrainAnswer& answer, bool complete = true, bool all_reasons = false) {
  return sheet_report(train_sheet(answer, complete, all_reasons), answer.question.explain > 0);
}

inline std::string train_json(const TrainAnswer& answer, std::string_view tool_version) {
  return sheet_json(train_sheet(answer), tool_version, answer.question.explain > 0);
}

inline std::string train_jsonl(const TrainAnswer& answer, std::string_view tool_version) {
  return sheet_jsonl(train_sheet(answer), tool_version);
}

inline Report train_curve_report(const TrainCurve& curve) { return sheet_report(train_curve_sheet(curve), false); }

}  // namespace scalecalc
