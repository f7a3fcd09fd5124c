// Everything that the server's routes and its runner share. Belongs to the server's thread; what
// may be used elsewhere says so.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/pool.hpp"
#include "base/task.hpp"
#include "comfy/fence.hpp"
#include "comfy/user_store.hpp"
#include "engine/run/core.hpp"
#include "standalone/hub.hpp"
#include "standalone/kept_files.hpp"
#include "standalone/log_book.hpp"
#include "standalone/queue.hpp"
#include "standalone/server.hpp"
#include "standalone/story.hpp"

namespace comfyd::standalone {

struct Core {
    Core(Executor on, Options with, engine::EngineOptions engine_options);

    const Executor executor;
    const Options options;
    const engine::Folders folders;
    SystemClock clock;
    engine::Core engine;     // any thread
    comfy::UserStore users;  // any thread
    Hub hub;
    LogBook logs;
    Queue queue;
    History history;
    KeptFiles kept_files;
    comfy::Fence fence{};
    Signal wake;  // of the runner: there may be something to do

    struct Run {
        PromptPtr prompt;
        std::stop_source stop;
        std::shared_ptr<Story> story;  // shared with the messages on their way to it
    };
    std::unique_ptr<Run> running;
    bool forget_results = false;  // before the next prompt

    std::atomic<std::int64_t> next_number{0};
    std::uint64_t next_sequence = 0;

    std::size_t remaining() const { return queue.pending().size() + (running ? 1 : 0); }
    void tell_status();
    // Whose folders and cached results a prompt uses. Any thread.
    engine::Owner owner_named(const std::string& name) const;
    // Interrupts what runs; with an id only that. False when it does not run.
    bool interrupt(std::string_view id);
    // Takes it out of the queue or interrupts it.
    bool cancel(std::string_view id);

    Pool pool{4};    // disk, pictures, checking
    Pool worker{1};  // the prompt that runs
};

}  // namespace comfyd::standalone
