// Sizes of model files that somebody told. Immutable once made; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workflow/catalogue/models.hpp"

namespace comfyd::workflow {

struct KnownModel {
    std::string name;  // as workflows name it; * stands for any characters
    std::uint64_t bytes = 0;

    bool operator==(const KnownModel&) const = default;
};

// A name without a folder stands for the file in any folder. Names count before patterns, and of
// patterns the first that fits.
ModelSizes known_sizes(std::vector<KnownModel> models);

}  // namespace comfyd::workflow
