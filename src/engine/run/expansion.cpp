#include "engine/run/expansion.hpp"

namespace comfyd::engine {

Expansion::Expansion() = default;
Expansion::Expansion(const Expansion& other) = default;
Expansion::Expansion(Expansion&& other) noexcept = default;
Expansion& Expansion::operator=(const Expansion& other) = default;
Expansion& Expansion::operator=(Expansion&& other) noexcept = default;
Expansion::~Expansion() = default;

std::size_t Expansion::add(AddedNode node) {
    nodes.push_back(std::move(node));
    return nodes.size() - 1;
}

}  // namespace comfyd::engine
