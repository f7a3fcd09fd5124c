#include "jobs/leads.hpp"

#include "base/assert.hpp"

namespace comfyd::jobs {

Dispatcher& Leads::add(const std::string& domain, std::unique_ptr<Dispatcher> dispatcher) {
    auto lead = std::make_shared<Lead>();
    lead->dispatcher = std::move(dispatcher);
    const auto [entry, is_new] = leads_.emplace(domain, std::move(lead));
    COMFYD_ASSERT(is_new);
    count_.store(leads_.size(), std::memory_order_relaxed);
    return *entry->second->dispatcher;
}

Task<> Leads::drop(std::string domain, Millis grace) {
    const auto found = leads_.find(domain);
    if (found == leads_.end()) {
        co_return;
    }
    const auto lead = found->second;
    co_await lead->dispatcher->stop(grace);
    leads_.erase(domain);  // nobody new comes in
    count_.store(leads_.size(), std::memory_order_relaxed);
    while (lead->visitors > 0) {
        const bool is_told = co_await left_.wait();
        if (!is_told) {
            break;
        }
    }
}

Task<> Leads::drop_all(Millis grace) {
    while (!leads_.empty()) {
        co_await drop(leads_.begin()->first, grace);
    }
}

Dispatcher* Leads::find(const std::string& domain) const {
    const auto found = leads_.find(domain);
    return found == leads_.end() ? nullptr : found->second->dispatcher.get();
}

std::vector<std::string> Leads::domains() const {
    std::vector<std::string> names;
    for (const auto& [domain, lead] : leads_) {
        names.push_back(domain);
    }
    return names;
}

void Leads::each(const std::function<void(Dispatcher&)>& call) const {
    for (const auto& [domain, lead] : leads_) {
        call(*lead->dispatcher);
    }
}

}  // namespace comfyd::jobs
