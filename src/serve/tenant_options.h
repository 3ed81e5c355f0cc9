// --tenant: one of several users of a service.
#pragma once

#include <string>

#include "cli/flag_reader.h"
#include "serve/request_mix.h"

namespace scalecalc::cli {

/// "chat:share=0.7,prompt=512..2048,slo_ttft=300ms". Lengths may have commas of their own.
void read_tenant(FlagReader& reader, const Flag& flag, const std::string& text, RequestMix& mix);

}  // namespace scalecalc::cli
