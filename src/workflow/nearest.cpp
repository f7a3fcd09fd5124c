#include "workflow/nearest.hpp"

#include <algorithm>
#include <array>

namespace comfyd::workflow {
namespace {

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c == '\\' ? '/' : c;
}

std::string lowered(std::string_view text) {
    std::string made(text);
    std::ranges::transform(made, made.begin(), lower);
    return made;
}

// "folder/name.safetensors" -> "name"
std::string_view stem(std::string_view name) {
    if (const auto slash = name.rfind('/'); slash != std::string_view::npos) {
        name.remove_prefix(slash + 1);
    }
    if (const auto dot = name.rfind('.'); dot != std::string_view::npos && dot > 0) {
        name = name.substr(0, dot);
    }
    return name;
}

}  // namespace

void Nearest::seek(std::string_view wanted) {
    best_.clear();
    tied_ = false;
    wanted_ = wanted.size() > kNearestNameMax ? std::string() : lowered(wanted);
    best_distance_ = std::max<std::size_t>(wanted_.size() / 3, 1) + 1;
}

void Nearest::consider(std::string_view candidate) {
    if (wanted_.empty() || candidate.empty() || candidate.size() > kNearestNameMax) {
        return;
    }
    const std::string name = lowered(candidate);
    std::size_t found = 0;
    if (name != wanted_ && stem(name) != stem(wanted_)) {
        found = measure(name, best_distance_);
    }
    if (found < best_distance_) {
        best_distance_ = found;
        best_ = candidate;
        tied_ = false;
    } else if (found == best_distance_ && !best_.empty()) {
        tied_ = true;
    }
}

// Levenshtein's distance, or something above `limit` as soon as it must be.
std::size_t Nearest::measure(std::string_view candidate, std::size_t limit) {
    const std::size_t longer = std::max(wanted_.size(), candidate.size());
    const std::size_t shorter = std::min(wanted_.size(), candidate.size());
    if (longer - shorter > limit || cells_ > kNearestCellsMax) {
        return limit + 1;
    }
    std::array<std::size_t, kNearestNameMax + 1> row{};
    for (std::size_t j = 0; j <= candidate.size(); ++j) {
        row[j] = j;
    }
    for (std::size_t i = 1; i <= wanted_.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        std::size_t least = i;
        for (std::size_t j = 1; j <= candidate.size(); ++j) {
            const std::size_t replaced = diagonal + (wanted_[i - 1] == candidate[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
            least = std::min(least, row[j]);
        }
        cells_ += candidate.size();
        if (least > limit) {
            return limit + 1;
        }
    }
    return row[candidate.size()];
}

}  // namespace comfyd::workflow
