#include "comfy/held_frames.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace comfyd::comfy {
namespace {

// As Python writes them: the type first, of a state the prompt next.
constexpr std::string_view kState = R"({"type": "progress_state", "data": {"prompt_id": ")";
constexpr std::string_view kStep = R"({"type": "progress", )";
constexpr std::string_view kExecuting = R"({"type": "executing", )";
constexpr std::string_view kStatus = R"({"type": "status", )";
constexpr std::string_view kEnd = R"("node": null)";  // in no text: a quote there has a backslash
constexpr std::size_t kBytesMax = 1024 * 1024;

// The prompt that a state is of; empty: not surely one.
std::string_view prompt_of_state(std::string_view text) {
    if (!text.starts_with(kState)) {
        return {};
    }
    text.remove_prefix(kState.size());
    const auto end = text.find('"');
    const auto prompt = text.substr(0, end);
    return end == std::string_view::npos || prompt.find('\\') != std::string_view::npos
               ? std::string_view()
               : prompt;
}

bool tells_of_progress(std::string_view text) {
    return text.starts_with(kStep) || !prompt_of_state(text).empty() ||
           (text.starts_with(kExecuting) && text.find(kEnd) == std::string_view::npos);
}

}  // namespace

bool HeldFrames::hold(std::string& text, TimePoint now) {
    if (text.starts_with(kStatus)) {
        return true;
    }
    if (!tells_of_progress(text) || bytes_ + text.size() > kBytesMax) {
        return false;
    }
    bytes_ += text.size();
    frames_.push_back({std::move(text), now});
    return true;
}

std::vector<HeldFrames::Frame> HeldFrames::take() {
    auto frames = std::exchange(frames_, {});
    bytes_ = 0;
    std::set<std::string, std::less<>> told;  // prompts of which a later state is there
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
        const std::string_view prompt = prompt_of_state(frame->text);
        if (!prompt.empty() && !told.emplace(prompt).second) {
            frame->text.clear();
        }
    }
    std::erase_if(frames, [](const Frame& frame) { return frame.text.empty(); });
    return frames;
}

}  // namespace comfyd::comfy
