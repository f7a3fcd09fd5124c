// Whose a run is: where its files lie, and with whose runs it shares cached results. A plain value.
#pragma once

#include <string>

#include "engine/engine.hpp"

namespace comfyd::engine {

struct Owner {
    std::string name;
    Folders folders;
};

}  // namespace comfyd::engine
