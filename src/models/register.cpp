#include "models/register.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "models/source.hpp"
#include "models/wish.hpp"

namespace comfyd::models {
namespace {

struct Numbered {
    std::string name;  // of the model
    int version = 0;
};

// "ink@2.safetensors"; nullopt: it names no version.
std::optional<Numbered> read_file_name(std::string_view name) {
    const auto slash = name.rfind('/');
    const auto dot = name.rfind('.');
    const auto at = name.rfind('@', dot);
    const bool has_both = dot != std::string_view::npos && at != std::string_view::npos &&
                          (slash == std::string_view::npos || slash < at);
    if (!has_both) {
        return std::nullopt;
    }
    Numbered read;
    const char* end = name.data() + dot;
    const auto number = std::from_chars(name.data() + at + 1, end, read.version);
    if (number.ec != std::errc() || number.ptr != end || read.version < 1) {
        return std::nullopt;
    }
    read.name = std::string(name.substr(0, at)) + std::string(name.substr(dot));
    return read;
}

std::optional<std::uint64_t> bytes_in(const json::object& from) {
    const auto bytes = json::find_int(from, "bytes");
    return bytes && *bytes && **bytes > 0 ? std::optional(static_cast<std::uint64_t>(**bytes))
                                          : std::nullopt;
}

std::vector<std::string> texts_in(const json::object& from, std::string_view key) {
    std::vector<std::string> texts;
    const json::array* list = json::find_array(from, key).value_or(nullptr);
    for (const json::value& one : list == nullptr ? json::array() : *list) {
        if (one.is_string()) {
            texts.emplace_back(one.get_string());
        }
    }
    return texts;
}

std::string text_in(const json::object& from, std::string_view key) {
    return json::find_string(from, key).value_or(std::nullopt).value_or("");
}

int number_in(const json::object& from, std::string_view key) {
    return static_cast<int>(json::find_int(from, key).value_or(std::nullopt).value_or(0));
}

// As they are given: one text, or a list.
Result<std::vector<std::string>> read_sources(const json::object& from) {
    const json::value* list = json::find(from, "sources");
    const auto single = json::find_string(from, "source");
    if (!single) {
        return fail(single.error());
    }
    std::vector<std::string> sources = texts_in(from, "sources");
    const bool is_list =
        list == nullptr || (list->is_array() && list->get_array().size() == sources.size());
    if (!is_list || (list != nullptr && *single) || sources.size() > kSourcesMax) {
        return fail(
            Code::invalid_argument,
            "a version has 'source', or 'sources' with at most " + std::to_string(kSourcesMax) +
                " texts",
            {{"field", "sources"}}
        );
    }
    if (*single) {
        sources.push_back(**single);
    }
    if (sources.empty()) {
        return fail(
            Code::invalid_argument,
            "a version needs 'source', where the file is had from",
            {{"field", "source"}}
        );
    }
    return sources;
}

}  // namespace

const ModelVersion* RegisteredModel::find(int number) const {
    const auto found = std::ranges::find(versions, number, &ModelVersion::number);
    return found == versions.end() ? nullptr : &*found;
}

json::object WantedModel::to_json() const {
    json::object made{
        {"folder", folder}, {"name", name}, {"sources", json::array(sources.begin(), sources.end())}
    };
    if (!sha256.empty()) {
        made["sha256"] = sha256;
    }
    if (bytes) {
        made["bytes"] = *bytes;
    }
    return made;
}

std::optional<WantedModel> WantedModel::from_json(const json::object& from) {
    WantedModel read;
    read.folder = text_in(from, "folder");
    read.name = text_in(from, "name");
    read.sources = texts_in(from, "sources");
    read.sha256 = text_in(from, "sha256");
    read.bytes = bytes_in(from);
    const bool is_whole = !read.folder.empty() && !read.name.empty() && !read.sources.empty();
    return is_whole ? std::optional(std::move(read)) : std::nullopt;
}

std::string file_name(const std::string& name, int version) {
    if (version == 1) {
        return name;
    }
    const auto dot = std::min(name.rfind('.'), name.size());
    return name.substr(0, dot) + "@" + std::to_string(version) + name.substr(dot);
}

Result<ModelVersion> read_version(
    const std::string& folder, const std::string& name, const json::object& from
) {
    auto sources = read_sources(from);
    if (!sources) {
        return fail(std::move(sources.error()));
    }
    if (read_file_name(name)) {
        return fail(
            Code::invalid_argument,
            "'" + name + "' looks like a version of a model; name the model without '@' and number",
            {{"field", "name"}}
        );
    }
    ModelVersion version;
    for (const std::string& source : *sources) {
        json::object wish{{"folder", folder}, {"name", name}, {"source", source}};
        for (const char* fact : {"sha256", "bytes"}) {
            const json::value* told = json::find(from, fact);
            if (told != nullptr && !told->is_null()) {
                wish[fact] = *told;
            }
        }
        auto read = read_wish(wish);
        if (!read) {
            return fail(std::move(read.error()));
        }
        const auto parsed = parse_source(source);
        const bool is_upload = parsed && !parsed->sha256.empty();
        if (is_upload && !read->sha256.empty() && read->sha256 != parsed->sha256) {
            return fail(
                Code::invalid_argument,
                "'sha256' is not that of '" + source + "'",
                {{"field", "sha256"}}
            );
        }
        const std::string sha256 = is_upload ? parsed->sha256 : read->sha256;
        if (!version.sha256.empty() && !sha256.empty() && version.sha256 != sha256) {
            return fail(
                Code::invalid_argument,
                "the sources are not of one content: uploads have different hashes",
                {{"field", "sources"}}
            );
        }
        version.sha256 = sha256.empty() ? version.sha256 : sha256;
        version.bytes = read->bytes;
    }
    version.sources = std::move(*sources);
    return version;
}

json::object to_json(const ModelVersion& version) {
    json::object made{
        {"version", version.number},
        {"sources", json::array(version.sources.begin(), version.sources.end())},
    };
    if (!version.sha256.empty()) {
        made["sha256"] = version.sha256;
    }
    if (version.bytes) {
        made["bytes"] = *version.bytes;
    }
    if (version.created_at) {
        made["created_at"] = to_rfc3339(*version.created_at);
    }
    return made;
}

ModelRecord to_record(const RegisteredModel& model) {
    json::array versions;
    for (const ModelVersion& version : model.versions) {
        versions.emplace_back(to_json(version));
    }
    return {
        model.path(),
        model.revision,
        {{"current", model.current}, {"last", model.last}, {"versions", std::move(versions)}}
    };
}

ModelRecord to_record(const std::string& sha256, const FileFacts& facts) {
    return {sha256, 1, facts.to_json()};
}

std::optional<RegisteredModel> from_record(const ModelRecord& record) {
    const auto slash = record.path.find('/');
    if (slash == std::string::npos) {
        return std::nullopt;
    }
    RegisteredModel model;
    model.folder = record.path.substr(0, slash);
    model.name = record.path.substr(slash + 1);
    model.revision = record.revision;
    model.current = number_in(record.about, "current");
    model.last = number_in(record.about, "last");
    const json::array* versions = json::find_array(record.about, "versions").value_or(nullptr);
    for (const json::value& one : versions == nullptr ? json::array() : *versions) {
        if (const json::object* told = one.if_object()) {
            ModelVersion version;
            version.number = number_in(*told, "version");
            version.sources = texts_in(*told, "sources");
            version.sha256 = text_in(*told, "sha256");
            version.bytes = bytes_in(*told);
            version.created_at = parse_rfc3339(text_in(*told, "created_at"));
            model.versions.push_back(std::move(version));
        }
    }
    return model;
}

Register::Register(
    const std::vector<RegisteredModel>& configured, const std::vector<ModelRecord>& stored
) {
    for (const RegisteredModel& model : configured) {
        models_.emplace(model.path(), model);
    }
    for (const ModelRecord& record : stored) {
        if (auto model = from_record(record)) {
            auto& kept = model->versions.empty() ? removed_ : models_;
            kept.emplace(record.path, std::move(*model));
        } else if (is_sha256(record.path)) {
            contents_.emplace(record.path, FileFacts::from_json(record.about));
        }
    }
    for (const auto& [path, model] : models_) {
        folders_[model.name].push_back(model.folder);
    }
}

const RegisteredModel* Register::find(std::string_view path) const {
    const auto found = models_.find(path);
    return found == models_.end() ? nullptr : &found->second;
}

RegisteredModel Register::begin(const std::string& folder, const std::string& name) const {
    RegisteredModel model;
    model.folder = folder;
    model.name = name;
    const auto removed = removed_.find(model.path());
    return removed == removed_.end() ? model : removed->second;
}

const FileFacts* Register::find_content(std::string_view sha256) const {
    const auto found = contents_.find(sha256);
    return found == contents_.end() ? nullptr : &found->second;
}

std::optional<WantedModel> Register::resolve_at(std::string_view folder, std::string_view name)
    const {
    const std::string in = std::string(folder) + "/";
    const RegisteredModel* model = find(in + std::string(name));
    int number = model == nullptr ? 0 : model->current;
    if (model == nullptr) {
        if (const auto numbered = read_file_name(name)) {
            model = find(in + numbered->name);
            number = numbered->version;
        }
    }
    const ModelVersion* version = model == nullptr ? nullptr : model->find(number);
    if (version == nullptr) {
        return std::nullopt;
    }
    return WantedModel{
        model->folder,
        file_name(model->name, version->number),
        version->sources,
        version->sha256,
        version->bytes
    };
}

std::optional<WantedModel> Register::resolve(
    std::span<const std::string_view> folders, std::string_view name
) const {
    if (!folders.empty()) {
        for (const std::string_view folder : folders) {
            if (auto found = resolve_at(folder, name)) {
                return found;
            }
        }
        return std::nullopt;
    }
    auto known = folders_.find(name);
    if (known == folders_.end()) {
        const auto numbered = read_file_name(name);
        known = numbered ? folders_.find(numbered->name) : known;
    }
    return known != folders_.end() && known->second.size() == 1
               ? resolve_at(known->second.front(), name)
               : std::nullopt;
}

}  // namespace comfyd::models
