// What the choice of a worker depends on, besides whose turn it is. Jobs that are alike share one
// profile, so that a million waiting jobs cost a million small entries and a handful of these.
// Immutable once made; plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/requirement.hpp"

namespace comfyd::scheduler {

struct Model {
    std::string name;         // with its kind: "checkpoint/sd15.safetensors"
    std::uint64_t bytes = 0;  // of its file where known, else what files of its kind usually have

    bool operator==(const Model&) const = default;
};

struct Profile {
    Requirement requirement;
    std::vector<Model> models;  // sorted by name, each once
    // Jobs of the same shape take equally long on the same type of GPU: the workflow without texts,
    // seeds and input files. Empty: not known, then only the figures below count.
    std::string shape;
    double work_units = 0;         // steps x pixels x batch x model class
    double heuristic_seconds = 0;  // of a run with all models loaded, where nothing was learned
    std::uint64_t vram_bytes = 0;  // at the peak, estimated; 0: needs no GPU memory
    bool can_be_merged = false;    // jobs of this shape may share one sampling run
};
using ProfilePtr = std::shared_ptr<const Profile>;

}  // namespace comfyd::scheduler
