#include "engine/run/outcome.hpp"

#include <utility>

#include "base/assert.hpp"
#include "engine/values/weight.hpp"

namespace comfyd::engine {
namespace {

// A picture that is less than one part in so many of the memory that it keeps is copied.
constexpr std::uint64_t kKeptShareMax = 16;

bool is_worth_sharing(const View& view, const Memory& memory) {
    const std::uint64_t shown = std::uint64_t{view.shape().floats()} * sizeof(float);
    const std::uint64_t kept = view.kept_bytes();
    const std::uint64_t half = memory.max() / 2;
    return shown <= half &&
           (kept <= shown || (kept / kKeptShareMax <= shown && memory.used() <= half));
}

// nullopt: the value has no pixels, or has its memory for itself.
std::optional<View> shared_pixels(const Value& value) {
    if (const auto* image = std::get_if<ImageView>(&value)) {
        return *image;
    }
    if (const auto* mask = std::get_if<MaskView>(&value)) {
        return *mask;
    }
    const Pixels* pixels = std::get_if<Image>(&value);
    if (pixels == nullptr) {
        pixels = std::get_if<Mask>(&value);
    }
    return pixels != nullptr && pixels->is_part() ? std::optional<View>(*pixels) : std::nullopt;
}

// Makes a result free of the pictures that it was taken from, unless it is worth sharing with them.
Result<> settle(const Call& call, const Memory& memory, Value& value) {
    const auto view = shared_pixels(value);
    if (!view || is_worth_sharing(*view, memory)) {
        return {};
    }
    auto copied = call.copy(*view);
    if (!copied) {
        return fail(std::move(copied.error()));
    }
    value =
        matches(value, "MASK") ? Value(Mask(std::move(*copied))) : Value(Image(std::move(*copied)));
    return {};
}

void append(const PlannedNode& node, std::size_t slot, Value value, std::vector<Value>& to) {
    if (node.type->definition->output_is_list(slot) && !std::holds_alternative<Blocker>(value)) {
        const auto& list = std::get<std::shared_ptr<const List>>(value);
        to.insert(to.end(), list->items.begin(), list->items.end());
    } else {
        to.push_back(std::move(value));
    }
}

Result<> add_outputs(
    const PlannedNode& node,
    const Call& call,
    const Memory& memory,
    std::vector<Value> outputs,
    NodeOutputs& into
) {
    COMFYD_ASSERT(outputs.size() == node.type->definition->outputs().size());
    auto charge = call.charge(weight_of(outputs));
    if (!charge) {
        return fail(std::move(charge.error()));
    }
    into.charge.join(std::move(*charge));
    for (std::size_t slot = 0; slot < outputs.size(); ++slot) {
        std::vector<Value>& values = into.slots[slot];
        const std::size_t before = values.size();
        append(node, slot, std::move(outputs[slot]), values);
        for (std::size_t i = before; i < values.size(); ++i) {
            if (auto settled = settle(call, memory, values[i]); !settled) {
                return settled;
            }
        }
    }
    return {};
}

// The first call names the keys; what further calls give is appended to them.
Result<> add_ui(const Call& call, json::object ui, NodeOutputs& into) {
    auto charge = call.charge(weight_of(ui));
    if (!charge) {
        return fail(std::move(charge.error()));
    }
    into.charge.join(std::move(*charge));
    if (!into.ui) {
        into.ui = std::move(ui);
        return {};
    }
    for (auto& [key, value] : *into.ui) {
        json::value* more = ui.if_contains(key);
        if (more != nullptr && more->is_array() && value.is_array()) {
            for (json::value& item : more->get_array()) {
                value.get_array().push_back(std::move(item));
            }
        }
    }
    return {};
}

// In the order of the calls; the places of the expansion become places among all that were added.
Result<> add_expansion(
    const PlannedNode& node, std::size_t call_index, Expansion expansion, Outcome& into
) {
    const std::size_t first = into.added.size();
    if (first + expansion.nodes.size() > kAddedNodesMax) {
        return node_error(
            "RuntimeError", "a run may add " + std::to_string(kAddedNodesMax) + " nodes at most"
        );
    }
    const std::string prefix = "." + std::to_string(call_index) + ".0.";
    for (AddedNode& added : expansion.nodes) {
        for (auto& [name, input] : added.inputs) {
            if (auto* link = std::get_if<AddedLink>(&input)) {
                link->node += first;
            }
        }
        const std::size_t number = into.added.size() - first + 1;
        into.added.emplace_back(prefix + std::to_string(number), std::move(added));
    }
    COMFYD_ASSERT(expansion.outputs.size() == node.type->definition->outputs().size());
    for (std::size_t slot = 0; slot < expansion.outputs.size(); ++slot) {
        std::vector<Value>& values = into.outputs.slots[slot];
        if (const auto* link = std::get_if<AddedLink>(&expansion.outputs[slot])) {
            into.holes.push_back({slot, values.size(), {link->node + first, link->slot}});
        } else {
            append(node, slot, std::move(std::get<Value>(expansion.outputs[slot])), values);
        }
    }
    return {};
}

}  // namespace

Result<> add_result(
    const PlannedNode& node,
    const Call& call,
    const Memory& memory,
    NodeResult result,
    std::size_t call_index,
    Outcome& into
) {
    if (result.ui) {
        if (auto added = add_ui(call, std::move(*result.ui), into.outputs); !added) {
            return added;
        }
    }
    if (result.expansion) {
        return add_expansion(node, call_index, std::move(*result.expansion), into);
    }
    return add_outputs(node, call, memory, std::move(result.outputs), into.outputs);
}

void add_blocked(const PlannedNode& node, Outcome& into) {
    for (std::size_t slot = 0; slot < node.type->definition->outputs().size(); ++slot) {
        into.outputs.slots[slot].emplace_back(Blocker{});
    }
}

void fill(Outcome& outcome, const AddedReader& read) {
    // From behind, so that the positions of those before stay right.
    for (auto hole = outcome.holes.rbegin(); hole != outcome.holes.rend(); ++hole) {
        std::vector<Value>& values = outcome.outputs.slots[hole->slot];
        const std::vector<Value>& from = read(hole->link);
        values.insert(
            values.begin() + static_cast<std::ptrdiff_t>(hole->position), from.begin(), from.end()
        );
    }
    outcome.holes.clear();
    outcome.added.clear();
}

}  // namespace comfyd::engine
