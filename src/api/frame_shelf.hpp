// What streams send of an event, as bytes: encoded once for each dialect, whoever listens. The
// latest ones are kept, a bounded number of them. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/mutex.hpp"
#include "events/notice.hpp"

namespace comfyd::api {

using FramePtr = std::shared_ptr<const std::string>;  // null: the dialect does not show it

class FrameShelf {
public:
    static constexpr std::size_t kParts = 8;
    static constexpr std::size_t kFramesOfPart = 16;
    static constexpr std::size_t kFrameBytesMax = 32 * 1024;  // larger ones are not kept

    // `form`: what tells frames of one event apart: the dialect, and what its frames depend on
    // besides the event. `encode` gives std::optional<std::string>, and is called where this event
    // was not encoded so before; others wait for it meanwhile, so it asks nobody.
    template <class Encode>
    FramePtr get(const events::EventPtr& event, std::string_view form, const Encode& encode) {
        Part& part = parts_[std::hash<events::EventPtr>()(event) / kAlignment % kParts];
        const Lock lock(part.mutex);
        if (const Entry* known = part.find(event, form)) {
            return known->frame;
        }
        std::optional<std::string> made = encode();
        FramePtr frame = made ? std::make_shared<const std::string>(std::move(*made)) : nullptr;
        if (is_small(*event, frame)) {
            part.put({event, std::string(form), frame});
        }
        return frame;
    }

private:
    static constexpr std::size_t kAlignment = 64;  // of events in memory, about

    struct Entry {
        events::EventPtr event;  // held, so that no other has its address
        std::string form;
        FramePtr frame;
    };
    struct Part {
        Mutex mutex;
        std::array<Entry, kFramesOfPart> entries COMFYD_GUARDED_BY(mutex);
        std::size_t next COMFYD_GUARDED_BY(mutex) = 0;

        const Entry* find(const events::EventPtr& event, std::string_view form) const
            COMFYD_REQUIRES(mutex);
        void put(Entry entry) COMFYD_REQUIRES(mutex);
    };
    static bool is_small(const jobs::Event& event, const FramePtr& frame);

    std::array<Part, kParts> parts_;
};

}  // namespace comfyd::api
