#include "support/double/dummy.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <stdexcept>

#include "base/crypto.hpp"
#include "support/double/prompt.hpp"

namespace comfyd::support {
namespace {

std::vector<std::string> split(std::string_view text, char at) {
    std::vector<std::string> parts;
    while (true) {
        const auto end = text.find(at);
        parts.emplace_back(text.substr(0, end));
        if (end == std::string_view::npos) {
            return parts;
        }
        text.remove_prefix(end + 1);
    }
}

std::size_t to_count(const std::string& text) {
    std::size_t count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc{} || end != text.data() + text.size()) {
        throw std::runtime_error("invalid literal for int() with base 10: '" + text + "'");
    }
    return count;
}

std::string text_input(const json::object& inputs, std::string_view name) {
    const auto found = json::find_string(inputs, name);
    return found && *found ? **found : std::string();
}

std::size_t number_input(const json::object& inputs, std::string_view name, std::size_t otherwise) {
    const auto found = json::find_int(inputs, name);
    return found && *found && **found >= 0 ? static_cast<std::size_t>(**found) : otherwise;
}

bool is_text(std::string_view input) {
    static constexpr std::array<std::string_view, 6> kTexts{
        "text", "text_g", "text_l", "clip_l", "clip_g", "t5xxl"
    };
    return std::ranges::find(kTexts, input) != kTexts.end();
}

bool is_sampler(std::string_view class_type) {
    return class_type == "KSampler" || class_type == "KSamplerAdvanced" ||
           class_type == "SamplerCustom" || class_type == "SamplerCustomAdvanced";
}

bool is_seed(std::string_view input) {
    return input == "seed" || input == "noise_seed" || input == "noise";
}

}  // namespace

const DummyTensor& DummyTensors::get(const std::string& node, std::int64_t slot) {
    const auto key = std::pair(node, slot);
    const auto found = made_.find(key);
    return found != made_.end() ? found->second : made_[key] = make(node, slot);
}

DummyTensor DummyTensors::input(const std::string& node, std::string_view name) {
    const auto* value = inputs_of(graph_, node).if_contains(name);
    const std::string from(value != nullptr ? linked_node(*value) : std::string_view{});
    return from.empty() ? DummyTensor{} : get(from, value->get_array()[1].as_int64());
}

DummyTensor DummyTensors::make(const std::string& node, std::int64_t slot) {
    const auto class_type = class_of(graph_, node);
    if (class_type == "ComfydLatentBatch") {
        return join_latents(node, slot == 1);
    }
    if (class_type == "ComfydConditioningBatch") {
        return join_conditionings(node);
    }
    if (class_type == "ImageFromBatch") {
        return part(node);
    }
    if (class_type == "RandomNoise") {
        const auto seeds = input(node, "noise_seed");
        return seeds.empty() ? DummyTensor{{"", seed_of(node, 0)}} : seeds;
    }
    return is_sampler(class_type) ? sample(node) : apply(node);
}

DummyTensor DummyTensors::join_latents(const std::string& node, bool seeds) {
    const auto& inputs = inputs_of(graph_, node);
    const auto jobs = split(text_input(inputs, "jobs"), ',');
    const bool is_joined = !inputs.contains("latent1");
    DummyTensor latents;
    DummyTensor all_seeds;
    std::size_t total = 0;
    for (std::size_t job = 0; job < jobs.size(); ++job) {
        const auto seed = split(jobs[job], ':');
        const std::size_t count = to_count(seed.at(1));
        for (std::size_t i = 0; i < count; ++i) {
            all_seeds.push_back({"", seed[0] + "/" + std::to_string(i)});
        }
        total += count;
        if (job == 0 || !is_joined) {
            const DummyTensor own = input(node, "latent" + std::to_string(job));
            if (!is_joined && own.size() != count) {
                throw std::runtime_error("the latents do not have the samples of the jobs");
            }
            latents.insert(latents.end(), own.begin(), own.end());
        }
    }
    if (latents.size() != total) {
        throw std::runtime_error("another number of samples than the jobs have");
    }
    return seeds ? all_seeds : latents;
}

DummyTensor DummyTensors::join_conditionings(const std::string& node) {
    const auto counts = split(text_input(inputs_of(graph_, node), "counts"), ',');
    DummyTensor joined;
    for (std::size_t job = 0; job < counts.size(); ++job) {
        const DummyTensor own = input(node, "conditioning" + std::to_string(job));
        if (own.size() != 1) {
            throw std::runtime_error("the conditionings do not have the same form");
        }
        joined.insert(joined.end(), to_count(counts[job]), own[0]);
    }
    return joined;
}

DummyTensor DummyTensors::part(const std::string& node) {
    const auto& inputs = inputs_of(graph_, node);
    const DummyTensor images = input(node, "image");
    const std::size_t start = std::min(number_input(inputs, "batch_index", 0), images.size());
    const std::size_t length = std::min(number_input(inputs, "length", 1), images.size() - start);
    const auto first = images.begin() + static_cast<std::ptrdiff_t>(start);
    return {first, first + static_cast<std::ptrdiff_t>(length)};
}

DummyTensor DummyTensors::sample(const std::string& node) {
    DummyTensor samples;
    const std::size_t count = input(node, "latent_image").size();
    for (std::size_t i = 0; i < count; ++i) {
        const std::string seed = seed_of(node, i);
        DummySample made = describe(node, i, "");
        made.text += (made.text.empty() ? "seed " : " seed ") + seed;
        made.what = to_hex(sha256(made.what + " " + seed));
        samples.push_back(std::move(made));
    }
    return samples;
}

// "5/1": the second sample of a job with the seed 5.
std::string DummyTensors::seed_of(const std::string& node, std::size_t at) {
    for (const auto& [name, value] : inputs_of(graph_, node)) {
        if (!is_seed(name)) {
            continue;
        }
        const DummyTensor linked = input(node, name);
        const std::string seed = linked.empty()       ? json::serialize(value)
                                 : linked.size() == 1 ? linked[0].what
                                                      : linked.at(at).what;
        const bool is_plain = seed.find('/') == std::string::npos;
        return is_plain && is_sampler(class_of(graph_, node)) ? seed + "/" + std::to_string(at)
                                                              : seed;
    }
    return {};
}

// Sample by sample: a tensor of one serves all of them.
DummyTensor DummyTensors::apply(const std::string& node) {
    const auto& inputs = inputs_of(graph_, node);
    std::size_t count = number_input(inputs, "batch_size", 1);
    for (const auto& [name, value] : inputs) {
        count = std::max(count, input(node, name).size());
    }
    DummyTensor made;
    for (std::size_t i = 0; i < count; ++i) {
        made.push_back(describe(node, i, "batch_size"));
    }
    return made;
}

DummySample DummyTensors::describe(
    const std::string& node, std::size_t at, std::string_view without
) {
    std::map<std::string, std::string> parts;
    DummySample made;
    for (const auto& [name, value] : inputs_of(graph_, node)) {
        if (name == without || (is_seed(name) && is_sampler(class_of(graph_, node)))) {
            continue;
        }
        const DummyTensor linked = input(node, name);
        if (linked.empty()) {
            parts[name] = json::serialize_canonical(value);
            if (is_text(name) && value.is_string()) {
                made.text += (made.text.empty() ? "" : " ") + std::string(value.get_string());
            }
            continue;
        }
        const DummySample& sample = linked.size() == 1 ? linked[0] : linked.at(at);
        parts[name] = sample.what + "," + json::serialize(value.get_array()[1]);
        if (made.text.empty() && name != "negative") {
            made.text = sample.text;
        }
    }
    std::string all(class_of(graph_, node));
    for (const auto& [name, what] : parts) {
        all += "\n" + name + " " + what;
    }
    made.what = to_hex(sha256(all));
    return made;
}

}  // namespace comfyd::support
