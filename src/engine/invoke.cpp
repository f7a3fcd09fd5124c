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

void add_outputs(const PlannedNode& node, NodeResult result, NodeOutputs& into) {
    const workflow::NodeDefinition& definition = *node.type->definition;
    COMFYD_ASSERT(result.outputs.size() == definition.outputs().size());
    for (std::size_t slot = 0; slot < result.outputs.size(); ++slot) {
        std::vector<Value>& values = into.slots[slot];
        if (definition.output_is_list(slot)) {
            const auto& list = std::get<std::shared_ptr<const List>>(result.outputs[slot]);
            values.insert(values.end(), list->items.begin(), list->items.end());
        } else {
            values.push_back(std::move(result.outputs[slot]));
        }
    }
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
    const PlannedNode& node, const std::vector<BoundInput>& inputs, const Surroundings& surroundings
) {
    return guarded(node, [&]() -> Result<NodeOutputs> {
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
            add_outputs(node, std::move(*result), outputs);
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
