#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "engine/nodes/image/image.hpp"
#include "engine/pixels/pictures.hpp"

namespace comfyd::engine::nodes {
namespace {

Result<NodeResult> repeat(Call& call) {
    const std::vector<View> parts(
        static_cast<std::size_t>(call.integer("amount")), call.image_view("image")
    );
    auto out = join_views(call, parts);
    if (!out) {
        return fail(std::move(out.error()));
    }
    return NodeResult{.outputs = {ImageView(std::move(*out))}};
}

Result<NodeResult> pick(Call& call) {
    const ImageView image = call.image_view("image");
    const auto batch = static_cast<std::int64_t>(image.shape().batch);
    std::int64_t first = call.integer("batch_index");
    first = std::clamp<std::int64_t>(first < 0 ? first + batch : first, 0, batch - 1);
    const std::int64_t count = std::min(batch - first, call.integer("length"));
    return NodeResult{
        .outputs = {ImageView(
            image.pictures(static_cast<std::size_t>(first), static_cast<std::size_t>(count))
        )}
    };
}

Result<NodeResult> rebatch(Call& call) {
    const auto size = static_cast<std::size_t>(call.integer("batch_size"));
    std::vector<View> single;
    for (const Value& value : call.list("images")) {
        const ImageView image = to_image_view(value);
        for (std::size_t i = 0; i < image.shape().batch; ++i) {
            single.push_back(image.pictures(i, 1));
        }
    }
    auto out = std::make_shared<List>();
    for (std::size_t i = 0; i < single.size(); i += size) {
        const std::size_t count = std::min(size, single.size() - i);
        auto batch = join_views(call, std::span(single).subspan(i, count));
        if (!batch) {
            return fail(std::move(batch.error()));
        }
        out->items.emplace_back(ImageView(std::move(*batch)));
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
