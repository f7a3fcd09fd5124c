#include "simulate/elastic_rules.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <utility>

namespace comfyd::simulate {
namespace {

std::string plain(double value) {
    return value == std::floor(value) ? std::to_string(static_cast<int>(value))
                                      : std::to_string(value).substr(0, 4);
}

double in_seconds(Time time) {
    return static_cast<double>(to_unix_ms(time)) / 1000;
}

int machines_for(double jobs, double each) {
    return static_cast<int>(std::ceil(jobs / each - 1e-9));
}

class Own final : public ElasticRule {
public:
    Own(autoscale::Settings settings, std::string name)
        : settings_(std::move(settings)), name_(std::move(name)) {}
    std::string name() const override { return name_; }
    int machines(const ElasticSight& sight) override {
        autoscale::PoolView pool = sight.pool;
        pool.settings = settings_;
        for (const autoscale::Machine& machine : pool.machines) {
            memory_.spent.add(looked_at_.value_or(sight.now), sight.now, machine.usd_per_hour);
        }
        looked_at_ = sight.now;
        pool.budget = autoscale::tightest(settings_.budget, {&memory_.spent}, sight.now);
        pool.usd_per_hour_max = settings_.budget.usd_per_hour;
        const autoscale::Decision decision = autoscale::decide(pool, memory_, sight.now);
        drains_ = decision.drains;
        return decision.machines;
    }
    bool drains() const override { return drains_; }
    void machine_started(double seconds) override { memory_.starts.note("cloud", seconds); }

private:
    const autoscale::Settings settings_;
    const std::string name_;
    autoscale::Memory memory_;
    std::optional<Time> looked_at_;
    bool drains_ = false;
};

class Fixed final : public ElasticRule {
public:
    explicit Fixed(int machines) : machines_(machines) {}
    std::string name() const override { return "fixed " + std::to_string(machines_); }
    int machines(const ElasticSight&) override { return machines_; }

private:
    const int machines_;
};

class RequestCount final : public ElasticRule {
public:
    RequestCount(double each, double idle_s, int most)
        : each_(each), idle_s_(idle_s), most_(most) {}
    std::string name() const override {
        return "RunPod count " + plain(each_) + ", idle " + plain(idle_s_) + " s";
    }
    double idle_s() const override { return idle_s_; }
    int machines(const ElasticSight& sight) override {
        const auto jobs = static_cast<double>(sight.queued + sight.running);
        return std::min(machines_for(jobs, each_), most_);
    }

private:
    const double each_;
    const double idle_s_;
    const int most_;
};

class QueueDelay final : public ElasticRule {
public:
    QueueDelay(double delay_s, double idle_s, int most)
        : delay_s_(delay_s), idle_s_(idle_s), most_(most) {}
    std::string name() const override {
        return "RunPod delay " + plain(delay_s_) + " s, idle " + plain(idle_s_) + " s";
    }
    double look_every_s() const override { return 2; }
    double idle_s() const override { return idle_s_; }
    int machines(const ElasticSight& sight) override {
        const int had = static_cast<int>(sight.pool.machines.size());
        if (sight.oldest_wait_s > delay_s_) {
            return std::min(had + 1, most_);
        }
        return sight.queued == 0 ? 0 : std::max(had, 1);
    }

private:
    const double delay_s_;
    const double idle_s_;
    const int most_;
};

class Keda final : public ElasticRule {
public:
    Keda(double each, double window_s, int most) : each_(each), window_s_(window_s), most_(most) {}
    std::string name() const override {
        return "KEDA " + plain(each_) + ", window " + plain(window_s_) + " s";
    }
    double look_every_s() const override { return 15; }
    int machines(const ElasticSight& sight) override {
        const auto jobs = static_cast<double>(sight.queued + sight.running);
        const double now = in_seconds(sight.now);
        wished_.emplace_back(now, std::min(machines_for(jobs, each_), most_));
        while (now - wished_.front().first > window_s_) {
            wished_.pop_front();
        }
        int most = 0;
        for (const auto& [at, machines] : wished_) {
            most = std::max(most, machines);
        }
        const int had = static_cast<int>(sight.pool.machines.size());
        return wished_.back().second >= had ? wished_.back().second : std::min(had, most);
    }

private:
    const double each_;
    const double window_s_;
    const int most_;
    std::deque<std::pair<double, int>> wished_;
};

class Knative final : public ElasticRule {
public:
    Knative(double each, double delay_s, int most) : each_(each), delay_s_(delay_s), most_(most) {}
    std::string name() const override {
        return "Knative " + plain(each_) + ", delay " + plain(delay_s_) + " s";
    }
    double look_every_s() const override { return 2; }
    int machines(const ElasticSight& sight) override {
        const double now = in_seconds(sight.now);
        jobs_.emplace_back(now, static_cast<double>(sight.queued + sight.running));
        while (now - jobs_.front().first > kWindow) {
            jobs_.pop_front();
        }
        const auto ready =
            std::ranges::count_if(sight.pool.machines, &autoscale::Machine::is_ready);
        const int had = static_cast<int>(sight.pool.machines.size());
        const int calm = machines_for(mean(now, kWindow), each_);
        const int panic = machines_for(mean(now, kPanicWindow), each_);
        if (panic >= 2 * std::max<std::ptrdiff_t>(ready, 1)) {
            panics_until_ = now + kWindow;
        }
        int wanted = calm;
        if (now < panics_until_) {
            wanted = std::max({calm, panic, had});
        }
        wished_.emplace_back(now, wanted);
        while (now - wished_.front().first > delay_s_) {
            wished_.pop_front();
        }
        for (const auto& [at, machines] : wished_) {
            wanted = std::max(wanted, machines);
        }
        return std::min(wanted, most_);
    }

private:
    static constexpr double kWindow = 60;
    static constexpr double kPanicWindow = 6;
    double mean(double now, double window) const {
        double sum = 0;
        double count = 0;
        for (const auto& [at, jobs] : jobs_) {
            if (now - at < window) {
                sum += jobs;
                count += 1;
            }
        }
        return count > 0 ? sum / count : 0;
    }

    const double each_;
    const double delay_s_;
    const int most_;
    std::deque<std::pair<double, double>> jobs_;
    std::deque<std::pair<double, int>> wished_;
    double panics_until_ = 0;
};

class ComfyLess final : public ElasticRule {
public:
    ComfyLess(double idle_s, int most) : idle_s_(idle_s), most_(most) {}
    std::string name() const override { return "ComfyLess, idle " + plain(idle_s_) + " s"; }
    double look_every_s() const override { return 30; }
    double idle_s() const override { return idle_s_; }
    int machines(const ElasticSight& sight) override {
        const int had = static_cast<int>(sight.pool.machines.size());
        const double now = in_seconds(sight.now);
        if (had == 0) {
            return 1;
        }
        if (sight.queued > 0 && now - grew_at_ >= kCooldown) {
            grew_at_ = now;
            return std::min(had + 1, most_);
        }
        return sight.queued > 0 ? had : 1;
    }

private:
    static constexpr double kCooldown = 60;
    const double idle_s_;
    const int most_;
    double grew_at_ = 0;
};

}  // namespace

ElasticRulePtr make_own_rule(autoscale::Settings settings, std::string name) {
    return std::make_unique<Own>(std::move(settings), std::move(name));
}
ElasticRulePtr make_fixed_rule(int machines) {
    return std::make_unique<Fixed>(machines);
}
ElasticRulePtr make_request_count_rule(double jobs_each, double idle_s, int most) {
    return std::make_unique<RequestCount>(jobs_each, idle_s, most);
}
ElasticRulePtr make_queue_delay_rule(double delay_s, double idle_s, int most) {
    return std::make_unique<QueueDelay>(delay_s, idle_s, most);
}
ElasticRulePtr make_keda_rule(double jobs_each, double window_s, int most) {
    return std::make_unique<Keda>(jobs_each, window_s, most);
}
ElasticRulePtr make_knative_rule(double jobs_each, double scale_down_delay_s, int most) {
    return std::make_unique<Knative>(jobs_each, scale_down_delay_s, most);
}
ElasticRulePtr make_comfyless_rule(double idle_s, int most) {
    return std::make_unique<ComfyLess>(idle_s, most);
}

std::vector<ElasticRulePtr> make_peer_rules(int most) {
    std::vector<ElasticRulePtr> rules;
    for (const double idle_s : {5.0, 60.0, 300.0}) {
        for (const double each : {1.0, 2.0, 4.0, 8.0}) {
            rules.push_back(make_request_count_rule(each, idle_s, most));
        }
        for (const double delay_s : {4.0, 10.0, 30.0}) {
            rules.push_back(make_queue_delay_rule(delay_s, idle_s, most));
        }
        rules.push_back(make_comfyless_rule(idle_s, most));
    }
    for (const double each : {1.0, 2.0, 4.0, 8.0}) {
        for (const double window_s : {0.0, 60.0, 300.0}) {
            rules.push_back(make_keda_rule(each, window_s, most));
            rules.push_back(make_knative_rule(each, window_s, most));
        }
    }
    return rules;
}

}  // namespace comfyd::simulate
