#include "engine/invoke.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <typeinfo>
#include <utility>

#include "base/assert.hpp"
#include "workflow/python_text.hpp"

namespace comfyd::engine {
namespace {

Value to_value(const json::value& literal) {
    switch (literal.kind()) {
        case boost::json::kind::null:
            return None{};
        case boost::json::kind::bool_:
            return literal.get_bool();
        case boost::json::kind::int64:
            return literal.get_int64();
        case boost::json::kind::uint64:
            return literal.get_uint64();
        case boost::json::kind::double_:
            return literal.get_double();
        case boost::json::kind::string:
            return std::string(literal.get_string());
        default:
            return Data(literal);
    }
}

// What the input takes; that of a type which follows another input is in its template.
std::string_view wanted_type(const workflow::InputDefinition& input) {
    if (input.type != "COMFY_MATCHTYPE_V3") {
        return input.type;
    }
    const json::value* options =
        input.options != nullptr ? json::find(*input.options, "template") : nullptr;
    const json::value* types = options != nullptr && options->is_object()
                                   ? json::find(options->get_object(), "allowed_types")
                                   : nullptr;
    return types != nullptr && types->is_string() ? std::string_view(types->get_string()) : "*";
}

// None may stand for anything: what it means is the class's own business, as in Python.
bool fits(const Value& value, const workflow::InputDefinition& input) {
    return std::holds_alternative<None>(value) || matches(value, wanted_type(input));
}

Result<BoundInput> bind_link(const PlannedInput& given, const SlotReader& read) {
    const std::vector<Value>* values = read(given.link);
    if (values == nullptr) {
        return BoundInput{given.input, {None{}}};
    }
    for (const Value& value : *values) {
        if (!fits(value, *given.input)) {
            return node_error(
                "TypeError",
                "'" + given.input->name + "' must be of type " +
                    std::string(wanted_type(*given.input)) + ", but is " +
                    std::string(kind_of(value))
            );
        }
    }
    return BoundInput{given.input, *values};
}

Result<BoundInput> bind_literal(const PlannedInput& given) {
    Value value = to_value(*given.literal);
    if (!fits(value, *given.input)) {
        return node_error(
            "TypeError",
            "'" + given.input->name + "' must be linked to an output of type " + given.input->type +
                ", but is the constant " + workflow::python_repr(*given.literal)
        );
    }
    return BoundInput{given.input, {std::move(value)}};
}

// The pool's threads know nothing of exceptions, and neither does the run.
template <class Function>
auto guarded(const PlannedNode& node, Function function) -> decltype(function()) {
    try {
        return function();
    } catch (const std::bad_alloc&) {
        return fail(Code::out_of_memory, "The system has no memory left for node " + node.id + ".");
    } catch (const std::bad_variant_access&) {
        return node_error("TypeError", "an input is of another kind than the class can use");
    } catch (const std::bad_cast&) {
        return node_error("TypeError", "an input is of another kind than the class can use");
    } catch (const std::exception& exception) {
        return node_error("RuntimeError", exception.what());
    }
}

// What one call gets: whole lists, or the element of each list, of which shorter ones repeat their
// last.
Result<NamedValues> arguments(
    const PlannedNode& node, const std::vector<BoundInput>& inputs, std::size_t index
) {
    NamedValues values;
    values.reserve(inputs.size());
    for (const BoundInput& bound : inputs) {
        if (node.type->definition->input_is_list()) {
            values.emplace_back(
                bound.input->name, std::make_shared<const List>(List{bound.values})
            );
        } else if (bound.values.empty()) {
            return node_error("IndexError", "list index out of range");
        } else {
            const std::size_t last = bound.values.size() - 1;
            values.emplace_back(bound.input->name, bound.values[std::min(index, last)]);
        }
    }
    return values;
}

bool holds_view(const std::vector<Value>& values) {
    return std::ranges::any_of(values, [](const Value& value) {
        const auto* list = std::get_if<std::shared_ptr<const List>>(&value);
        return std::holds_alternative<ImageView>(value) ||
               std::holds_alternative<MaskView>(value) ||
               (list != nullptr && holds_view((*list)->items));
    });
}

Result<Value> make_whole(const Call& call, const Value& value) {
    const auto to_value = [](auto&& whole) { return Value(std::forward<decltype(whole)>(whole)); };
    if (const auto* image = std::get_if<ImageView>(&value)) {
        return call.whole(*image).map(to_value);
    }
    if (const auto* mask = std::get_if<MaskView>(&value)) {
        return call.whole(*mask).map(to_value);
    }
    if (const auto* list = std::get_if<std::shared_ptr<const List>>(&value)) {
        auto all = std::make_shared<List>();
        for (const Value& item : (*list)->items) {
            auto whole = make_whole(call, item);
            if (!whole) {
                return fail(std::move(whole.error()));
            }
            all->items.push_back(std::move(*whole));
        }
        return Value(std::shared_ptr<const List>(std::move(all)));
    }
    return value;
}

// For a class that reads no views.
Result<std::vector<BoundInput>> make_whole(const Call& call, std::vector<BoundInput> inputs) {
    for (BoundInput& bound : inputs) {
        for (Value& value : bound.values) {
            auto whole = make_whole(call, value);
            if (!whole) {
                return fail(std::move(whole.error()));
            }
            value = std::move(*whole);
        }
    }
    return inputs;
}

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

std::size_t count_calls(const PlannedNode& node, const std::vector<BoundInput>& inputs) {
    if (node.type->definition->input_is_list()) {
        return 1;
    }
    std::size_t longest = inputs.empty() ? 1 : 0;
    for (const BoundInput& bound : inputs) {
        longest = std::max(longest, bound.values.size());
    }
    return longest;
}

Result<> add_outputs(
    const PlannedNode& node,
    const Call& call,
    const Memory& memory,
    NodeResult result,
    NodeOutputs& into
) {
    const workflow::NodeDefinition& definition = *node.type->definition;
    COMFYD_ASSERT(result.outputs.size() == definition.outputs().size());
    for (std::size_t slot = 0; slot < result.outputs.size(); ++slot) {
        std::vector<Value>& values = into.slots[slot];
        const std::size_t before = values.size();
        if (definition.output_is_list(slot)) {
            const auto& list = std::get<std::shared_ptr<const List>>(result.outputs[slot]);
            values.insert(values.end(), list->items.begin(), list->items.end());
        } else {
            values.push_back(std::move(result.outputs[slot]));
        }
        for (std::size_t i = before; i < values.size(); ++i) {
            if (auto settled = settle(call, memory, values[i]); !settled) {
                return settled;
            }
        }
    }
    return {};
}

// The first call names the keys; what further calls give is appended to them.
void add_ui(json::object ui, NodeOutputs& into) {
    if (!into.ui) {
        into.ui = std::move(ui);
        return;
    }
    for (auto& [key, value] : *into.ui) {
        json::value* more = ui.if_contains(key);
        if (more != nullptr && more->is_array() && value.is_array()) {
            for (json::value& item : more->get_array()) {
                value.get_array().push_back(std::move(item));
            }
        }
    }
}

}  // namespace

Result<std::vector<BoundInput>> bind(const PlannedNode& node, const SlotReader& read) {
    std::vector<BoundInput> inputs;
    inputs.reserve(node.inputs.size());
    for (const PlannedInput& given : node.inputs) {
        auto bound = given.literal == nullptr ? bind_link(given, read) : bind_literal(given);
        if (!bound) {
            return fail(std::move(bound.error()));
        }
        inputs.push_back(std::move(*bound));
    }
    return inputs;
}

Result<NodeOutputs> invoke(
    const PlannedNode& node, const std::vector<BoundInput>& given, const Surroundings& surroundings
) {
    return guarded(node, [&]() -> Result<NodeOutputs> {
        const bool is_fit =
            node.type->node.reads_views || std::ranges::none_of(given, [](const BoundInput& bound) {
                return holds_view(bound.values);
            });
        Result<std::vector<BoundInput>> whole;
        if (!is_fit) {
            whole = make_whole(Call(surroundings, node.id, {}), given);
        }
        if (!whole) {
            return fail(std::move(whole.error()));
        }
        const std::vector<BoundInput>& inputs = is_fit ? given : *whole;
        NodeOutputs outputs;
        outputs.slots.resize(node.type->definition->outputs().size());
        const std::size_t calls = count_calls(node, inputs);
        if (calls == 0) {
            return node_error("TypeError", "every input is an empty list");
        }
        for (std::size_t i = 0; i < calls; ++i) {
            if (surroundings.stopped()) {
                return fail(Code::cancelled, "The run was cancelled.");
            }
            auto values = arguments(node, inputs, i);
            if (!values) {
                return fail(std::move(values.error()));
            }
            Call call(surroundings, node.id, std::move(*values));
            auto result = node.type->node.execute(call);
            if (!result) {
                return fail(std::move(result.error()));
            }
            if (result->ui) {
                add_ui(std::move(*result->ui), outputs);
            }
            auto added = add_outputs(node, call, *surroundings.memory, std::move(*result), outputs);
            if (!added) {
                return fail(std::move(added.error()));
            }
        }
        return outputs;
    });
}

Result<std::vector<std::string>> ask_needed(
    const PlannedNode& node, const std::vector<BoundInput>& inputs, const Surroundings& surroundings
) {
    return guarded(node, [&]() -> Result<std::vector<std::string>> {
        std::vector<std::string> names;
        for (std::size_t i = 0; i < count_calls(node, inputs); ++i) {
            auto values = arguments(node, inputs, i);
            if (!values) {
                return fail(std::move(values.error()));
            }
            const Call call(surroundings, node.id, std::move(*values));
            for (std::string& name : node.type->node.needed(call)) {
                if (std::ranges::find(names, name) == names.end()) {
                    names.push_back(std::move(name));
                }
            }
        }
        return names;
    });
}

}  // namespace comfyd::engine
