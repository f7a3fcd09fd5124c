#include <algorithm>
#include <utility>

#include "base/deadline.hpp"
#include "base/log.hpp"
#include "fleet/comfy_attempt.hpp"

namespace comfyd::fleet {
namespace {

constexpr std::size_t kPieceBytes = 512 * 1024;  // that go to the disk at once

// A name or a type that the store refuses was chosen by the worker, not by whoever sent the job.
Error as_workers_fault(Error error, const UiItem& item) {
    if (error.code != Code::invalid_argument) {
        return error;
    }
    return Error(
        Code::output_unavailable,
        "the worker describes an output of node " + item.node_id +
            " in a way that cannot be stored: " + error.message
    );
}

}  // namespace

Task<Result<>> confirm_same_process(
    ComfyLink& link, std::string prompt_id, std::uint64_t told_over
) {
    if (link.socket != 0 && link.socket == told_over) {
        co_return Result<>();  // a process that ends takes its sockets with it
    }
    auto queue = co_await link.client.queue();
    if (!queue) {
        co_return fail(std::move(queue.error()));
    }
    if (queue->contains(prompt_id)) {
        co_return Result<>();
    }
    auto entry = co_await link.client.history(std::move(prompt_id));
    if (!entry) {
        co_return fail(std::move(entry.error()));
    }
    if (!entry->has_value()) {
        co_return fail(
            Code::worker_lost,
            "the worker has restarted since the run: what it has now may be another run's"
        );
    }
    co_return Result<>();
}

Task<Result<jobs::AttemptResult>> ComfyAttempt::collect() {
    jobs::AttemptResult result;
    std::vector<UiItem> items = list_results(entry_->outputs);
    result.ui_outputs = std::move(entry_->outputs);
    workflow::hide_private_folders(result.ui_outputs);
    std::move(sent_pictures_.begin(), sent_pictures_.end(), std::back_inserter(items));
    std::erase_if(items, [this](const UiItem& item) { return !owner_of(item.node_id); });
    if (items.empty()) {
        co_return result;
    }
    std::vector<std::optional<jobs::Output>> outputs(items.size());
    if (items.size() == 1) {
        co_await collect_some(items, outputs);
    } else {
        TaskGroup downloads(link_.executor);
        const auto count = std::min(items.size(), static_cast<std::size_t>(options_.downloads_max));
        for (std::size_t i = 0; i < count; ++i) {
            // Both vectors live in this frame until every task has ended.
            downloads.spawn("download", collect_some(items, outputs));
        }
        co_await downloads.join_or_cancel();
    }
    if (collect_failure_) {
        co_return fail(std::move(*collect_failure_));
    }
    for (auto& output : outputs) {
        if (!output) {
            co_return fail(Code::cancelled, "the run was stopped");
        }
        result.outputs.push_back(std::move(*output));
    }
    co_return result;
}

Task<> ComfyAttempt::collect_some(
    const std::vector<UiItem>& items, std::vector<std::optional<jobs::Output>>& outputs
) {
    while (!collect_failure_ && next_item_ < items.size()) {
        const std::size_t index = next_item_++;
        auto output = co_await fetch(items[index]);
        if (!output) {
            collect_failure_ = std::move(output.error());
            co_return;
        }
        listener_.on_output(*output);
        outputs[index] = std::move(*output);
    }
}

Task<> ComfyAttempt::keep_finished() {
    if (owner_of_ || !sent_) {
        co_return;  // those that share a run run again, each alone
    }
    if (!entry_ && !blockage_) {
        auto looked = co_await look_in_history();
        if (!looked) {
            co_return;
        }
    }
    const Deadline patience = Deadline::in(options_.cancel_grace);
    jobs::AttemptResult kept;
    std::vector<UiItem> items = entry_ ? list_results(entry_->outputs) : made_;
    std::ranges::copy(sent_pictures_, std::back_inserter(items));
    for (const UiItem& item : items) {
        auto output = co_await fetch_once(item);
        const bool stop = co_await is_cancelled();
        if (output) {
            listener_.on_output(*output);
            kept.outputs.push_back(std::move(*output));
        } else {
            log::info(
                "an output of a failed run is not to be had",
                {{"job", assignment_.job}, {"error", output.error().message}}
            );
        }
        const bool is_gone = !output && output.error().code == Code::worker_lost;
        if (stop || is_gone || patience.has_passed()) {
            break;
        }
    }
    if (entry_) {
        kept.ui_outputs = entry_->outputs;
        workflow::hide_private_folders(kept.ui_outputs);
    }
    listener_.on_kept(std::move(kept));
}

Task<Result<jobs::Output>> ComfyAttempt::fetch(const UiItem& item) {
    constexpr Millis kPauseMax = std::chrono::minutes(1);
    const Deadline patience = Deadline::in(options_.store_patience);
    for (Millis pause = options_.store_retry;; pause = std::min(2 * pause, kPauseMax)) {
        auto output = co_await fetch_once(item);
        const bool is_ours = !output && (output.error().code == Code::storage_full ||
                                         output.error().code == Code::storage_unavailable);
        if (!is_ours || patience.has_passed()) {
            co_return output;
        }
        log::warning(
            "an output waits on its worker until it can be stored",
            {{"job", assignment_.job},
             {"worker", link_.worker_id},
             {"error", output.error().message}}
        );
        const bool waited = co_await sleep_for(pause);
        if (!waited) {
            co_return fail(Code::cancelled, "the run was stopped");
        }
    }
}

Task<Result<jobs::Output>> ComfyAttempt::fetch_once(const UiItem& item) {
    if (!item.content) {
        auto output = co_await fetch_file(item);
        co_return output;
    }
    auto asset = new_asset(item, content_type_for("", item.file.filename));
    auto added = co_await link_.store.add(*item.content, std::move(asset));
    if (!added) {
        co_return fail(std::move(added.error()));
    }
    co_return make_output(item, added->asset);
}

Task<Result<jobs::Output>> ComfyAttempt::fetch_file(const UiItem& item) {
    Millis pause = options_.download_retry;
    for (int tried = 1;; ++tried) {
        auto writer = link_.store.write();
        if (!writer) {
            co_return fail(std::move(writer.error()));
        }
        // Both live in this frame until view() is done with them.
        assets::BlobWriter& into = **writer;
        std::string received;
        auto type = co_await link_.client.view(
            on_worker(item.file),
            [&received](std::string_view piece) -> Result<> {
                received += piece;
                return {};
            },
            [this, &into, &received] { return put_away(into, received, kPieceBytes); }
        );
        if (type) {
            auto rest = co_await put_away(into, received, 0);
            if (!rest) {
                type = fail(std::move(rest.error()));
            }
        }
        if (type) {
            auto confirmed = co_await confirm_same_process(link_, prompt_id_, told_over_);
            if (!confirmed) {
                type = fail(std::move(confirmed.error()));
            }
        }
        if (type) {
            auto asset = new_asset(item, content_type_for(*type, item.file.filename));
            auto added = co_await link_.store.finish(std::move(*writer), std::move(asset));
            if (!added) {
                co_return fail(as_workers_fault(std::move(added.error()), item));
            }
            co_return make_output(item, added->asset);
        }
        const Code code = type.error().code;
        const std::string what =
            "output " + shown_name(item.file).path() + " of node " + item.node_id + ": ";
        const bool may_pass = code == Code::not_found || code == Code::connection_failed ||
                              code == Code::request_timeout || code == Code::upstream_error ||
                              code == Code::protocol_error;
        if (!may_pass && code != Code::payload_too_large) {
            co_return fail(std::move(type.error()));
        }
        if (!may_pass || tried >= options_.download_tries) {
            const bool unreachable =
                code == Code::connection_failed || code == Code::request_timeout;
            co_return fail(
                unreachable ? Code::worker_lost : Code::output_unavailable,
                what + workflow::without_private_folders(type.error().message)
            );
        }
        const bool waited = co_await sleep_for(pause);
        if (!waited) {
            co_return fail(Code::cancelled, "the run was stopped");
        }
        pause *= 2;
    }
}

Task<Result<>> ComfyAttempt::put_away(
    assets::BlobWriter& writer, std::string& received, std::size_t bytes
) {
    if (received.size() < bytes) {
        co_return Result<>();
    }
    auto appended = co_await link_.store.append(writer, std::exchange(received, {}));
    co_return appended;
}

assets::NewAsset ComfyAttempt::new_asset(const UiItem& item, std::string content_type) const {
    const auto owner = owner_of(item.node_id);  // may have gone since
    assets::NewAsset asset;
    asset.tenant = owner ? owner->tenant : assignment_.tenant;
    asset.content_type = std::move(content_type);
    asset.file_path = shown_name(item.file).filename;
    asset.job = owner ? owner->job : assignment_.job;
    return asset;
}

}  // namespace comfyd::fleet
