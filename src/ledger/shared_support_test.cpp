#include "ledger/memory_shared.hpp"
#include "ledger/shared_test_support.hpp"

namespace comfyd::ledger::test {
namespace {

class MemoryStorage final : public SharedStorage {
public:
    explicit MemoryStorage(Clock& clock) : ledger_(clock) {}

    SharedNode node(int number) override {
        NodeId id;
        id.uuid.bytes[15] = static_cast<std::uint8_t>(number + 1);
        return {id, ledger_, shared_, leases_};
    }
    void pass(Millis time) override { clock_.advance(time); }
    void cut_session(int number) override { leases_.end_session(node(number).id); }
    std::function<void()> begin_accept(jobs::NewJob job) override {
        const auto transaction = ledger_.begin();
        return [this, transaction, job = std::move(job)] {
            EXPECT_TRUE(await_value(ledger_.accept_in(transaction, job)).created);
        };
    }

private:
    ManualClock clock_;  // of the leases
    MemoryLedger ledger_;
    MemoryLeases leases_{clock_};
    MemoryShared shared_{ledger_, leases_};
};

}  // namespace

std::vector<SharedBackend> shared_backends() {
    return {
        {"memory", [](Clock& clock) { return std::make_unique<MemoryStorage>(clock); }},
    };
}

}  // namespace comfyd::ledger::test
