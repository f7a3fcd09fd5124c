#include "agent/model_files.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <system_error>
#include <tuple>
#include <utility>

#include <boost/asio/this_coro.hpp>

#include "base/disk.hpp"
#include "models/file_facts.hpp"
#include "models/hash_file.hpp"
#include "models/safetensors.hpp"
#include "models/wish.hpp"

namespace comfyd::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 9> kExtensions{
    ".safetensors",
    ".sft",
    ".ckpt",
    ".pt",
    ".pt2",
    ".pth",
    ".bin",
    ".pkl",
    ".gguf",
};
constexpr std::uint64_t kCacheBytesMax = 16 * 1024 * 1024;
constexpr int kDepthMax = 8;
constexpr Millis kBetweenHashes{200};
constexpr std::size_t kHeadsAtOnce = 64;  // some MB, from a disk that may be slow

std::string key_of(const ModelFile& file) {
    return file.folder + "/" + file.name + "|" + std::to_string(file.size) + "|" +
           std::to_string(file.modified_ns);
}

std::int64_t modified_of(const struct stat& status) {
    constexpr std::int64_t kNanos = 1'000'000'000;
    return status.st_mtim.tv_sec * kNanos + status.st_mtim.tv_nsec;
}

// As models::FileFacts reads it; empty: it is none, or cannot be read.
json::object head_of(const fs::path& path) {
    const auto info = models::read_safetensors(path);
    models::FileFacts facts;
    if (info) {
        facts.kind = info->family.kind;
        facts.family = info->family.name;
        facts.dtype = info->dtype;
    }
    return facts.to_json();
}

void list_folder(
    const fs::path& folder,
    const std::string& kind,
    const std::string& prefix,
    int depth,
    std::size_t files_max,
    std::vector<ModelFile>& into
) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        const std::string name = entry->path().filename();
        struct stat status{};
        if (into.size() >= files_max || ::stat(entry->path().c_str(), &status) != 0) {
            continue;  // a dead link
        }
        if (S_ISDIR(status.st_mode) && depth < kDepthMax) {
            list_folder(entry->path(), kind, prefix + name + "/", depth + 1, files_max, into);
        } else if (S_ISREG(status.st_mode) &&
                   std::ranges::find(kExtensions, entry->path().extension().native()) !=
                       kExtensions.end()) {
            into.push_back(
                {kind,
                 prefix + name,
                 static_cast<std::uint64_t>(status.st_size),
                 modified_of(status)}
            );
        }
    }
}

}  // namespace

std::vector<ModelFile> list_models(const fs::path& root, std::size_t files_max) {
    std::vector<ModelFile> files;
    std::error_code error;
    for (fs::directory_iterator kind(root, error), end; !error && kind != end;
         kind.increment(error)) {
        if (kind->is_directory(error)) {
            list_folder(kind->path(), kind->path().filename(), "", 0, files_max, files);
        }
    }
    std::ranges::sort(files, {}, [](const ModelFile& file) {
        return std::tie(file.folder, file.name);
    });
    return files;
}

ModelFiles::ModelFiles(Pool& pool, ModelFilesOptions options, std::function<bool()> is_idle)
    : pool_(pool), options_(std::move(options)), is_idle_(std::move(is_idle)) {}

void ModelFiles::start(TaskGroup& group) {
    read_cache();
    group.spawn("model files", run());
}

Task<> ModelFiles::run() {
    bool go_on = true;
    while (go_on) {
        co_await look();
        const auto next_look = std::chrono::steady_clock::now() + options_.look;
        while (go_on && std::chrono::steady_clock::now() < next_look) {
            co_await read_heads();
            co_await hash_next();
            go_on = co_await sleep_for(std::min(kBetweenHashes, options_.look));
        }
    }
}

Task<> ModelFiles::look() {
    auto found = co_await pool_.run([root = options_.root, most = options_.files_max] {
        return list_models(root, most);
    });
    for (ModelFile& file : found) {
        const auto known = hashes_.find(key_of(file));
        file.sha256 = known == hashes_.end() ? "" : known->second;
        const auto head = heads_.find(key_of(file));
        file.head = head == heads_.end() ? json::object() : head->second;
    }
    if (found != files_) {
        files_ = std::move(found);
        ++revision_;
    }
    co_await read_heads();
}

// They are small, so it does not matter what ComfyUI does.
Task<> ModelFiles::read_heads() {
    using Unread = std::vector<std::pair<std::string, fs::path>>;
    Unread unread;
    for (const ModelFile& file : files_) {
        if (unread.size() < kHeadsAtOnce && models::is_safetensors(file.name) &&
            !heads_.contains(key_of(file))) {
            unread.emplace_back(key_of(file), options_.root / file.folder / file.name);
        }
    }
    if (unread.empty()) {
        co_return;
    }
    auto read = co_await pool_.run([&unread] {
        std::map<std::string, json::object> heads;
        for (const auto& [key, path] : unread) {
            heads[key] = head_of(path);
        }
        return heads;
    });
    heads_.merge(read);
    for (ModelFile& file : files_) {
        if (const auto head = heads_.find(key_of(file)); head != heads_.end()) {
            file.head = head->second;
        }
    }
    ++revision_;
}

Task<> ModelFiles::note(std::string folder, std::string name, std::string sha256) {
    co_await look();
    for (ModelFile& file : files_) {
        if (file.folder == folder && file.name == name && !sha256.empty()) {
            hashes_[key_of(file)] = file.sha256 = sha256;
            ++revision_;
        }
    }
    co_await keep_cache();
}

Task<> ModelFiles::hash_next() {
    const auto next =
        std::ranges::find_if(files_, [](const ModelFile& file) { return file.sha256.empty(); });
    if (next == files_.end() || !is_idle_()) {
        co_return;
    }
    const std::string key = key_of(*next);
    const fs::path path = options_.root / next->folder / next->name;
    // Work that comes meanwhile stops it: it is begun anew later.
    const auto stopped = std::make_shared<std::atomic<bool>>(false);
    const Executor own = co_await boost::asio::this_coro::executor;
    TaskGroup watching(own);
    watching.spawn("work during hashing", watch_for_work(stopped));
    std::string hash = co_await pool_.run([path, stopped] {
        return models::hash_file(path, [&stopped] { return stopped->load(); });
    });
    watching.cancel();
    co_await watching.join();
    if (stopped->load()) {
        co_return;
    }
    hashes_[key] = hash.empty() ? "unreadable" : hash;
    co_await keep_cache();
    for (ModelFile& file : files_) {
        if (key_of(file) == key) {
            file.sha256 = hashes_[key];
            ++revision_;
        }
    }
}

Task<> ModelFiles::watch_for_work(std::shared_ptr<std::atomic<bool>> stopped) {
    bool go_on = true;
    while (go_on && is_idle_()) {
        go_on = co_await sleep_for(kBetweenHashes);
    }
    stopped->store(go_on);
}

void ModelFiles::read_cache() {
    const auto text = read_file(options_.cache, kCacheBytesMax);
    const auto kept = text ? json::parse_object(*text) : Result<json::object>(fail(text.error()));
    if (kept) {
        for (const auto& [key, hash] : *kept) {
            if (hash.is_string()) {
                hashes_[std::string(key)] = std::string(hash.get_string());
            }
        }
    }
}

Task<> ModelFiles::keep_cache() {
    json::object kept;
    for (const ModelFile& file : files_) {
        const std::string key = key_of(file);
        if (const auto known = hashes_.find(key); known != hashes_.end()) {
            kept[key] = known->second;
        }
    }
    auto written = co_await pool_.run([path = options_.cache, text = json::serialize(kept)] {
        return write_file(path, text);
    });
    static_cast<void>(written);  // they are found again by reading
}

json::object ModelFiles::to_json() const {
    json::array files;
    for (const ModelFile& file : files_) {
        json::object shown;
        shown["folder"] = file.folder;
        shown["name"] = file.name;
        shown["size"] = file.size;
        const bool is_known = !file.sha256.empty() && file.sha256 != "unreadable";
        shown["sha256"] = is_known ? json::value(file.sha256) : json::value(nullptr);
        for (const auto& [key, value] : file.head) {
            shown[key] = value;
        }
        files.push_back(std::move(shown));
    }
    return {{"revision", revision_}, {"files", std::move(files)}};
}

}  // namespace comfyd::agent
