#include "workflow/parameters/parameters_roles.hpp"

#include <algorithm>
#include <deque>
#include <initializer_list>

#include "base/text.hpp"

namespace comfyd::workflow {
namespace {

using Position = Graph::Position;
using Names = std::initializer_list<std::string_view>;

constexpr std::array<std::string_view, kRoles.size()> kRoleNames{
    "prompt",
    "negative_prompt",
    "seed",
    "steps",
    "cfg",
    "denoise",
    "sampler",
    "scheduler",
    "width",
    "height",
    "batch_size",
    "image",
    "checkpoint",
    "lora",
};

constexpr std::size_t kVisitsMax = 2'000;  // of one search

boost::json::string_view key(std::string_view name) {
    return {name.data(), name.size()};
}

bool has_input(const Graph& graph, Position node, std::string_view input) {
    return graph[node].inputs->contains(key(input));
}

bool is_one_of(std::string_view name, Names names) {
    return std::ranges::find(names, name) != names.end();
}

// The name as the workflow has it, so that it lives as long.
std::string_view own_name(const Graph& graph, Position node, std::string_view input) {
    const auto found = graph[node].inputs->find(key(input));
    return found == graph[node].inputs->end() ? std::string_view() : view(found->key());
}

// Walks from a node towards its sources, nearest first, along the links that `follow` names.
template <class Follow, class Visit>
void walk(const Graph& graph, Position from, Follow follow, Visit visit) {
    std::vector<bool> seen(graph.size());
    std::deque<Position> open{from};
    seen[from] = true;
    for (std::size_t visits = 0; !open.empty() && visits < kVisitsMax; ++visits) {
        const Position at = open.front();
        open.pop_front();
        if (visit(at)) {
            continue;  // nothing behind it is meant
        }
        for (const Graph::Link& link : graph.links(at)) {
            if (!seen[link.source] && follow(at, link)) {
                seen[link.source] = true;
                open.push_back(link.source);
            }
        }
    }
}

bool follow_all(Position, const Graph::Link&) {
    return true;
}

// Where the value of an input stands: here, or in the node of a value that is linked to it.
std::vector<InputPlace> literal_places(const Graph& graph, Position node, std::string_view input) {
    std::string_view name = own_name(graph, node, input);
    for (int hops = 0; hops < 16 && !name.empty(); ++hops) {
        const Graph::Link* link = graph.link(node, name);
        if (link == nullptr) {
            return {{node, name}};
        }
        node = link->source;
        name = {};
        for (const std::string_view candidate :
             {"value", "string", "text", "prompt", "seed", "noise_seed", "int", "float", "number"
             }) {
            if (const auto own = own_name(graph, node, candidate); !own.empty()) {
                name = own;
                break;
            }
        }
    }
    return {};
}

void append(std::vector<InputPlace>& to, const std::vector<InputPlace>& more) {
    for (const InputPlace& place : more) {
        if (std::ranges::find(to, place) == to.end()) {
            to.push_back(place);
        }
    }
}

// The first node behind `from` with one of the inputs.
std::vector<InputPlace> nearest_with(const Graph& graph, Position from, Names inputs) {
    std::vector<InputPlace> found;
    walk(graph, from, follow_all, [&](Position at) {
        if (!found.empty()) {
            return true;
        }
        for (const std::string_view input : inputs) {
            if (has_input(graph, at, input)) {
                found = literal_places(graph, at, input);
                return true;
            }
        }
        return is_sampler(graph, at) && at != from;
    });
    return found;
}

// Of the sampler itself, or of what stands behind one of its links.
std::vector<InputPlace> own_or_behind(
    const Graph& graph, Position sampler, Names inputs, Names links
) {
    for (const std::string_view input : inputs) {
        if (has_input(graph, sampler, input)) {
            return literal_places(graph, sampler, input);
        }
    }
    for (const std::string_view name : links) {
        if (const Graph::Link* link = graph.link(sampler, name)) {
            auto found = nearest_with(graph, link->source, inputs);
            if (!found.empty()) {
                return found;
            }
        }
    }
    return {};
}

std::vector<InputPlace> text_places(const Graph& graph, Position node) {
    std::vector<InputPlace> found;
    for (const std::string_view input :
         {"text",
          "text_g",
          "text_l",
          "clip_l",
          "clip_g",
          "t5xxl",
          "llama",
          "prompt",
          "positive_text",
          "conditioning_text"}) {
        const json::value* value = graph[node].inputs->if_contains(key(input));
        if (value != nullptr && (value->is_string() || value->is_array())) {
            append(found, literal_places(graph, node, input));
        }
    }
    return found;
}

struct Conditioning {
    const Graph::Link* link;
    bool positive;
};

// The texts behind a conditioning. Nodes that hand on both sides (ControlNetApplyAdvanced) are left
// by the side they were entered by.
std::vector<InputPlace> find_texts(const Graph& graph, Conditioning from) {
    std::vector<InputPlace> found;
    if (from.link == nullptr) {
        return found;
    }
    std::vector<bool> seen(graph.size());
    struct Step {
        Position node;
        bool positive;
    };
    const auto side_of = [&](const Graph::Link& link, bool positive) {
        const bool has_both =
            has_input(graph, link.source, "positive") && has_input(graph, link.source, "negative");
        return has_both ? link.slot == 0 : positive;
    };
    std::deque<Step> open{{from.link->source, side_of(*from.link, from.positive)}};
    for (std::size_t visits = 0; !open.empty() && visits < kVisitsMax; ++visits) {
        const Step step = open.front();
        open.pop_front();
        if (seen[step.node] || graph[step.node].class_type == "ConditioningZeroOut") {
            continue;
        }
        seen[step.node] = true;
        if (auto texts = text_places(graph, step.node); !texts.empty()) {
            append(found, texts);
            continue;
        }
        for (const Graph::Link& link : graph.links(step.node)) {
            const bool is_other_side =
                step.positive ? link.input == "negative" : link.input == "positive";
            if (!is_other_side && !is_one_of(
                                      link.input,
                                      {"model",
                                       "clip",
                                       "vae",
                                       "image",
                                       "pixels",
                                       "mask",
                                       "latent",
                                       "control_net",
                                       "samples",
                                       "style_model"}
                                  )) {
                open.push_back({link.source, side_of(link, step.positive)});
            }
        }
    }
    return found;
}

std::vector<InputPlace> find_prompt(const Graph& graph, Position sampler, bool positive) {
    Position owner = sampler;
    if (const Graph::Link* guider = graph.link(sampler, "guider")) {
        owner = guider->source;
    }
    if (!positive) {
        return find_texts(graph, {graph.link(owner, "negative"), false});
    }
    for (const std::string_view name : {"positive", "conditioning", "cond1", "cond"}) {
        if (const Graph::Link* link = graph.link(owner, name)) {
            return find_texts(graph, {link, true});
        }
    }
    return {};
}

std::vector<InputPlace> find_cfg(const Graph& graph, Position sampler) {
    auto found = own_or_behind(graph, sampler, {"cfg", "cfg_conds"}, {"guider"});
    if (!found.empty()) {
        return found;
    }
    // Models that are guided by their conditioning.
    walk(graph, sampler, follow_all, [&](Position at) {
        if (found.empty() && graph[at].class_type == "FluxGuidance") {
            found = literal_places(graph, at, "guidance");
        }
        return !found.empty();
    });
    return found;
}

std::vector<InputPlace> find_latent(const Graph& graph, Position sampler, Names inputs) {
    for (const std::string_view name : {"latent_image", "latent", "samples"}) {
        if (const Graph::Link* link = graph.link(sampler, name)) {
            return nearest_with(graph, link->source, inputs);
        }
    }
    return {};
}

std::vector<InputPlace> find_behind_model(const Graph& graph, Position sampler, Names inputs) {
    Position from = sampler;
    if (const Graph::Link* guider = graph.link(sampler, "guider")) {
        from = guider->source;
    }
    std::vector<InputPlace> found;
    const Graph::Link* model = graph.link(from, "model");
    if (model == nullptr) {
        return found;
    }
    walk(
        graph,
        model->source,
        [](Position, const Graph::Link& link) { return link.input.starts_with("model"); },
        [&](Position at) {
            for (const std::string_view input : inputs) {
                if (has_input(graph, at, input)) {
                    append(found, literal_places(graph, at, input));
                }
            }
            return false;
        }
    );
    return found;
}

std::vector<InputPlace> find_images(const Graph& graph) {
    std::vector<InputPlace> found;
    for (Position at = 0; at < graph.size(); ++at) {
        if (graph[at].class_type.starts_with("LoadImage") && graph.link(at, "image") == nullptr) {
            if (const auto name = own_name(graph, at, "image"); !name.empty()) {
                found.push_back({at, name});
            }
        }
    }
    return found;
}

// Begins with latents that no other sampler made.
bool is_first(const Graph& graph, Position sampler) {
    bool first = true;
    walk(graph, sampler, follow_all, [&](Position at) {
        if (at != sampler && is_sampler(graph, at)) {
            first = false;
        }
        return !first;
    });
    return first;
}

}  // namespace

std::string_view to_string(Role role) {
    return kRoleNames[static_cast<std::size_t>(role)];
}

std::optional<Role> parse_role(std::string_view name) {
    const auto found = std::ranges::find(kRoleNames, name);
    if (found == kRoleNames.end()) {
        return std::nullopt;
    }
    return kRoles[static_cast<std::size_t>(found - kRoleNames.begin())];
}

bool is_sampler(const Graph& graph, Position node) {
    const std::string_view name = graph[node].class_type;
    if (is_one_of(
            name, {"KSampler", "KSamplerAdvanced", "SamplerCustom", "SamplerCustomAdvanced"}
        )) {
        return true;
    }
    const bool is_classic =
        has_input(graph, node, "positive") && has_input(graph, node, "steps") &&
        (has_input(graph, node, "latent_image") || has_input(graph, node, "sampler_name"));
    const bool is_custom =
        has_input(graph, node, "sigmas") && has_input(graph, node, "latent_image");
    return is_classic || is_custom;
}

std::vector<Position> find_samplers(const Graph& graph) {
    std::vector<Position> found;
    for (Position at = 0; at < graph.size(); ++at) {
        if (is_sampler(graph, at)) {
            found.push_back(at);
        }
    }
    return found;
}

std::vector<InputPlace> find_places(const Graph& graph, Position sampler, Role role) {
    switch (role) {
        case Role::prompt:
            return find_prompt(graph, sampler, true);
        case Role::negative_prompt:
            return find_prompt(graph, sampler, false);
        case Role::seed:
            return own_or_behind(graph, sampler, {"seed", "noise_seed"}, {"noise"});
        case Role::steps:
            return own_or_behind(graph, sampler, {"steps"}, {"sigmas"});
        case Role::cfg:
            return find_cfg(graph, sampler);
        case Role::denoise:
            return own_or_behind(graph, sampler, {"denoise"}, {"sigmas"});
        case Role::sampler:
            return own_or_behind(graph, sampler, {"sampler_name"}, {"sampler"});
        case Role::scheduler:
            return own_or_behind(graph, sampler, {"scheduler"}, {"sigmas"});
        case Role::width:
            return find_latent(graph, sampler, {"width"});
        case Role::height:
            return find_latent(graph, sampler, {"height"});
        case Role::batch_size:
            return find_latent(graph, sampler, {"batch_size", "amount"});
        case Role::image:
            return find_images(graph);
        case Role::checkpoint:
            return find_behind_model(graph, sampler, {"ckpt_name", "unet_name"});
        case Role::lora:
            return find_behind_model(graph, sampler, {"lora_name"});
    }
    return {};
}

std::vector<InputPlace> find_places(const Graph& graph, Role role) {
    if (role == Role::image) {
        return find_images(graph);
    }
    const std::vector<Position> samplers = find_samplers(graph);
    std::vector<InputPlace> of_first;
    std::vector<InputPlace> of_all;
    // Beyond a few samplers nobody means all of them by one word.
    constexpr std::size_t kSamplersMax = 16;
    for (std::size_t i = 0; i < std::min(samplers.size(), kSamplersMax); ++i) {
        const auto places = find_places(graph, samplers[i], role);
        append(of_all, places);
        if (samplers.size() > 1 && is_first(graph, samplers[i])) {
            append(of_first, places);
        }
    }
    return of_first.empty() ? of_all : of_first;
}

const json::value* value_at(const Graph& graph, const InputPlace& place) {
    return graph[place.node].inputs->if_contains(key(place.input));
}

}  // namespace comfyd::workflow
