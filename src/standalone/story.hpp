// One run as its client hears it, and as the history keeps it. Belongs to the server's thread.
//
// Messages and their order are those of ComfyUI. One difference: progress_state, which names every
// node that has begun and is sent twice for each, is cut to those that changed last where there are
// very many, and left out for a client that is behind with reading.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "comfy/messages.hpp"
#include "engine/engine.hpp"
#include "standalone/hub.hpp"
#include "standalone/prompt.hpp"

namespace comfyd::standalone {

class Story {
public:
    static constexpr std::size_t kNodesMany = 512;
    static constexpr std::size_t kNodesToldOfMany = 64;

    Story(Hub& hub, const Clock& clock, PromptPtr prompt);

    const Prompt& prompt() const { return *prompt_; }
    // As it is shown to the client.
    std::string current_node() const { return origin_of(current_node_).root; }

    void start();
    void cached(std::vector<std::string> nodes);
    void executing(const std::string& node);
    void progress(const std::string& node, double value, double max);
    void preview(const std::string& node, engine::ImageFormat format, std::string bytes);
    void text(const std::string& node, std::string text);
    void blocked(const std::string& node, const std::string& message);
    void added(const std::string& node, const std::string& parent);
    void finished(const std::string& node);
    void executed(const std::string& node, const json::object& ui);
    // Sends how it ended and gives what the history keeps. The end marker is end()'s, after that.
    HistoryEntryPtr conclude(Result<engine::RunResult> result);
    void end();

private:
    enum class To { owner, owner_or_all };

    void say(To to, const comfy::Message& message);
    // Said to the owner and kept in the history.
    void record(const comfy::Message& message, To to = To::owner);
    void say_progress();
    comfy::NodeProgress& progress_of(const std::string& node);
    void touch(const std::string& node);
    NodeOrigin origin_of(const std::string& node) const;
    std::string type_of(const std::string& node) const;
    comfy::ExecutionError describe(const Error& error) const;

    Hub& hub_;
    const Clock& clock_;
    PromptPtr prompt_;
    bool has_client_;
    std::string current_node_;
    std::vector<std::string> executed_;  // node ids
    std::vector<comfy::NodeProgress> nodes_;
    std::map<std::string, std::size_t, std::less<>> places_;  // in nodes_
    std::vector<std::string> touched_;                        // the last that changed, newest last
    NodeOrigins origins_;
    json::object outputs_;
    json::array messages_;
    Time started_{};
};

}  // namespace comfyd::standalone
