#include "simulation/leases/schedule.hpp"

#include <algorithm>

namespace comfyd::simulation {
namespace {

constexpr int kJobsMax = 3;
// What is left of any job takes less, once everything is well.
constexpr Millis kLongEnough{60'000};
constexpr Millis kSilence{3'000};  // after which a node takes a connection for dead

}  // namespace

LeaseSchedule::LeaseSchedule(std::uint64_t seed, Break left_out, bool keeps_journal)
    : world_(seed, left_out, keeps_journal, [this](NodeId id, int session) {
          on_session_ended(id, session);
      }) {
    const int count = 2 + world_.chance.below(2);
    while (started_ < count) {
        start_node();
    }
}

LeaseSchedule::~LeaseSchedule() {
    world_.has_trouble = false;
    for (const auto& node : nodes_) {
        if (!node->has_ended()) {
            node->kill();
        }
    }
}

void LeaseSchedule::start_node() {
    nodes_.push_back(std::make_unique<Node>(world_, ++started_));
    world_.journal.add([&] { return nodes_.back()->name() + " starts"; });
}

Node* LeaseSchedule::find(const NodeId& id) {
    const auto found =
        std::ranges::find_if(nodes_, [&](const auto& node) { return node->id() == id; });
    return found == nodes_.end() ? nullptr : found->get();
}

Node* LeaseSchedule::find_leader() {
    const auto found = std::ranges::find_if(nodes_, [](const auto& node) { return node->leads(); });
    return found == nodes_.end() ? nullptr : found->get();
}

void LeaseSchedule::on_session_ended(const NodeId& id, int session) {
    Node* node = find(id);
    if (node != nullptr && !silent_.contains(session)) {
        node->fail_session(session);
    }
}

std::optional<std::string> LeaseSchedule::run() {
    const Time end = world_.agenda.now() + world_.chance.millis(3'000, 11'000);
    while (world_.agenda.now() < end && !world_.rules.broken()) {
        act();
        pass(world_.chance.millis(20, 900));
    }
    heal();
    const Time latest = world_.agenda.now() + kLongEnough;
    while (!world_.rules.broken() && !world_.database.have_all_ended()) {
        if (!go_on(latest)) {
            world_.rules.break_one("jobs do not come to their end");
        }
    }
    return world_.rules.broken();
}

// Goes on to the next thing that happens; false: there is none by then.
bool LeaseSchedule::go_on(Time until) {
    std::optional<Time> next = world_.agenda.next();
    for (const auto& node : nodes_) {
        if (node->next() && (!next || *node->next() < *next)) {
            next = node->next();
        }
    }
    if (!next || *next > until) {
        return false;
    }
    world_.agenda.go_to(std::max(*next, world_.agenda.now()));
    for (const auto& node : nodes_) {
        node->run();
    }
    remove_ended();
    return true;
}

void LeaseSchedule::pass(Millis time) {
    const Time then = world_.agenda.now() + time;
    for (const auto& node : nodes_) {
        node->run();
    }
    while (!world_.rules.broken() && go_on(then)) {
    }
    world_.agenda.go_to(then);
}

void LeaseSchedule::remove_ended() {
    const auto removed = std::erase_if(nodes_, [](const auto& node) { return node->has_ended(); });
    for (std::size_t i = 0; i < removed; ++i) {
        start_node();
    }
}

void LeaseSchedule::kill(Node& node) {
    node.kill();
    remove_ended();
}

void LeaseSchedule::act() {
    const int what = world_.chance.below(20);
    const auto accepted = static_cast<int>(world_.database.jobs().size());
    if (what < 6 && accepted < kJobsMax) {
        world_.journal.add([&] { return "job " + std::to_string(accepted) + " is accepted"; });
        world_.database.accept(accepted);
    } else if (what < 12) {
        act_on_node();
    } else if (what < 15) {
        act_on_session();
    } else if (what < 17) {
        act_on_database();
    } else {
        act_on_machine();
    }
}

void LeaseSchedule::act_on_node() {
    Node* leader = find_leader();
    Node& node =
        leader != nullptr && world_.chance.one_in(2) ? *leader : *world_.chance.pick(nodes_);
    const int what = world_.chance.below(7);
    if (what < 2) {
        if (!node.is_paused()) {
            node.pause(world_.pause_length());
        }
    } else if (what == 2) {
        kill(node);
    } else if (what == 3) {
        if (!node.is_stopping()) {
            node.stop();
        }
    } else if (what == 4) {
        node.let_go();
    } else {
        const Millis error = std::chrono::minutes(world_.chance.below(600) - 300);
        world_.journal.add([&] {
            return "the clock of " + node.name() + " is set: " + std::to_string(error.count()) +
                   " ms off";
        });
        node.set_wall_clock(error);
    }
}

void LeaseSchedule::act_on_session() {
    Node* leader = find_leader();
    Node& node =
        leader != nullptr && world_.chance.one_in(2) ? *leader : *world_.chance.pick(nodes_);
    const int session = node.session();
    if (session == 0) {
        return;
    }
    world_.disturb(kSilence);
    const int what = world_.chance.below(3);
    if (what == 0) {
        world_.journal.add([&] { return "the session of " + node.name() + " is cut"; });
        world_.database.end_session(session);
        node.fail_session(session);
    } else if (what == 1) {
        world_.journal.add([&] {
            return "the session of " + node.name() + " is cut, which does not hear of it";
        });
        silent_.insert(session);
        world_.database.end_session(session);
        world_.agenda.in(kSilence, [this, id = node.id(), session] {
            if (Node* deaf = find(id)) {
                deaf->fail_session(session);
            }
        });
    } else {
        world_.journal.add([&] {
            return "the session of " + node.name() + " is cut, the database does not hear of it";
        });
        node.fail_session(session);
        world_.agenda.in(3 * kSilence, [this, session] { world_.database.end_session(session); });
    }
}

void LeaseSchedule::act_on_database() {
    if (world_.chance.one_in(2)) {
        const Millis length = world_.chance.millis(200, 6'000);
        world_.journal.add([&] {
            return "the database is slow for " + std::to_string(length.count()) + " ms";
        });
        world_.is_slow = true;
        world_.disturb(length);
        world_.agenda.in(length, [this] { world_.is_slow = false; });
    } else if (world_.database.is_up()) {
        const Millis length = world_.chance.millis(100, 6'000);
        world_.journal.add([&] {
            return "the database restarts, for " + std::to_string(length.count()) + " ms";
        });
        world_.disturb(length);
        world_.database.go_down();
        world_.agenda.in(length, [this] { world_.database.come_up(); });
    }
}

void LeaseSchedule::act_on_machine() {
    Machine& machine = world_.chance.pick(world_.machines);
    if (world_.chance.one_in(3)) {
        machine.cuts += 1;
        world_.journal.add([&] { return "connections of " + machine.name() + " are cut"; });
        return;
    }
    machine.is_reachable = !machine.is_reachable;
    machine.cuts += 1;
    world_.journal.add([&] {
        return machine.name() + (machine.is_reachable ? " is back" : " cannot be reached");
    });
}

void LeaseSchedule::heal() {
    world_.journal.add([] { return "from here on all is well"; });
    world_.has_trouble = false;
    world_.is_slow = false;
    world_.database.come_up();
    world_.disturb(kSilence);
    for (Machine& machine : world_.machines) {
        machine.is_reachable = true;
    }
    for (const auto& node : nodes_) {
        node->go_on();
    }
    pass(Millis(0));
}

}  // namespace comfyd::simulation
