#include "fleet/class_cache.hpp"

#include <utility>

#include "comfy/messages.hpp"

namespace comfyd::fleet {
namespace {

using Classes = std::shared_ptr<const workflow::NodeClasses>;

Result<Classes> parse(const std::string& document) {
    const auto parsed = comfy::parse_python(document);
    if (!parsed) {
        return fail(Code::protocol_error, "GET /object_info: " + parsed.error().message);
    }
    return workflow::NodeClasses::from_object_info(*parsed);
}

}  // namespace

Task<Result<Classes>> ClassCache::read(std::string document) {
    const auto text =
        std::make_shared<const std::string>(std::move(document));  // us and the pool's thread
    const auto digest = co_await pool_.run([text] { return sha256(*text); });
    std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
    if (const auto found = known_.find(digest); found != known_.end()) {
        if (auto classes = found->second.lock()) {
            co_return classes;
        }
    }
    auto classes = co_await pool_.run([text] { return parse(*text); });
    if (classes) {
        known_[digest] = *classes;
    }
    co_return classes;
}

}  // namespace comfyd::fleet
