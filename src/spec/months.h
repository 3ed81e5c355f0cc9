// Months as dates of software and of runs are compared.
#pragma once

#include <string>
#include <string_view>

#include "config/fields.h"

namespace scalecalc {

/// "2024-05" of "2024-05-13" and "~2024-05"; of a year its middle; empty for other texts.
std::string month_of(std::string_view date);
/// Whether a run of `month` was before `date`, a month or a day. Not if either is empty: today's software, of always.
bool before(std::string_view month, std::string_view date);

/// A month or a day; a problem for any other text. Empty where the key may be missing, and is.
std::string required_date(Fields& fields, std::string_view key);
std::string optional_date(Fields& fields, std::string_view key);

}  // namespace scalecalc
