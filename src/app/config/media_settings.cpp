// The settings of what is made of outputs.
#include <algorithm>
#include <functional>

#include "app/config/setting_kinds.hpp"
#include "jobs/output_wishes.hpp"

namespace comfyd::app {
namespace {

Result<std::vector<int>> read_sizes(const std::string& text) {
    json::array sizes;
    for (const std::string& word : split_commas(text)) {
        int size = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), size);
        sizes.push_back(error == std::errc() && end == word.data() + word.size() ? size : 0);
    }
    auto wishes = jobs::OutputWishes::from_json({{"thumbnails", std::move(sizes)}});
    if (!wishes) {
        return invalid(
            "'outputs.thumbnails' must be a list of the sizes 256, 512 and 1024, not '" + text + "'"
        );
    }
    return std::move(wishes->thumbnails);
}

Setting thumbnails() {
    return {
        "outputs.thumbnails",
        "Thumbnails of every picture and video that a job makes: 256, 512, 1024; empty: those that "
        "its request asks for.",
        [](Config& config, const std::string& text) -> Result<> {
            auto sizes = read_sizes(text);
            if (!sizes) {
                return fail(std::move(sizes.error()));
            }
            config.outputs_thumbnails = std::move(*sizes);
            return {};
        },
        [](const Config& config) {
            std::string shown;
            for (const int size : config.outputs_thumbnails) {
                shown += (shown.empty() ? "" : ", ") + std::to_string(size);
            }
            return "[" + shown + "]";
        },
        true
    };
}

}  // namespace

std::vector<Setting> media_settings() {
    return {
        thumbnails(),
        number(
            "outputs.helpers",
            "Processes that look into outputs and convert them; 0: one for two cores, at most 4.",
            &Config::outputs_helpers,
            0,
            64
        ),
        number(
            "outputs.helper_memory_mb",
            "Memory that each of them may have, in MB.",
            &Config::outputs_helper_memory_mb,
            256,
            1 << 20
        ),
        number(
            "outputs.helper_timeout_s",
            "Seconds that one file may take there.",
            &Config::outputs_helper_timeout_s,
            1,
            3600
        ),
    };
}

}  // namespace comfyd::app
