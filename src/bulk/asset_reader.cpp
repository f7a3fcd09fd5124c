#include "bulk/asset_reader.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <variant>

namespace comfyd::bulk {
class AssetReader::File {
public:
    explicit File(const std::filesystem::path& path)
        : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
    ~File() {
        if (descriptor_ >= 0) {
            ::close(descriptor_);
        }
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    bool is_open() const { return descriptor_ >= 0; }

    Result<std::string> read(std::uint64_t offset, std::size_t length) const {
        std::string bytes(length, '\0');
        std::size_t done = 0;
        while (done < length) {
            const auto count = ::pread(
                descriptor_, bytes.data() + done, length - done, static_cast<off_t>(offset + done)
            );
            if (count < 0 && errno != EINTR) {
                return fail(
                    Code::storage_unavailable,
                    std::string("a stored file cannot be read: ") + std::strerror(errno)
                );
            }
            if (count == 0) {
                break;
            }
            done += count > 0 ? static_cast<std::size_t>(count) : 0;
        }
        bytes.resize(done);
        return bytes;
    }

private:
    int descriptor_;
};

Task<Result<AssetReader>> AssetReader::open(assets::Store& store, Pool& pool, assets::Asset asset) {
    auto content = co_await store.content(asset);
    if (!content) {
        co_return fail(std::move(content.error()));
    }
    AssetReader reader;
    reader.pool_ = &pool;
    if (auto* bytes = std::get_if<std::string>(&*content)) {
        reader.bytes_ = std::move(*bytes);
    } else if (const auto* path = std::get_if<std::filesystem::path>(&*content)) {
        reader.file_ = std::make_shared<File>(*path);
        if (!reader.file_->is_open()) {
            co_return fail(Code::output_unavailable, "the stored file is gone");
        }
    } else {
        reader.store_ = &store;
        reader.asset_ = std::move(asset);
    }
    co_return reader;
}

Task<Result<std::string>> AssetReader::read(std::uint64_t offset, std::size_t length) {
    if (store_ != nullptr) {
        auto bytes = co_await read_elsewhere(offset, length);
        co_return bytes;
    }
    if (!file_) {
        co_return offset < bytes_.size() ? bytes_.substr(offset, length) : std::string();
    }
    auto bytes =
        co_await pool_->run([file = file_, offset, length] { return file->read(offset, length); });
    co_return bytes;
}

Task<Result<std::string>> AssetReader::read_elsewhere(std::uint64_t offset, std::size_t length) {
    std::string bytes;
    bool is_end = false;
    while (bytes.size() < length && !is_end) {
        auto part = co_await store_->read_part(asset_, offset + bytes.size());
        if (!part) {
            co_return fail(std::move(part.error()));
        }
        is_end = part->empty();
        bytes.append(*part, 0, length - bytes.size());
    }
    co_return bytes;
}

}  // namespace comfyd::bulk
