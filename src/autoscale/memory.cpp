#include "autoscale/memory.hpp"

namespace comfyd::autoscale {
namespace {

const json::object& object_of(const json::object& about, std::string_view key) {
    static const json::object kNone;
    const auto found = json::find_object(about, key);
    return found && *found != nullptr ? **found : kNone;
}

}  // namespace

json::object Memory::to_json() const {
    return {
        {"starts", starts.to_json()},
        {"wakes", wakes.to_json()},
        {"phases", phases.to_json()},
        {"spent", spent.to_json()},
        {"history", history.to_json()},
    };
}

Memory Memory::from_json(const json::object& about) {
    Memory memory;
    memory.starts = Starts::from_json(object_of(about, "starts"));
    memory.wakes = Starts::from_json(object_of(about, "wakes"));
    memory.phases = Starts::from_json(object_of(about, "phases"));
    memory.spent = Spending::from_json(object_of(about, "spent"));
    memory.history = History::from_json(object_of(about, "history"));
    return memory;
}

}  // namespace comfyd::autoscale
