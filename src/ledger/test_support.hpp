// What the tests of this room share: a folder of their own, a way to await from a test, jobs with
// every field set, and the list of storages that the contract tests run over.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <exception>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "assets/store.hpp"
#include "base/wait_for.hpp"
#include "jobs/bulk_store.hpp"
#include "jobs/ledger.hpp"
#include "jobs/notebook.hpp"
#include "jobs/workflow_store.hpp"
#include "ledger/sqlite_ledger.hpp"
#include "notify/deliveries.hpp"
#include "notify/endpoint_store.hpp"
#include "notify/outbox.hpp"
#include "notify/routing.hpp"

namespace comfyd::ledger::test {

class TempFolder {
public:
    TempFolder() {
        auto pattern = (std::filesystem::temp_directory_path() / "ledger-test-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) {
            throw std::runtime_error("no temporary folder");
        }
        path_ = pattern;
    }
    ~TempFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TempFolder(const TempFolder&) = delete;
    TempFolder& operator=(const TempFolder&) = delete;
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

// One that is destroyed with the program only: a ledger may be leaving it still when all that it
// has resumed there has ended.
inline boost::asio::io_context& make_io() {
    static std::list<boost::asio::io_context> all;
    return all.emplace_back(1);
}

// Runs a task to its end on this thread.
template <class T>
T await(Task<T> task) {
    static boost::asio::io_context& io = make_io();
    return run_task(io, std::move(task));
}

// The value of a Result that must be one.
template <class T>
T get(Result<T> result) {
    if (!result) {
        throw std::runtime_error(
            std::string(to_string(result.error().code)) + ": " + result.error().message
        );
    }
    if constexpr (!std::is_void_v<T>) {
        return std::move(*result);
    }
}
template <class T>
T await_value(Task<Result<T>> task) {
    return get(await(std::move(task)));
}
template <class T>
std::optional<Code> await_code(Task<Result<T>> task) {
    const auto result = await(std::move(task));
    return result ? std::nullopt : std::optional(result.error().code);
}

// Every field as text, to compare whole values.
json::object describe(const jobs::Job& job);
json::object describe(const jobs::Spec& spec);
json::object describe(const jobs::Event& event);
json::object describe(const assets::Asset& asset);

jobs::Spec simple_spec(std::string tenant = "local");
jobs::Spec full_spec();
jobs::Output full_output(Time now);
jobs::NewJob make_new(jobs::Spec spec, Time now);

// A storage that can be closed and opened again over the same data.
struct Storage {
    virtual ~Storage() = default;
    virtual jobs::Ledger& ledger() = 0;
    virtual assets::Catalogue& catalogue() = 0;
    virtual notify::Outbox& outbox() = 0;
    virtual notify::Deliveries& deliveries() = 0;
    virtual notify::EndpointStore& endpoints() = 0;
    virtual auth::IdentityStore& identities() = 0;
    virtual auth::SessionStore& sessions() = 0;
    virtual fleet::InstanceStore& instances() = 0;
    virtual models::RegisterStore& models() = 0;
    virtual jobs::WorkflowStore& workflows() = 0;
    virtual jobs::Notebook& notebook() = 0;
    virtual jobs::BulkStore& bulks() = 0;
    virtual void reopen() = 0;

    notify::Routing routing;  // by which it tells
};
struct Backend {
    std::string name;
    std::function<std::unique_ptr<Storage>(Clock& clock)> make;
    bool is_whole = true;  // false: it keeps no assets, webhooks, workflows and notes

    friend void PrintTo(const Backend& shown, std::ostream* out) { *out << shown.name; }
};
// The URL of a database with empty tables, on a server that all tests of the process share.
std::string make_postgres_database();
std::vector<Backend> backends();  // those that keep everything
std::vector<Backend> job_backends();

// Base of the tests that every storage must pass.
class Contract : public testing::TestWithParam<Backend> {
protected:
    boost::asio::io_context io_{1};  // outlives the storage
    ManualClock clock_;
    std::unique_ptr<Storage> storage_ = GetParam().make(clock_);

    jobs::Ledger& ledger() { return storage_->ledger(); }
    assets::Catalogue& catalogue() { return storage_->catalogue(); }
    notify::Outbox& outbox() { return storage_->outbox(); }
    notify::Deliveries& deliveries() { return storage_->deliveries(); }
    notify::EndpointStore& endpoints() { return storage_->endpoints(); }
    auth::IdentityStore& identities() { return storage_->identities(); }
    auth::SessionStore& sessions() { return storage_->sessions(); }
    fleet::InstanceStore& instances() { return storage_->instances(); }
    models::RegisterStore& models() { return storage_->models(); }
    jobs::WorkflowStore& workflows() { return storage_->workflows(); }
    jobs::Notebook& notebook() { return storage_->notebook(); }
    jobs::BulkStore& bulks() { return storage_->bulks(); }

    jobs::Job accept(jobs::Spec spec) {
        auto job = make_new(std::move(spec), clock_.now());
        job.warning = jobs::warn(job.change, job.spec);
        const jobs::Job made = job.change.job;
        EXPECT_TRUE(await_value(ledger().accept(std::move(job))).created);
        return made;
    }
    jobs::Job commit(Result<jobs::Change> change) {
        auto made = get(std::move(change));
        await_value(ledger().commit(made));
        return made.job;
    }
    jobs::Job start(
        const jobs::Job& job, const std::optional<jobs::BatchPlace>& shared = std::nullopt
    ) {
        return commit(jobs::start(job, "worker-1", job.sequence + 1, clock_.now(), shared));
    }
    // What is due now. It is given back at once, because a storage that nodes share hands nothing
    // out twice.
    std::vector<notify::Delivery> due(int limit = 10'000) {
        auto found = await_value(outbox().due(clock_.now(), limit));
        for (const auto& delivery : found) {
            await_value(outbox().put_aside(delivery, delivery.next_attempt_at, ""));
        }
        return found;
    }
    jobs::Job complete(const jobs::Job& job) {
        return commit(jobs::complete(job, {}, {}, job.sequence + 1, clock_.now()));
    }
};

inline std::string backend_name(const testing::TestParamInfo<Backend>& info) {
    return info.param.name;
}

}  // namespace comfyd::ledger::test
