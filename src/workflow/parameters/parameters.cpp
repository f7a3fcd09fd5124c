#include "workflow/parameters/parameters.hpp"

#include <algorithm>
#include <utility>

#include "base/crypto.hpp"
#include "base/text.hpp"
#include "workflow/parameters/parameters_names.hpp"
#include "workflow/rules/check.hpp"

namespace comfyd::workflow {
namespace {

using Target = ParameterNames::Target;

boost::json::string_view key(std::string_view text) {
    return {text.data(), text.size()};
}

std::uint64_t system_random() {
    std::uint64_t number = 0;
    random_bytes(&number, sizeof number);
    return number >> 11;
}

class Binder {
public:
    Binder(const ParameterNames& names, const BindOptions& options)
        : names_(names), options_(options) {}

    Result<> add(std::string_view name, const json::value& value) {
        auto targets = names_.find(name);
        if (!targets) {
            return fail(std::move(targets.error()));
        }
        const bool is_random = value.is_string() && value.get_string() == "random" &&
                               std::ranges::all_of(*targets, [this](const Target& target) {
                                   return names_.is_seed(target);
                               });
        json::value chosen;
        if (is_random) {
            chosen = options_.random ? options_.random() : system_random();
        }
        for (Target& target : *targets) {
            bound_.inputs.push_back(
                {std::string(name),
                 std::string(names_.graph()[target.node].id),
                 std::move(target.input),
                 is_random ? chosen : value,
                 is_random}
            );
        }
        return {};
    }

    Result<> add_defaults(const json::object& given) {
        if (options_.declared == nullptr) {
            return {};
        }
        for (const auto& entry : *options_.declared) {
            const json::object* about = entry.value().if_object();
            const json::value* otherwise =
                about != nullptr ? json::find(*about, "default") : nullptr;
            if (otherwise == nullptr || given.contains(entry.key())) {
                continue;
            }
            if (auto added = add(view(entry.key()), *otherwise); !added) {
                return added;
            }
        }
        return {};
    }

    Bound take() { return std::move(bound_); }

private:
    const ParameterNames& names_;
    const BindOptions& options_;
    Bound bound_;
};

Result<Bound> resolve(
    const json::object& workflow, const json::object& parameters, const BindOptions& options
) {
    const ParameterNames names(workflow, options.declared);
    Binder binder(names, options);
    // What is named exactly wins over what a default says.
    if (auto added = binder.add_defaults(parameters); !added) {
        return fail(std::move(added.error()));
    }
    for (const auto& parameter : parameters) {
        if (auto added = binder.add(view(parameter.key()), parameter.value()); !added) {
            return fail(std::move(added.error()));
        }
    }
    return binder.take();
}

}  // namespace

json::object Bound::chosen() const {
    json::object made;
    for (const BoundInput& bound : inputs) {
        if (bound.chosen) {
            made[bound.parameter] = bound.value;
        }
    }
    return made;
}

void Bound::forget_chosen(json::object& workflow) const {
    for (const BoundInput& bound : inputs) {
        if (bound.chosen) {
            workflow.at(bound.node_id).as_object().at("inputs").as_object()[bound.input] = "random";
        }
    }
}

Result<Bound> bind_parameters(
    json::object& workflow, const json::object& parameters, const BindOptions& options
) {
    const std::size_t declared = options.declared != nullptr ? options.declared->size() : 0;
    if (parameters.size() > kParametersMax || declared > kParametersMax) {
        return fail(
            Code::invalid_argument,
            "at most " + std::to_string(kParametersMax) + " parameters can be given"
        );
    }
    if (parameters.empty() && declared == 0) {
        return Bound();
    }
    auto bound = resolve(workflow, parameters, options);
    if (!bound) {
        return bound;
    }
    for (const BoundInput& input : bound->inputs) {
        workflow.at(input.node_id).as_object().at("inputs").as_object()[input.input] = input.value;
    }
    return bound;
}

Result<Bound> bind_parameter(
    json::object& workflow,
    std::string_view name,
    std::string_view value_text,
    const BindOptions& options
) {
    auto parsed = json::parse(value_text);
    json::object one;
    one[key(name)] = parsed ? std::move(*parsed) : json::value(key(value_text));
    return bind_parameters(workflow, one, options);
}

const json::object* declared_parameters(const json::object& document) {
    if (&unwrap(document) == &document) {
        return nullptr;
    }
    const json::value* declared = json::find(document, "parameters");
    return declared != nullptr ? declared->if_object() : nullptr;
}

}  // namespace comfyd::workflow
