// Results stay where they were written for a while, because the engine's cache may name them again.
// One executor.
#pragma once

#include <deque>
#include <filesystem>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/json.hpp"
#include "engine/engine.hpp"

namespace comfyd::standalone {

class KeptFiles {
public:
    // Remembers a file; a file that is remembered already keeps its age.
    void add(std::string path);
    // The oldest ones that are too many; they are forgotten.
    std::vector<std::string> take_excess();

private:
    std::deque<std::string> by_age_;
    std::unordered_set<std::string> known_;
};

// The files in the folders output and temp that the ui dictionaries name. `outputs`: node id -> ui.
std::vector<std::string> files_in(const json::object& outputs, const engine::Folders& folders);

}  // namespace comfyd::standalone
