#include "models/uploads.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <system_error>
#include <utility>

#include "models/wish.hpp"

namespace comfyd::models {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::minutes kIdleMax{10};
constexpr std::size_t kOpenMax = 16;
constexpr std::uint64_t kSpareBytes = 512ULL << 20;  // of the disk, for all else

Error unreadable(const std::string& what) {
    return Error(Code::storage_unavailable, "an uploaded model cannot be kept: " + what);
}

}  // namespace

struct Uploads::Open {
    explicit Open(PartFile file) : part(std::move(file)) {}

    PartFile part;
    std::uint64_t total = 0;
    bool is_ready = false;  // what was there is read
    bool is_busy = true;
    std::chrono::steady_clock::time_point used = std::chrono::steady_clock::now();
};

// Whose part it is for as long as it lives.
class Uploads::Writer {
public:
    Writer(Uploads& uploads, std::string sha256, std::shared_ptr<Open> open)
        : uploads_(uploads), sha256_(std::move(sha256)), open_(std::move(open)) {}
    ~Writer() {
        const Lock lock(uploads_.mutex_);
        open_->is_busy = false;
        open_->used = std::chrono::steady_clock::now();
    }
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    const std::string& sha256() const { return sha256_; }
    Open& open() { return *open_; }

private:
    Uploads& uploads_;
    const std::string sha256_;
    const std::shared_ptr<Open> open_;
};

std::optional<Uploads::State> Uploads::look(const std::string& sha256) const {
    struct stat status{};
    if (!is_sha256(sha256)) {
        return std::nullopt;
    }
    if (::lstat(path_of(sha256).c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
        return State{true, static_cast<std::uint64_t>(status.st_size)};
    }
    const fs::path part = folder_ / (sha256 + ".part");
    if (::lstat(part.c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
        return State{false, static_cast<std::uint64_t>(status.st_size)};
    }
    return std::nullopt;
}

Task<Result<std::optional<Uploads::State>>> Uploads::find(std::string sha256) {
    auto found = co_await pool_.run([this, &sha256] { return look(sha256); });
    co_return found;
}

// Whoever has it alone from now on.
Result<std::shared_ptr<Uploads::Open>> Uploads::take(const Part& part) {
    const Lock lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    std::erase_if(open_, [now](const auto& entry) {
        return !entry.second->is_busy && now - entry.second->used > kIdleMax;
    });
    const auto known = open_.find(part.sha256);
    if (known != open_.end() && known->second->is_busy) {
        return fail(Code::conflict, "somebody else uploads this file now");
    }
    if (known != open_.end()) {
        known->second->is_busy = true;
        return known->second;
    }
    if (open_.size() >= kOpenMax) {
        return fail(Code::queue_full, "too many models are being uploaded");
    }
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error) {
        return fail(unreadable(error.message()));
    }
    auto file = PartFile::open(folder_, part.sha256);
    if (!file) {
        return fail(std::move(file.error()));
    }
    auto open = std::make_shared<Open>(std::move(*file));
    open_.emplace(part.sha256, open);
    return open;
}

Result<> Uploads::prepare(Open& open, const Part& part) {
    if (part.first == 0) {
        std::error_code error;
        const auto space = fs::space(folder_, error);
        if (!error && space.available < part.total + kSpareBytes) {
            return fail(Code::storage_full, "the disk has no room for this model");
        }
        const PartNotes notes{"upload", "", part.total};
        auto begun = open.part.begin(notes, part.is_safetensors);
        if (begun) {
            begun = open.part.reserve(part.total);
        }
        open.total = part.total;
        open.is_ready = begun.has_value();
        return begun;
    }
    const bool is_known = open.is_ready || open.part.notes().has_value();
    const std::uint64_t total = open.is_ready       ? open.total
                                : open.part.notes() ? open.part.notes()->total.value_or(0)
                                                    : 0;
    if (!is_known || total != part.total || open.part.size() != part.first) {
        const std::uint64_t there = is_known && total == part.total ? open.part.size() : 0;
        return fail(
            Code::conflict,
            "the upload goes on from byte " + std::to_string(there),
            {{"bytes", there}}
        );
    }
    if (open.is_ready) {
        return {};
    }
    open.total = total;
    open.part.resume(part.is_safetensors);
    bool is_read = false;
    while (!is_read) {
        const auto read = open.part.reread();
        if (!read) {
            return fail(read.error());
        }
        is_read = *read;
    }
    open.is_ready = true;
    return {};
}

Task<Result<std::shared_ptr<Uploads::Writer>>> Uploads::begin(Part part) {
    auto begun = co_await pool_.run([this, &part]() -> Result<std::shared_ptr<Writer>> {
        const auto there = look(part.sha256);
        if (there && there->is_whole) {
            return fail(Code::conflict, "this file is here already", {{"bytes", there->bytes}});
        }
        auto open = take(part);
        if (!open) {
            return fail(std::move(open.error()));
        }
        auto writer = std::make_shared<Writer>(*this, part.sha256, *open);
        if (auto prepared = prepare(**open, part); !prepared) {
            if ((*open)->part.size() == 0) {
                (*open)->part.discard();
                const Lock lock(mutex_);
                open_.erase(part.sha256);
            }
            return fail(std::move(prepared.error()));
        }
        return writer;
    });
    co_return begun;
}

Task<Result<>> Uploads::append(std::shared_ptr<Writer> writer, std::string bytes) {
    auto written = co_await pool_.run([&writer, &bytes]() -> Result<> {
        Open& open = writer->open();
        if (open.part.size() + bytes.size() > open.total) {
            return fail(Code::payload_too_large, "more comes than the file was said to have");
        }
        return open.part.append(bytes);
    });
    if (!written) {
        writer->open().is_ready = false;  // what was hashed may not be what was written
    }
    if (!written && written.error().code == Code::hash_mismatch) {
        co_await pool_.run([&writer] {
            writer->open().part.discard();
            return true;
        });
        const Lock lock(mutex_);
        open_.erase(writer->sha256());
    }
    co_return written;
}

Task<Result<std::optional<FileFacts>>> Uploads::end(std::shared_ptr<Writer> writer) {
    Open& open = writer->open();
    if (open.part.size() < open.total) {
        co_return std::optional<FileFacts>();
    }
    auto facts = co_await pool_.run([this, &writer, &open]() -> Result<std::optional<FileFacts>> {
        auto content = open.part.judge();
        if (content && content->sha256 != writer->sha256()) {
            content =
                fail(Code::hash_mismatch, "the file that came has the hash " + content->sha256);
        }
        if (!content) {
            open.part.discard();
            return fail(std::move(content.error()));
        }
        if (auto published = open.part.publish(path_of(content->sha256)); !published) {
            return fail(std::move(published.error()));
        }
        FileFacts made;
        made.bytes = content->bytes;
        made.sha256 = content->sha256;
        if (content->info) {
            made.kind = content->info->family.kind;
            made.family = content->info->family.name;
            made.dtype = content->info->dtype;
        }
        return made;
    });
    const Lock lock(mutex_);
    open_.erase(writer->sha256());
    co_return facts;
}

Task<Result<bool>> Uploads::remove(std::string sha256) {
    auto removed = co_await pool_.run([this, &sha256]() -> Result<bool> {
        {
            const Lock lock(mutex_);
            const auto known = open_.find(sha256);
            if (known != open_.end() && known->second->is_busy) {
                return fail(Code::conflict, "the file is being uploaded");
            }
            open_.erase(sha256);
        }
        if (!look(sha256)) {
            return false;
        }
        for (const char* ending : {"", ".part", ".part.json"}) {
            std::error_code error;
            fs::remove(folder_ / (sha256 + ending), error);
            if (error) {
                return fail(unreadable(error.message()));
            }
        }
        return true;
    });
    co_return removed;
}

}  // namespace comfyd::models
