#include "admission/file_names.hpp"

#include "admission/tenant_folder.hpp"
#include "base/disk.hpp"
#include "base/json.hpp"
#include "base/log.hpp"

namespace comfyd::admission {
namespace {

constexpr const char* kFile = "files";
constexpr int kRenamesMax = 10'000;

std::string text_of(const json::object& entry, std::string_view key) {
    const json::value* found = json::find(entry, key);
    return found != nullptr && found->is_string() ? std::string(found->get_string()) : "";
}

// "a/b.png", 2 -> "a/b (2).png"
std::string numbered(const std::string& path, int number) {
    const auto slash = path.rfind('/');
    const auto dot = path.rfind('.');
    const bool has_extension =
        dot != std::string::npos && (slash == std::string::npos || dot > slash + 1);
    const auto end = has_extension ? dot : path.size();
    return path.substr(0, end) + " (" + std::to_string(number) + ")" + path.substr(end);
}

}  // namespace

// Reads what came since the last time, also from other processes. What cannot be read now is not
// known yet.
FileNames::Tenant& FileNames::load(const std::string& tenant) {
    const auto known = tenants_.try_emplace(tenant, tenant_folder(folder_, tenant) / kFile).first;
    Tenant& files = known->second;
    const auto read = files.lines.read(
        [&files] { files.names.clear(); },
        [&files](std::string_view line) {
            const auto entry = json::parse_object(line);
            const auto asset = entry ? AssetId::parse(text_of(*entry, "asset")) : std::nullopt;
            if (asset) {
                files.names[text_of(*entry, "path")] = {*asset, text_of(*entry, "hash")};
            }
        }
    );
    if (!read) {
        log::warning("names of files were not read", {{"error", read.error().message}});
    }
    return files;
}

Result<std::string> FileNames::put_now(
    const std::string& tenant, std::string path, const NamedFile& file, bool overwrite
) {
    const Lock lock(mutex_);
    const SharedLines lines(tenant_folder(folder_, tenant) / kFile);
    const auto turn = lines.take_turn();
    if (!turn) {
        return fail(turn.error());
    }
    const Names& names = load(tenant).names;
    std::string taken = path;
    for (int number = 1; !overwrite; ++number) {
        const auto known = names.find(taken);
        if (known == names.end()) {
            break;
        }
        if (known->second.hash == file.hash) {
            return taken;
        }
        if (number > kRenamesMax) {
            return fail(Code::payload_too_large, "there are too many files of this name");
        }
        taken = numbered(path, number);
    }
    if (names.size() >= kNamesMax && !names.contains(taken)) {
        return fail(Code::payload_too_large, "there are too many uploaded files");
    }
    const json::object line{
        {"path", taken}, {"asset", file.asset.to_string()}, {"hash", file.hash}
    };
    auto stored = lines.append(json::serialize(line) + "\n");
    if (!stored) {
        return fail(std::move(stored.error()));
    }
    load(tenant);
    return taken;
}

Task<Result<std::string>> FileNames::put(
    std::string tenant, std::string path, NamedFile file, bool overwrite
) {
    auto taken = co_await disk_.run([this, tenant, path, file, overwrite] {
        return put_now(tenant, path, file, overwrite);
    });
    co_return taken;
}

Task<std::optional<NamedFile>> FileNames::find(std::string tenant, std::string path) {
    auto found = co_await disk_.run([this, tenant, path]() -> std::optional<NamedFile> {
        const Lock lock(mutex_);
        const Names& names = load(tenant).names;
        const auto known = names.find(path);
        return known == names.end() ? std::nullopt : std::optional(known->second);
    });
    co_return found;
}

Task<std::vector<std::string>> FileNames::list(std::string tenant, std::string folder) {
    auto listed = co_await disk_.run([this, tenant, prefix = folder + "/"] {
        const Lock lock(mutex_);
        const Names& names = load(tenant).names;
        std::vector<std::string> found;
        for (auto name = names.lower_bound(prefix);
             name != names.end() && name->first.starts_with(prefix);
             ++name) {
            found.push_back(name->first.substr(prefix.size()));
        }
        return found;
    });
    co_return listed;
}

}  // namespace comfyd::admission
