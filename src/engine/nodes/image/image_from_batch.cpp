#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "engine/nodes/image/image.hpp"
#include "engine/pixels/pictures.hpp"

namespace comfyd::engine::nodes {
namespace {

Result<NodeResult> repeat(Call& call) {
    const std::vector<Image> parts(
        static_cast<std::size_t>(call.integer("amount")), call.image("image")
    );
    auto out = join(call, parts);
    if (!out) {
        return fail(std::move(out.error()));
    }
    return NodeResult{.outputs = {std::move(*out)}};
}

Result<NodeResult> pick(Call& call) {
    const Image& image = call.image("image");
    const auto batch = static_cast<std::int64_t>(image.shape().batch);
    std::int64_t first = call.integer("batch_index");
    first = std::clamp<std::int64_t>(first < 0 ? first + batch : first, 0, batch - 1);
    const std::int64_t count = std::min(batch - first, call.integer("length"));
    auto out =
        pictures(call, image, static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    if (!out) {
        return fail(std::move(out.error()));
    }
    return NodeResult{.outputs = {std::move(*out)}};
}

Result<NodeResult> rebatch(Call& call) {
    const auto size = static_cast<std::size_t>(call.integer("batch_size"));
    std::vector<Image> single;
    for (const Value& value : call.list("images")) {
        const Image& image = std::get<Image>(value);
        for (std::size_t i = 0; i < image.shape().batch; ++i) {
            auto one = pictures(call, image, i, 1);
            if (!one) {
                return fail(std::move(one.error()));
            }
            single.push_back(std::move(*one));
        }
    }
    auto out = std::make_shared<List>();
    for (std::size_t i = 0; i < single.size(); i += size) {
        const std::size_t count = std::min(size, single.size() - i);
        auto batch = join(call, std::span(single).subspan(i, count));
        if (!batch) {
            return fail(std::move(batch.error()));
        }
        out->items.emplace_back(std::move(*batch));
    }
    return NodeResult{.outputs = {std::shared_ptr<const List>(std::move(out))}};
}

}  // namespace

NodeClass repeat_image_batch() {
    return {
        .name = "RepeatImageBatch",
        .description = "The same batch several times over.",
        .execute = &repeat,
    };
}

NodeClass image_from_batch() {
    return {
        .name = "ImageFromBatch",
        .description = "Takes pictures out of a batch; negative numbers count from its end.",
        .execute = &pick,
    };
}

NodeClass rebatch_images() {
    return {
        .name = "RebatchImages",
        .description = "Regroups all pictures of a list into batches of one size.",
        .execute = &rebatch,
    };
}

}  // namespace comfyd::engine::nodes
