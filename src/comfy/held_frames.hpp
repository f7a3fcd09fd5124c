// Frames of a worker's socket that tell of progress, kept unread while nobody is waiting for it.
// Most of what a worker says is such frames, and each state of a prompt holds all that the one
// before held: read together, only the latest state of each prompt is read at all. How long the
// worker's queue is nobody asks: such frames are dropped.
//
// Plain state of one executor. What is not surely such a frame is not held.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace comfyd::comfy {

class HeldFrames {
public:
    using TimePoint = std::chrono::steady_clock::time_point;
    struct Frame {
        std::string text;
        TimePoint came_at;
    };

    // False: it is to be read now, after those that are held; `text` is as it was.
    bool hold(std::string& text, TimePoint now);
    bool empty() const { return frames_.empty(); }
    // What is held, in order, without states of prompts that a later one replaces.
    std::vector<Frame> take();

private:
    std::vector<Frame> frames_;
    std::size_t bytes_ = 0;
};

}  // namespace comfyd::comfy
