// The nearest of several names to one that does not exist, for "did you mean". The work is bounded:
// one search shares its budget among all the names that it is asked for. Owned by one caller.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace comfyd::workflow {

inline constexpr std::size_t kNearestNameMax = 128;          // longer names are not compared
inline constexpr std::size_t kNearestCellsMax = 16'000'000;  // of all tables together, ~20 ms

inline constexpr std::size_t kNearestSearchesMax = 100;  // of one Nearest; later ones find none

class Nearest {
public:
    // Begins a search; what is farther than a third of the name does not count.
    void seek(std::string_view wanted);
    // Upper and lower case are the same here. Names that are equal but for that, for a folder
    // before or an extension behind are nearer than all others.
    void consider(std::string_view candidate);
    const std::string& best() const { return best_; }  // empty: none is near
    std::size_t distance() const { return best_distance_; }
    // Another one is as near: whoever needs to be sure cannot be.
    bool is_tied() const { return tied_; }

private:
    std::size_t measure(std::string_view candidate, std::size_t limit);

    std::string wanted_;  // in lower case
    std::string best_;
    std::size_t best_distance_ = 0;
    bool tied_ = false;
    std::size_t cells_ = 0;
    std::size_t searches_ = 0;
};

}  // namespace comfyd::workflow
