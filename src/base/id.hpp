// UUIDs and the strong id types made of them. New ids are version 7: they sort by the time they
// were made, so that rows of a table are appended and never inserted in the middle.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.hpp"

namespace comfyd {

struct Uuid {
    std::array<std::uint8_t, 16> bytes{};

    // Version 7. Ids made by one process increase strictly, also within one millisecond. Any
    // thread.
    static Uuid make(Time now);
    // Version 8: always the same id for the same (name space, name).
    static Uuid derive(const Uuid& name_space, std::string_view name);
    // Accepts the canonical form in either case; nothing else.
    static std::optional<Uuid> parse(std::string_view text);

    std::string to_string() const;  // canonical, lower case
    friend auto operator<=>(const Uuid&, const Uuid&) = default;
};

// An Id<Tag> cannot be passed where an id of another thing is meant.
template <class Tag>
struct Id {
    Uuid uuid;

    static Id make(Time now) { return Id{Uuid::make(now)}; }
    static std::optional<Id> parse(std::string_view text) {
        const auto parsed = Uuid::parse(text);
        return parsed ? std::optional<Id>(Id{*parsed}) : std::nullopt;
    }
    std::string to_string() const { return uuid.to_string(); }
    friend auto operator<=>(const Id&, const Id&) = default;
};

using JobId = Id<struct JobTag>;
using AssetId = Id<struct AssetTag>;
using PromptId = Id<struct PromptTag>;  // of a run on a worker, as ComfyUI knows it
using NodeId = Id<struct NodeTag>;      // of a process that shares a ledger with others

}  // namespace comfyd

template <>
struct std::hash<comfyd::Uuid> {
    std::size_t operator()(const comfyd::Uuid& id) const noexcept {
        std::uint64_t low = 0;
        std::memcpy(&low, id.bytes.data() + 8, sizeof low);  // the random half of a version 7 id
        return static_cast<std::size_t>(low * 0x9E3779B97F4A7C15ULL);
    }
};
template <class Tag>
struct std::hash<comfyd::Id<Tag>> {
    std::size_t operator()(const comfyd::Id<Tag>& id) const noexcept {
        return std::hash<comfyd::Uuid>()(id.uuid);
    }
};
