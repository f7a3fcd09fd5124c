// Brings what an attempt tells from the executor of its machine to the core, where its listener is.
// What is told while the core has not come round yet goes along with the first: one post for all.
//
// Called on the machine's executor. All of it has reached the listener before anything that is
// posted to the core after it, above all the attempt's own result.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/mutex.hpp"
#include "jobs/fleet.hpp"

namespace comfyd::fleet {

class AttemptRelay final : public jobs::AttemptListener,
                           public std::enable_shared_from_this<AttemptRelay> {
public:
    // Made on the core, by a shared pointer.
    AttemptRelay(Executor core, jobs::AttemptListener& listener);

    void on_progress(const jobs::Progress& progress) override { tell(progress); }
    void on_preview(std::string bytes, std::string content_type) override {
        tell(Preview{std::move(bytes), std::move(content_type)});
    }
    void on_output(const jobs::Output& output) override { tell(output); }
    void on_usage(const jobs::Usage& usage) override { tell(usage); }
    void on_kept(jobs::AttemptResult result) override { tell(std::move(result)); }
    // Both as they were when the core last took what there was.
    bool wants_progress() const override { return wants_progress_.load(std::memory_order_relaxed); }
    bool wants_worker_messages() const override {
        return wants_worker_messages_.load(std::memory_order_relaxed);
    }
    void on_worker_message(jobs::WorkerMessage said) override { tell(std::move(said)); }

private:
    struct Preview {
        std::string bytes;
        std::string content_type;
    };
    using Word = std::variant<
        jobs::Progress,
        Preview,
        jobs::Output,
        jobs::Usage,
        jobs::AttemptResult,
        jobs::WorkerMessage>;

    void tell(Word word);
    void pass_on();
    void hear(jobs::Progress& progress) { listener_.on_progress(progress); }
    void hear(Preview& preview) {
        listener_.on_preview(std::move(preview.bytes), std::move(preview.content_type));
    }
    void hear(jobs::Output& output) { listener_.on_output(output); }
    void hear(jobs::Usage& usage) { listener_.on_usage(usage); }
    void hear(jobs::AttemptResult& kept) { listener_.on_kept(std::move(kept)); }
    void hear(jobs::WorkerMessage& said) { listener_.on_worker_message(std::move(said)); }

    Executor core_;
    jobs::AttemptListener& listener_;
    std::atomic<bool> wants_progress_;
    std::atomic<bool> wants_worker_messages_;
    Mutex mutex_;
    std::vector<Word> words_ COMFYD_GUARDED_BY(mutex_);  // not empty: a post is under way
};

}  // namespace comfyd::fleet
