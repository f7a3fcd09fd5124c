#include "models/wish.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "base/text.hpp"
#include "models/source.hpp"

namespace comfyd::models {
namespace {

constexpr std::array<std::string_view, 6> kPickles{".ckpt", ".pt", ".pt2", ".bin", ".pth", ".pkl"};
constexpr std::array<std::string_view, 2> kSafetensors{".safetensors", ".sft"};
constexpr std::array<std::string_view, 2> kOthers{".gguf", ".onnx"};
constexpr std::array<std::string_view, 6> kMembers{
    "folder", "name", "source", "sha256", "bytes", "required"
};
constexpr std::size_t kNameBytesMax = 512;
constexpr std::size_t kPartBytesMax = 240;
constexpr std::size_t kFolderBytesMax = 64;

template <std::size_t N>
bool ends_with_any(std::string_view name, const std::array<std::string_view, N>& endings) {
    const std::string small = lower(name);
    return std::ranges::any_of(endings, [&](std::string_view ending) {
        return small.size() > ending.size() && small.ends_with(ending);
    });
}

tl::unexpected<Error> wrong(const std::string& name, const std::string& why) {
    return fail(Code::invalid_argument, "the model '" + name + "' " + why);
}

bool is_folder(std::string_view text) {
    return !text.empty() && text.size() <= kFolderBytesMax && text.front() != '.' &&
           std::ranges::all_of(text, [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '-' || c == '.';
           });
}

// Below its folder, whoever reads the path.
bool is_name(std::string_view text) {
    if (text.size() > kNameBytesMax) {
        return false;
    }
    while (true) {
        const auto slash = text.find('/');
        const std::string_view part = text.substr(0, slash);
        const bool is_plain = std::ranges::all_of(part, [](char c) {
            return static_cast<unsigned char>(c) >= ' ' && c != '\x7f' && c != '\\';
        });
        if (part.empty() || part.front() == '.' || part.size() > kPartBytesMax || !is_plain) {
            return false;
        }
        if (slash == std::string_view::npos) {
            return true;
        }
        text.remove_prefix(slash + 1);
    }
}

Result<> check(const ModelWish& wish) {
    if (!is_folder(wish.folder)) {
        return wrong(
            wish.name, "needs 'folder', one of ComfyUI's folders of models, such as checkpoints"
        );
    }
    if (!is_name(wish.name)) {
        return wrong(wish.name, "needs 'name', a path in its folder without '..'");
    }
    if (!is_pickle(wish.name) && !is_safetensors(wish.name) && !ends_with_any(wish.name, kOthers)) {
        return wrong(
            wish.name, "has an ending that ComfyUI does not look at: .safetensors is the usual one"
        );
    }
    if (!wish.sha256.empty() && !is_sha256(wish.sha256)) {
        return wrong(wish.name, "has 'sha256', which must be 64 hexadecimal digits");
    }
    if (auto source = parse_source(wish.source); !source) {
        return wrong(wish.name, "has 'source': " + source.error().message);
    }
    return {};
}

}  // namespace

bool is_pickle(std::string_view name) {
    return ends_with_any(name, kPickles);
}

bool is_safetensors(std::string_view name) {
    return ends_with_any(name, kSafetensors);
}

bool is_sha256(std::string_view text) {
    constexpr std::size_t kDigits = 64;
    return text.size() == kDigits &&
           text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Result<ModelWish> read_wish(const json::object& from) {
    for (const auto& [key, value] : from) {
        if (std::ranges::find(kMembers, view(key)) == kMembers.end()) {
            return fail(
                Code::invalid_argument,
                "a model has 'folder', 'name', 'source', 'sha256', 'bytes' and 'required', not '" +
                    std::string(key) + "'"
            );
        }
    }
    ModelWish wish;
    for (const auto& [key, member] :
         {std::pair{"folder", &ModelWish::folder},
          std::pair{"name", &ModelWish::name},
          std::pair{"source", &ModelWish::source},
          std::pair{"sha256", &ModelWish::sha256}}) {
        auto text = json::find_string(from, key);
        if (!text) {
            return fail(std::move(text.error()));
        }
        wish.*member = std::move(*text).value_or("");
    }
    wish.sha256 = lower(wish.sha256);
    const auto bytes = json::find_int(from, "bytes");
    const auto required = json::find_bool(from, "required");
    if (!bytes || !required) {
        return fail(bytes ? required.error() : bytes.error());
    }
    if (*bytes && **bytes <= 0) {
        return wrong(wish.name, "has 'bytes', which must be above 0");
    }
    if (*bytes) {
        wish.bytes = static_cast<std::uint64_t>(**bytes);
    }
    wish.required = required->value_or(true);
    if (auto checked = check(wish); !checked) {
        return fail(std::move(checked.error()));
    }
    return wish;
}

Result<std::vector<ModelWish>> read_wishes(std::string_view text) {
    const auto document = json::parse(text);
    if (!document) {
        return fail(document.error());
    }
    const json::array* list = document->if_array();
    if (list == nullptr || list->size() > kWishesMax) {
        return fail(
            Code::invalid_argument,
            "models are a list of at most " + std::to_string(kWishesMax) +
                R"( like {"folder": "checkpoints", "name": "a.safetensors", "source": "https://…"})"
        );
    }
    std::vector<ModelWish> wishes;
    std::set<std::string> paths;
    for (const json::value& item : *list) {
        auto wish = item.is_object()
                        ? read_wish(item.get_object())
                        : Result<ModelWish>(fail(Code::invalid_argument, "a model is an object"));
        if (!wish) {
            return fail(std::move(wish.error()));
        }
        if (parse_source(wish->source)->needs_link()) {
            return wrong(
                wish->path(),
                "has 'source': such a one is given by the gateway, for jobs that wait; here a "
                "model "
                "is had from https://host/file, hf:owner/repo/file or civitai:12345"
            );
        }
        if (!paths.insert(wish->path()).second) {
            return wrong(wish->path(), "is named twice");
        }
        wishes.push_back(std::move(*wish));
    }
    return wishes;
}

json::object to_json(const ModelWish& wish) {
    json::object shown{{"folder", wish.folder}, {"name", wish.name}, {"source", wish.source}};
    if (!wish.sha256.empty()) {
        shown["sha256"] = wish.sha256;
    }
    if (wish.bytes) {
        shown["bytes"] = static_cast<std::int64_t>(*wish.bytes);
    }
    if (!wish.required) {
        shown["required"] = false;
    }
    return shown;
}

}  // namespace comfyd::models
