#include "bulk/tender.hpp"

#include <algorithm>
#include <utility>

#include "admission/admit.hpp"
#include "base/log.hpp"
#include "base/on_executor.hpp"

namespace comfyd::bulk {
namespace {

using jobs::BulkState;
using jobs::ItemState;

constexpr std::size_t kLanes = 8;  // items that are submitted at once: their commits share an fsync

// It may go well another time, and says nothing of the item.
bool may_pass(Code code) {
    switch (code) {
        case Code::queue_full:
        case Code::storage_full:
        case Code::storage_unavailable:
        case Code::shutting_down:
        case Code::rate_limited:
        case Code::lead_lost:
        case Code::cancelled:
            return true;
        default:
            return false;
    }
}

// When a job's id was made.
Time time_of(const JobId& id) {
    std::int64_t ms = 0;
    for (std::size_t i = 0; i < 6; ++i) {
        ms = ms * 256 + id.uuid.bytes[i];
    }
    return from_unix_ms(ms);
}

}  // namespace

Tender::Tender(TenderTools tools, TenderOptions options, jobs::BulkId id)
    : tools_(std::move(tools)), options_(options), id_(id), changed_(tools_.executor) {}

bool Tender::hear(const jobs::Job& job) {
    const auto index = indexes_.find(job.id);
    if (index == indexes_.end()) {
        return false;
    }
    Flight& flight = flights_.at(index->second);
    flight.outcome = settle_item(flight.item, job);
    wake();
    return true;
}

void Tender::look_at_all() {
    for (auto& [index, flight] : flights_) {
        flight.is_looked_at = false;
    }
    wake();
}

Task<> Tender::run() {
    COMFYD_ON(tools_.executor);
    while (true) {
        is_changed_ = false;
        auto there = co_await read();
        if (there && !*there) {
            co_return;
        }
        Result<bool> more = false;
        if (!there) {
            more = fail(std::move(there.error()));
        } else {
            more = co_await step();
        }
        const bool stop = co_await is_cancelled();
        if (stop) {
            co_return;
        }
        if (!more) {
            log::warning(
                "a batch cannot go on for now", {{"batch", id_}, {"error", more.error().message}}
            );
            co_await sleep_for(options_.wait);
        } else if (!*more && !is_changed_) {
            co_await changed_.wait_for(wait_time());
        }
    }
}

// Until when nothing happens by itself.
Millis Tender::wait_time() const {
    if (!bulk_.news) {
        return options_.wait;
    }
    return std::clamp(bulk_.news->due - tools_.desk.clock.now(), Millis(1), options_.wait);
}

// False: nothing is left to do about it.
Task<Result<bool>> Tender::read() {
    auto found = co_await tools_.store.find_bulk(id_);
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    if (!*found || !(*found)->is_open()) {
        co_return false;
    }
    // Somebody else has changed it, perhaps another who looks after it: what is known of its items
    // may be wrong by now.
    is_taken_up_ = is_taken_up_ && (*found)->revision == bulk_.revision;
    bulk_ = std::move(**found);
    co_return true;
}

Task<Result<>> Tender::read_plan() {
    auto text = co_await tools_.store.find_bulk_plan(id_);
    if (!text) {
        co_return fail(std::move(text.error()));
    }
    auto plan = decode_plan(text->value_or(""));
    if (!plan) {
        co_return fail(std::move(plan.error()));
    }
    plan_ = std::move(*plan);
    co_return Result<>();
}

// Reads which items are under way.
Task<Result<>> Tender::take_up() {
    if (!plan_) {
        auto read = co_await read_plan();
        if (!read) {
            co_return read;
        }
    }
    flights_.clear();
    indexes_.clear();
    jobs::BulkItemQuery query{.bulk = id_, .state = ItemState::running};
    for (bool more = true; more;) {
        auto items = co_await tools_.store.bulk_items(query);
        if (!items) {
            co_return fail(std::move(items.error()));
        }
        more = items->size() == static_cast<std::size_t>(query.limit);
        for (jobs::BulkItem& item : *items) {
            query.after = item.index;
            Flight flight;
            flight.at = Flight::At::uncertain;
            flight.is_looked_at = false;
            flight.item = std::move(item);
            if (flight.item.job) {
                indexes_[*flight.item.job] = flight.item.index;
            }
            flights_[flight.item.index] = std::move(flight);
        }
    }
    looked_at_ = tools_.desk.clock.now();
    is_taken_up_ = true;
    co_return Result<>();
}

Task<Result<bool>> Tender::step() {
    if (bulk_.state == BulkState::loading) {
        auto more = co_await step_loading();
        co_return more;
    }
    if (!is_taken_up_) {
        auto taken = co_await take_up();
        if (!taken) {
            co_return fail(std::move(taken.error()));
        }
    }
    if (has_ended(bulk_.state)) {
        auto more = co_await tell();
        co_return more;
    }
    auto looked = co_await look();
    if (!looked) {
        co_return fail(std::move(looked.error()));
    }
    auto more = co_await advance();
    if (!more) {
        co_return more;
    }
    if (bulk_.state == BulkState::cancelling) {
        co_await stop_all();
    } else if (may_start()) {
        co_await submit_all();
    }
    co_return more;
}

Task<Result<bool>> Tender::step_loading() {
    if (tools_.desk.clock.now() - bulk_.created_at < options_.loading_max) {
        co_return false;
    }
    log::warning("a batch that was never loaded whole is removed", {{"batch", id_}});
    auto removed = co_await tools_.store.remove_bulk(id_);
    if (!removed) {
        co_return fail(std::move(removed.error()));
    }
    co_return true;
}

bool Tender::may_start() const {
    return bulk_.state == BulkState::running && !bulk_.paused;
}

// At jobs of which something may have been missed.
Task<Result<>> Tender::look() {
    const Time now = tools_.desk.clock.now();
    if (now - looked_at_ >= options_.look_again) {
        looked_at_ = now;
        look_at_all();
    }
    for (auto& [index, flight] : flights_) {
        if (flight.is_looked_at || flight.outcome || flight.at == Flight::At::reserved) {
            continue;
        }
        auto looked = co_await look_at(flight);
        if (!looked) {
            co_return looked;
        }
    }
    co_return Result<>();
}

Task<Result<>> Tender::look_at(Flight& flight) {
    flight.is_looked_at = true;
    if (!flight.item.job) {
        fail_item(flight, Error(Code::internal, "the item has lost its job"));
        co_return Result<>();
    }
    auto view = co_await tools_.desk.jobs.get(bulk_.tenant, *flight.item.job);
    if (view) {
        flight.at = Flight::At::submitted;
        if (auto outcome = settle_item(flight.item, view->job)) {
            flight.outcome = std::move(outcome);
        }
        co_return Result<>();
    }
    if (view.error().code != Code::not_found) {
        flight.is_looked_at = false;
        co_return fail(std::move(view.error()));
    }
    if (flight.at == Flight::At::submitted) {
        fail_item(flight, Error(Code::not_found, "the job was removed before its end was noted"));
    } else {
        flight.at = Flight::At::reserved;
    }
    co_return Result<>();
}

void Tender::fail_item(Flight& flight, const Error& error) {
    jobs::BulkItem item = flight.item;
    item.state = ItemState::failed;
    item.failure = jobs::Failure::from(error);
    flight.outcome = std::move(item);
    is_changed_ = true;
}

// Stores what has ended and what begins, in one change.
Task<Result<bool>> Tender::advance() {
    std::vector<jobs::ItemMove> moves;
    for (const auto& [index, flight] : flights_) {
        if (flight.outcome && moves.size() < jobs::kBulkItemsInACommit) {
            moves.push_back({ItemState::running, *flight.outcome});
        } else if (bulk_.paused && flight.at == Flight::At::reserved) {
            // Its turn had come and gone: it waits for the next.
            jobs::BulkItem item = flight.item;
            item.state = ItemState::waiting;
            item.job.reset();
            moves.push_back({ItemState::running, std::move(item)});
        }
    }
    auto added = co_await add_waiting(moves);
    if (!added) {
        co_return fail(std::move(added.error()));
    }
    const bool is_done = bulk_.counts.waiting() == 0 && bulk_.counts.running == 0;
    if (moves.empty() && !is_done) {
        co_return false;
    }
    auto change = move_items(bulk_, std::move(moves), tools_.desk.clock.now());
    if (has_ended(change.bulk.state)) {
        change.bulk.news = news_of(change.bulk, plan_->webhook, tools_.messengers);
    }
    const std::vector<jobs::BulkItem> moved = change.moved;
    auto committed = co_await commit(std::move(change));
    if (!committed) {
        co_return fail(std::move(committed.error()));
    }
    if (!*committed) {
        co_return true;
    }
    for (const jobs::BulkItem& item : moved) {
        if (item.state == ItemState::running) {
            indexes_[*item.job] = item.index;
            flights_[item.index] = Flight{.item = item};
        } else if (const auto flight = flights_.find(item.index); flight != flights_.end()) {
            indexes_.erase(flight->second.item.job.value_or(JobId()));
            flights_.erase(flight);
        }
    }
    co_return true;
}

// Items whose turn it is, or those that will have none any more.
Task<Result<>> Tender::add_waiting(std::vector<jobs::ItemMove>& moves) {
    const bool is_cancelling = bulk_.state == BulkState::cancelling;
    const auto staying =
        std::ranges::count_if(flights_, [](const auto& flight) { return !flight.second.outcome; });
    const int room = is_cancelling ? jobs::kBulkItemsInACommit
                                   : options_.in_flight_max - static_cast<int>(staying);
    if (bulk_.counts.waiting() == 0 || room <= 0 || !(is_cancelling || may_start())) {
        co_return Result<>();
    }
    auto waiting = co_await tools_.store.bulk_items(
        {.bulk = id_, .state = ItemState::waiting, .limit = std::min(room, jobs::kBulkPageMax)}
    );
    if (!waiting) {
        co_return fail(std::move(waiting.error()));
    }
    for (jobs::BulkItem& item : *waiting) {
        if (is_cancelling) {
            item.state = ItemState::cancelled;
        } else {
            item.state = ItemState::running;
            item.job = JobId::make(tools_.desk.clock.now());
        }
        moves.push_back({ItemState::waiting, std::move(item)});
    }
    co_return Result<>();
}

// False: somebody else has changed it meanwhile, and all is decided anew by what he left.
Task<Result<bool>> Tender::commit(jobs::BulkChange change) {
    jobs::Bulk after = change.bulk;
    auto committed = co_await tools_.store.commit_bulk(std::move(change));
    if (committed) {
        bulk_ = std::move(after);
        co_return true;
    }
    if (committed.error().code == Code::conflict || committed.error().code == Code::not_found) {
        co_return false;
    }
    co_return fail(std::move(committed.error()));
}

Task<> Tender::submit_all() {
    std::vector<std::vector<int>> lanes(kLanes);
    std::size_t next = 0;
    for (const auto& [index, flight] : flights_) {
        if (flight.at == Flight::At::reserved && !flight.outcome) {
            lanes[next++ % kLanes].push_back(index);
        }
    }
    if (next == 0) {
        co_return;
    }
    TaskGroup group(tools_.executor);
    for (std::vector<int>& lane : lanes) {
        if (!lane.empty()) {
            group.spawn("batch items", submit_lane(std::move(lane)));
        }
    }
    co_await group.join();
}

Task<> Tender::submit_lane(std::vector<int> indexes) {
    for (const int index : indexes) {
        if (is_stopping_) {
            co_return;
        }
        co_await submit(flights_.at(index));
    }
}

// What may pass leaves the item as it is: its turn comes again.
Task<> Tender::submit(Flight& flight) {
    auto submission = make_submission(*plan_, id_, flight.item);
    if (!submission) {
        fail_item(flight, submission.error());
        co_return;
    }
    auto admitted = co_await admission::admit(tools_.desk, std::move(*submission));
    if (!admitted) {
        const admission::Refusal& refusal = admitted.error();
        const bool is_patient =
            refusal.why == admission::Refusal::Why::no_worker &&
            tools_.desk.clock.now() - time_of(*flight.item.job) < options_.worker_patience;
        if (!is_patient && !may_pass(refusal.error.code)) {
            fail_item(flight, refusal.error);
        }
        co_return;
    }
    flight.at = Flight::At::uncertain;
    flight.is_looked_at = false;
    auto submitted = co_await tools_.desk.jobs.submit(std::move(admitted->spec));
    if (submitted) {
        flight.at = Flight::At::submitted;
        flight.is_looked_at = true;
        if (tools_.submitted) {
            tools_.submitted(plan_->spec.dialect);
        }
        if (auto outcome = settle_item(flight.item, submitted->view.job)) {
            flight.outcome = std::move(outcome);
            is_changed_ = true;
        }
        co_return;
    }
    // Of a conflict: the id is there, so it was submitted before.
    const Code code = submitted.error().code;
    if (code != Code::conflict && !may_pass(code)) {
        fail_item(flight, submitted.error());
    }
}

Task<> Tender::stop_all() {
    for (auto& [index, flight] : flights_) {
        if (flight.is_stopping || flight.outcome) {
            continue;
        }
        if (flight.at == Flight::At::reserved) {
            jobs::BulkItem item = flight.item;
            item.state = ItemState::cancelled;
            flight.outcome = std::move(item);
            is_changed_ = true;
            continue;
        }
        auto cancelled = co_await tools_.desk.jobs.cancel(bulk_.tenant, *flight.item.job);
        flight.is_stopping = cancelled.has_value();
        if (cancelled) {
            if (auto outcome = settle_item(flight.item, cancelled->job)) {
                flight.outcome = std::move(outcome);
                is_changed_ = true;
            }
        }
    }
}

Task<Result<bool>> Tender::tell() {
    const Time now = tools_.desk.clock.now();
    if (!bulk_.news || bulk_.news->due > now) {
        co_return false;
    }
    auto left = co_await tell_end(
        tools_.store, tools_.messengers, options_.telling, bulk_, plan_->webhook, now
    );
    if (!left && left.error().code == Code::cancelled) {
        co_return false;
    }
    if (!left) {
        co_return fail(std::move(left.error()));
    }
    auto noted = co_await commit(note_news(bulk_, std::move(*left)));
    co_return noted;
}

}  // namespace comfyd::bulk
