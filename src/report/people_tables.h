// Blocks as people read them: which columns and rows, brief or whole, and those that a reader chose by name.
#pragma once

#include <string>
#include <vector>

#include "report/output.h"

namespace scalecalc {

/// What people read of a list: the columns it names, or every figure with a label.
Table people_table(const Block& block, bool brief);
/// One object as label and value, in text because its figures differ in unit.
Table pairs_table(const Record& record);

/// What a brief answer shows of a block: its first rows (Block::brief_rows), its figures by Block::brief_keys.
Block brief_block(Block block);
/// Takes the columns out that are equal in every row of a table, and says what they hold: "chips 64, bound by compute".
/// Those of importance 0 stay.
std::string fold_equal(Table& table);

/// UserError if the records of a block have no such figure, by its path in JSON or its column in CSV.
void check_columns(const Block& block, const std::vector<std::string>& columns);
/// A list with these columns alone, which no terminal leaves out.
Table chosen_table(const Block& block, const std::vector<std::string>& columns);
/// An object, or records side by side, with these figures alone.
Block chosen_figures(Block block, const std::vector<std::string>& columns);

/// A block shown side by side, taken apart by the headings inside it.
std::vector<Block> headed_parts(const Block& block);

}  // namespace scalecalc
