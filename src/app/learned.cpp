#include "app/learned.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "admission/profile.hpp"
#include "base/log.hpp"
#include "base/stall_watch.hpp"

namespace comfyd::app {
namespace {

constexpr Millis kSaveEvery{30'000};
constexpr Millis kLendEvery{1'000};
constexpr char kTimes[] = "learned-times";
constexpr char kNodes[] = "learned-nodes";

void complain(const char* what, const Error& error) {
    log::warning(what, {{"error", error.message}});
}

json::object copy_of(const scheduler::Predictor& predictor) {
    const NowDoing doing("copying what was learned");
    return predictor.to_json();
}

}  // namespace

Learned::Learned(
    Executor core,
    Pool& pool,
    jobs::Notebook& notebook,
    scheduler::Predictor& predictor,
    fleet::NodeCosts& node_costs
)
    : core_(core),
      pool_(pool),
      notebook_(notebook),
      predictor_(predictor),
      node_costs_(node_costs),
      tasks_(core) {}

Task<> Learned::recall() {
    auto times = co_await read(kTimes);
    if (times) {
        if (auto restored = predictor_.restore(*times); !restored) {
            complain("learned times were not read", restored.error());
        }
        auto copy = std::make_shared<scheduler::Predictor>();
        if (copy->restore(*times)) {
            lend(std::move(copy));
        }
    }
    auto nodes = co_await read(kNodes);
    if (nodes) {
        if (auto restored = node_costs_.restore(*nodes); !restored) {
            complain("learned times of nodes were not read", restored.error());
        }
    }
    lent_ = predictor_.learned();
    saved_ = predictor_.learned() + node_costs_.learned();
}

Task<> Learned::start() {
    co_await recall();
    tasks_.spawn("learned times", keep());
    tasks_.spawn("learned times", lend_news());
}

Task<> Learned::stop() {
    tasks_.cancel();
    co_await tasks_.join();
    co_await lend_copy();
    co_await save();
}

Task<> Learned::keep() {
    bool goes_on = true;
    while (goes_on) {
        goes_on = co_await sleep_for(kSaveEvery);
        if (goes_on) {
            co_await save();
        }
    }
}

// Copying takes the core's time: at most a hundredth of it.
Task<> Learned::lend_news() {
    using Ticks = std::chrono::steady_clock;
    Millis pause = kLendEvery;
    while (true) {
        const bool goes_on = co_await sleep_for(pause);
        if (!goes_on) {
            co_return;
        }
        const auto began = Ticks::now();
        co_await lend_copy();
        pause = std::max(kLendEvery, std::chrono::ceil<Millis>(100 * (Ticks::now() - began)));
    }
}

Task<> Learned::lend_copy() {
    if (predictor_.learned() == lent_) {
        co_return;
    }
    lent_ = predictor_.learned();
    auto copy = co_await pool_.run([times = copy_of(predictor_)] {
        auto made = std::make_shared<scheduler::Predictor>();
        static_cast<void>(made->restore(times));  // it was written a moment ago
        return made;
    });
    lend(std::move(copy));
}

Task<> Learned::save() {
    const std::uint64_t learned = predictor_.learned() + node_costs_.learned();
    if (learned == saved_) {
        co_return;
    }
    struct Written {
        std::string times;
        std::string nodes;
    };
    auto written = co_await pool_.run([times = copy_of(predictor_), &nodes = node_costs_] {
        return Written{json::serialize(times), json::serialize(nodes.to_json())};
    });
    auto times_kept = co_await notebook_.write_note(kTimes, std::move(written.times));
    auto nodes_kept = co_await notebook_.write_note(kNodes, std::move(written.nodes));
    if (!times_kept || !nodes_kept) {
        complain(
            "learned times were not written", times_kept ? nodes_kept.error() : times_kept.error()
        );
        co_return;
    }
    saved_ = learned;
}

void Learned::lend(std::shared_ptr<const scheduler::Predictor> copy) {
    const Lock lock(mutex_);
    copy_ = std::move(copy);
}

Task<std::optional<json::object>> Learned::read(std::string name) {
    auto text = co_await notebook_.read_note(std::move(name));
    if (!text) {
        complain("learned times were not read", text.error());
        co_return std::nullopt;
    }
    if (!*text) {
        co_return std::nullopt;
    }
    auto parsed = json::parse_object(**text);
    if (!parsed) {
        complain("learned times were not read", parsed.error());
        co_return std::nullopt;
    }
    co_return std::move(*parsed);
}

std::optional<workflow::PastDuration> Learned::past(
    const workflow::Graph& graph, const workflow::Plan& plan
) const {
    std::shared_ptr<const scheduler::Predictor> copy;
    {
        const Lock lock(mutex_);
        copy = copy_;
    }
    if (copy == nullptr) {
        return std::nullopt;
    }
    scheduler::Profile profile = admission::profile_of(plan);
    std::set<Requirement::Need> needs;
    for (const workflow::Graph::Node& node : graph.nodes()) {
        if (Requirement::can_name(node.class_type)) {
            needs.insert({std::string(node.class_type)});
        }
    }
    profile.requirement = Requirement::of(needs);
    std::optional<scheduler::Expectation> best;
    std::optional<std::uint64_t> vram;
    for (const std::string& type : copy->gpu_types()) {
        const auto expected = copy->expect_run(profile, type);
        if (!best || expected.relative_error < best->relative_error) {
            best = expected;
        }
        const std::uint64_t bytes = copy->vram_bytes(profile, type);
        if (bytes != profile.vram_bytes) {
            vram = std::max(vram.value_or(0), bytes);
        }
    }
    if (!best) {
        return std::nullopt;
    }
    return workflow::PastDuration{best->seconds, to_string(best->basis), best->confidence(), vram};
}

}  // namespace comfyd::app
