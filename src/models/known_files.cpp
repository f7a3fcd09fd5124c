#include "models/known_files.hpp"

#include <utility>

namespace comfyd::models {
namespace {

constexpr std::size_t kFilesMax = 10'000;  // of one worker

std::string text_in(const json::object& from, std::string_view key) {
    return json::find_string(from, key).value_or(std::nullopt).value_or("");
}

}  // namespace

WorkerFiles read_worker_files(const json::object& told) {
    WorkerFiles files;
    const json::array* list = json::find_array(told, "files").value_or(nullptr);
    for (const json::value& one : list == nullptr ? json::array() : *list) {
        const json::object* file = one.if_object();
        if (file == nullptr || files.size() == kFilesMax) {
            continue;
        }
        const std::string folder = text_in(*file, "folder");
        const std::string name = text_in(*file, "name");
        if (!folder.empty() && !name.empty()) {
            files[folder + "/" + name] = FileFacts::from_json(*file);
        }
    }
    return files;
}

const FileFacts* find_in(
    const WorkerFiles& files, std::span<const std::string_view> folders, std::string_view name
) {
    for (const std::string_view folder : folders) {
        const auto found = files.find(std::string(folder) + "/" + std::string(name));
        if (found != files.end()) {
            return &found->second;
        }
    }
    return nullptr;
}

void keep_agreed(FileFacts& facts, const FileFacts& other) {
    for (const auto member :
         {&FileFacts::kind, &FileFacts::family, &FileFacts::dtype, &FileFacts::sha256}) {
        if (facts.*member != other.*member) {
            (facts.*member).clear();
        }
    }
    if (facts.bytes != other.bytes) {
        facts.bytes.reset();
    }
}

void KnownFiles::set(const std::string& worker, WorkerFiles files) {
    auto made = std::make_shared<const WorkerFiles>(std::move(files));
    const Lock lock(mutex_);
    auto& known = all_[worker];
    changes_ += known == nullptr || *known != *made ? 1 : 0;
    known = std::move(made);
}

void KnownFiles::forget(const std::string& worker) {
    const Lock lock(mutex_);
    changes_ += all_.erase(worker);
}

std::shared_ptr<const WorkerFiles> KnownFiles::of(const std::string& worker) const {
    const Lock lock(mutex_);
    const auto found = all_.find(worker);
    return found == all_.end() ? nullptr : found->second;
}

FileFacts KnownFiles::agreed(std::span<const std::string_view> folders, std::string_view name)
    const {
    std::optional<FileFacts> facts;
    const Lock lock(mutex_);
    for (const auto& [worker, files] : all_) {
        const FileFacts* file = find_in(*files, folders, name);
        if (file != nullptr && facts) {
            keep_agreed(*facts, *file);
        } else if (file != nullptr) {
            facts = *file;
        }
    }
    return facts.value_or(FileFacts());
}

bool KnownFiles::empty() const {
    const Lock lock(mutex_);
    return all_.empty();
}

std::uint64_t KnownFiles::changes() const {
    const Lock lock(mutex_);
    return changes_;
}

}  // namespace comfyd::models
