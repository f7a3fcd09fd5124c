#include "workflow/plan/fingerprint.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/text.hpp"
#include "workflow/files/asset_ref.hpp"

namespace comfyd::workflow {
namespace {

using Position = Graph::Position;

void put_number(std::string& to, std::uint64_t number) {
    std::array<char, 24> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    to.append(digits.data(), end);
    to += ';';
}

// With its length before it, so that no two lists of texts are written alike.
void put_text(std::string& to, std::string_view text) {
    put_number(to, text.size());
    to += text;
}

// 7 and 7.0 are the same to a node that takes a number.
void put_double(std::string& to, double number) {
    constexpr double kExact = 9007199254740992.0;
    if (std::floor(number) == number && std::abs(number) <= kExact) {
        to += number < 0 ? "-" : "+";
        put_number(to, static_cast<std::uint64_t>(std::abs(number)));
        return;
    }
    std::array<char, sizeof number> bytes{};
    std::memcpy(bytes.data(), &number, sizeof number);
    to += 'd';
    to.append(bytes.data(), bytes.size());
}

void put_value(std::string& to, const json::value& value) {
    switch (value.kind()) {
        case boost::json::kind::null:
            to += 'n';
            break;
        case boost::json::kind::bool_:
            to += value.get_bool() ? 't' : 'f';
            break;
        case boost::json::kind::int64: {
            const std::int64_t number = value.get_int64();
            to += number < 0 ? '-' : '+';
            const auto bits = static_cast<std::uint64_t>(number);
            put_number(to, number < 0 ? ~bits + 1 : bits);
            break;
        }
        case boost::json::kind::uint64:
            to += '+';
            put_number(to, value.get_uint64());
            break;
        case boost::json::kind::double_:
            put_double(to, value.get_double());
            break;
        case boost::json::kind::string:
            to += 's';
            put_text(to, view(value.get_string()));
            break;
        case boost::json::kind::array:
        case boost::json::kind::object:
            to += 'j';
            put_text(to, json::serialize_canonical(value));
            break;
    }
}

// What an asset reference refers to; empty: it is none.
std::string asset_identity(const json::value& value) {
    auto asset = AssetRef::read(value);
    return !asset ? std::string() : std::move(asset->hash.empty() ? asset->id : asset->hash);
}

class Writer {
public:
    Writer(const Graph& graph, const PromptClasses& classes, const InputHashes& input_hashes)
        : graph_(graph),
          classes_(classes),
          input_hashes_(input_hashes),
          contents_(graph.size()),
          batches_(graph.size()) {}

    void write(Position at) {
        const Graph::Node& node = graph_[at];
        const NodeDefinition* definition = classes_.find(node.class_type);
        inputs_.clear();
        for (const auto& input : *node.inputs) {
            inputs_.push_back({view(input.key()), &input.value()});
        }
        std::ranges::sort(inputs_, {}, &std::pair<std::string_view, const json::value*>::first);
        content_.clear();
        batch_.clear();
        put_text(content_, node.class_type);
        put_text(batch_, node.class_type);
        for (const auto& [name, value] : inputs_) {
            put_text(content_, name);
            put_text(batch_, name);
            if (const Graph::Link* link = value->is_array() ? graph_.link(at, name) : nullptr) {
                put_link(*link);
            } else {
                put_literal(definition, node, name, *value);
            }
        }
        contents_[at] = sha256(content_);
        batches_[at] = sha256(batch_);
    }

    std::string join(std::string_view kind, const std::vector<Position>& outputs, bool batch)
        const {
        std::vector<Digest> digests;
        for (const Position at : outputs) {
            digests.push_back(batch ? batches_[at] : contents_[at]);
        }
        std::ranges::sort(digests);
        std::string all(kind);
        for (const Digest& digest : digests) {
            all.append(reinterpret_cast<const char*>(digest.data()), digest.size());
        }
        return to_hex(sha256(all));
    }

    std::vector<Digest> take_contents() { return std::move(contents_); }

private:
    void put_link(const Graph::Link& link) {
        for (auto [to, digests] :
             {std::pair(&content_, &contents_), std::pair(&batch_, &batches_)}) {
            const Digest& source = (*digests)[link.source];
            *to += 'l';
            to->append(reinterpret_cast<const char*>(source.data()), source.size());
            put_number(*to, static_cast<std::uint64_t>(link.slot));
        }
    }

    void put_literal(
        const NodeDefinition* definition,
        const Graph::Node& node,
        std::string_view name,
        const json::value& given
    ) {
        const json::object* wrapper = given.if_object();
        const json::value* inner = wrapper != nullptr ? wrapper->if_contains("__value__") : nullptr;
        const json::value& value = inner != nullptr ? *inner : given;
        const InputDefinition* known =
            definition != nullptr ? definition->find_input(name, *node.inputs) : nullptr;
        if (is_batchable(name, value, known)) {
            batch_ += '*';
        } else {
            put_value(batch_, value);
        }
        if (const std::string asset = asset_identity(value); !asset.empty()) {
            content_ += 'h';
            put_text(content_, asset);
            return;
        }
        if (value.is_string() && input_hashes_) {
            if (const auto hash = input_hashes_(view(value.get_string()))) {
                content_ += 'h';
                put_text(content_, *hash);
                return;
            }
        }
        put_value(content_, value);
    }

    const Graph& graph_;
    const PromptClasses& classes_;
    const InputHashes& input_hashes_;
    std::vector<Digest> contents_;
    std::vector<Digest> batches_;
    std::vector<std::pair<std::string_view, const json::value*>> inputs_;
    std::string content_;
    std::string batch_;
};

bool is_multiline(const InputDefinition* known) {
    const json::value* multiline = known != nullptr && known->options != nullptr
                                       ? json::find(*known->options, "multiline")
                                       : nullptr;
    return multiline != nullptr && multiline->is_bool() && multiline->get_bool();
}

}  // namespace

bool is_batchable(std::string_view input, const json::value& value, const InputDefinition* known) {
    static constexpr std::array<std::string_view, 9> kTexts{
        "text",
        "text_g",
        "text_l",
        "clip_l",
        "clip_g",
        "t5xxl",
        "llama",
        "prompt",
        "filename_prefix"
    };
    if (input == "seed" || input == "batch_size" || input.ends_with("_seed")) {
        return true;
    }
    if (value.is_string()) {
        const bool is_text =
            is_multiline(known) || std::ranges::find(kTexts, input) != kTexts.end();
        return is_text || (known != nullptr && known->takes_upload());
    }
    return !asset_identity(value).empty();
}

Fingerprints make_fingerprints(
    const Graph& graph,
    const std::vector<Position>& outputs,
    const PromptClasses& classes,
    const InputHashes& input_hashes
) {
    Fingerprints made;
    Writer writer(graph, classes, input_hashes);
    std::vector<bool> written(graph.size());
    for (const Position at : graph.order()) {
        writer.write(at);
        written[at] = true;
    }
    if (std::ranges::all_of(outputs, [&](Position at) { return written[at]; })) {
        made.content = writer.join("comfyd content 1", outputs, false);
        made.batch = writer.join("comfyd batch 1", outputs, true);
    }
    made.nodes = writer.take_contents();
    return made;
}

}  // namespace comfyd::workflow
