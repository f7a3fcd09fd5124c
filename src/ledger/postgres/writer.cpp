#include "ledger/postgres/writer.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include <boost/asio/post.hpp>

#include "base/log.hpp"
#include "ledger/postgres/schema.hpp"
#include "ledger/postgres/settings.hpp"

namespace comfyd::ledger::postgres {
namespace {

constexpr Millis kShortestPause{50};
constexpr Millis kLongestPause{1'000};
constexpr char kDivisionByZero[] = "22012";  // what a fence fails with
constexpr int kTriesMax = 10;

Error lead_lost(const jobs::Term& term) {
    return Error(
        Code::lead_lost,
        "this node no longer leads '" + term.domain + "' (epoch " + std::to_string(term.epoch) +
            "): another one goes on with its jobs"
    );
}

Error shutting_down() {
    return Error(Code::shutting_down, "comfyd is stopping; send the request again later");
}

// What a failure means for those who were in the transaction, when it was not the connection.
Error meaning_of(const Failure& failure, const std::optional<jobs::Term>& term) {
    return term && failure.state == kDivisionByZero ? lead_lost(*term) : failure.to_error();
}

}  // namespace

Writer::Writer(
    Executor executor, std::string conninfo, const PostgresLedger::Options& options, Clock& clock
)
    : executor_(executor),
      conninfo_(std::move(conninfo)),
      options_(options),
      clock_(clock),
      wake_(executor) {}

void Writer::enqueue(std::unique_ptr<Operation> operation, Urgency urgency) {
    std::optional<Error> refusal;
    {
        const Lock lock(mutex_);
        const std::size_t bytes = operation->bytes();
        if (is_stopping_) {
            refusal = shutting_down();
        } else if (bytes > kOperationBytesMax) {
            refusal = Error(
                Code::payload_too_large,
                "a record of " + std::to_string(bytes) +
                    " bytes is too large to store; the limit is " +
                    std::to_string(kOperationBytesMax)
            );
        } else if (urgency == Urgency::now_or_refused && queue_bytes_ > 0 &&
                   queue_bytes_ + bytes > options_.queue_bytes_max) {
            refusal =
                Error(Code::queue_full, "too many jobs wait to be stored; try again in a second");
        } else {
            if (urgency == Urgency::behind) {
                behind_.push_back(std::move(operation));
            } else {
                queue_bytes_ += bytes;
                queue_.push_back(std::move(operation));
            }
            if (is_waiting_) {
                is_waiting_ = false;
                boost::asio::post(executor_, [this] { wake_.notify(); });
            }
        }
    }
    if (refusal) {
        operation->set_failed(*refusal);
        Operations refused;
        refused.push_back(std::move(operation));
        resume_all(std::move(refused));
    }
}

void Writer::stop() {
    const Lock lock(mutex_);
    is_stopping_ = true;
    boost::asio::post(executor_, [this] { wake_.notify(); });
}

bool Writer::is_stopping() const {
    const Lock lock(mutex_);
    return is_stopping_;
}

// Either writes, or one procedure, or nothing.
Writer::Operations Writer::take() {
    const Lock lock(mutex_);
    Operations taken;
    if (!behind_.empty() && (queue_.empty() || ++batches_before_behind_ > kBatchesBeforeBehind)) {
        batches_before_behind_ = 0;
        taken.push_back(std::move(behind_.front()));
        behind_.pop_front();
        return taken;
    }
    std::size_t bytes = 0;
    while (!queue_.empty() && taken.size() < kBatchOperationsMax && bytes < kBatchBytesMax) {
        const bool is_write = queue_.front()->write() != nullptr;
        if (!is_write && !taken.empty()) {
            break;
        }
        bytes += queue_.front()->bytes();
        taken.push_back(std::move(queue_.front()));
        queue_.pop_front();
        if (!is_write) {
            break;
        }
    }
    queue_bytes_ -= bytes;
    if (taken.empty()) {
        is_waiting_ = true;
    }
    return taken;
}

Task<> Writer::run() {
    while (true) {
        auto taken = take();
        if (!taken.empty()) {
            co_await carry_out(std::move(taken));
        } else if (is_stopping()) {
            break;
        } else {
            co_await wait();
        }
    }
    connection_.reset();
}

// While the latest write failed, or the connection is gone, it is made anew.
Task<> Writer::wait() {
    const bool is_sound = healthy().has_value() && connection_ && !connection_->is_broken();
    if (is_sound) {
        co_await wake_.wait();
        co_return;
    }
    const bool is_woken = co_await wake_.wait_for(options_.probe_interval);
    if (!is_woken) {
        const bool is_connected = co_await connect();
        if (is_connected) {
            note_outcome(std::nullopt);
        }
    }
}

Task<bool> Writer::connect() {
    if (connection_ && !connection_->is_broken()) {
        co_return true;
    }
    if (connection_) {
        tell_session_lost();
    }
    connection_.reset();
    auto opened = co_await open_writing(
        executor_, conninfo_, {options_.connect_timeout, options_.answer_timeout}
    );
    if (!opened) {
        note_outcome(opened.error());
        co_return false;
    }
    connection_ = std::move(opened->connection);
    slot_ = opened->slot;
    co_return true;
}

Task<> Writer::carry_out(Operations operations) {
    Millis pause = kShortestPause;
    while (!operations.empty()) {
        const bool is_connected = co_await connect();
        if (is_connected) {
            operations = co_await attempt(std::move(operations));
            if (std::exchange(was_held_up_, false)) {
                co_await connection_->run({end_half_sent()});
                expire(operations);
            }
        } else {
            expire(operations);
            if (!operations.empty()) {
                co_await wake_.wait_for(pause);
                pause = std::min(pause * 2, kLongestPause);
            }
        }
    }
}

// Those whose time is over, here and in the queue; all of them when comfyd is stopping.
void Writer::expire(Operations& operations) {
    const bool is_last = is_stopping();
    const auto latest = std::chrono::steady_clock::now() - options_.patience;
    const auto is_due = [&](const std::unique_ptr<Operation>& operation) {
        return is_last || operation->made_at() <= latest;
    };
    Operations due;
    const auto move_due = [&](auto& from) {
        for (auto& operation : from) {
            if (is_due(operation)) {
                due.push_back(std::move(operation));
            }
        }
        std::erase(from, nullptr);
    };
    Error why(Code::storage_unavailable, "PostgreSQL cannot be reached");
    move_due(operations);
    {
        const Lock lock(mutex_);
        why = is_last ? shutting_down() : failure_.value_or(why);
        move_due(queue_);
        move_due(behind_);
        queue_bytes_ = 0;
        for (const auto& operation : queue_) {
            queue_bytes_ += operation->bytes();
        }
    }
    for (const auto& operation : due) {
        operation->set_failed(why);
    }
    resume_all(std::move(due));
}

// Those that are to be tried again.
Task<Writer::Operations> Writer::attempt(Operations operations) {
    if (operations.front()->procedure() != nullptr) {
        return attempt_procedure(std::move(operations.front()));
    }
    return attempt_writes(std::move(operations));
}

Circumstances Writer::circumstances(const Operation& of) {
    return {clock_.now(), slot_, of.term(), of.is_lost, &names_};
}

Task<Writer::Operations> Writer::attempt_writes(Operations operations) {
    // A transaction for each term, and one for those without.
    struct Group {
        std::unique_ptr<Batch> batch;
        std::vector<Operation*> members;
        std::shared_ptr<Connection::Flight> flight;
    };
    std::vector<Group> groups;
    for (const auto& operation : operations) {
        auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& one) {
            return one.batch->at.term == operation->term();
        });
        if (group == groups.end()) {
            groups.push_back({std::make_unique<Batch>(circumstances(*operation)), {}, {}});
            group = groups.end() - 1;
        }
        if (operation->write()->join(*group->batch)) {
            group->members.push_back(operation.get());
        }
    }
    for (Group& group : groups) {
        group.flight = connection_->send(group.batch->statements());
    }
    std::vector<Operation*> alone;
    for (Group& group : groups) {
        auto answers = co_await connection_->receive(group.flight);
        if (!answers) {
            auto refused = hear_failure(answers.error(), group.members);
            alone.insert(alone.end(), refused.begin(), refused.end());
            continue;
        }
        note_outcome(std::nullopt);
        group.batch->read(std::move(*answers));
        for (Operation* member : group.members) {
            member->write()->conclude(*group.batch);
        }
        co_await ask_undecided(group.members);
    }
    settle(operations);
    for (auto& operation : operations) {
        if (std::find(alone.begin(), alone.end(), operation.get()) != alone.end()) {
            Operations one;
            one.push_back(std::move(operation));
            one = co_await attempt_writes(std::move(one));
            if (!one.empty()) {
                operation = std::move(one.front());
            }
        }
    }
    std::erase(operations, nullptr);
    co_return operations;
}

// Of a transaction that was refused: those that are to have one of their own.
std::vector<Operation*> Writer::hear_failure(
    const Failure& failure, const std::vector<Operation*>& members
) {
    if (failure.is_broken) {
        for (Operation* member : members) {
            member->is_lost = true;
        }
        return {};
    }
    if (failure.may_pass()) {
        return {};
    }
    if (failure.was_held_up()) {
        was_held_up_ = true;
        note_outcome(failure.to_error());
        return {};
    }
    const Error error = meaning_of(failure, members.front()->term());
    if (members.size() > 1 && error.code != Code::lead_lost) {
        return members;
    }
    for (Operation* member : members) {
        member->set_failed(error);
    }
    if (error.code != Code::lead_lost) {
        note_outcome(error);
    }
    return {};
}

// What was not done says why.
Task<> Writer::ask_undecided(std::vector<Operation*> members) {
    std::erase_if(members, [](const Operation* member) { return member->is_decided(); });
    Statements questions;
    std::vector<std::size_t> counts;
    for (Operation* member : members) {
        auto asked = member->write()->question(circumstances(*member));
        counts.push_back(asked.size());
        std::move(asked.begin(), asked.end(), std::back_inserter(questions));
    }
    if (questions.empty()) {
        co_return;
    }
    auto answers = co_await connection_->run(std::move(questions));
    if (!answers) {
        co_return;  // they are tried again, and ask again
    }
    auto next = answers->begin();
    for (std::size_t i = 0; i < members.size(); ++i) {
        const auto end = next + static_cast<std::ptrdiff_t>(counts[i]);
        members[i]->write()->hear(circumstances(*members[i]), std::vector<Rows>(next, end));
        next = end;
        if (!members[i]->is_decided() && ++members[i]->tries > kTriesMax) {
            members[i]->set_failed(Error(Code::internal, "a write was refused without a reason"));
        }
    }
}

Task<Writer::Operations> Writer::attempt_procedure(std::unique_ptr<Operation> operation) {
    Transaction transaction(*connection_, circumstances(*operation));
    auto done = co_await operation->procedure()->run(transaction);
    co_await transaction.roll_back();
    if (done) {
        note_outcome(std::nullopt);
    } else {
        hear_failure(done.error(), {operation.get()});
    }
    Operations operations;
    operations.push_back(std::move(operation));
    settle(operations);
    co_return operations;
}

// Completes those that are decided; the others stay.
void Writer::settle(Operations& operations) {
    Operations decided;
    for (auto& operation : operations) {
        if (operation->is_decided()) {
            decided.push_back(std::move(operation));
        }
    }
    std::erase(operations, nullptr);
    if (decided.empty()) {
        return;
    }
    {
        const auto now = std::chrono::steady_clock::now();
        const Lock lock(mutex_);
        stats_.batches += 1;
        stats_.commits += decided.size();
        stats_.last_batch_size = decided.size();
        for (const auto& operation : decided) {
            stats_.latency.add(now - operation->made_at());
        }
    }
    resume_all(std::move(decided));
}

void Writer::note_outcome(const std::optional<Error>& failure) {
    bool is_new_failure = false;
    bool is_recovered = false;
    {
        const Lock lock(mutex_);
        if (failure) {
            is_new_failure = !failure_ || failure_->code != failure->code;
            stats_.failed_batches += 1;
        } else {
            is_recovered = failure_.has_value();
        }
        failure_ = failure;
    }
    if (is_new_failure) {
        log::error(
            "the ledger cannot write",
            {{"code", to_string(failure->code)}, {"error", failure->message}}
        );
    } else if (is_recovered) {
        log::info("the ledger can write again");
    }
}

void Writer::on_session_lost(std::function<void()> call) {
    const Lock lock(mutex_);
    session_lost_ = std::move(call);
}

// With the lock: whoever takes the call back has it called no more when that returns.
void Writer::tell_session_lost() {
    const Lock lock(mutex_);
    if (session_lost_) {
        session_lost_();
    }
}

StorageStats Writer::stats() const {
    const Lock lock(mutex_);
    StorageStats stats = stats_;
    stats.queue_depth = queue_.size();
    return stats;
}

Result<> Writer::healthy() const {
    const Lock lock(mutex_);
    if (failure_) {
        return fail(*failure_);
    }
    return {};
}

}  // namespace comfyd::ledger::postgres
