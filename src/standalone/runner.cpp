#include "standalone/runner.hpp"

#include <cstdio>
#include <filesystem>
#include <new>
#include <utility>

#include <boost/asio/post.hpp>

#include "base/foreign_text.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"

namespace comfyd::standalone {
namespace {

// How much of a run's pictures and texts may be on its way to the server's thread.
class Valve {
public:
    static constexpr std::size_t kBytesMax = 64 * 1024 * 1024;

    void take(std::size_t bytes) {
        Lock lock(mutex_);
        freed_.wait(lock, [this]() COMFYD_REQUIRES(mutex_) { return taken_ < kBytesMax; });
        taken_ += bytes;
    }
    void give(std::size_t bytes) {
        const Lock lock(mutex_);
        taken_ -= bytes;
        freed_.notify_all();
    }

private:
    Mutex mutex_;
    Condition freed_;
    std::size_t taken_ COMFYD_GUARDED_BY(mutex_) = 0;
};

// Carries what the engine tells, on its threads, to the story on the server's.
class Relay final : public engine::Listener {
public:
    Relay(Executor executor, std::shared_ptr<Story> story)
        : executor_(executor), story_(std::move(story)) {}

    void cached(const std::vector<std::string>& nodes) override {
        tell(kSmall, [nodes](Story& story) { story.cached(nodes); });
    }
    void executing(const std::string& node) override {
        tell(kSmall, [node](Story& story) { story.executing(node); });
    }
    void progress(const std::string& node, double value, double max) override {
        tell(kSmall, [node, value, max](Story& story) { story.progress(node, value, max); });
    }
    void preview(const std::string& node, engine::ImageFormat format, std::string_view bytes)
        override {
        tell(bytes.size(), [node, format, copy = std::string(bytes)](Story& story) mutable {
            story.preview(node, format, std::move(copy));
        });
    }
    void text(const std::string& node, std::string_view text) override {
        tell(text.size() + kSmall, [node, copy = std::string(text)](Story& story) mutable {
            story.text(node, std::move(copy));
        });
    }
    void blocked(const std::string& node, const std::string& message) override {
        tell(kSmall, [node, message](Story& story) { story.blocked(node, message); });
    }
    void added(const std::string& node, const std::string& parent) override {
        tell(kSmall, [node, parent](Story& story) { story.added(node, parent); });
    }
    void finished(const std::string& node) override {
        tell(kSmall, [node](Story& story) { story.finished(node); });
    }
    void executed(const std::string& node, const json::object& ui) override {
        tell(kSmall, [node, ui](Story& story) { story.executed(node, ui); });
    }

private:
    static constexpr std::size_t kSmall = 256;

    template <class Line>
    void tell(std::size_t bytes, Line line) {
        valve_->take(bytes);
        boost::asio::post(
            executor_,
            [story = story_, valve = valve_, bytes, line = std::move(line)]() mutable {
                line(*story);
                valve->give(bytes);
            }
        );
    }

    Executor executor_;
    std::shared_ptr<Story> story_;
    std::shared_ptr<Valve> valve_ = std::make_shared<Valve>();  // shared with what is on its way
};

Result<engine::RunResult> run_engine(
    Core& core, const Prompt& prompt, engine::Listener& listener, const std::stop_token& stop
) {
    const engine::Owner owner = core.owner_named(prompt.owner);
    try {
        return core.engine.run(
            prompt.graph, prompt.extra_data, listener, stop, prompt.outputs, &owner
        );
    } catch (const std::bad_alloc&) {
        return fail(Code::out_of_memory, "the engine ran out of memory");
    } catch (const std::exception& exception) {
        return fail(Code::internal, std::string("the run failed: ") + exception.what());
    }
}

std::string describe_end(const HistoryEntry& entry) {
    const double seconds = static_cast<double>((entry.ended - entry.started).count()) / 1000.0;
    char text[96];
    std::snprintf(
        text,
        sizeof text,
        "Prompt %s after %.2f seconds",
        std::string(comfy::to_string(entry.status)).c_str(),
        seconds
    );
    return text;
}

Task<> forget_old_files(Core& core, const Prompt& prompt, const json::object& outputs) {
    for (std::string& file : files_in(outputs, core.owner_named(prompt.owner).folders)) {
        core.kept_files.add(std::move(file));
    }
    auto old = core.kept_files.take_excess();
    if (!old.empty()) {
        co_await core.pool.run([old = std::move(old)] {
            std::error_code ignored;
            for (const std::string& file : old) {
                std::filesystem::remove(file, ignored);
            }
            return true;
        });
    }
}

Task<> run_one(Core& core, PromptPtr prompt) {
    core.running = std::make_unique<Core::Run>();
    core.running->prompt = prompt;
    const auto story = std::make_shared<Story>(core.hub, core.clock, prompt);
    core.running->story = story;
    const std::stop_token stop = core.running->stop.get_token();
    core.tell_status();
    story->start();
    auto result = co_await core.worker.run([&core, prompt, story, stop] {
        Relay relay(core.executor, story);
        return run_engine(core, *prompt, relay, stop);
    });
    if (!result && result.error().code != Code::cancelled) {
        log::warning(
            "a prompt failed",
            {{"prompt", prompt->id}, {"reason", log::foreign(result.error().message)}}
        );
    }
    const HistoryEntryPtr entry = story->conclude(std::move(result));
    core.history.add(entry);
    core.running.reset();
    core.logs.add(describe_end(*entry));
    core.tell_status();
    story->end();
    if (core.options.behind_gateway) {
        co_await forget_old_files(core, *prompt, entry->outputs);
    }
}

}  // namespace

Task<> run_prompts(Core& core) {
    for (;;) {
        const bool stop = co_await is_cancelled();
        if (stop) {
            co_return;
        }
        if (std::exchange(core.forget_results, false)) {
            co_await core.worker.run([&core] {
                core.engine.free_memory();
                return true;
            });
            continue;
        }
        PromptPtr next = core.queue.take();
        if (next) {
            co_await run_one(core, std::move(next));
            continue;
        }
        const bool woken = co_await core.wake.wait();
        if (!woken) {
            co_return;
        }
    }
}

}  // namespace comfyd::standalone
