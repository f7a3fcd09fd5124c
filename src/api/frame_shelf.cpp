#include "api/frame_shelf.hpp"

#include <algorithm>
#include <utility>

namespace comfyd::api {

const FrameShelf::Entry* FrameShelf::Part::find(
    const events::EventPtr& event, std::string_view form
) const {
    const auto found = std::ranges::find_if(entries, [&](const Entry& entry) {
        return entry.event == event && entry.form == form;
    });
    return found == entries.end() ? nullptr : &*found;
}

// In the place of the oldest one.
void FrameShelf::Part::put(Entry entry) {
    entries[next] = std::move(entry);
    next = (next + 1) % entries.size();
}

bool FrameShelf::is_small(const jobs::Event& event, const FramePtr& frame) {
    return event.preview.size() <= kFrameBytesMax && (!frame || frame->size() <= kFrameBytesMax);
}

}  // namespace comfyd::api
