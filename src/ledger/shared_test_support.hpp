// What the tests of a ledger that several nodes share are written with, and the list of such
// ledgers: each must pass contract_leases_test.cpp, contract_roster_test.cpp and
// contract_shared_test.cpp.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "cluster/leases.hpp"
#include "cluster/roster.hpp"
#include "jobs/shared_ledger.hpp"
#include "ledger/test_support.hpp"

namespace comfyd::ledger::test {

// What one process has of it.
struct SharedNode {
    NodeId id;
    jobs::Ledger& ledger;
    jobs::SharedLedger& shared;
    cluster::Leases& leases;
    cluster::Roster& roster;
};

// One database and two nodes.
struct SharedStorage {
    virtual ~SharedStorage() = default;
    virtual SharedNode node(int number) = 0;  // 0 or 1
    // As if so much time had passed for the leases and the list of nodes that there are.
    virtual void pass(Millis time) = 0;
    // The session in which the node asked for leases ends, and the database knows of it.
    virtual void cut_session(int number) = 0;
    // Accepts the job in a transaction that begins now and is committed when the result is called.
    virtual std::function<void()> begin_accept(jobs::NewJob job) = 0;
};
struct SharedBackend {
    std::string name;
    std::function<std::unique_ptr<SharedStorage>(Clock& clock)> make;

    friend void PrintTo(const SharedBackend& shown, std::ostream* out) { *out << shown.name; }
};
std::vector<SharedBackend> shared_backends();

class SharedContract : public testing::TestWithParam<SharedBackend> {
protected:
    SharedNode node(int number) { return storage_->node(number); }
    std::optional<cluster::Taken> take(int number, const std::string& domain = "main") {
        return await_value(node(number).leases.take(domain, node(number).id));
    }
    std::optional<Code> renew(int number, const jobs::Term& term, std::uint64_t queued = 0) {
        return await_code(node(number).leases.renew(term, queued));
    }
    jobs::NewJob make_job(const std::string& domain = "main") {
        auto spec = simple_spec();
        spec.domain = domain;
        return make_new(std::move(spec), clock_.now());
    }
    jobs::Job accept(int number, const std::string& domain = "main") {
        auto job = make_job(domain);
        const jobs::Job made = job.change.job;
        EXPECT_TRUE(await_value(node(number).ledger.accept(std::move(job))).created);
        return made;
    }

    boost::asio::io_context io_{1};  // outlives the storage
    ManualClock clock_;
    std::unique_ptr<SharedStorage> storage_ = GetParam().make(clock_);
};

inline std::string shared_backend_name(const testing::TestParamInfo<SharedBackend>& info) {
    return info.param.name;
}

}  // namespace comfyd::ledger::test
