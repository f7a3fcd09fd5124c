#include "media/locate.hpp"

#include <memory>
#include <string>
#include <utility>

namespace comfyd::media {
namespace {

constexpr std::uint64_t kFetchedBytesMax = 1ULL << 30;

}  // namespace

Task<Result<Source>> locate(assets::Store& store, const jobs::Output& output) {
    if (output.bytes) {
        co_return Source(output.bytes);
    }
    assets::Asset asset;
    asset.id = output.asset;
    asset.hash = output.hash;
    asset.size_bytes = output.size_bytes;
    asset.generation = output.generation;
    auto content = co_await store.content(asset);
    if (!content) {
        co_return fail(std::move(content.error()));
    }
    if (auto* path = std::get_if<std::filesystem::path>(&*content)) {
        co_return Source(std::move(*path));
    }
    if (auto* bytes = std::get_if<std::string>(&*content)) {
        co_return Source(std::make_shared<const std::string>(std::move(*bytes)));
    }
    auto fetched = co_await store.read(asset, kFetchedBytesMax);
    if (!fetched) {
        co_return fail(std::move(fetched.error()));
    }
    co_return Source(std::make_shared<const std::string>(std::move(*fetched)));
}

}  // namespace comfyd::media
