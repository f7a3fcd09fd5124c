#include "app/commands/worker_models.hpp"

#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk.hpp"
#include "base/text.hpp"

namespace comfyd::app {
namespace {

constexpr std::uint64_t kListBytesMax = 4 * 1024 * 1024;

std::string text_of(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(trim(value, " \t\r\n"));
}

tl::unexpected<Error> not_right(const std::string& name, const std::string& why) {
    return fail(Code::config_invalid, name + " " + why);
}

std::vector<std::string> words_of(const char* name) {
    std::vector<std::string> words;
    const std::string text = text_of(name);
    std::string_view left = text;
    while (!left.empty()) {
        const auto comma = left.find(',');
        const std::string_view word = trim(left.substr(0, comma));
        if (!word.empty()) {
            words.emplace_back(word);
        }
        left.remove_prefix(comma == std::string_view::npos ? left.size() : comma + 1);
    }
    return words;
}

// "host", "host:port", as a URL's host is compared with it.
Result<std::string> host_of(const char* name, std::string_view text) {
    const auto url = net::Url::parse("https://" + std::string(text));
    if (!url || url->target != "/") {
        return not_right(name, "has '" + std::string(text) + "', which is no host or host:port");
    }
    return lower(text);
}

Result<> read_list(std::vector<models::ModelWish>& into) {
    constexpr const char* kName = "COMFYD_MODELS";
    std::string text = text_of(kName);
    if (text.empty()) {
        return {};
    }
    if (text.front() != '[') {
        auto file = read_file(text, kListBytesMax);
        if (!file) {
            return not_right(
                kName, "is neither a JSON list nor a file that can be read: " + file.error().message
            );
        }
        text = std::move(*file);
    }
    auto wishes = models::read_wishes(text);
    if (!wishes) {
        return not_right(kName, "is not right: " + wishes.error().message);
    }
    into = std::move(*wishes);
    return {};
}

Result<> read_tokens(models::WebOptions& into) {
    constexpr const char* kName = "COMFYD_MODELS_TOKENS";
    for (const std::string& word : words_of(kName)) {
        const auto equals = word.find('=');
        const auto host = host_of(kName, std::string_view(word).substr(0, equals));
        if (equals == std::string::npos || equals == 0 || equals + 1 == word.size()) {
            return not_right(kName, "must look like host=TOKEN, other.host=TOKEN");
        }
        if (!host) {
            return fail(host.error());
        }
        into.tokens[*host] = word.substr(equals + 1);
    }
    return {};
}

// A place of models, and the token for it.
Result<> read_place(
    const char* address, const char* token, std::string& endpoint, models::WebOptions& into
) {
    if (std::string text = text_of(address); !text.empty()) {
        while (text.ends_with('/')) {
            text.pop_back();
        }
        endpoint = text;
    }
    const auto url = net::Url::parse(endpoint);
    if (!url || (url->scheme != "https" && url->scheme != "http")) {
        return not_right(address, "must look like https://models.example.com");
    }
    if (std::string text = text_of(token); !text.empty()) {
        into.tokens[lower(url->host_header())] = std::move(text);
    }
    return {};
}

Result<std::uint64_t> read_number(const char* name, std::uint64_t most) {
    const std::string text = text_of(name);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (!text.empty() &&
        (error != std::errc() || end != text.data() + text.size() || value > most)) {
        return not_right(name, "must be a number from 0 to " + std::to_string(most));
    }
    return value;
}

}  // namespace

Result<agent::ModelsOptions> read_models_environment() {
    constexpr std::uint64_t kGigabyte = 1'000'000'000;
    agent::ModelsOptions options;
    models::LibraryOptions& library = options.library;
    if (auto read = read_list(options.wishes); !read) {
        return fail(std::move(read.error()));
    }
    library.contents.folder = text_of("COMFYD_MODELS_CACHE");
    const auto gigabytes = read_number("COMFYD_MODELS_CACHE_GB", 1'000'000);
    const auto pickles = read_number("COMFYD_MODELS_PICKLES", 1);
    if (!gigabytes || !pickles) {
        return fail(gigabytes ? pickles.error() : gigabytes.error());
    }
    library.contents.bytes_max = *gigabytes * kGigabyte;
    library.allows_pickles = *pickles == 1;
    for (const models::ModelWish& wish : options.wishes) {
        if (models::is_pickle(wish.name) && !library.allows_pickles) {
            return not_right(
                "COMFYD_MODELS",
                "has '" + wish.path() +
                    "', which runs code when it is loaded: COMFYD_MODELS_PICKLES=1 allows it"
            );
        }
    }
    for (const std::string& word : words_of("COMFYD_MODELS_TRUSTED")) {
        auto host = host_of("COMFYD_MODELS_TRUSTED", word);
        if (!host) {
            return fail(std::move(host.error()));
        }
        library.web.trusted.insert(std::move(*host));
    }
    auto read = read_place("HF_ENDPOINT", "HF_TOKEN", library.endpoints.hugging_face, library.web);
    if (read) {
        read =
            read_place("CIVITAI_ENDPOINT", "CIVITAI_TOKEN", library.endpoints.civitai, library.web);
    }
    if (read) {
        read = read_tokens(library.web);
    }
    if (!read) {
        return fail(std::move(read.error()));
    }
    return options;
}

}  // namespace comfyd::app
