#include "fleet/class_cache.hpp"

#include <utility>

#include "comfy/messages.hpp"

namespace comfyd::fleet {
namespace {

using Classes = std::shared_ptr<const workflow::NodeClasses>;

Result<Classes> parse(const ClassCache::Told& told) {
    const auto parsed = comfy::parse_python(told.object_info);
    if (!parsed) {
        return fail(Code::protocol_error, "GET /object_info: " + parsed.error().message);
    }
    workflow::ClassNotes notes;
    notes.read(told.described);
    notes.replacements = told.replacements;
    return workflow::NodeClasses::from_object_info(*parsed, std::move(notes));
}

Digest digest_of(const ClassCache::Told& told) {
    return sha256(
        to_hex(sha256(told.object_info)) + json::serialize(told.described) +
        json::serialize(told.replacements)
    );
}

}  // namespace

Task<Result<Classes>> ClassCache::read(Told told) {
    const auto kept = std::make_shared<const Told>(std::move(told));  // us and the pool's thread
    const auto digest = co_await pool_.run([kept] { return digest_of(*kept); });
    if (auto known = find(digest)) {
        co_return known;
    }
    auto classes = co_await pool_.run([kept] { return parse(*kept); });
    if (!classes) {
        co_return classes;
    }
    auto first = keep(digest, std::move(*classes));
    if (on_read_) {
        on_read_(to_hex(digest), kept);
    }
    co_return first;
}

// Those of an equal worker may have come meanwhile: the first stay.
Classes ClassCache::keep(const Digest& digest, Classes classes) {
    const Lock lock(mutex_);
    auto first = known_[digest].lock();
    if (!first) {
        known_[digest] = first = std::move(classes);
    }
    return first;
}

std::optional<std::string> ClassCache::name_of(const workflow::NodeClasses& classes) {
    const Lock lock(mutex_);
    for (const auto& [digest, known] : known_) {
        if (known.lock().get() == &classes) {
            return to_hex(digest);
        }
    }
    return std::nullopt;
}

Classes ClassCache::find(const Digest& digest) {
    const Lock lock(mutex_);
    std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
    const auto found = known_.find(digest);
    return found == known_.end() ? nullptr : found->second.lock();
}

}  // namespace comfyd::fleet
