// For the tests of events: what is told, and those who read it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "events/hub.hpp"

namespace comfyd::events::test {

inline std::shared_ptr<jobs::Event> event(
    std::uint64_t sequence, jobs::EventType type, JobId job = {}
) {
    auto made = std::make_shared<jobs::Event>();
    made->job = job;
    made->sequence = sequence;
    made->type = type;
    return made;
}

inline jobs::Job job_of(std::string tenant, std::string dialect = "tasks") {
    jobs::Job job;
    job.id = JobId::make(SystemClock().now());
    job.tenant = std::move(tenant);
    job.dialect = std::move(dialect);
    return job;
}

inline Changed change(const jobs::Job& job, std::uint64_t sequence) {
    return {
        std::make_shared<const jobs::Job>(job), event(sequence, jobs::EventType::started, job.id)
    };
}
inline Shown progress(const jobs::Job& job, std::uint64_t sequence) {
    return {event(sequence, jobs::EventType::progress, job.id)};
}
inline Said message(const jobs::Job& job, std::string type) {
    return {job.id, {std::move(type), {}, {}, {}}};
}

inline Task<> read_all(
    std::shared_ptr<Subscription> subscription, std::vector<std::uint64_t>& seen, Code& end
) {
    for (;;) {
        auto next = co_await subscription->next(Millis(0));
        if (!next) {
            end = next.error().code;
            co_return;
        }
        seen.push_back((*next)->sequence);
    }
}

// Reads what there is of one job.
struct Reader {
    boost::asio::io_context context;
    TaskGroup tasks{context.get_executor()};
    std::vector<std::uint64_t> seen;
    Code end = Code::internal;

    void drain(const std::shared_ptr<Subscription>& subscription) {
        tasks.spawn("reader", read_all(subscription, seen, end));
        context.restart();
        context.run();
    }
};

}  // namespace comfyd::events::test
