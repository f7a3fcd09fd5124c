// Reading a "progress_state" without building its document: most of what a worker says is this, and
// each one names every node so far. Pure; any thread.
#pragma once

#include <optional>
#include <string_view>

#include "comfy/messages.hpp"

namespace comfyd::comfy {

// nullopt: it is something else, or not written as workers write it, and must be read as any other
// message. Of members that stand there twice the last one counts; a node that does is there twice.
std::optional<ProgressState> read_progress_state(std::string_view frame);

}  // namespace comfyd::comfy
