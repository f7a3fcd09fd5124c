#include "fleet/providers/provider_settings.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <optional>
#include <set>

#include "base/text.hpp"
#include "fleet/providers/foreign_words.hpp"

namespace comfyd::fleet {
namespace {

std::vector<std::string> split(std::string_view text, char mark) {
    std::vector<std::string> parts;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(mark), text.size());
        const std::string_view part = trim(text.substr(0, end));
        if (!part.empty()) {
            parts.emplace_back(part);
        }
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return parts;
}

// Each setting that is there is put in its place; finish() says what was wrong first.
class Words {
public:
    Words(const std::string& name, const ProviderWords& words) : name_(name), words_(words) {}

    const std::string* find(const std::string& key) {
        known_.insert(key);
        const auto found = words_.find(key);
        return found == words_.end() || found->second.empty() ? nullptr : &found->second;
    }
    void complain(const std::string& key, const std::string& what) {
        if (wrong_.empty()) {
            wrong_ = "provider '" + name_ + "': " + key + " " + what;
        }
    }

    void text(const std::string& key, std::string& into) {
        if (const std::string* word = find(key)) {
            into = *word;
        }
    }
    // What goes into a header.
    void secret(const std::string& key, std::string& into) {
        text(key, into);
        if (std::ranges::any_of(into, [](char c) { return c <= ' ' || c == '\x7f'; })) {
            complain(key, "has a space or a character in it that no key has");
        }
    }
    void file(const std::string& key, std::string& into) {
        text(key, into);
        if (!into.empty() && !std::ifstream(into).good()) {
            complain(key, "names '" + into + "', which cannot be read");
        }
    }
    // "12.8"
    void version(const std::string& key, std::string& into) {
        text(key, into);
        const auto is_part = [](std::string_view part) {
            return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
        };
        const std::string_view all = into;
        const std::size_t dot = all.find('.');
        const bool is_version = dot != std::string_view::npos && is_part(all.substr(0, dot)) &&
                                is_part(all.substr(dot + 1));
        if (!all.empty() && !is_version) {
            complain(key, "must look like 12.8");
        }
    }
    void list(const std::string& key, std::vector<std::string>& into) {
        if (const std::string* word = find(key)) {
            into = split(*word, ',');
        }
    }
    // "a=b,c=d"
    void pairs(const std::string& key, std::map<std::string, std::string>& into) {
        const std::string* word = find(key);
        for (const std::string& pair :
             word != nullptr ? split(*word, ',') : std::vector<std::string>()) {
            const std::size_t mark = pair.find('=');
            if (mark == 0 || mark == std::string::npos) {
                complain(key, "must look like a=b, c=d");
                return;
            }
            into[pair.substr(0, mark)] = pair.substr(mark + 1);
        }
    }
    std::optional<double> number(const std::string& key, double least, double most) {
        const std::string* word = find(key);
        if (word == nullptr) {
            return std::nullopt;
        }
        double read = 0;
        const auto [end, error] = std::from_chars(word->data(), word->data() + word->size(), read);
        const bool is_right = error == std::errc() && end == word->data() + word->size() &&
                              read >= least && read <= most;
        if (!is_right) {
            complain(
                key,
                "must be a number from " + std::to_string(static_cast<std::int64_t>(least)) +
                    " to " + std::to_string(static_cast<std::int64_t>(most))
            );
            return std::nullopt;
        }
        return read;
    }
    void integer(const std::string& key, int& into, int least, int most) {
        const auto read = number(key, least, most);
        if (read && *read != std::floor(*read)) {
            complain(key, "must be a whole number");
        } else if (read) {
            into = static_cast<int>(*read);
        }
    }
    void fraction(const std::string& key, double& into, double least, double most) {
        into = number(key, least, most).value_or(into);
    }
    void seconds(const std::string& key, std::chrono::seconds& into) {
        constexpr double kMost = 24 * 3600;
        if (const auto read = number(key, 0, kMost)) {
            into = std::chrono::seconds(static_cast<std::int64_t>(*read));
        }
    }
    void bytes(const std::string& key, double unit, std::uint64_t& into) {
        constexpr double kMost = 1e6;
        if (const auto read = number(key, 0, kMost)) {
            into = static_cast<std::uint64_t>(*read * unit);
        }
    }
    void price(const std::string& key, std::optional<double>& into) {
        constexpr double kMost = 10'000;
        if (const auto read = number(key, 0, kMost)) {
            into = read;
        }
    }
    void yes_or_no(const std::string& key, bool& into) {
        const std::string* word = find(key);
        if (word == nullptr) {
            return;
        }
        const bool is_yes = *word == "true" || *word == "yes";
        if (!is_yes && *word != "false" && *word != "no") {
            complain(key, "must be true or false");
        }
        into = is_yes;
    }
    // "18200-18299"
    void range(const std::string& key, int& first, int& last) {
        const std::string* word = find(key);
        if (word == nullptr) {
            return;
        }
        const char* const end = word->data() + word->size();
        const auto left = std::from_chars(word->data(), end, first);
        const bool has_left = left.ec == std::errc() && left.ptr != end && *left.ptr == '-';
        const auto right = has_left ? std::from_chars(left.ptr + 1, end, last) : left;
        if (!has_left || right.ec != std::errc() || right.ptr != end) {
            complain(key, "must look like 18200-18299");
        }
    }

    Result<> finish() {
        for (const auto& [key, value] : words_) {
            if (!known_.contains(key)) {
                complain(key, "is no setting of this kind of provider");
            }
        }
        return wrong_.empty() ? Result<>() : fail(Code::config_invalid, wrong_);
    }

private:
    const std::string& name_;
    const ProviderWords& words_;
    std::set<std::string> known_;
    std::string wrong_;
};

template <class Options>
Result<Options> finished(Words& words, Options options) {
    auto done = words.finish();
    if (!done) {
        return fail(std::move(done.error()));
    }
    return options;
}

constexpr double kGigabyte = 1e9;
constexpr double kMegabyte = 1e6;

}  // namespace

Result<DockerOptions> read_docker(const std::string& name, const ProviderWords& settings) {
    Words words(name, settings);
    DockerOptions options;
    options.name = name;
    words.text("socket", options.socket);
    words.text("network", options.network);
    words.range("ports", options.port_first, options.port_last);
    words.list("gpus", options.gpus);
    words.integer("per_gpu", options.per_gpu, 1, 100);
    words.text("gpu_driver", options.gpu_driver);
    words.integer("machines_max", options.machines_max, 0, 10'000);
    words.text("gpu_kind", options.gpu_kind);
    words.bytes("gpu_memory_gb", kGigabyte, options.gpu_memory_bytes);
    words.text("region", options.region);
    words.price("usd_per_hour", options.usd_per_hour);
    words.list("volumes", options.volumes);
    words.bytes("shm_mb", kMegabyte, options.shm_bytes);
    words.seconds("pull_timeout_s", options.pull_timeout);
    words.seconds("stop_grace_s", options.stop_grace);
    std::string pull = "missing";
    words.text("pull", pull);
    if (pull == "always") {
        options.pull = DockerOptions::Pull::always;
    } else if (pull == "never") {
        options.pull = DockerOptions::Pull::never;
    } else if (pull != "missing") {
        words.complain("pull", "must be missing, always or never");
    }
    return finished(words, std::move(options));
}

Result<RunPodOptions> read_runpod(const std::string& name, const ProviderWords& settings) {
    Words words(name, settings);
    RunPodOptions options;
    options.name = name;
    words.secret("key", options.key);
    words.text("url", options.url);
    words.text("agent_url", options.agent_url);
    words.list("clouds", options.clouds);
    words.list("data_centers", options.data_centers);
    words.text("registry", options.registry);
    words.text("volume", options.volume);
    words.text("volume_path", options.volume_path);
    words.version("cuda_min", options.cuda_min);
    words.file("ca_file", options.ca_file);
    return finished(words, std::move(options));
}

Result<NovitaOptions> read_novita(const std::string& name, const ProviderWords& settings) {
    Words words(name, settings);
    NovitaOptions options;
    options.name = name;
    words.secret("key", options.key);
    if (const std::string* host = words.find("base_url")) {
        options.url = host->substr(0, host->find_last_not_of('/') + 1) + "/gpus/v2";
    }
    words.text("url", options.url);
    words.text("agent_url", options.agent_url);
    words.text("product_id", options.product);
    words.list("regions", options.regions);
    words.text("registry", options.registry);
    words.text("volume", options.volume);
    words.text("volume_path", options.volume_path);
    words.version("cuda_min", options.cuda_min);
    words.yes_or_no("can_park", options.can_park);
    words.integer("disk_gb", options.disk_gb, 10, 6144);
    words.file("ca_file", options.ca_file);
    return finished(words, std::move(options));
}

Result<VastOptions> read_vast(const std::string& name, const ProviderWords& settings) {
    Words words(name, settings);
    VastOptions options;
    options.name = name;
    words.secret("key", options.key);
    words.text("url", options.url);
    words.yes_or_no("dials_in", options.dials_in);
    words.integer("disk_gb", options.disk_gb, 8, 100'000);
    words.fraction("reliability_min", options.reliability_min, 0, 1);
    words.version("cuda_min", options.cuda_min);
    words.fraction("bid_factor", options.bid_factor, 1, 10);
    words.file("ca_file", options.ca_file);
    return finished(words, std::move(options));
}

Result<SaladOptions> read_salad(const std::string& name, const ProviderWords& settings) {
    Words words(name, settings);
    SaladOptions options;
    options.name = name;
    words.secret("key", options.key);
    words.text("organization", options.organization);
    words.text("project", options.project);
    words.text("url", options.url);
    words.text("priority", options.priority);
    words.list("countries", options.countries);
    words.integer("cpus", options.cpus, 1, 1024);
    words.integer("memory_mb", options.memory_mb, 1024, 1'000'000);
    words.integer("disk_gb", options.disk_gb, 1, 100'000);
    words.file("ca_file", options.ca_file);
    return finished(words, std::move(options));
}

Result<KubernetesOptions> read_kubernetes(const std::string& name, const ProviderWords& settings) {
    Words words(name, settings);
    KubernetesOptions options;
    options.name = name;
    words.text("kubeconfig", options.kubeconfig);
    words.text("context", options.context);
    words.text("namespace", options.name_space);
    words.text("gpu_resource", options.gpu_resource);
    words.text("gpu_label", options.gpu_label);
    words.list("gpus", options.gpus);
    words.pairs("node_selector", options.node_selector);
    words.list("pull_secrets", options.pull_secrets);
    words.text("runtime_class", options.runtime_class);
    words.pairs("claims", options.claims);
    words.seconds("grace_s", options.grace);
    words.yes_or_no("dials_in", options.dials_in);
    words.text("region", options.region);
    words.price("usd_per_hour", options.usd_per_hour);
    return finished(words, std::move(options));
}

}  // namespace comfyd::fleet
