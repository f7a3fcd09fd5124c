#include "agent/packs.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "agent/git_fetch.hpp"
#include "base/crypto.hpp"
#include "base/disk.hpp"
#include "base/id.hpp"
#include "base/text.hpp"

namespace comfyd::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kUrlBytesMax = 512;
constexpr std::string_view kImage = "image:";
// What comfyd itself puts there.
constexpr std::string_view kOwnPack = "comfyd";

bool is_hex(char c) {
    return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'f');
}

bool is_commit(std::string_view text) {
    return (text.size() == 40 || text.size() == 64) && std::ranges::all_of(text, is_hex);
}

// "https://host/path" and nothing that could mean something else to git.
bool is_https(std::string_view url) {
    constexpr std::string_view kScheme = "https://";
    if (!url.starts_with(kScheme)) {
        return false;
    }
    const std::string_view rest = url.substr(kScheme.size());
    const auto slash = rest.find('/');
    return slash != 0 && slash != std::string_view::npos && slash + 1 < rest.size();
}

bool is_plain(std::string_view url) {
    const auto is_plain_byte = [](char c) {
        return c > ' ' && c <= '~' &&
               std::string_view("@?#%\\\"'`$;&|<>*").find(c) == std::string_view::npos;
    };
    return url.size() <= kUrlBytesMax && std::ranges::all_of(url, is_plain_byte) &&
           url.find("/../") == std::string_view::npos && !url.ends_with("/..");
}

std::string_view without_suffix(std::string_view url) {
    while (url.ends_with('/')) {
        url.remove_suffix(1);
    }
    if (url.ends_with(".git")) {
        url.remove_suffix(4);
    }
    return url;
}

bool is_allowed(std::string_view what, const std::vector<std::string>& allowed) {
    return std::ranges::any_of(allowed, [what](std::string_view entry) {
        return entry.ends_with('/') ? what.starts_with(entry) && what.size() > entry.size()
                                    : without_suffix(what) == without_suffix(entry);
    });
}

std::string what(const NodePack& pack) {
    return "the node pack '" + (pack.folder.empty() ? pack.url : pack.folder.string()) + "'";
}

Error named(const NodePack& pack, Error error) {
    error.message = what(pack) + ": " + error.message;
    return error;
}

Result<> check_repository(const NodePack& pack, const PackRules& rules) {
    const bool is_path = rules.allows_paths && pack.url.starts_with('/');
    if (!is_plain(pack.url) || (!is_path && !is_https(pack.url))) {
        return fail(
            Code::invalid_argument,
            what(pack) +
                " must be a URL of the form https://host/path, without user, password "
                "and query"
        );
    }
    if (!is_commit(pack.commit)) {
        return fail(
            Code::invalid_argument,
            what(pack) +
                " must name a commit by all of its 40 digits: a branch may be changed by "
                "others at any time"
        );
    }
    return {};
}

Result<> check_pack(const NodePack& pack, const PackRules& rules) {
    const bool is_folder = !pack.folder.empty();
    if (is_folder == !pack.url.empty()) {
        return fail(Code::invalid_argument, "a node pack is either a URL or a folder");
    }
    if (is_folder &&
        (!pack.folder.is_absolute() || pack.folder.lexically_normal() != pack.folder)) {
        return fail(Code::invalid_argument, what(pack) + " must be named by its whole path");
    }
    if (!is_folder) {
        if (auto good = check_repository(pack, rules); !good) {
            return good;
        }
    }
    if (rules.allows_all) {
        return {};
    }
    if (!is_allowed(is_folder ? pack.folder.native() : pack.url, rules.allowed)) {
        return fail(Code::forbidden, what(pack) + " is not in the list of packs that are allowed");
    }
    return {};
}

// Plain files and folders alone; links lead elsewhere and are left out. Stops at the limits.
class TreeCopy {
public:
    explicit TreeCopy(const PackRules& rules) : rules_(rules) {}

    Result<> copy(const fs::path& from, const fs::path& into) {
        std::error_code error;
        fs::create_directories(into, error);
        for (fs::directory_iterator entry(from, error), end; !error && entry != end;
             entry.increment(error)) {
            if (auto done = copy_entry(*entry, into / entry->path().filename()); !done) {
                return done;
            }
        }
        return error ? failed(from, error) : Result<>();
    }

private:
    Result<> copy_entry(const fs::directory_entry& entry, const fs::path& to) {
        std::error_code error;
        if (rules_.stop.stop_requested()) {
            return fail(Code::cancelled, "it was stopped");
        }
        const fs::file_status status = entry.symlink_status(error);
        if (fs::is_directory(status)) {
            return to.filename() == ".git" ? Result<>() : copy(entry.path(), to);
        }
        if (!fs::is_regular_file(status)) {
            return {};
        }
        bytes_ += entry.file_size(error);
        if (++files_ > rules_.files_max || bytes_ > rules_.bytes_max) {
            return fail(
                Code::payload_too_large,
                "it has more than " + std::to_string(rules_.bytes_max / 1'000'000) + " MB or " +
                    std::to_string(rules_.files_max) + " files"
            );
        }
        fs::copy_file(entry.path(), to, error);
        return error ? failed(entry.path(), error) : Result<>();
    }

    static Result<> failed(const fs::path& path, std::error_code error) {
        return fail(storage_code(error.value()), path.string() + ": " + error.message());
    }

    const PackRules& rules_;
    std::uint64_t bytes_ = 0;
    std::size_t files_ = 0;
};

// The files of the repository, from where they are kept or from afar.
Result<fs::path> fetched(const NodePack& pack, const PackRules& rules, const fs::path& kept) {
    const std::string key =
        to_hex(sha256(without_suffix(pack.url)).data(), 8) + "-" + lower(pack.commit);
    std::error_code error;
    if (fs::is_directory(kept / key, error)) {
        return kept / key;
    }
    const fs::path fresh = kept / (".new-" + Uuid::make(SystemClock().now()).to_string());
    auto done = fetch_commit(pack, rules, fresh);
    if (done) {
        fs::rename(fresh, kept / key, error);
        if (error && !fs::is_directory(kept / key)) {  // another was faster
            done = fail(storage_code(error.value()), key + ": " + error.message());
        }
    }
    fs::remove_all(fresh, error);
    if (!done) {
        return fail(std::move(done.error()));
    }
    return kept / key;
}

Result<> look_into_image(const NodePack& pack, const PackRules& rules) {
    const fs::path place =
        pack.folder.empty() ? rules.comfyui / "custom_nodes" / pack_name(pack) : pack.folder;
    std::error_code error;
    return fs::is_directory(place, error)
               ? Result<>()
               : fail(
                     Code::not_found, "it is not in the image: there is no '" + place.string() + "'"
                 );
}

Result<> lay_out(
    const NodePack& pack, const PackRules& rules, const fs::path& kept, const fs::path& into
) {
    if (pack.is_in_image) {
        return look_into_image(pack, rules);
    }
    if (!pack.folder.empty()) {
        return TreeCopy(rules).copy(pack.folder, into / pack_name(pack));
    }
    const auto got = fetched(pack, rules, kept);
    return got ? TreeCopy(rules).copy(*got, into / pack_name(pack)) : fail(got.error());
}

}  // namespace

Result<NodePack> read_pack(std::string_view text) {
    NodePack pack;
    pack.is_in_image = text.starts_with(kImage);
    if (pack.is_in_image) {
        text.remove_prefix(kImage.size());
    }
    const auto at = text.rfind('@');
    const bool is_readable = std::ranges::none_of(text, [](char c) { return c >= 0 && c < ' '; });
    if (is_readable && text.starts_with('/')) {
        pack.folder = fs::path(text).lexically_normal();
        return pack;
    }
    if (!is_readable || at == std::string_view::npos) {
        return fail(
            Code::invalid_argument,
            "the node pack '" + std::string(text.substr(0, kUrlBytesMax)) +
                "' is neither a folder nor https://…@COMMIT"
        );
    }
    pack.url = text.substr(0, at);
    pack.commit = text.substr(at + 1);
    return pack;
}

Result<std::vector<NodePack>> read_packs(std::string_view words) {
    std::vector<NodePack> packs;
    if (words.size() > kPacksBytesMax) {
        return fail(
            Code::invalid_argument,
            "node packs are named by more than " + std::to_string(kPacksBytesMax) + " bytes"
        );
    }
    while (!words.empty()) {
        const auto end = std::min(words.find(' '), words.size());
        const std::string_view word = words.substr(0, end);
        words.remove_prefix(std::min(end + 1, words.size()));
        if (word.empty()) {
            continue;
        }
        auto pack = read_pack(word);
        if (!pack) {
            return fail(std::move(pack.error()));
        }
        packs.push_back(std::move(*pack));
    }
    return packs;
}

std::string join_packs(const std::vector<std::string>& packs) {
    std::string all;
    for (const std::string& pack : packs) {
        all += (all.empty() ? "" : " ") + pack;
    }
    return all;
}

std::string pack_name(const NodePack& pack) {
    const std::string from = pack.folder.empty() ? pack.url : pack.folder.string();
    std::string name = fs::path(without_suffix(from)).filename();
    std::ranges::replace_if(
        name,
        [](char c) {
            return !(
                (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') || c == '-' ||
                c == '_' || c == '.'
            );
        },
        '_'
    );
    return name;
}

Result<> check_packs(const std::vector<NodePack>& packs, const PackRules& rules) {
    if (packs.size() > kPacksMax) {
        return fail(
            Code::invalid_argument, "there are more than " + std::to_string(kPacksMax) + " packs"
        );
    }
    std::set<std::string> names{std::string(kOwnPack)};
    for (const NodePack& pack : packs) {
        if (auto good = check_pack(pack, rules); !good) {
            return good;
        }
        const std::string name = pack_name(pack);
        if (name.empty() || name.starts_with('.') || !names.insert(name).second) {
            return fail(
                Code::invalid_argument,
                what(pack) + ": a pack of the name '" + name + "' is there already, or cannot be"
            );
        }
    }
    return {};
}

Result<> lay_out_packs(
    const std::vector<NodePack>& packs,
    const PackRules& rules,
    const fs::path& kept,
    const fs::path& into
) {
    if (auto good = check_packs(packs, rules); !good) {
        return good;
    }
    for (const NodePack& pack : packs) {
        if (auto done = lay_out(pack, rules, kept, into); !done) {
            return fail(named(pack, std::move(done.error())));
        }
    }
    return {};
}

}  // namespace comfyd::agent
