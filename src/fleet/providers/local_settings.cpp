// How the settings of local processes are written.
#include <charconv>
#include <functional>
#include <string_view>
#include <utility>

#include "base/sandbox.hpp"
#include "base/text.hpp"
#include "fleet/providers/local_pool.hpp"

namespace comfyd::fleet {
namespace {

tl::unexpected<Error> wrong(const std::string& name, const std::string& why) {
    return fail(Code::config_invalid, "'comfyui." + name + "' " + why);
}

std::vector<std::string> list_in(std::string_view text) {
    std::vector<std::string> words;
    while (!text.empty()) {
        const auto comma = text.find(',');
        const std::string_view word = trim(text.substr(0, comma));
        if (!word.empty()) {
            words.emplace_back(word);
        }
        text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    }
    return words;
}

Result<int> number_in(const std::string& name, std::string_view text, int least, int most) {
    text = trim(text);
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < least ||
        number > most) {
        return wrong(
            name,
            "must be a number from " + std::to_string(least) + " to " + std::to_string(most) +
                ", not '" + std::string(text) + "'"
        );
    }
    return number;
}

Result<> read_ports(const std::string& text, LocalSettings& settings) {
    const auto dash = text.find('-');
    const auto first = number_in("ports", text.substr(0, dash), 1, 65'535);
    const auto last =
        number_in("ports", dash == std::string::npos ? text : text.substr(dash + 1), 1, 65'535);
    if (!first || !last || *first > *last) {
        return wrong("ports", "must be two numbers, as 8188-8288, not '" + text + "'");
    }
    settings.port_first = *first;
    settings.port_last = *last;
    return {};
}

Result<> read_sandbox(const std::string& text, LocalSettings& settings) {
    for (const SandboxLevel level :
         {SandboxLevel::minimal, SandboxLevel::basic, SandboxLevel::strict}) {
        if (text == to_string(level)) {
            settings.sandbox = text;
            return {};
        }
    }
    return wrong("sandbox", "must be minimal, basic or strict, not '" + text + "'");
}

using Read = std::function<Result<>(const std::string& text, LocalSettings& settings)>;

Read text_into(std::string LocalSettings::* member) {
    return [member](const std::string& text, LocalSettings& settings) -> Result<> {
        settings.*member = text;
        return {};
    };
}

Read list_into(std::vector<std::string> LocalSettings::* member) {
    return [member](const std::string& text, LocalSettings& settings) -> Result<> {
        settings.*member = list_in(text);
        return {};
    };
}

Read number_into(std::string name, int LocalSettings::* member, int least, int most) {
    return [=](const std::string& text, LocalSettings& settings) -> Result<> {
        const auto number = number_in(name, text, least, most);
        if (!number) {
            return fail(number.error());
        }
        settings.*member = *number;
        return {};
    };
}

std::map<std::string, Read> readers() {
    constexpr int kMany = 1'000'000;
    return {
        {"dir", text_into(&LocalSettings::dir)},
        {"python", text_into(&LocalSettings::python)},
        {"arguments", list_into(&LocalSettings::arguments)},
        {"gpus", list_into(&LocalSettings::gpus)},
        {"per_gpu", number_into("per_gpu", &LocalSettings::per_gpu, 1, 64)},
        {"gpu_memory_mb", number_into("gpu_memory_mb", &LocalSettings::gpu_memory_mb, 0, kMany)},
        {"ports", read_ports},
        {"recycle_jobs", number_into("recycle_jobs", &LocalSettings::recycle_jobs, 0, kMany)},
        {"recycle_ram_mb",
         number_into("recycle_ram_mb", &LocalSettings::recycle_ram_mb, 0, 10 * kMany)},
        {"sandbox", read_sandbox},
        {"readable", list_into(&LocalSettings::readable)},
        {"writable", list_into(&LocalSettings::writable)},
        {"packs", list_into(&LocalSettings::packs)},
        {"packs_allowed", list_into(&LocalSettings::packs_allowed)},
    };
}

}  // namespace

Result<LocalSettings> read_local_settings(const std::map<std::string, std::string>& texts) {
    const std::map<std::string, Read> known = readers();
    LocalSettings settings;
    for (const auto& [name, text] : texts) {
        const auto reader = known.find(name);
        if (reader == known.end()) {
            std::string names;
            for (const auto& [other, read] : known) {
                names += (names.empty() ? "" : ", ") + other;
            }
            return wrong(name, "is no setting; there are " + names);
        }
        if (auto read = reader->second(text, settings); !read) {
            return fail(std::move(read.error()));
        }
    }
    return settings;
}

}  // namespace comfyd::fleet
