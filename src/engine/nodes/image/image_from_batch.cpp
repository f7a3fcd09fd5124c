#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "engine/nodes/image/image.hpp"
#include "engine/nodes/mask/support.hpp"
#include "engine/pixels/pictures.hpp"

namespace comfyd::engine::nodes {
namespace {

// That a batch in a list takes at most, its pixels aside.
constexpr std::uint64_t kBytesPerBatch = 512;

Result<NodeResult> repeat(Call& call) {
    auto out = repeated(call, call.image_view("image"), call.size("amount"));
    if (!out) {
        return fail(std::move(out.error()));
    }
    return NodeResult{.outputs = {ImageView(std::move(*out))}};
}

Result<NodeResult> pick(Call& call) {
    const ImageView image = call.image_view("image");
    const auto batch = static_cast<std::int64_t>(image.shape().batch);
    std::int64_t first = call.place("batch_index");
    first = std::clamp<std::int64_t>(first < 0 ? first + batch : first, 0, batch - 1);
    const std::int64_t count = std::min(batch - first, call.place("length"));
    const Slice picked = python_slice(first, first + count, image.shape().batch);
    return NodeResult{.outputs = {ImageView(image.pictures(picked.first, picked.count))}};
}

Result<NodeResult> rebatch(Call& call) {
    const std::size_t size = call.size("batch_size");
    if (size == 0) {
        return node_error("ValueError", "range() arg 3 must not be zero");
    }
    auto out = std::make_shared<List>();
    Charge charge;
    std::vector<View> parts;  // of the batch that is not full yet
    std::size_t missing = size;
    const auto end_batch = [&]() -> Result<> {
        auto more = call.charge(kBytesPerBatch);
        auto batch = join_views(call, std::exchange(parts, {}));
        if (!more || !batch) {
            return fail(more ? batch.error() : more.error());
        }
        charge.join(std::move(*more));
        out->items.emplace_back(ImageView(std::move(*batch)));
        missing = size;
        return call.check_stopped();
    };
    for (const Value& value : call.list("images")) {
        const ImageView image = to_image_view(value);
        for (std::size_t at = 0; at < image.shape().batch;) {
            const std::size_t count = std::min(missing, image.shape().batch - at);
            parts.push_back(image.pictures(at, count));
            at += count;
            missing -= count;
            if (auto ended = missing == 0 ? end_batch() : Result<>(); !ended) {
                return fail(std::move(ended.error()));
            }
        }
    }
    if (auto ended = parts.empty() ? Result<>() : end_batch(); !ended) {
        return fail(std::move(ended.error()));
    }
    return NodeResult{.outputs = {std::shared_ptr<const List>(std::move(out))}};
}

}  // namespace

NodeClass repeat_image_batch() {
    return {
        .name = "RepeatImageBatch",
        .description = "The same batch several times over.",
        .execute = &repeat,
        .reads_views = true,
        .takes_empty = true,
    };
}

NodeClass image_from_batch() {
    return {
        .name = "ImageFromBatch",
        .description = "Takes pictures out of a batch; negative numbers count from its end.",
        .execute = &pick,
        .reads_views = true,
    };
}

NodeClass rebatch_images() {
    return {
        .name = "RebatchImages",
        .description = "Regroups all pictures of a list into batches of one size.",
        .execute = &rebatch,
        .reads_views = true,
    };
}

}  // namespace comfyd::engine::nodes
