// Lists of pictures, shuffled by NumPy's legacy generator or put together.
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/nodes/call.hpp"
#include "engine/nodes/dataset/dataset.hpp"
#include "engine/pixels/pictures.hpp"
#include "engine/pixels/random.hpp"

namespace comfyd::engine::nodes {
namespace {

// numpy.random.permutation(count).
std::vector<std::size_t> permutation(std::size_t count, std::uint32_t seed) {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    NumpyRandom random(seed);
    for (std::size_t i = count; i > 1; --i) {
        std::swap(order[i - 1], order[random.below(i)]);
    }
    return order;
}

std::vector<Value> single_values(const Call& call) {
    const std::vector<Image> singles = single_pictures(call.list("images"));
    return {singles.begin(), singles.end()};
}

Value as_list(std::vector<Value> items) {
    return std::make_shared<const List>(List{std::move(items)});
}

std::vector<Value> in_order(
    const std::vector<Value>& items, const std::vector<std::size_t>& order
) {
    std::vector<Value> ordered;
    ordered.reserve(order.size());
    for (const std::size_t index : order) {
        ordered.push_back(items[index]);
    }
    return ordered;
}

Result<NodeResult> execute_shuffle(Call& call) {
    const std::vector<Value> singles = single_values(call);
    const auto order = permutation(singles.size(), numpy_seed(call.value("seed")));
    return NodeResult{.outputs = {as_list(in_order(singles, order))}};
}

Result<NodeResult> execute_shuffle_pairs(Call& call) {
    const std::vector<Value>& images = call.list("images");
    const std::vector<Value>& texts = call.list("texts");
    if (texts.size() < images.size()) {
        return node_error("IndexError", "list index out of range");
    }
    const auto order = permutation(images.size(), numpy_seed(call.value("seed")));
    return NodeResult{
        .outputs = {as_list(in_order(images, order)), as_list(in_order(texts, order))}
    };
}

Result<NodeResult> execute_merge(Call& call) {
    return NodeResult{.outputs = {as_list(single_values(call))}};
}

}  // namespace

NodeClass shuffle_dataset() {
    return {
        .name = "ShuffleDataset",
        .description = "Brings a list of pictures into an order that the seed decides.",
        .execute = &execute_shuffle
    };
}

NodeClass shuffle_image_text_dataset() {
    return {
        .name = "ShuffleImageTextDataset",
        .description = "Brings pictures and their captions into an order that the seed decides.",
        .execute = &execute_shuffle_pairs
    };
}

NodeClass merge_image_lists() {
    return {
        .name = "MergeImageLists",
        .description = "Several lists of pictures as one.",
        .execute = &execute_merge
    };
}

}  // namespace comfyd::engine::nodes
