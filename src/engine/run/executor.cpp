#include "engine/run/executor.hpp"

#include <map>
#include <utility>

#include "engine/values/weight.hpp"

namespace comfyd::engine {
namespace {

// Of what the nodes of a run show, counted twice. It is one answer of the history, of which a
// gateway takes 64 MiB.
constexpr std::uint64_t kShownBytesMax = 112ULL << 20;

}  // namespace

// What a running node says reaches the listener at once when it has its turn, and waits otherwise.
class Executor::Voice : public Listener {
public:
    Voice(Executor& run, std::size_t unit) : run_(run), unit_(unit) {}

    void progress(const std::string& /*node_id*/, double value, double max) override {
        run_.tell(unit_, Kind::step, [value, max](Listener& to, const std::string& id) {
            to.progress(id, value, max);
        });
    }
    void preview(const std::string& /*id*/, ImageFormat format, std::string_view bytes) override {
        run_.tell(
            unit_,
            Kind::content,
            [format, bytes = std::string(bytes)](Listener& to, const std::string& id) {
                to.preview(id, format, bytes);
            }
        );
    }
    void text(const std::string& /*node_id*/, std::string_view text) override {
        run_.tell(
            unit_,
            Kind::content,
            [text = std::string(text)](Listener& to, const std::string& id) { to.text(id, text); }
        );
    }
    void blocked(const std::string& /*node_id*/, const std::string& message) override {
        run_.tell(unit_, Kind::content, [message](Listener& to, const std::string& id) {
            to.blocked(id, message);
        });
    }

private:
    Executor& run_;
    std::size_t unit_;
};

Executor::Executor(
    Parts parts,
    Plan& plan,
    const json::object& prompt,
    const json::object& extra_pnginfo,
    std::stop_token stop
)
    : parts_(parts),
      plan_(plan),
      stop_(std::move(stop)),
      surroundings_{
          .folders = parts.folders,
          .pool = parts.pool,
          .memory = parts.memory,
          .make_room = [this](std::uint64_t bytes) { parts_.cache.make_room(bytes); },
          .stopped = [this] { return stopped(); },
          .listener = parts.listener,
          .prompt = prompt,
          .extra_pnginfo = extra_pnginfo
      },
      planned_(plan.nodes.size()) {}

bool Executor::stopped() const {
    return stop_.stop_requested() || failed_.load(std::memory_order_relaxed);
}

Result<RunResult> Executor::run() {
    {
        const Lock turn(turn_mutex_);
        make_units();
        schedule_.emplace(plan_, unit_of_);
        take_cached();
        count_readers();
        std::vector<std::size_t> to_launch;
        for (const std::size_t output : plan_.outputs) {
            join(schedule_->add(output), to_launch);
        }
        start(to_launch);
        start(advance());
    }
    {
        Lock lock(mutex_);
        idle_.wait(lock, [this]() COMFYD_REQUIRES(mutex_) { return tasks_ == 0; });
    }
    const Lock turn(turn_mutex_);
    if (failure_) {
        return fail(std::move(*failure_));
    }
    return RunResult{std::move(outputs_)};
}

void Executor::make_units() {
    std::map<Digest, std::size_t> by_key;
    for (std::size_t i = 0; i < plan_.nodes.size(); ++i) {
        const auto [at, added] = by_key.emplace(plan_.nodes[i].key, units_.size());
        unit_of_.push_back(at->second);
        if (added) {
            units_.emplace_back().first = i;
        }
    }
}

void Executor::take_cached() {
    for (std::size_t i = 0; i < units_.size(); ++i) {
        Unit& unit = units_[i];
        unit.result = parts_.cache.find(plan_.nodes[unit.first].key);
        if (unit.result) {
            unit.state = State::done;
            unit.ui = unit.result->ui;
            schedule_->settle(i);
        }
    }
    std::map<std::size_t, std::string> by_position;
    for (std::size_t i = 0; i < plan_.nodes.size(); ++i) {
        if (schedule_->is_settled(unit_of_[i])) {
            by_position.emplace(plan_.nodes[i].position, plan_.nodes[i].id);
        }
    }
    std::vector<std::string> cached;
    for (auto& [position, id] : by_position) {
        cached.push_back(std::move(id));
    }
    parts_.listener.cached(cached);
}

// Counts also those that only run if a lazy input turns out to be needed: a result must be there
// for them.
void Executor::count_readers() {
    std::vector<std::size_t> to_count = plan_.outputs;
    while (!to_count.empty()) {
        Unit& unit = units_[unit_of_[to_count.back()]];
        to_count.pop_back();
        if (unit.counted || unit.state == State::done) {
            continue;
        }
        unit.counted = true;
        for (const PlannedInput& input : plan_.nodes[unit.first].inputs) {
            if (input.is_linked()) {
                ++units_[source_unit(input)].readers;
                to_count.push_back(input.link.source);
            }
        }
    }
    for (Unit& unit : units_) {
        if (unit.readers == 0) {
            unit.result.reset();
        }
    }
}

// A node with lazy inputs runs only when its turn has come and it has been asked.
bool Executor::asks_first(const Unit& unit) const {
    return plan_.nodes[unit.first].type->node.needed != nullptr;
}

// Where memory is short one node at a time may fit though several do not.
bool Executor::may_launch_ahead(const Unit& unit) const {
    return unit.waits_for == 0 && parts_.memory->used() <= parts_.memory->max() / 2;
}

void Executor::join(const std::vector<std::size_t>& nodes, std::vector<std::size_t>& to_launch) {
    const Lock lock(mutex_);
    for (const std::size_t node : nodes) {
        const std::size_t index = unit_of_[node];
        Unit& unit = units_[index];
        if (unit.joined || unit.state != State::waiting || asks_first(unit)) {
            continue;
        }
        unit.joined = true;
        for (const PlannedInput& input : plan_.nodes[unit.first].inputs) {
            if (!input.is_linked()) {
                continue;
            }
            Unit& source = units_[source_unit(input)];
            if (source.state != State::done || source.failure) {
                source.consumers.push_back(index);
                ++unit.waits_for;
            }
        }
        if (may_launch_ahead(unit)) {
            unit.state = State::launched;
            to_launch.push_back(index);
        }
    }
}

void Executor::start(const std::vector<std::size_t>& units) {
    {
        const Lock lock(mutex_);
        tasks_ += units.size();
    }
    for (const std::size_t unit : units) {
        parts_.pool.post([this, unit] { run_chain(unit); });
    }
}

// Runs a unit and then, on the same thread, one that it made ready; further ones are posted.
void Executor::run_chain(std::size_t unit) {
    std::optional<std::size_t> current = unit;
    while (current) {
        std::vector<std::size_t> ready = run_unit(*current);
        current.reset();
        if (!ready.empty()) {
            current = ready.front();
            ready.erase(ready.begin());
            start(ready);
        }
    }
    // Notified under the lock: run() may destroy this object as soon as it can take it.
    const Lock lock(mutex_);
    if (--tasks_ == 0) {
        idle_.notify_one();
    }
}

// A node ahead of its turn must not take the memory that those before it need: one at a time until
// it is known how much nodes take here, then as many as leave half of the memory free.
Executor::Admission Executor::admit(std::size_t index) {
    const Lock turn(turn_mutex_);
    if (units_[index].teller) {
        return Admission::in_turn;
    }
    const Lock lock(mutex_);
    const std::uint64_t largest = parts_.memory->largest();
    const std::uint64_t expected = parts_.memory->used() + (ahead_ + 1) * largest;
    if ((ahead_ > 0 && largest == 0) || expected > parts_.memory->max() / 2) {
        units_[index].state = State::waiting;
        return Admission::refused;
    }
    ++ahead_;
    return Admission::ahead;
}

std::vector<std::size_t> Executor::run_unit(std::size_t index) {
    const Admission admission = admit(index);
    if (admission == Admission::refused) {
        const Lock turn(turn_mutex_);
        return advance();
    }
    Result<Outcome> outcome = fail(Code::cancelled, "The run was cancelled.");
    if (!stopped()) {
        outcome = call_node(index);
    }
    std::vector<std::size_t> ready = complete(index, std::move(outcome));
    if (admission == Admission::ahead) {
        const Lock lock(mutex_);
        --ahead_;
    }
    const Lock turn(turn_mutex_);
    for (const std::size_t unit : advance()) {
        ready.push_back(unit);
    }
    return ready;
}

Result<Outcome> Executor::call_node(std::size_t index) {
    // What they refer to stays where it is, and as it is until this unit has run.
    const PlannedNode* node = nullptr;
    Result<std::vector<BoundInput>> inputs;
    {
        const Lock lock(mutex_);
        const Unit& unit = units_[index];
        node = &plan_.nodes[unit.first];
        if (unit.asked) {
            inputs = *unit.asked;
        } else {
            inputs = bind(*node, [this](const PlannedLink& link) {
                return &units_[unit_of_[link.source]].result->slots[link.slot];
            });
        }
    }
    if (!inputs) {
        return fail(std::move(inputs.error()));
    }
    Voice voice(*this, index);
    const Surroundings around{
        .folders = surroundings_.folders,
        .pool = surroundings_.pool,
        .memory = surroundings_.memory,
        .make_room = surroundings_.make_room,
        .stopped = surroundings_.stopped,
        .listener = voice,
        .prompt = surroundings_.prompt,
        .extra_pnginfo = surroundings_.extra_pnginfo
    };
    return invoke(*node, *inputs, around);
}

// The run keeps what its nodes show until it ends, also of results that nobody needs any more: once
// for the node and once among the outputs.
Result<> Executor::charge_for(const NodeOutputs& outputs) {
    auto charge = Charge::try_make(parts_.memory, outputs.ui ? 2 * weight_of(*outputs.ui) : 0);
    if (!charge) {
        return fail(
            Code::out_of_memory,
            "What the nodes of this run show takes more than the memory that node results may take "
            "together. Show less, or raise the engine's memory limit."
        );
    }
    const Lock lock(mutex_);
    if (shown_.bytes() + charge->bytes() > kShownBytesMax) {
        return node_error(
            "MemoryError",
            "The nodes of this run show more than " + std::to_string(kShownBytesMax >> 21) +
                " MiB together."
        );
    }
    shown_.join(std::move(*charge));
    return {};
}

// Later prompts may use it again, unless the node was added: then its parent's result stands for
// it.
SharedResult Executor::keep(std::size_t index, NodeOutputs outputs) {
    auto result = std::make_shared<const NodeOutputs>(std::move(outputs));
    const PlannedNode* node = nullptr;
    {
        const Lock lock(mutex_);
        node = &plan_.nodes[units_[index].first];
    }
    if (!node->parent) {
        parts_.cache.put(node->key, result);
    }
    return result;
}

std::vector<std::size_t> Executor::complete(std::size_t index, Result<Outcome> outcome) {
    std::vector<std::size_t> ready;
    std::vector<SharedResult> released;  // freed after the lock
    SharedResult result;
    if (auto charged = outcome ? charge_for(outcome->outputs) : Result<>(); !charged) {
        outcome = fail(std::move(charged.error()));
    }
    if (outcome && outcome->added.empty()) {
        result = keep(index, std::move(outcome->outputs));
    }
    const Lock lock(mutex_);
    Unit& unit = units_[index];
    if (outcome && !result) {
        unit.state = State::expanded;
        unit.open = std::move(*outcome);
        return ready;
    }
    unit.state = State::done;
    if (!result) {
        unit.failure = std::move(outcome.error());
        return ready;
    }
    unit.ui = result->ui;
    if (unit.readers > 0) {
        unit.result = std::move(result);
    }
    release_sources(unit, released);
    for (const std::size_t consumer : unit.consumers) {
        Unit& waiting = units_[consumer];
        --waiting.waits_for;
        if (waiting.state == State::waiting && may_launch_ahead(waiting)) {
            waiting.state = State::launched;
            ready.push_back(consumer);
        }
    }
    return ready;
}

void Executor::release_sources(const Unit& unit, std::vector<SharedResult>& released) {
    for (const PlannedInput& input : plan_.nodes[unit.first].inputs) {
        if (input.is_linked() && --units_[source_unit(input)].readers == 0) {
            released.push_back(std::move(units_[source_unit(input)].result));
        }
    }
}

}  // namespace comfyd::engine
