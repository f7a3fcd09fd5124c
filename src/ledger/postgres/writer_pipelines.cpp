// How a writer sends operations and hears what became of them.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <utility>

#include "ledger/postgres/writer.hpp"

namespace comfyd::ledger::postgres {
namespace {

constexpr char kDivisionByZero[] = "22012";  // what a fence fails with
constexpr int kTriesMax = 10;

Error lead_lost(const jobs::Term& term) {
    return Error(
        Code::lead_lost,
        "this node no longer leads '" + term.domain + "' (epoch " + std::to_string(term.epoch) +
            "): another one goes on with its jobs"
    );
}

// What a failure means for those who were in the transaction, when it was not the connection.
Error meaning_of(const Failure& failure, const std::optional<jobs::Term>& term) {
    return term && failure.state == kDivisionByZero ? lead_lost(*term) : failure.to_error();
}

}  // namespace

struct Writer::Pipeline {
    struct Group {
        std::unique_ptr<Batch> batch;
        std::vector<Operation*> members;
        std::shared_ptr<Connection::Flight> flight;
    };
    explicit Pipeline(Operations of) : operations(std::move(of)), size(operations.size()) {}

    Operations operations;  // after hearing: those that are to be tried again
    const std::size_t size;
    std::vector<Group> groups;
    bool is_heard = false;
};

std::size_t Writer::enough_to_take() const {
    if (sent_.empty()) {
        return 1;
    }
    return sent_.size() < kPipelinesMax ? std::max(sent_.back()->size, kWorthSendingAhead)
                                        : std::numeric_limits<std::size_t>::max();
}

bool Writer::may_send_ahead(const Operations& operations) const {
    return !operations.empty() && operations.front()->write() != nullptr && connection_ &&
           !connection_->is_broken();
}

void Writer::send_ahead(Operations operations) {
    sent_.push_back(send(std::move(operations)));
    hearing_.spawn("ledger answers", hear(sent_.back()));
}

void Writer::collect_heard() {
    while (!sent_.empty() && sent_.front()->is_heard) {
        auto& left = sent_.front()->operations;
        std::move(left.begin(), left.end(), std::back_inserter(undone_));
        sent_.pop_front();
    }
}

Task<> Writer::hear_all() {
    collect_heard();
    while (!sent_.empty()) {
        co_await wake_.wait();
        collect_heard();
    }
}

// Those that are to be tried again. Whoever is to have a transaction of its own is sent alone.
Task<Writer::Operations> Writer::attempt(Operations operations) {
    if (operations.front()->procedure() != nullptr) {
        auto left = co_await attempt_procedure(std::move(operations.front()));
        co_return left;
    }
    const auto next =
        operations.front()->is_alone
            ? operations.begin() + 1
            : std::find_if(operations.begin(), operations.end(), [](const auto& operation) {
                  return operation->is_alone;
              });
    Operations later(std::make_move_iterator(next), std::make_move_iterator(operations.end()));
    operations.erase(next, operations.end());
    const auto pipeline = send(std::move(operations));
    co_await hear(pipeline);
    Operations left = std::move(pipeline->operations);
    std::move(later.begin(), later.end(), std::back_inserter(left));
    co_return left;
}

Circumstances Writer::circumstances(const Operation& of) {
    return {clock_.now(), slot_, of.term(), of.is_lost, &names_};
}

std::shared_ptr<Writer::Pipeline> Writer::send(Operations operations) {
    const auto pipeline = std::make_shared<Pipeline>(std::move(operations));
    auto& groups = pipeline->groups;
    std::vector<const Batch*> before;
    for (const auto& sent : sent_) {
        for (const auto& group : sent->groups) {
            before.push_back(group.batch.get());
        }
    }
    for (const auto& operation : pipeline->operations) {
        auto group = std::find_if(groups.begin(), groups.end(), [&](const Pipeline::Group& one) {
            return one.batch->at.term == operation->term();
        });
        if (group == groups.end()) {
            groups.push_back({std::make_unique<Batch>(circumstances(*operation), before), {}, {}});
            group = groups.end() - 1;
        }
        if (operation->write()->join(*group->batch)) {
            group->members.push_back(operation.get());
        }
    }
    std::erase_if(groups, [](const auto& group) { return group.members.empty(); });
    for (auto& group : groups) {
        group.flight = connection_->send(group.batch->statements());
    }
    return pipeline;
}

Task<> Writer::hear(std::shared_ptr<Pipeline> pipeline) {
    for (auto& group : pipeline->groups) {
        auto answers = co_await connection_->receive(group.flight);
        if (!answers) {
            hear_failure(answers.error(), group.members);
            continue;
        }
        note_outcome(std::nullopt);
        group.batch->read(std::move(*answers));
        for (Operation* member : group.members) {
            member->write()->conclude(*group.batch);
        }
        co_await ask_undecided(group.members);
    }
    settle(pipeline->operations);
    pipeline->is_heard = true;
    wake_.notify();
}

void Writer::hear_failure(const Failure& failure, const std::vector<Operation*>& members) {
    if (failure.is_broken) {
        for (Operation* member : members) {
            member->is_lost = true;
        }
        return;
    }
    if (failure.may_pass()) {
        return;
    }
    if (failure.was_held_up()) {
        was_held_up_ = true;
        note_outcome(failure.to_error());
        return;
    }
    const Error error = meaning_of(failure, members.front()->term());
    if (members.size() > 1 && error.code != Code::lead_lost) {
        for (Operation* member : members) {
            member->is_alone = true;
        }
        return;
    }
    for (Operation* member : members) {
        member->set_failed(error);
    }
    if (error.code != Code::lead_lost) {
        note_outcome(error);
    }
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

}  // namespace comfyd::ledger::postgres
