#include "workflow/catalogue/nearest.hpp"

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
    const bool is_searched = wanted.size() <= kNearestNameMax && searches_++ < kNearestSearchesMax;
    wanted_ = is_searched ? lowered(wanted) : std::string();
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

// Letters that are added, left out, replaced, or swapped with their neighbour count one each. Or
// something above `limit` as soon as it must be.
std::size_t Nearest::measure(std::string_view candidate, std::size_t limit) {
    const std::size_t longer = std::max(wanted_.size(), candidate.size());
    const std::size_t shorter = std::min(wanted_.size(), candidate.size());
    if (longer - shorter > limit || cells_ > kNearestCellsMax) {
        return limit + 1;
    }
    using Row = std::array<std::size_t, kNearestNameMax + 1>;
    std::array<Row, 3> rows;
    Row* before = rows.data();  // the row above `above`
    Row* above = rows.data() + 1;
    Row* row = rows.data() + 2;
    for (std::size_t j = 0; j <= candidate.size(); ++j) {
        (*above)[j] = j;
    }
    for (std::size_t i = 1; i <= wanted_.size(); ++i) {
        (*row)[0] = i;
        std::size_t least = i;
        for (std::size_t j = 1; j <= candidate.size(); ++j) {
            const bool equal = wanted_[i - 1] == candidate[j - 1];
            std::size_t cost =
                std::min({(*above)[j] + 1, (*row)[j - 1] + 1, (*above)[j - 1] + (equal ? 0 : 1)});
            if (i > 1 && j > 1 && wanted_[i - 1] == candidate[j - 2] &&
                wanted_[i - 2] == candidate[j - 1]) {
                cost = std::min(cost, (*before)[j - 2] + 1);
            }
            (*row)[j] = cost;
            least = std::min(least, cost);
        }
        cells_ += candidate.size();
        // A swap reaches over one row, so the least of one row alone proves nothing at its edge.
        if (least > limit + 1) {
            return limit + 1;
        }
        Row* const spare = before;
        before = above;
        above = row;
        row = spare;
    }
    return (*above)[candidate.size()];
}

}  // namespace comfyd::workflow
