#include "bulk/keeper.hpp"

#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/post.hpp>

#include "base/log.hpp"
#include "base/on_executor.hpp"

namespace comfyd::bulk {
namespace {

constexpr Millis kListenPatience{5'000};
constexpr Millis kSweepEvery{60'000};
constexpr int kSweptAtOnce = 16;

}  // namespace

Keeper::Keeper(TenderTools tools, KeeperOptions options)
    : tools_(std::move(tools)),
      options_(std::move(options)),
      woken_(std::make_shared<Signal>(tools_.executor)) {}

Keeper::~Keeper() = default;

void Keeper::start() {
    COMFYD_ON(tools_.executor);
    main_ = std::make_unique<TaskGroup>(tools_.executor);
    work_ = std::make_unique<TaskGroup>(tools_.executor);
    main_->spawn("batches", keep());
}

Task<> Keeper::stop() {
    COMFYD_ON(tools_.executor);
    if (!main_) {
        co_return;
    }
    main_->cancel();
    co_await main_->join();
    co_await hand_over();
    main_.reset();
    work_.reset();
}

void Keeper::wake(jobs::BulkId id) {
    boost::asio::post(tools_.executor, [this, woken = std::weak_ptr(woken_), id] {
        const auto signal = woken.lock();
        if (!signal) {
            return;
        }
        const auto tender = tenders_.find(id);
        if (tender != tenders_.end()) {
            tender->second->wake();
        } else {
            is_woken_ = true;
            signal->notify();
        }
    });
}

Task<> Keeper::keep() {
    while (true) {
        is_woken_ = false;
        const bool is_ours = !options_.is_ours || options_.is_ours();
        if (is_ours) {
            auto looked = co_await look();
            if (!looked) {
                log::warning("cannot read the batches", {{"error", looked.error().message}});
            }
        } else if (!tenders_.empty()) {
            co_await hand_over();
        }
        const bool stop = co_await is_cancelled();
        if (stop) {
            co_return;
        }
        if (!is_woken_) {
            co_await woken_->wait_for(options_.look_every);
        }
    }
}

// Another node goes on, or nobody for now.
Task<> Keeper::hand_over() {
    for (const auto& [id, tender] : tenders_) {
        tender->stop();
    }
    work_->cancel();
    co_await work_->join();
    work_ = std::make_unique<TaskGroup>(tools_.executor);
    tenders_.clear();
    is_listening_ = false;
}

Task<Result<>> Keeper::look() {
    auto open = co_await tools_.store.open_bulks(options_.bulks_max);
    if (!open) {
        co_return fail(std::move(open.error()));
    }
    std::vector<std::shared_ptr<Tender>> added;
    for (const jobs::Bulk& bulk : *open) {
        if (!tenders_.contains(bulk.id)) {
            added.push_back(std::make_shared<Tender>(tools_, options_.tender, bulk.id));
            tenders_[bulk.id] = added.back();
        }
    }
    // Before they begin, so that they miss nothing.
    if (!tenders_.empty() && !std::exchange(is_listening_, true)) {
        work_->spawn("batch jobs", listen(tools_.desk.jobs.subscribe(tools_.executor, {})));
    }
    for (std::shared_ptr<Tender>& tender : added) {
        work_->spawn("batch", tend(std::move(tender)));
    }
    const Time now = tools_.desk.clock.now();
    if (now - swept_at_ < kSweepEvery) {
        co_return Result<>();
    }
    swept_at_ = now;
    auto swept = co_await sweep();
    co_return swept;
}

Task<Result<>> Keeper::sweep() {
    auto old = co_await tools_.store.ended_bulks(
        tools_.desk.clock.now() - options_.kept_for, kSweptAtOnce
    );
    if (!old) {
        co_return fail(std::move(old.error()));
    }
    for (const jobs::BulkId& id : *old) {
        auto removed = co_await tools_.store.remove_bulk(id);
        if (!removed) {
            co_return removed;
        }
    }
    if (old->size() == static_cast<std::size_t>(kSweptAtOnce)) {
        swept_at_ = Time();  // there may be more
    }
    co_return Result<>();
}

Task<> Keeper::tend(std::shared_ptr<Tender> tender) {
    co_await tender->run();
    const auto found = tenders_.find(tender->id());
    if (found != tenders_.end() && found->second == tender) {
        tenders_.erase(found);
    }
}

// Hands on the ends of jobs, while there is anybody who waits for one.
Task<> Keeper::listen(std::shared_ptr<events::Feed> feed) {
    while (!tenders_.empty()) {
        auto told = co_await feed->next(kListenPatience);
        if (!told && told.error().code != Code::request_timeout) {
            break;
        }
        if (!told) {
            continue;
        }
        for (const auto& [id, tender] : tenders_) {
            if (told->has_gap) {
                tender->look_at_all();
            }
        }
        for (const events::Notice& notice : told->notices) {
            const auto* changed = std::get_if<events::Changed>(&notice);
            if (changed == nullptr || !jobs::is_terminal(changed->job->state)) {
                continue;
            }
            for (const auto& [id, tender] : tenders_) {
                if (tender->hear(*changed->job)) {
                    break;
                }
            }
        }
    }
    is_listening_ = false;
}

}  // namespace comfyd::bulk
