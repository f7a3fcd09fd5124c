// What a user of the editor stores: settings and documents. Each tenant has one folder; nothing
// leads out of it.
#include <sys/stat.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "api/dialects/asset_content.hpp"
#include "api/dialects/native/routes.hpp"
#include "base/disk.hpp"
#include "base/mutex.hpp"

namespace comfyd::api::native {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kFileBytesMax = 64ULL * 1024 * 1024;
constexpr std::uint64_t kSettingsBytesMax = 4ULL * 1024 * 1024;
constexpr std::size_t kFilesMax = 20'000;                       // of one tenant
constexpr std::uint64_t kBytesMax = 2ULL * 1024 * 1024 * 1024;  // likewise
constexpr const char* kSettings = "comfy.settings.json";

fs::path user_folder(const Context& context, const std::string& tenant) {
    return admission::tenant_folder(context.parts.folder, tenant) / "user";
}

// "true" and the like; `otherwise` where the query does not say.
bool flag(const Call& call, std::string_view name, bool otherwise) {
    const std::string_view value = call.query_value(name);
    return value.empty() ? otherwise : value == "true";
}

struct FileFacts {
    std::uint64_t size = 0;
    std::int64_t modified_ms = 0;
    std::int64_t created_ms = 0;
};

std::optional<FileFacts> facts_of(const fs::path& path) {
    struct stat about{};
    if (::lstat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) {
        return std::nullopt;
    }
    const auto ms = [](const timespec& time) {
        return static_cast<std::int64_t>(time.tv_sec) * 1000 + time.tv_nsec / 1'000'000;
    };
    return FileFacts{
        static_cast<std::uint64_t>(about.st_size), ms(about.st_mtim), ms(about.st_ctim)
    };
}

json::object file_info(const std::string& shown, const FileFacts& facts) {
    return {
        {"path", shown},
        {"size", facts.size},
        {"modified", facts.modified_ms},
        {"created", facts.created_ms},
    };
}

// What stands for a file in answers to changes.
json::value told(const std::string& shown, const fs::path& path, bool full) {
    const auto facts = full ? facts_of(path) : std::nullopt;
    return facts ? json::value(file_info(shown, *facts)) : json::value(shown);
}

// The tenant's share of the disk. Code::storage_full.
Result<> check_quota(const fs::path& folder, std::uint64_t added) {
    std::error_code error;
    std::size_t files = 1;
    std::uint64_t bytes = added;
    for (auto entry = fs::recursive_directory_iterator(folder, error);
         !error && entry != fs::recursive_directory_iterator();
         entry.increment(error)) {
        const auto facts = facts_of(entry->path());
        files += facts ? 1 : 0;
        bytes += facts ? facts->size : 0;
        if (files > kFilesMax || bytes > kBytesMax) {
            return fail(Code::storage_full, "this user has too many or too large files stored");
        }
    }
    return {};
}

Result<json::object> load_settings(const fs::path& folder) {
    auto text = read_file(folder / kSettings, kSettingsBytesMax);
    if (!text && text.error().code == Code::not_found) {
        return json::object();
    }
    if (!text) {
        return fail(std::move(text.error()));
    }
    auto settings = json::parse_object(*text);
    return settings ? std::move(*settings) : json::object();
}

// Settings are read, changed and written under one lock: two pages may save at once.
Mutex& settings_mutex() {
    static Mutex mutex;
    return mutex;
}

Result<> merge_settings(const fs::path& folder, const json::object& changes) {
    const Lock lock(settings_mutex());
    auto settings = load_settings(folder);
    if (!settings) {
        return fail(std::move(settings.error()));
    }
    for (const auto& [key, value] : changes) {
        (*settings)[key] = value;
    }
    const std::string text = json::serialize(*settings);
    if (text.size() > kSettingsBytesMax) {
        return fail(Code::payload_too_large, "the settings are too large");
    }
    return write_file(folder / kSettings, text);
}

Task<Result<json::object>> settings_of(Context& context, std::string tenant) {
    auto settings = co_await context.parts.pool.run([folder = user_folder(context, tenant)] {
        return load_settings(folder);
    });
    co_return settings;
}

Task<> store_settings(Call& call, Context& context, json::object changes) {
    auto stored =
        co_await context.parts.pool.run([folder = user_folder(context, call.caller.tenant),
                                         changes = std::move(changes)] {
            return merge_settings(folder, changes);
        });
    co_await send(call, stored ? empty_reply(200) : encode_native_error(stored.error()));
}

struct ListOptions {
    bool recurse = false;
    bool full_info = false;
    bool split = false;
};

// nullopt: there is no such folder.
std::optional<json::array> list_folder(const fs::path& folder, ListOptions options) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) {
        return std::nullopt;
    }
    std::vector<std::string> names;
    for (auto entry = fs::recursive_directory_iterator(folder, error);
         !error && entry != fs::recursive_directory_iterator() && names.size() < kFilesMax;
         entry.increment(error)) {
        if (!options.recurse) {
            entry.disable_recursion_pending();
        }
        if (facts_of(entry->path())) {
            names.push_back(entry->path().lexically_relative(folder).generic_string());
        }
    }
    std::sort(names.begin(), names.end());
    json::array listed;
    for (const std::string& name : names) {
        const auto facts = facts_of(folder / name);
        if (options.full_info && facts) {
            listed.push_back(file_info(name, *facts));
        } else if (options.split) {
            json::array parts{json::value(name)};
            for (const fs::path& part : fs::path(name)) {
                parts.emplace_back(part.string());
            }
            listed.push_back(std::move(parts));
        } else {
            listed.emplace_back(name);
        }
    }
    return listed;
}

std::optional<json::array> list_entries(const fs::path& folder, const std::string& shown) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) {
        return std::nullopt;
    }
    json::array listed;
    for (auto entry = fs::directory_iterator(folder, error);
         !error && entry != fs::directory_iterator() && listed.size() < kFilesMax;
         entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        const auto facts = facts_of(entry->path());
        std::error_code ignored;
        json::object one{
            {"name", name},
            {"path", shown.empty() ? name : shown + "/" + name},
            {"type", entry->is_directory(ignored) ? "directory" : "file"},
        };
        if (facts) {
            one["size"] = facts->size;
            one["modified"] = facts->modified_ms;
            one["created"] = facts->created_ms;
        }
        listed.push_back(std::move(one));
    }
    return listed;
}

std::optional<fs::path> file_of(const Call& call, const Context& context, std::size_t parameter) {
    return confined(user_folder(context, call.caller.tenant), call.path_parameters.at(parameter));
}

enum class Moved { done, missing, exists, failed };

Moved move_file(const fs::path& from, const fs::path& to, bool overwrite) {
    std::error_code error;
    if (!facts_of(from)) {
        return Moved::missing;
    }
    if (!overwrite && fs::exists(to, error)) {
        return Moved::exists;
    }
    fs::create_directories(to.parent_path(), error);
    fs::rename(from, to, error);
    return error ? Moved::failed : Moved::done;
}

}  // namespace

Task<> get_settings(Call& call, Context& context) {
    auto settings = co_await settings_of(context, call.caller.tenant);
    co_await send(
        call, settings ? json_reply(200, *settings) : encode_native_error(settings.error())
    );
}

Task<> get_setting(Call& call, Context& context) {
    auto settings = co_await settings_of(context, call.caller.tenant);
    if (!settings) {
        co_await send(call, encode_native_error(settings.error()));
        co_return;
    }
    const json::value* found = json::find(*settings, call.path_parameters.at(0));
    co_await send(call, json_reply(200, found == nullptr ? json::value() : *found));
}

Task<> post_settings(Call& call, Context& context) {
    auto body = co_await read_json(call, context.services);
    if (!body || !body->is_object()) {
        co_await send(call, body ? empty_reply(400) : encode_native_error(body.error()));
        co_return;
    }
    co_await store_settings(call, context, std::move(body->get_object()));
}

Task<> post_setting(Call& call, Context& context) {
    auto text = co_await call.exchange.read_body(kSettingsBytesMax);
    if (!text) {
        co_await send(call, encode_native_error(text.error()));
        co_return;
    }
    auto value = json::parse(*text);
    if (!value) {
        // The editor sends an empty body on its first visit and does not mind the refusal.
        co_await send(call, empty_reply(400));
        co_return;
    }
    json::object changes;
    changes[call.path_parameters.at(0)] = std::move(*value);
    co_await store_settings(call, context, std::move(changes));
}

Task<> list_userdata(Call& call, Context& context) {
    const std::string_view wanted = call.query_value("dir");
    if (wanted.empty()) {
        co_await send(call, text_reply(400, "Directory not provided"));
        co_return;
    }
    const auto folder = confined(user_folder(context, call.caller.tenant), wanted);
    if (!folder) {
        co_await send(call, text_reply(403, "Invalid directory"));
        co_return;
    }
    const ListOptions options{
        flag(call, "recurse", false), flag(call, "full_info", false), flag(call, "split", false)
    };
    auto listed = co_await context.parts.pool.run([folder = *folder, options] {
        return list_folder(folder, options);
    });
    co_await send(call, listed ? json_reply(200, *listed) : text_reply(404, "Directory not found"));
}

Task<> list_userdata_v2(Call& call, Context& context) {
    const fs::path root = user_folder(context, call.caller.tenant);
    std::string wanted(call.query_value("path"));
    while (wanted.ends_with('/')) {
        wanted.pop_back();
    }
    const auto folder = wanted.empty() ? std::optional(root) : confined(root, wanted);
    if (!folder) {
        co_await send(call, text_reply(403, "Invalid path"));
        co_return;
    }
    auto listed = co_await context.parts.pool.run([folder = *folder, wanted] {
        return list_entries(folder, wanted);
    });
    if (!listed && wanted.empty()) {
        listed = json::array();
    }
    co_await send(call, listed ? json_reply(200, *listed) : text_reply(404, "Directory not found"));
}

Task<> get_userdata(Call& call, Context& context) {
    const auto file = file_of(call, context, 0);
    if (!file) {
        co_await send(call, empty_reply(403));
        co_return;
    }
    auto bytes =
        co_await context.parts.pool.run([path = *file] { return read_file(path, kFileBytesMax); });
    if (!bytes) {
        co_await send(call, empty_reply(404));
        co_return;
    }
    const std::string type(net::content_type_of(file->filename().string()));
    net::Response response;
    // A document of a user must not run in our origin; style sheets are the editor's own feature.
    const bool active = is_active_type(type);
    response.headers.set("Content-Type", active ? "application/octet-stream" : type);
    response.headers.set("X-Content-Type-Options", "nosniff");
    response.headers.set("Cache-Control", "no-cache");
    response.body = std::move(*bytes);
    co_await send(call, std::move(response));
}

Task<> post_userdata(Call& call, Context& context) {
    const auto file = file_of(call, context, 0);
    if (!file) {
        co_await send(call, empty_reply(403));
        co_return;
    }
    auto bytes = co_await call.exchange.read_body(kFileBytesMax);
    if (!bytes) {
        co_await send(call, encode_native_error(bytes.error()));
        co_return;
    }
    const bool overwrite = flag(call, "overwrite", true);
    const fs::path root = user_folder(context, call.caller.tenant);
    auto stored = co_await context.parts.pool.run(
        [path = *file, root, bytes = std::move(*bytes), overwrite]() -> Result<> {
            std::error_code error;
            if (!overwrite && fs::exists(path, error)) {
                return fail(Code::conflict, "File already exists");
            }
            if (auto fits = check_quota(root, bytes.size()); !fits) {
                return fits;
            }
            return write_file(path, bytes);
        }
    );
    if (!stored && stored.error().code == Code::conflict) {
        co_await send(call, text_reply(409, stored.error().message));
        co_return;
    }
    if (!stored) {
        co_await send(call, encode_native_error(stored.error()));
        co_return;
    }
    const std::string shown = file->lexically_relative(root).generic_string();
    co_await send(call, json_reply(200, told(shown, *file, flag(call, "full_info", false))));
}

Task<> delete_userdata(Call& call, Context& context) {
    const auto file = file_of(call, context, 0);
    if (!file) {
        co_await send(call, empty_reply(403));
        co_return;
    }
    auto removed = co_await context.parts.pool.run([path = *file] {
        std::error_code error;
        return facts_of(path).has_value() && fs::remove(path, error) && !error;
    });
    co_await send(call, empty_reply(removed ? 204 : 404));
}

Task<> move_userdata(Call& call, Context& context) {
    const auto from = file_of(call, context, 0);
    const auto to = file_of(call, context, 1);
    if (!from || !to) {
        co_await send(call, empty_reply(403));
        co_return;
    }
    const bool overwrite = flag(call, "overwrite", true);
    auto moved = co_await context.parts.pool.run([from = *from, to = *to, overwrite] {
        return move_file(from, to, overwrite);
    });
    if (moved != Moved::done) {
        co_await send(
            call,
            moved == Moved::missing  ? empty_reply(404)
            : moved == Moved::exists ? text_reply(409, "File already exists")
                                     : trouble()
        );
        co_return;
    }
    const std::string shown =
        to->lexically_relative(user_folder(context, call.caller.tenant)).generic_string();
    co_await send(call, json_reply(200, told(shown, *to, flag(call, "full_info", false))));
}

Task<> get_users(Call& call, Context& context) {
    std::error_code error;
    const bool known = fs::is_directory(user_folder(context, call.caller.tenant), error);
    co_await send(call, json_reply(200, json::object{{"storage", "server"}, {"migrated", known}}));
}

}  // namespace comfyd::api::native
