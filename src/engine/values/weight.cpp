#include "engine/values/weight.hpp"

#include "engine/nodes/node.hpp"

namespace comfyd::engine {
namespace {

// Whoever writes, compares or frees data goes down into it.
constexpr int kDepthMax = 1000;

std::uint64_t weigh(const json::value& data, int depth);

std::uint64_t weigh(const json::object& object, int depth) {
    std::uint64_t bytes = 0;
    for (const auto& [key, member] : object) {
        bytes += sizeof(json::object::value_type) + key.size() + weigh(member, depth + 1);
    }
    return bytes;
}

std::uint64_t weigh(const json::value& data, int depth) {
    if (depth > kDepthMax) {
        throw NodeFailure("RecursionError", "maximum recursion depth exceeded");
    }
    std::uint64_t bytes = sizeof data;
    if (const auto* text = data.if_string()) {
        bytes += text->size();
    } else if (const auto* array = data.if_array()) {
        for (const json::value& item : *array) {
            bytes += weigh(item, depth + 1);
        }
    } else if (const auto* object = data.if_object()) {
        bytes += weigh(*object, depth);
    }
    return bytes;
}

struct Weigher {
    std::uint64_t operator()(const std::string& text) const { return text.size(); }
    std::uint64_t operator()(const Data& data) const { return weigh(data.content(), 0); }
    std::uint64_t operator()(const std::shared_ptr<const Object>& object) const {
        return object->bytes();
    }
    std::uint64_t operator()(const std::shared_ptr<const List>& list) const {
        return weight_of(list->items);
    }
    std::uint64_t operator()(const Blocker& blocker) const {
        return blocker.message ? blocker.message->size() : 0;
    }
    template <class Plain>
    std::uint64_t operator()(const Plain& /*value*/) const {
        return 0;
    }
    std::uint64_t operator()(const ImageView& view) const { return view.bytes(); }
    std::uint64_t operator()(const MaskView& view) const { return view.bytes(); }
};

}  // namespace

std::uint64_t weight_of(const json::object& data) {
    return weigh(data, 0);
}

std::uint64_t weight_of(const Value& value) {
    return sizeof value + std::visit(Weigher{}, value);
}

std::uint64_t weight_of(const std::vector<Value>& values) {
    std::uint64_t bytes = 0;
    for (const Value& value : values) {
        bytes += weight_of(value);
    }
    return bytes;
}

}  // namespace comfyd::engine
