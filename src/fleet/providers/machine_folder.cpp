#include "fleet/providers/machine_folder.hpp"

#include <system_error>
#include <utility>
#include <vector>

#include "base/disk.hpp"

namespace comfyd::fleet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRecord = "machine.json";

Result<> outcome(const fs::path& path, const std::error_code& error) {
    if (error) {
        return fail(storage_code(error.value()), path.string() + ": " + error.message());
    }
    return {};
}

// Folders that whoever made them has locked are opened: they are ours.
void unlock_folders(const fs::path& folder) {
    std::vector<fs::path> left{folder};
    while (!left.empty()) {
        const fs::path here = std::move(left.back());
        left.pop_back();
        std::error_code error;
        fs::permissions(
            here, fs::perms::owner_all, fs::perm_options::add | fs::perm_options::nofollow, error
        );
        error.clear();
        for (fs::directory_iterator entry(here, error), end; !error && entry != end;
             entry.increment(error)) {
            std::error_code ignored;
            if (fs::is_directory(entry->symlink_status(ignored))) {
                left.push_back(entry->path());
            }
        }
    }
}

Result<> remove_tree(const fs::path& path) {
    std::error_code error;
    std::error_code ignored;
    fs::remove_all(path, error);
    if (error && fs::is_directory(fs::symlink_status(path, ignored))) {
        unlock_folders(path);
        fs::remove_all(path, error);
    }
    return outcome(path, error);
}

}  // namespace

Result<> make_private_folder(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (!error) {
        fs::permissions(folder, fs::perms::owner_all, error);
    }
    return outcome(folder, error);
}

Result<> remove_machine_folder(const fs::path& folder) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        if (entry->path().filename() == kRecord) {
            continue;
        }
        if (auto removed = remove_tree(entry->path()); !removed) {
            return removed;
        }
    }
    return remove_tree(folder);
}

Result<> remove_record(const fs::path& folder) {
    std::error_code error;
    fs::remove(folder / kRecord, error);
    return outcome(folder, error);
}

void drop_folder(const fs::path& folder) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
}

}  // namespace comfyd::fleet
