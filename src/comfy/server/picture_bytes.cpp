#include "comfy/server/picture_bytes.hpp"

#include <utility>

#include "base/disk.hpp"

namespace comfyd::comfy::server {
namespace {

constexpr std::uint64_t kPictureBytesMax = 256ULL * 1024 * 1024;

}  // namespace

Task<Result<std::string>> picture_bytes(Backend& backend, ShownFile file) {
    if (auto* bytes = std::get_if<std::string>(&file.content)) {
        co_return std::move(*bytes);
    }
    const auto& path = std::get<std::filesystem::path>(file.content);
    auto bytes = co_await backend.disk().run([&path] { return read_file(path, kPictureBytesMax); });
    co_return bytes;
}

}  // namespace comfyd::comfy::server
