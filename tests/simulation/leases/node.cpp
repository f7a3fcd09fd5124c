#include "simulation/leases/node.hpp"

#include <algorithm>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "simulation/leases/leader.hpp"

namespace comfyd::simulation {
namespace {

constexpr Millis kMachineTimeOut{300};
// Only then it may be stopped after any step: going step by step takes twice as long.
constexpr int kRunsToACloseLook = 8;

NodeId numbered(int number) {
    NodeId id;
    id.uuid.bytes[15] = static_cast<std::uint8_t>(number);
    return id;
}

tl::unexpected<Error> unclear() {
    return fail(Code::storage_unavailable, "no answer");
}

}  // namespace

Millis Node::Clock::now() const {
    const Millis sound = node_.world_.agenda.now() - LeaseWorld::kStart;
    return node_.world_.broken == Break::trust_by_wall_clock ? sound + node_.wall_clock_error_
                                                             : sound;
}

Node::Node(LeaseWorld& world, int number)
    : world_(world),
      id_(numbered(number)),
      name_("node " + std::to_string(number)),
      time_(io_, world.agenda.now()),
      killed_(io_.get_executor()),
      lead_(
          io_.get_executor(),
          leases_,
          clock_,
          "main",
          id_,
          cluster::LeadHooks{
              [this](cluster::Taken taken, std::shared_ptr<const cluster::Trust> trust) {
                  return run_leader(std::move(taken), std::move(trust));
              },
              [this](cluster::LeadEnd why) { return end_leader(why); },
              {},
          }
      ) {
    lead_.start();
}

Node::~Node() = default;

void Node::run() {
    if (paused_until_ && *paused_until_ > world_.agenda.now()) {
        return;
    }
    paused_until_.reset();
    if (!has_work_ && !(time_.next() && *time_.next() <= world_.agenda.now())) {
        return;  // asking the executor costs more than all else
    }
    time_.advance_to(world_.agenda.now());
    io_.restart();
    if (world_.has_trouble && world_.chance.one_in(kRunsToACloseLook)) {
        while (!paused_until_ && io_.poll_one() > 0) {
            if (world_.chance.one_in(world_.steps_to_a_pause)) {
                pause(world_.pause_length());
            }
        }
    } else {
        io_.poll();
    }
    has_work_ = paused_until_.has_value();
}

std::optional<Time> Node::next() const {
    if (paused_until_) {
        return paused_until_;
    }
    return has_work_ ? world_.agenda.now() : time_.next();
}

void Node::pause(Millis length) {
    world_.journal.add([&] {
        return name_ + " is stopped for " + std::to_string(length.count()) + " ms";
    });
    paused_until_ = world_.agenda.now() + length;
    pauses_ += 1;
    io_.stop();
    world_.disturb(length);
}

bool Node::trusts(const cluster::Trust& trust) const {
    switch (world_.broken) {
        case Break::no_trust:
            return true;
        case Break::trust_from_answer:
            return is_answer_fresh();
        default:
            return trust.holds();
    }
}

void Node::let_go() {
    world_.journal.add([&] { return name_ + " is to leave the lead to others"; });
    world_.disturb();  // this one does not want it for a while
    has_work_ = true;
    boost::asio::post(io_, [this] { lead_.let_go(); });
}

void Node::stop() {
    world_.journal.add([&] { return name_ + " is to stop"; });
    is_stopping_ = true;
    has_work_ = true;
    boost::asio::co_spawn(io_, resign(), boost::asio::detached);
}

Task<> Node::resign() {
    co_await lead_.resign();
    close_session();
    world_.journal.add([&] { return name_ + " has ended"; });
    has_ended_ = true;
}

void Node::kill() {
    world_.journal.add([&] { return name_ + " is killed"; });
    is_dead_ = true;
    paused_until_.reset();
    killed_.notify();
    close_session();
    for (const auto& call : machine_calls_) {
        call->answer(false);
    }
    if (!is_stopping_) {
        boost::asio::co_spawn(io_, resign(), boost::asio::detached);
    }
    time_.advance_to(world_.agenda.now());
    io_.restart();
    io_.poll();
    if (!has_ended_) {
        world_.rules.break_one(name_ + " cannot end");
    }
}

void Node::close_session() {
    const int session = session_;
    fail_session(session);
    world_.agenda.in(world_.chance.millis(1, 25), [&world = world_, session] {
        world.database.end_session(session);
    });
}

void Node::fail_session(int session) {
    if (session == 0 || session_ != session) {
        return;
    }
    session_ = 0;
    has_work_ = true;
    boost::asio::post(io_, [this] { lead_.session_lost(); });
    for (const Pending& pending : std::exchange(pending_, {})) {
        pending.call->answer(false);
    }
}

Task<bool> Node::call_database(std::function<void()> work) {
    if (is_dead_) {
        co_return false;
    }
    if (session_ == 0) {
        session_ = ++world_.sessions;
    }
    const int session = session_;
    auto call = std::make_shared<Call>(has_work_);
    std::erase_if(pending_, [](const Pending& pending) { return !pending.call->is_open(); });
    pending_.push_back({session, call});
    LeaseWorld& world = world_;
    auto arrive = [&world, session, call, id = id_, work = std::move(work)] {
        if (!world.database.enter(id, session)) {
            world.session_ended(id, session);
            return;
        }
        work();
        if (world.has_trouble && world.chance.one_in(world.answers_to_a_loss)) {
            world.journal.add([] { return "an answer of the database is lost"; });
            world.disturb();
            world.database.end_session(session);
            return;
        }
        world.agenda.in(world.latency(), [call] { call->answer(true); });
    };
    world_.agenda.in(world_.latency(), std::move(arrive));
    const bool came = co_await Call::wait(call);
    co_return came && !is_dead_;
}

Task<bool> Node::call_machine(Machine& machine, std::function<void()> work) {
    if (is_dead_) {
        co_return false;
    }
    auto call = std::make_shared<Call>(has_work_);
    std::erase_if(machine_calls_, [](const auto& before) { return !before->is_open(); });
    machine_calls_.push_back(call);
    LeaseWorld& world = world_;
    const int cuts = machine.cuts;
    auto arrive = [&world, &machine, cuts, call, work = std::move(work)] {
        if (!machine.is_reachable || machine.cuts != cuts) {
            world.agenda.in(kMachineTimeOut, [call] { call->answer(false); });
            return;
        }
        work();
        world.agenda.in(world.chance.millis(1, 100), [&machine, cuts, call] {
            call->answer(machine.cuts == cuts);
        });
    };
    world_.agenda.in(world_.chance.millis(1, 200), std::move(arrive));
    const bool came = co_await Call::wait(call);
    co_return came && !is_dead_;
}

Task<> Node::run_leader(cluster::Taken taken, std::shared_ptr<const cluster::Trust> trust) {
    world_.journal.add([&] {
        return name_ + " leads, epoch " + std::to_string(taken.term.epoch) + ", quiet in " +
               std::to_string(taken.quiet_in.count()) + " ms";
    });
    leader_ = std::make_unique<Leader>(*this, std::move(taken), std::move(trust));
    co_return;
}

Task<> Node::end_leader(cluster::LeadEnd why) {
    world_.journal.add([&] {
        return name_ + " leads no more: " + std::string(cluster::to_string(why));
    });
    // One that counted so would not have ended yet.
    while (world_.broken == Break::trust_from_answer && !is_dead_ && is_answer_fresh()) {
        co_await killed_.wait_for(Millis(100));
    }
    co_await leader_->stop();
    leader_.reset();
}

Task<Result<std::optional<cluster::Taken>>> Node::Leases::take(std::string, NodeId) {
    Node& node = node_;
    auto ask = [&database = node.world_.database, id = node.id_] { return database.take(id); };
    const auto answer = co_await node.ask_database(std::move(ask));
    if (!answer) {
        co_return unclear();
    }
    node.answered_at_ = node.clock_.now();
    co_return *answer;
}

Task<Result<>> Node::Leases::renew(jobs::Term term, std::uint64_t) {
    auto ask = [&database = node_.world_.database, term] { return database.renew(term); };
    const auto answer = co_await node_.ask_database(std::move(ask));
    if (!answer) {
        co_return unclear();
    }
    if (!*answer) {
        co_return fail(Code::lead_lost, "another leads");
    }
    node_.answered_at_ = node_.clock_.now();
    co_return Result<>();
}

Task<Result<>> Node::Leases::resign(jobs::Term term) {
    auto ask = [&database = node_.world_.database, term] {
        database.resign(term);
        return true;
    };
    const auto answer = co_await node_.ask_database(std::move(ask));
    co_return answer ? Result<>() : unclear();
}

Task<Result<std::vector<cluster::Lease>>> Node::Leases::all() {
    co_return std::vector<cluster::Lease>();
}

}  // namespace comfyd::simulation
