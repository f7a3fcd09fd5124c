#include "simulate/elastic.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <tuple>
#include <utility>

#include "simulate/random.hpp"

namespace comfyd::simulate {
namespace {

using scheduler::WaitClass;

constexpr Time kMidnight{Millis(1'790'000'000'000 / 86'400'000 * 86'400'000)};
constexpr double kHour = 3600;
constexpr double kRetryStock = 30;
constexpr double kAfterwards = 1800;  // for what is left to be stopped
constexpr std::size_t kMergeLooks = 200;

Time time_of(double seconds) {
    return kMidnight + Millis(static_cast<std::int64_t>(std::llround(seconds * 1000)));
}

struct Node {
    double ordered_at = 0;
    double ready_at = 0;
    double free_at = 0;  // while it works: its end
    double idle_since = 0;
    double taken_at = 0;     // by its provider; 0: never
    bool is_let_go = false;  // it is taken because nobody wants it any more
    bool is_there = true;    // not stopped or taken
    std::vector<std::uint32_t> jobs{};

    bool is_ready(double now) const { return ready_at <= now; }
};

class World {
public:
    World(const std::vector<ElasticJob>& jobs, ElasticRule& rule, const ElasticSettings& settings)
        : jobs_(jobs), rule_(rule), settings_(settings), random_(settings.seed) {
        outcome_.rule = rule.name();
        outcome_.waits.assign(jobs.size(), -1);
        for (const ElasticJob& job : jobs) {
            outcome_.classes.push_back(job.wait_class);
        }
    }

    ElasticOutcome run() {
        const double last = jobs_.empty() ? 0 : jobs_.back().at_s;
        double look_at = 0;
        while (!is_over(last)) {
            now_ = std::min(next_event(), look_at);
            come();
            finish();
            take_back();
            give();
            if (now_ >= look_at) {
                look();
                give();
                look_at = now_ + rule_.look_every_s();
            }
        }
        for (std::size_t at = 0; at < nodes_.size(); ++at) {
            for (const std::uint32_t job : nodes_[at].jobs) {
                outcome_.waits[job] = -1;
            }
            stop(at);
        }
        outcome_.usd = outcome_.machine_hours * settings_.usd_per_hour;
        return std::move(outcome_);
    }

private:
    // What has not run long after the last job came never will.
    bool is_over(double last) const {
        constexpr double kNever = 14 * 86'400;
        const bool is_done = next_ == jobs_.size() && waiting() == 0 && running_ == 0;
        return (is_done && now_ > last + kAfterwards) || now_ > last + kNever;
    }
    std::size_t waiting() const {
        std::size_t all = 0;
        for (const auto& queue : queues_) {
            all += queue.size();
        }
        return all;
    }

    double next_event() const {
        double next = 1e18;
        if (next_ < jobs_.size()) {
            next = jobs_[next_].at_s;
        }
        for (const std::size_t at : live_) {
            const Node& node = nodes_[at];
            for (const double when : {node.ready_at, node.jobs.empty() ? 0 : node.free_at}) {
                next = when > now_ ? std::min(next, when) : next;
            }
            next = node.taken_at > now_ ? std::min(next, node.taken_at) : next;
        }
        return next;
    }

    void come() {
        while (next_ < jobs_.size() && jobs_[next_].at_s <= now_) {
            const ElasticJob& job = jobs_[next_];
            const auto wait_class = static_cast<std::size_t>(job.wait_class);
            queues_[wait_class].push_back(static_cast<std::uint32_t>(next_++));
            queued_s_[wait_class] += job.seconds;
            arrived_s_ += job.wait_class == WaitClass::batch ? 0 : job.seconds;
        }
    }

    void finish() {
        for (const std::size_t at : live_) {
            Node& node = nodes_[at];
            if (node.is_ready(now_) && !node.jobs.empty() && node.free_at <= now_) {
                running_ -= node.jobs.size();
                node.jobs.clear();
                node.idle_since = now_;
            }
            if (node.ready_at > 0 && node.is_ready(now_) && node.idle_since == 0) {
                node.idle_since = now_;
                rule_.machine_started(node.ready_at - node.ordered_at);
            }
        }
    }

    // Its job goes back to its place, in front of its class.
    void take_back() {
        const std::vector<std::size_t> live = live_;
        for (const std::size_t at : live) {
            Node& node = nodes_[at];
            if (node.taken_at == 0 || node.taken_at > now_) {
                continue;
            }
            outcome_.lost += node.is_let_go ? 0 : 1;
            for (auto job = node.jobs.rbegin(); job != node.jobs.rend(); ++job) {
                const auto wait_class = static_cast<std::size_t>(jobs_[*job].wait_class);
                queues_[wait_class].push_front(*job);
                queued_s_[wait_class] += jobs_[*job].seconds;
                outcome_.waits[*job] = -1;
                outcome_.repeated += 1;
            }
            running_ -= node.jobs.size();
            node.jobs.clear();
            stop(at);
        }
        std::erase_if(live_, [this](std::size_t at) { return !nodes_[at].is_there; });
    }

    // To the one that was busy last, so that others come to idle.
    void give() {
        for (auto& queue : queues_) {
            while (!queue.empty()) {
                Node* best = nullptr;
                for (const std::size_t at : live_) {
                    Node& node = nodes_[at];
                    const bool leaves =
                        node.taken_at > 0 && node.taken_at - now_ < settings_.notice_s;
                    if (node.is_ready(now_) && node.jobs.empty() && !leaves &&
                        (best == nullptr || node.idle_since > best->idle_since)) {
                        best = &node;
                    }
                }
                if (best == nullptr) {
                    return;
                }
                begin(*best, queue);
            }
        }
    }

    void begin(Node& node, std::deque<std::uint32_t>& queue) {
        outcome_.idle_hours += (now_ - node.idle_since) / kHour;
        const std::uint32_t first = queue.front();
        queue.pop_front();
        node.jobs = {first};
        for (std::size_t at = 0; at < std::min(queue.size(), kMergeLooks) &&
                                 std::ssize(node.jobs) < settings_.merge_max;) {
            if (jobs_[queue[at]].kind == jobs_[first].kind) {
                node.jobs.push_back(queue[at]);
                queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(at));
            } else {
                ++at;
            }
        }
        double longest = 0;
        for (const std::uint32_t job : node.jobs) {
            queued_s_[static_cast<std::size_t>(jobs_[job].wait_class)] -= jobs_[job].seconds;
            longest = std::max(longest, jobs_[job].seconds);
            outcome_.waits[job] = static_cast<float>(now_ - jobs_[job].at_s);
        }
        const auto others = static_cast<double>(node.jobs.size() - 1);
        node.free_at = now_ + longest * (1 + settings_.merge_cost * others);
        running_ += node.jobs.size();
    }

    bool has_stock() const {
        return std::ranges::none_of(settings_.no_stock, [this](const auto& span) {
            return now_ >= span.first && now_ < span.second;
        });
    }

    autoscale::PoolView view() {
        autoscale::PoolView pool;
        pool.arrived_s = arrived_s_;
        for (std::size_t at = 0; at < queues_.size(); ++at) {
            if (!queues_[at].empty()) {
                autoscale::Work& work = pool.waiting.emplace_back();
                work.wait_class = static_cast<WaitClass>(at);
                work.jobs = queues_[at].size();
                work.seconds = std::max(queued_s_[at], 0.0);
            }
        }
        for (const std::size_t at : live_) {
            const Node& node = nodes_[at];
            autoscale::Machine& machine = pool.machines.emplace_back();
            machine.is_ready = node.is_ready(now_);
            machine.ready_in_s = std::max(0.0, node.ordered_at + settings_.start_s - now_);
            for (const std::uint32_t job : node.jobs) {
                const bool is_batch = jobs_[job].wait_class == WaitClass::batch;
                (is_batch ? machine.best_effort : machine.jobs) += 1;
            }
            machine.left_s = node.jobs.empty() ? 0 : std::max(0.0, node.free_at - now_);
            machine.usd_per_hour = settings_.usd_per_hour;
        }
        pool.offers = {{.place = "cloud", .usd_per_hour = settings_.usd_per_hour}};
        return pool;
    }

    void look() {
        const autoscale::PoolView pool = view();
        ElasticSight sight{.now = time_of(now_), .pool = pool};
        sight.queued = waiting();
        sight.running = running_;
        for (const auto& queue : queues_) {
            if (!queue.empty()) {
                sight.oldest_wait_s =
                    std::max(sight.oldest_wait_s, now_ - jobs_[queue.front()].at_s);
            }
        }
        const int wanted = std::max(rule_.machines(sight), 0);
        const int had = static_cast<int>(live_.size());
        if (wanted > had) {
            order(wanted - had);
        } else if (wanted < had) {
            let_go(had - wanted);
        }
        const int now_there = static_cast<int>(live_.size());
        outcome_.most = std::max(outcome_.most, now_there);
        const int way = now_there > had ? 1 : now_there < had ? -1 : 0;
        if (way != 0) {
            constexpr double kMinute = 60;
            outcome_.turns += way < 0 && way_ > 0 && now_ - way_at_ < kMinute ? 1 : 0;
            way_ = way;
            way_at_ = now_;
        }
    }

    void order(int many) {
        if (!has_stock()) {
            retry_at_ = now_ + kRetryStock;
            return;
        }
        if (now_ < retry_at_) {
            return;
        }
        for (int i = 0; i < many; ++i) {
            constexpr double kSpread = 0.4;
            Node node;
            node.ordered_at = now_;
            node.ready_at =
                now_ + settings_.start_s * (1 - kSpread / 2 + kSpread * random_.uniform());
            if (settings_.spot_hours > 0) {
                node.taken_at = node.ready_at + random_.exponential(settings_.spot_hours * kHour);
            }
            live_.push_back(nodes_.size());
            nodes_.push_back(node);
            outcome_.starts += 1;
        }
    }

    // Those that have idled longest; those on the way where they are not needed at all.
    void let_go(int many) {
        std::vector<std::size_t> idle;
        for (const std::size_t at : live_) {
            const Node& node = nodes_[at];
            const bool has_idled = !node.is_ready(now_) || now_ - node.idle_since >= rule_.idle_s();
            const bool is_best_effort =
                !node.jobs.empty() && std::ranges::all_of(node.jobs, [this](std::uint32_t job) {
                    return jobs_[job].wait_class == WaitClass::batch;
                });
            if ((node.jobs.empty() && has_idled) || (is_best_effort && rule_.idle_s() == 0) ||
                rule_.drains()) {
                idle.push_back(at);
            }
        }
        std::ranges::sort(idle, {}, [this](std::size_t at) {
            const Node& node = nodes_[at];
            return std::tuple(node.is_ready(now_), !node.jobs.empty(), node.idle_since, at);
        });
        for (std::size_t i = 0; i < idle.size() && std::cmp_less(i, many); ++i) {
            Node& node = nodes_[idle[i]];
            if (node.jobs.empty()) {
                stop(idle[i]);
            } else {
                node.taken_at = node.free_at;  // once it has ended what it does
                node.is_let_go = true;
            }
        }
        std::erase_if(live_, [this](std::size_t at) { return !nodes_[at].is_there; });
    }

    void pay(double since) {
        constexpr double kDay = 24 * kHour;
        while (since < now_) {
            const auto day = static_cast<std::size_t>(since / kDay);
            const double until = std::min(now_, static_cast<double>(day + 1) * kDay);
            outcome_.usd_by_day.resize(std::max(outcome_.usd_by_day.size(), day + 1));
            outcome_.usd_by_day[day] += (until - since) / kHour * settings_.usd_per_hour;
            since = until;
        }
    }

    void stop(std::size_t at) {
        Node& node = nodes_[at];
        if (!node.is_there) {
            return;
        }
        node.is_there = false;
        outcome_.machine_hours += (now_ - node.ordered_at) / kHour;
        pay(node.ordered_at);
        outcome_.starting_hours += (std::min(now_, node.ready_at) - node.ordered_at) / kHour;
        if (node.is_ready(now_) && node.jobs.empty()) {
            outcome_.idle_hours += (now_ - node.idle_since) / kHour;
        }
    }

    const std::vector<ElasticJob>& jobs_;
    ElasticRule& rule_;
    const ElasticSettings& settings_;
    Random random_;
    ElasticOutcome outcome_;
    double now_ = 0;
    std::size_t next_ = 0;
    std::array<std::deque<std::uint32_t>, scheduler::kWaitClasses> queues_;
    std::array<double, scheduler::kWaitClasses> queued_s_{};
    std::vector<Node> nodes_;
    std::vector<std::size_t> live_;
    std::size_t running_ = 0;
    double arrived_s_ = 0;
    double retry_at_ = 0;
    int way_ = 0;
    double way_at_ = 0;
};

}  // namespace

double ElasticOutcome::wait(double part) const {
    std::vector<float> counted;
    for (std::size_t at = 0; at < waits.size(); ++at) {
        if (classes[at] != WaitClass::batch) {
            counted.push_back(waits[at] < 0 ? std::numeric_limits<float>::infinity() : waits[at]);
        }
    }
    if (counted.empty()) {
        return 0;
    }
    const auto place = static_cast<std::size_t>(part * static_cast<double>(counted.size() - 1));
    std::ranges::nth_element(counted, counted.begin() + static_cast<std::ptrdiff_t>(place));
    return static_cast<double>(counted[place]);
}

ElasticOutcome run_elastic(
    const std::vector<ElasticJob>& jobs, ElasticRule& rule, const ElasticSettings& settings
) {
    return World(jobs, rule, settings).run();
}

}  // namespace comfyd::simulate
