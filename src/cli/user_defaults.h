// What a user always means: config.yaml of ~/.config/scalecalc (XDG_CONFIG_HOME is respected), before it
// SCALECALC_STACK, SCALECALC_ENGINE, SCALECALC_PRICE, SCALECALC_CLOUD and SCALECALC_PRICE_KIND. Flags come before both.
#pragma once

#include <string>
#include <vector>

#include "cli/environment.h"
#include "cli/options.h"
#include "config/catalog.h"

namespace scalecalc::cli {

/// The user's own directory, absolute; empty if nothing says where it is or it does not exist.
std::string user_directory(const Environment& env);

/// `config-dir:` of the user's config.yaml; a relative one lies beside that file. UserError with place for a file that
/// is wrong and a directory that does not exist.
std::vector<std::string> user_config_directories(const Environment& env);

/// Values for flags that the question could take and does not give, each noted with its origin. Left alone where it
/// would contradict what is asked, and where what is asked for does not load. UserError with place for a default that
/// is wrong.
void take_user_defaults(Arguments& arguments, const Catalog& catalog, const Environment& env);

}  // namespace scalecalc::cli
