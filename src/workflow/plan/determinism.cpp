#include "workflow/plan/determinism.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/crypto.hpp"
#include "base/text.hpp"
#include "workflow/catalogue/models.hpp"
#include "workflow/files/file_inputs.hpp"
#include "workflow/plan/fingerprint.hpp"
#include "workflow/plan/plan.hpp"
#include "workflow/rules/security.hpp"

namespace comfyd::workflow {
namespace {

constexpr std::string_view kUnknownClass = "no worker says what this class is";
constexpr std::string_view kDeclared = "it is declared as varying (reuse.never_nodes)";
constexpr std::string_view kAsksOthers = "it asks a service elsewhere";
constexpr std::string_view kLooksOutside = "by its name it looks at time, network or the screen";
constexpr std::string_view kChance = "it chooses by chance, without a seed";
constexpr std::string_view kOtherFiles = "it reads files of the worker, whose content is not known";
constexpr std::string_view kKeeps = "it leaves files on the worker beside its outputs";
constexpr std::string_view kAddress = "what an address leads to may change";
constexpr std::string_view kUnreadLink = "it has a link whose output is not counted from 0";

struct Known {
    std::string_view class_type;
    std::string_view reason;
};
// ComfyUI's own.
constexpr std::array kKnown{
    Known{"CLIPSave", kKeeps},
    Known{"CheckpointSave", kKeeps},
    Known{"ImageOnlyCheckpointSave", kKeeps},
    Known{"Load3D", kOtherFiles},
    Known{"Load3DAnimation", kOtherFiles},
    Known{"LoadImageDataSetFromFolder", kOtherFiles},
    Known{"LoadImageTextDataSetFromFolder", kOtherFiles},
    Known{"LoadTrainingDataset", kOtherFiles},
    Known{"LoraSave", kKeeps},
    Known{"ModelSave", kKeeps},
    Known{"SaveImageDataSetToFolder", kKeeps},
    Known{"SaveImageTextDataSetToFolder", kKeeps},
    Known{"SaveImageWebsocket", "it sends its pictures instead of storing them"},
    Known{"SaveLoRA", kKeeps},
    Known{"SaveTrainingDataset", kKeeps},
    Known{"TrainLoraNode", kKeeps},
    Known{"VAESave", kKeeps},
    Known{"WanMoveTrackToVideo", kChance},
    Known{"WebcamCapture", "it takes a picture"},
};

constexpr std::array<std::string_view, 36> kOutsideWords{
    "api",        "chatgpt",  "claude",   "clipboard", "clock",     "database", "date", "datetime",
    "discord",    "download", "fetch",    "gemini",    "gpt",       "guid",     "http", "https",
    "llm",        "now",      "ollama",   "openai",    "redis",     "request",  "s3",   "screen",
    "screenshot", "sql",      "telegram", "time",      "timestamp", "today",    "url",  "urls",
    "uuid",       "vlm",      "webcam",   "websocket",
};
constexpr std::array<std::string_view, 8> kChanceWords{
    "chance", "dice", "rand", "randint", "random", "randomize", "randomizer", "shuffle"
};
constexpr std::array<std::string_view, 6> kFileWords{
    "dir", "directory", "file", "folder", "path", "url"
};

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& words, std::string_view word) {
    return std::ranges::find(words, word) != words.end();
}

// "LoadURLImage_v2" is load, url, image, v, 2. In lower case.
std::vector<std::string> words_of(std::string_view name) {
    const auto is = [](int (*kind)(int), char c) {
        return kind(static_cast<unsigned char>(c)) != 0;
    };
    std::vector<std::string> words;
    for (std::size_t at = 0; at < name.size(); ++at) {
        const char c = name[at];
        if (!is(std::isalnum, c)) {
            continue;
        }
        const char before = at > 0 ? name[at - 1] : ' ';
        const char after = at + 1 < name.size() ? name[at + 1] : ' ';
        const bool begins =
            !is(std::isalnum, before) ||
            (is(std::isupper, c) && (is(std::islower, before) || is(std::isdigit, before) ||
                                     (is(std::isupper, before) && is(std::islower, after))));
        if (begins) {
            words.emplace_back();
        }
        words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return words;
}

const json::value& literal_of(const json::value& given) {
    const json::object* wrapper = given.if_object();
    const json::value* inner = wrapper != nullptr ? wrapper->if_contains("__value__") : nullptr;
    return inner != nullptr ? *inner : given;
}

bool is_seed(std::string_view input) {
    return input == "seed" || input.ends_with("_seed");
}

bool is_true(const json::object& info, std::string_view key) {
    const json::value* found = json::find(info, key);
    return found != nullptr && found->is_bool() && found->get_bool();
}

bool is_api_node(const NodeDefinition& definition) {
    const json::value* module = json::find(definition.info(), "python_module");
    return is_true(definition.info(), "api_node") ||
           (module != nullptr && module->is_string() &&
            view(module->get_string()).starts_with("comfy_api_nodes"));
}

// Of the picture that noise is added to, from a generator that nobody has seeded by then.
bool adds_unseeded_noise(const Graph::Node& node) {
    const json::value* level = node.inputs->if_contains("augmentation_level");
    return node.class_type == "SVD_img2vid_Conditioning" && level != nullptr &&
           !(level->is_number() && level->to_number<double>() == 0);
}

class Judge {
public:
    Judge(const PromptClasses& classes, const std::vector<std::string>& never_nodes)
        : classes_(classes), never_nodes_(never_nodes) {}

    // Why it may give something else; empty: it does not.
    std::string_view judge(const Graph::Node& node) const {
        const NodeDefinition* definition = classes_.find(node.class_type);
        if (definition == nullptr) {
            return kUnknownClass;
        }
        const bool is_declared = is_true(definition->info(), "not_idempotent") ||
                                 std::ranges::any_of(never_nodes_, [&](const std::string& one) {
                                     return matches_pattern(one, node.class_type);
                                 });
        if (is_declared) {
            return kDeclared;
        }
        if (is_api_node(*definition)) {
            return kAsksOthers;
        }
        const auto known = std::ranges::find(kKnown, node.class_type, &Known::class_type);
        if (known != kKnown.end()) {
            return known->reason;
        }
        if (adds_unseeded_noise(node)) {
            return kChance;
        }
        if (definition->is_custom()) {
            if (const auto reason = judge_name(node); !reason.empty()) {
                return reason;
            }
        }
        for (const auto& input : *node.inputs) {
            const json::value& value = literal_of(input.value());
            const auto reason = judge_input(*definition, node, view(input.key()), value);
            if (!reason.empty()) {
                return reason;
            }
        }
        return {};
    }

private:
    static std::string_view judge_name(const Graph::Node& node) {
        const bool has_seed = std::ranges::any_of(*node.inputs, [](const auto& input) {
            return is_seed(view(input.key()));
        });
        for (const std::string& word : words_of(node.class_type)) {
            if (is_one_of(kOutsideWords, word)) {
                return kLooksOutside;
            }
            if (!has_seed && is_one_of(kChanceWords, word)) {
                return kChance;
            }
        }
        return {};
    }

    std::string_view judge_input(
        const NodeDefinition& definition,
        const Graph::Node& node,
        std::string_view name,
        const json::value& value
    ) const {
        // To many packs it means that they choose one themselves.
        if (is_seed(name) && value.is_int64() && value.get_int64() < 0) {
            return kChance;
        }
        if (!value.is_string() || value.get_string().empty()) {
            return {};
        }
        const std::string_view text = view(value.get_string());
        if (chooses_file(node.class_type, name, *node.inputs, classes_)) {
            // What is named by content or address is brought here first, and known then.
            return is_file_source(text) ? std::string_view() : kOtherFiles;
        }
        InputUrl address;
        if (read_input_url(text, address)) {
            return kAddress;
        }
        if (!definition.is_custom() || is_model_input(name) || is_model_file(text)) {
            return {};
        }
        const bool names_file = std::ranges::any_of(words_of(name), [](const std::string& word) {
            return is_one_of(kFileWords, word);
        });
        return names_file ? kOtherFiles : std::string_view();
    }

    const PromptClasses& classes_;
    const std::vector<std::string>& never_nodes_;
};

// ComfyUI takes output -1 for the last one; the source of such a link is not in the key.
bool has_unread_link(const Graph& graph, Graph::Position at) {
    return std::ranges::any_of(*graph[at].inputs, [&](const auto& input) {
        return input.value().is_array() && graph.link(at, view(input.key())) == nullptr;
    });
}

std::vector<Graph::Position> outputs_of(
    const Graph& graph, const PromptClasses& classes, const std::vector<std::string>& targets
) {
    if (targets.empty()) {
        return find_outputs(graph, classes);
    }
    std::vector<Graph::Position> found;
    for (const std::string& target : targets) {
        if (const auto at = graph.find(target); at != Graph::kNone) {
            found.push_back(at);
        }
    }
    return found;
}

}  // namespace

json::object NotReusable::to_json() const {
    return {{"node_id", node_id}, {"class_type", class_type}, {"reason", reason}};
}

std::optional<NotReusable> why_not_reusable(
    const Graph& graph,
    const std::vector<bool>& needed,
    const PromptClasses& classes,
    const std::vector<std::string>& never_nodes
) {
    const Judge judge(classes, never_nodes);
    for (Graph::Position at = 0; at < graph.size(); ++at) {
        if (!needed[at]) {
            continue;
        }
        std::string_view reason = judge.judge(graph[at]);
        if (reason.empty() && has_unread_link(graph, at)) {
            reason = kUnreadLink;
        }
        if (!reason.empty()) {
            return NotReusable{
                std::string(graph[at].id), std::string(graph[at].class_type), std::string(reason)
            };
        }
    }
    return std::nullopt;
}

tl::expected<std::string, NotReusable> make_reuse_key(
    const json::object& workflow, const PromptClasses& classes, const ReuseOptions& options
) {
    const Graph graph(workflow);
    const auto outputs = outputs_of(graph, classes, options.targets);
    const auto needed = graph.needed_by(outputs);
    if (auto why = why_not_reusable(graph, needed, classes, options.never_nodes)) {
        return tl::unexpected(std::move(*why));
    }
    const Fingerprints made = make_fingerprints(graph, outputs, classes);
    if (outputs.empty() || made.content.empty()) {
        return tl::unexpected(NotReusable{{}, {}, "no output of it can run"});
    }
    std::vector<Graph::Position> order;
    for (Graph::Position at = 0; at < graph.size(); ++at) {
        if (needed[at]) {
            order.push_back(at);
        }
    }
    std::ranges::sort(order, {}, [&graph](Graph::Position at) { return graph[at].id; });
    // With their ids, because outputs are told by those.
    std::string all = "comfyd reuse 1;";
    for (const std::string& text : {options.generation, options.pool}) {
        all.append(std::to_string(text.size())).append(";").append(text);
    }
    for (const Graph::Position at : order) {
        const std::string_view id = graph[at].id;
        all.append(std::to_string(id.size())).append(";").append(id);
        const Digest& digest = made.nodes[at];
        all.append(reinterpret_cast<const char*>(digest.data()), digest.size());
    }
    // Which of them are run for their own sake.
    all += made.content;
    // Nodes can read it, and pictures hold it.
    if (const json::value* info = json::find(options.extra_data, "extra_pnginfo")) {
        all += json::serialize_canonical(*info);
    }
    return to_hex(sha256(all));
}

}  // namespace comfyd::workflow
