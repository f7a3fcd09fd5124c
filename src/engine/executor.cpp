#include "engine/executor.hpp"

#include <exception>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "engine/python_text.hpp"

namespace comfyd::engine {
namespace {

std::optional<Value> to_value(const json::value& literal, std::string_view type) {
    if (type == "INT" && literal.is_int64()) {
        return Value(literal.get_int64());
    }
    if (type == "FLOAT" && literal.is_double()) {
        return Value(literal.get_double());
    }
    if (type == "BOOLEAN" && literal.is_bool()) {
        return Value(literal.get_bool());
    }
    if ((type == "STRING" || type == "COMBO") && literal.is_string()) {
        const auto& text = literal.get_string();
        return Value(std::string(text.data(), text.size()));
    }
    return std::nullopt;
}

// Adds where it happened, in the form of ComfyUI's execution_error message.
Error at_node(Error error, const PlannedNode& node) {
    const bool own = error.code == Code::node_execution_error;
    json::object details;
    details["node_id"] = node.id;
    details["node_type"] = node.node->name;
    if (own) {
        const json::value* type = json::find(error.details, "exception_type");
        details["exception_type"] = type != nullptr ? *type : json::value("RuntimeError");
        details["exception_message"] = error.message + "\n";
        details["traceback"] = json::array();
        error.message = node.node->name + " (node " + node.id + "): " + error.message;
    }
    error.details = std::move(details);
    return error;
}

}  // namespace

Executor::Executor(
    Parts parts,
    const Plan& plan,
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
          .progress =
              [this](const std::string& node_id, int value, int max) {
                  const std::lock_guard lock(listener_mutex_);
                  parts_.listener.progress(node_id, value, max);
              },
          .prompt = prompt,
          .extra_pnginfo = extra_pnginfo
      } {}

bool Executor::stopped() const {
    return stop_.stop_requested() || failed_.load(std::memory_order_relaxed);
}

Result<RunResult> Executor::run() {
    make_units();
    take_cached();
    mark_needed();
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < units_.size(); ++i) {
        if (units_[i].needed && units_[i].waiting_for == 0) {
            ready.push_back(i);
        }
    }
    start(std::move(ready));
    {
        std::unique_lock lock(mutex_);
        idle_.wait(lock, [this] { return tasks_ == 0; });
    }
    if (failure_) {
        return fail(std::move(*failure_));
    }
    return RunResult{std::move(outputs_)};
}

void Executor::make_units() {
    std::map<Digest, std::size_t> by_key;
    for (std::size_t i = 0; i < plan_.nodes.size(); ++i) {
        const PlannedNode& node = plan_.nodes[i];
        const auto [at, added] = by_key.emplace(node.key, units_.size());
        unit_of_.push_back(at->second);
        if (!added) {
            units_[at->second].nodes.push_back(i);
            continue;
        }
        Unit unit;
        unit.nodes.push_back(i);
        for (const PlannedLink& link : node.links) {
            unit.sources.push_back(unit_of_[link.source]);
        }
        units_.push_back(std::move(unit));
    }
}

void Executor::take_cached() {
    std::vector<std::string> cached;
    for (Unit& unit : units_) {
        unit.result = parts_.cache.find(plan_.nodes[unit.nodes.front()].key);
        if (unit.result) {
            for (const std::size_t node : unit.nodes) {
                cached.push_back(plan_.nodes[node].id);
            }
        }
    }
    {
        const std::lock_guard lock(listener_mutex_);
        parts_.listener.cached(cached);
    }
    for (const Unit& unit : units_) {
        if (unit.result && unit.result->ui) {
            show(unit, *unit.result->ui);
        }
    }
}

// Backwards, because sources stand before their consumers: a unit is needed when it has no result
// and is an output or is read by a needed one.
void Executor::mark_needed() {
    for (std::size_t i = units_.size(); i-- > 0;) {
        Unit& unit = units_[i];
        for (const std::size_t node : unit.nodes) {
            unit.needed = unit.needed || plan_.nodes[node].output;
        }
        unit.needed = unit.needed && !unit.result;
        if (!unit.needed) {
            continue;
        }
        for (const std::size_t source : unit.sources) {
            Unit& read = units_[source];
            read.needed = true;
            read.consumers.push_back(i);
            ++read.readers;
            unit.waiting_for += read.result ? 0 : 1;
        }
    }
    for (Unit& unit : units_) {
        if (unit.readers == 0) {
            unit.result.reset();
        }
    }
}

void Executor::start(std::vector<std::size_t> units) {
    {
        const std::lock_guard lock(mutex_);
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
        if (stopped()) {
            fail_run(Error(Code::cancelled, "The run was cancelled."));
            break;
        }
        auto result = run_node(units_[*current]);
        if (!result) {
            fail_run(std::move(result.error()));
            break;
        }
        std::vector<std::size_t> ready = complete(*current, std::move(*result));
        current.reset();
        if (!ready.empty()) {
            current = ready.back();
            ready.pop_back();
            start(std::move(ready));
        }
    }
    // Notified under the lock: run() may destroy this object as soon as it can take it.
    const std::lock_guard lock(mutex_);
    if (--tasks_ == 0) {
        idle_.notify_one();
    }
}

std::vector<std::size_t> Executor::complete(std::size_t index, SharedResult result) {
    std::vector<std::size_t> ready;
    std::vector<SharedResult> released;  // freed after the lock
    const std::lock_guard lock(mutex_);
    Unit& unit = units_[index];
    for (const std::size_t source : unit.sources) {
        if (--units_[source].readers == 0) {
            released.push_back(std::move(units_[source].result));
        }
    }
    if (unit.readers > 0) {
        unit.result = std::move(result);
    }
    for (const std::size_t consumer : unit.consumers) {
        if (--units_[consumer].waiting_for == 0) {
            ready.push_back(consumer);
        }
    }
    return ready;
}

void Executor::show(const Unit& unit, const json::object& ui) {
    const std::lock_guard lock(listener_mutex_);
    for (const std::size_t node : unit.nodes) {
        const std::string& id = plan_.nodes[node].id;
        outputs_[id] = ui;
        parts_.listener.executed(id, ui);
    }
}

void Executor::fail_run(Error error) {
    const std::lock_guard lock(mutex_);
    // The first failure counts; those it causes elsewhere are only its echo.
    if (!failure_) {
        failure_ = std::move(error);
        failed_.store(true, std::memory_order_relaxed);
    }
}

Result<SharedResult> Executor::run_node(const Unit& unit) {
    const PlannedNode& node = plan_.nodes[unit.nodes.front()];
    {
        const std::lock_guard lock(listener_mutex_);
        parts_.listener.executing(node.id);
    }
    auto result = call_node(node);
    if (!result) {
        return fail(at_node(std::move(result.error()), node));
    }
    COMFYD_ASSERT(result->outputs.size() == node.node->outputs.size());
    auto shared = std::make_shared<const NodeResult>(std::move(*result));
    parts_.cache.put(node.key, shared);
    if (shared->ui) {
        show(unit, *shared->ui);
    }
    return shared;
}

Result<std::map<std::string, Value, std::less<>>> Executor::bind(const PlannedNode& node) {
    std::map<std::string, Value, std::less<>> bound;
    for (const PlannedLink& link : node.links) {
        // Safe without the lock: a source's result stays as it is until this node has run.
        const Value& value = units_[unit_of_[link.source]].result->outputs[link.slot];
        if (!matches(value, link.input->type)) {
            return node_error(
                "TypeError",
                "'" + link.input->name + "' must be of type " + link.input->type + ", but is " +
                    std::string(kind_of(value))
            );
        }
        bound.emplace(link.input->name, value);
    }
    for (const Input& input : node.node->inputs) {
        const json::value* literal = node.inputs->if_contains(input.name);
        if (literal == nullptr || literal->is_array()) {
            continue;
        }
        auto value = to_value(*literal, input.type);
        if (!value) {
            return node_error(
                "TypeError",
                "'" + input.name + "' must be linked to an output of type " + input.type +
                    ", but is the constant " + python_repr(*literal)
            );
        }
        bound.emplace(input.name, std::move(*value));
    }
    return bound;
}

Result<NodeResult> Executor::call_node(const PlannedNode& node) {
    try {
        auto inputs = bind(node);
        if (!inputs) {
            return fail(std::move(inputs.error()));
        }
        Call call(surroundings_, node.id, std::move(*inputs));
        return node.node->execute(call);
    } catch (const std::bad_alloc&) {
        return fail(Code::out_of_memory, "The system has no memory left for node " + node.id + ".");
    } catch (const std::exception& exception) {
        return node_error("RuntimeError", exception.what());
    }
}

}  // namespace comfyd::engine
