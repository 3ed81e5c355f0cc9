// Parts of the hw outputs that both of them, or several places of one, are made of.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hw/hw.h"
#include "report/output.h"

namespace scalecalc {

/// A record in the making; absent figures leave no trace.
struct Figures {
  Record record;

  void heading(std::string_view label) { record.figures.push_back(scalecalc::heading(label)); }
  void text(std::string_view key, std::string_view label, std::string value);
  /// Null where there is none.
  void number(std::string_view key, std::string_view label, Format format, const std::optional<double>& value);
  void flag(std::string_view key, std::string_view label, bool value);
  /// People see none of it.
  void list(std::string_view key, const std::vector<std::string>& items);
  /// Without a label, for machines; with one, each is spelled out under it.
  void records(std::string_view key, std::string_view label, std::vector<Record> items);
  void append(std::vector<Figure> figures);

  template <class T>
  void add(std::string_view key, std::string_view label, Format format, const T& value) {
    record.figures.push_back(figure(key, label, format, value));
  }
  template <class T>
  void add(std::string_view key, std::string_view label, Format format, const std::optional<T>& value) {
    if (value) add(key, label, format, *value);
  }
};

std::vector<Figure> hw_labels(const HardwareSpec& hw);
std::vector<Figure> hw_memory(const HardwareSpec& hw);
std::vector<Figure> hw_power_and_price(const HardwareSpec& hw);
std::vector<Figure> hw_unit_facts(const HardwareSpec& hw);
/// A tier's facts, and what its domains and switches carry if `level` is given.
Record hw_tier(const Tier& tier, const HwLevel* level);
std::vector<Figure> hw_efficiency(const HardwareSpec& hw);
std::vector<Record> hw_prices(const HardwareSpec& hw);
/// Blocks of figures and where they come from.
std::vector<std::pair<std::string, std::string>> hw_sources(const HardwareSpec& hw);
/// The same as the member `sources` of a chip.
std::vector<Record> hw_source_records(const HardwareSpec& hw);

/// Whether the ratio of two chips in this figure says something.
bool compares(std::string_view key);

}  // namespace scalecalc
