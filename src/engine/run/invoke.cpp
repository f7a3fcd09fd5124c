#include "engine/run/invoke.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <typeinfo>
#include <utility>

#include "engine/nodes/text/python_value.hpp"
#include "engine/nodes/text/value_text.hpp"
#include "engine/values/weight.hpp"
#include "workflow/graph/python_text.hpp"

namespace comfyd::engine {
namespace {

// Of a failed node's inputs, in the account of its failure.
constexpr std::size_t kShownBytesMax = 1024 * 1024;

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

// None may stand for anything, and a list for a text: what they mean is the class's own business,
// as in Python.
bool fits(const Value& value, const workflow::InputDefinition& input) {
    const std::string_view type = wanted_type(input);
    return std::holds_alternative<None>(value) || std::holds_alternative<Blocker>(value) ||
           (type == "STRING" && std::holds_alternative<Data>(value)) || matches(value, type);
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

Result<BoundInput> bind_constant(const PlannedInput& given) {
    Value value = given.literal != nullptr ? to_value(*given.literal) : *given.value;
    if (!fits(value, *given.input)) {
        return node_error(
            "TypeError",
            "'" + given.input->name + "' must be linked to an output of type " + given.input->type +
                ", but is the constant " +
                (given.literal != nullptr ? workflow::python_repr(*given.literal)
                                          : nodes::python_repr(*given.value))
        );
    }
    return BoundInput{given.input, {std::move(value)}};
}

// The pool's threads know nothing of exceptions, and neither does the run.
template <class Function>
auto guarded(const PlannedNode& node, Function function) -> decltype(function()) {
    try {
        return function();
    } catch (const NodeFailure& failure) {
        return fail(failure.error());
    } catch (const std::bad_alloc&) {
        return fail(Code::out_of_memory, "The system has no memory left for node " + node.id + ".");
    } catch (const WrongKind& exception) {
        return node_error("TypeError", exception.what());
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

// Of a picture, mask or latent; nullptr for all else, and where there are pixels.
std::optional<std::string> emptiness(const Value& value) {
    const auto shown = [](const ImageShape& shape) -> std::optional<std::string> {
        if (shape.floats() > 0) {
            return std::nullopt;
        }
        return "[" + std::to_string(shape.batch) + ", " + std::to_string(shape.height) + ", " +
               std::to_string(shape.width) + ", " + std::to_string(shape.channels) + "]";
    };
    if (const auto* image = std::get_if<Image>(&value)) {
        return shown(image->shape());
    }
    if (const auto* mask = std::get_if<Mask>(&value)) {
        return shown(mask->shape());
    }
    if (const auto* view = std::get_if<ImageView>(&value)) {
        return shown(view->shape());
    }
    if (const auto* view = std::get_if<MaskView>(&value)) {
        return shown(view->shape());
    }
    const auto* object = std::get_if<std::shared_ptr<const Object>>(&value);
    return object != nullptr && (*object)->is_empty() ? std::optional<std::string>("[]")
                                                      : std::nullopt;
}

// PyTorch has tensors without values, and a node can be given one: most cannot work on it.
Result<> expect_pixels(const std::vector<BoundInput>& inputs) {
    for (const BoundInput& bound : inputs) {
        for (const Value& value : bound.values) {
            if (const auto size = emptiness(value)) {
                return node_error(
                    "RuntimeError",
                    "'" + bound.input->name + "' is an empty " + std::string(kind_of(value)) +
                        " of the size " + *size + ", of which nothing can be made"
                );
            }
        }
    }
    return {};
}

// Each call has its inputs for itself, texts included.
std::uint64_t copied_bytes(const std::vector<BoundInput>& inputs) {
    std::uint64_t bytes = 0;
    for (const BoundInput& bound : inputs) {
        bytes += 2 * weight_of(bound.values);
    }
    return bytes;
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

// The first of a call's inputs that keeps the node from running.
const Blocker* find_blocker(const NamedValues& inputs) {
    for (const auto& [name, value] : inputs) {
        if (const auto* blocker = std::get_if<Blocker>(&value)) {
            return blocker;
        }
        const auto* list = std::get_if<std::shared_ptr<const List>>(&value);
        if (list == nullptr) {
            continue;
        }
        for (const Value& item : (*list)->items) {
            if (const auto* blocker = std::get_if<Blocker>(&item)) {
                return blocker;
            }
        }
    }
    return nullptr;
}

// As in ComfyUI's execution_error: numbers and texts as they are, all else as Python shows it.
json::object shown_inputs(const std::vector<BoundInput>& inputs) {
    json::object shown;
    std::size_t bytes = 0;
    for (const BoundInput& bound : inputs) {
        json::array& values = shown[bound.input->name].emplace_array();
        for (const Value& value : bound.values) {
            auto plain = nodes::to_json(value);
            if (!plain || plain->is_structured() || plain->is_string()) {
                std::string text = nodes::value_text(value);
                if (bytes + text.size() > kShownBytesMax) {
                    return shown;
                }
                bytes += text.size();
                plain = json::value(text);
            }
            values.push_back(std::move(*plain));
        }
    }
    return shown;
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

Result<> call_once(
    const PlannedNode& node,
    const std::vector<BoundInput>& inputs,
    std::size_t index,
    const Surroundings& surroundings,
    Outcome& into
) {
    auto values = arguments(node, inputs, index);
    if (!values) {
        return fail(std::move(values.error()));
    }
    if (const Blocker* blocker = find_blocker(*values)) {
        if (blocker->message) {
            surroundings.listener.blocked(node.id, *blocker->message);
        }
        add_blocked(node, into);
        return {};
    }
    Call call(surroundings, node.id, std::move(*values));
    auto result = node.type->node.execute(call);
    if (!result) {
        return fail(std::move(result.error()));
    }
    return add_result(node, call, *surroundings.memory, std::move(*result), index, into);
}

Result<Outcome> call_all(
    const PlannedNode& node, const std::vector<BoundInput>& given, const Surroundings& surroundings
) {
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
    if (auto usable = node.type->node.takes_empty ? Result<>() : expect_pixels(inputs); !usable) {
        return fail(std::move(usable.error()));
    }
    const auto copies = Call(surroundings, node.id, {}).charge(copied_bytes(inputs));
    if (!copies) {
        return fail(copies.error());
    }
    Outcome outcome;
    outcome.outputs.slots.resize(node.type->definition->outputs().size());
    const std::size_t calls = count_calls(node, inputs);
    if (calls == 0) {
        return node_error("TypeError", "every input is an empty list");
    }
    for (std::size_t i = 0; i < calls; ++i) {
        if (surroundings.stopped()) {
            return fail(Code::cancelled, "The run was cancelled.");
        }
        auto called = call_once(node, inputs, i, surroundings, outcome);
        if (!called) {
            return fail(std::move(called.error()));
        }
    }
    return outcome;
}

}  // namespace

Result<std::vector<BoundInput>> bind(const PlannedNode& node, const SlotReader& read) {
    std::vector<BoundInput> inputs;
    inputs.reserve(node.inputs.size());
    for (const PlannedInput& given : node.inputs) {
        auto bound = given.is_linked() ? bind_link(given, read) : bind_constant(given);
        if (!bound) {
            return fail(std::move(bound.error()));
        }
        inputs.push_back(std::move(*bound));
    }
    return inputs;
}

Result<Outcome> invoke(
    const PlannedNode& node, const std::vector<BoundInput>& given, const Surroundings& surroundings
) {
    auto outcome =
        guarded(node, [&]() -> Result<Outcome> { return call_all(node, given, surroundings); });
    if (!outcome && outcome.error().code == Code::node_execution_error) {
        outcome.error().details["current_inputs"] = shown_inputs(given);
    }
    return outcome;
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
            if (find_blocker(*values) != nullptr) {
                continue;  // it will not run, so it needs nothing
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
