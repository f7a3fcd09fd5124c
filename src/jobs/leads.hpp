// The dispatchers of this node: one for each domain that it leads. Core executor, but for any().
//
// A dispatcher works with a ledger and a fleet that are its lead's and go with it. So one that is
// to go ends what it does itself, and is dropped when the last of those who called it has its
// answer.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/task.hpp"
#include "jobs/dispatcher.hpp"

namespace comfyd::jobs {

class Leads {
public:
    explicit Leads(Executor core) : left_(core) {}

    // REQUIRES: this node does not lead the domain.
    Dispatcher& add(const std::string& domain, std::unique_ptr<Dispatcher> dispatcher);
    // Its running attempts are left on their workers, or finish within `grace`.
    Task<> drop(std::string domain, Millis grace);
    Task<> drop_all(Millis grace);

    // nullptr: another node leads it.
    Dispatcher* find(const std::string& domain) const;
    // Whether there is one. Any thread.
    bool any() const { return count_.load(std::memory_order_relaxed) > 0; }
    std::vector<std::string> domains() const;
    void each(const std::function<void(Dispatcher&)>& call) const;

    // Runs `work(dispatcher)`, a Task, while the dispatcher stays. REQUIRES: find(domain).
    template <class Work>
    auto visit(std::string domain, Work work) -> decltype(work(std::declval<Dispatcher&>())) {
        const auto lead = leads_.at(domain);
        const Visit visit(*lead, left_);
        auto answer = co_await work(*lead->dispatcher);
        co_return answer;
    }

private:
    struct Lead {
        std::unique_ptr<Dispatcher> dispatcher;
        std::size_t visitors = 0;
    };
    class Visit {
    public:
        Visit(Lead& lead, Signal& left) : lead_(lead), left_(left) { ++lead_.visitors; }
        ~Visit() {
            --lead_.visitors;
            left_.notify();
        }
        Visit(const Visit&) = delete;
        Visit& operator=(const Visit&) = delete;

    private:
        Lead& lead_;
        Signal& left_;
    };

    std::map<std::string, std::shared_ptr<Lead>> leads_;  // by domain
    std::atomic<std::size_t> count_{0};
    Signal left_;
};

}  // namespace comfyd::jobs
