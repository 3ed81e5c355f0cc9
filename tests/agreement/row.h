// The table of questions that several commands answer. A row is one fact of one machine or model; its cells are the
// commands that can say it and must agree. A new command joins by a cell, a new fact by a row.
#pragma once

#include <string>
#include <vector>

namespace scalecalc::agreement {

struct Cell {
  std::string command;  ///< without --json; empty: the expression is a number worked out by hand
  std::string value;    ///< an expression over the answer (ask.h), in base units
};

struct Row {
  std::string fact, machine;
  std::vector<Cell> cells;
  double tolerance = 1e-9;  ///< relative; more only where the row says why
};

using Rows = std::vector<Row>;

/// Known by hand, not by any command.
inline Cell by_hand(const std::string& value) { return {"", value}; }

/// A figure that `train --explain` works out by rules of thumb.
inline std::string rule(const std::string& name) {
  return "explain[title~Rules of thumb].steps[name=" + name + "].value";
}

// The parts of the table.
void model_rows(Rows& rows);    ///< parameters, FLOPs, KV bytes
void machine_rows(Rows& rows);  ///< rates, capacity, price
void job_rows(Rows& rows);      ///< a plan's step, days, dollars, energy; a server's figures
void memory_rows(Rows& rows);   ///< state and activations of a plan
void link_rows(Rows& rows);     ///< rates of links, collectives
/// Facts about links that have more than one owner still.
void waiting_link_rows(Rows& rows);

}  // namespace scalecalc::agreement
