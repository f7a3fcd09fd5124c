#include "assets/breaker_store.hpp"

#include <gtest/gtest.h>

#include "assets/test_support.hpp"

namespace comfyd::assets {
namespace {

using test::wait_for;
using State = CircuitBreaker::State;

// Answers as it is told to, and counts.
class Told : public BlobStore {
public:
    std::optional<Code> refusal{};
    int asked = 0;
    std::function<void()> meanwhile{};  // while it is asked

    Result<> open() override { return {}; }
    Task<Result<std::string>> put(std::string key, Source) override {
        co_return answer(std::move(key));
    }
    Task<Result<std::optional<Place>>> find(std::string, LinkTerms) override {
        co_return std::optional<Place>(Streamed{});
    }
    Task<Result<std::string>> read(std::string key, std::uint64_t, std::uint64_t) override {
        co_return answer(std::move(key));
    }
    Task<Result<>> remove(std::string) override { co_return Result<>(); }
    Task<Result<>> change_class(std::string, StorageClass) override { co_return Result<>(); }
    Task<Result<Page>> list(std::string) override { co_return Page{}; }
    Task<Result<>> remove_unfinished(Time) override { co_return Result<>(); }

private:
    Result<std::string> answer(std::string text) {
        ++asked;
        if (meanwhile) {
            std::exchange(meanwhile, nullptr)();
        }
        return refusal ? Result<std::string>(fail(*refusal, "told to")) : std::move(text);
    }
};

class BreakerStoreTest : public testing::Test {
protected:
    static constexpr CircuitBreaker::Limits kLimits{
        .failures = 3, .open_first = Millis(1'000), .open_max = Millis(4'000)
    };

    Result<std::string> read() { return wait_for(store_.read("key", 0, 1)); }
    void go_away() {
        told_.refusal = Code::storage_unavailable;
        for (int i = 0; i < kLimits.failures; ++i) {
            EXPECT_FALSE(read());
        }
    }

    ManualClock clock_;
    std::unique_ptr<Told> owned_ = std::make_unique<Told>();
    Told& told_ = *owned_;
    BreakerStore store_{"main", std::move(owned_), clock_, kLimits};
};

TEST_F(BreakerStoreTest, AStoreThatIsAwayIsAskedNoMore) {
    go_away();
    EXPECT_EQ(store_.state(), State::open);
    const auto refused = read();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::storage_unavailable);
    EXPECT_NE(refused.error().message.find("'main'"), std::string::npos);
    EXPECT_FALSE(wait_for(store_.put("key", Source{})));
    EXPECT_EQ(told_.asked, kLimits.failures);
    EXPECT_TRUE(wait_for(store_.find("key", {}))) << "which asks nobody";
}

TEST_F(BreakerStoreTest, OneCallDecidesWhetherItIsBack) {
    go_away();
    clock_.advance(kLimits.open_first);
    EXPECT_EQ(store_.state(), State::half_open);
    EXPECT_FALSE(read());
    EXPECT_EQ(store_.state(), State::open);
    clock_.advance(kLimits.open_first / 2);
    EXPECT_FALSE(read());
    EXPECT_EQ(told_.asked, kLimits.failures + 1);

    clock_.advance(2 * kLimits.open_first);
    told_.refusal.reset();
    EXPECT_TRUE(read());
    EXPECT_EQ(store_.state(), State::closed);
    EXPECT_TRUE(read());
}

TEST_F(BreakerStoreTest, WhoeverTriesItDoesSoAlone) {
    go_away();
    clock_.advance(kLimits.open_first);
    told_.refusal = Code::cancelled;  // it says nothing of the store
    EXPECT_FALSE(read());
    EXPECT_EQ(store_.state(), State::half_open);
    told_.refusal.reset();
    std::optional<Result<std::string>> other;
    told_.meanwhile = [&] {
        boost::asio::io_context context;
        boost::asio::co_spawn(
            context,
            store_.read("key", 0, 1),
            [&](const std::exception_ptr&, Result<std::string> answer) {
                other = std::move(answer);
            }
        );
        context.run();
    };
    EXPECT_TRUE(read()) << "the one before has ended";
    ASSERT_TRUE(other);
    EXPECT_FALSE(*other);
}

TEST_F(BreakerStoreTest, OtherRefusalsAreAnswers) {
    for (const Code code : {Code::not_found, Code::config_invalid, Code::storage_full}) {
        told_.refusal = code;
        for (int i = 0; i < 2 * kLimits.failures; ++i) {
            EXPECT_EQ(read().error().code, code);
        }
    }
    EXPECT_EQ(store_.state(), State::closed);
}

TEST_F(BreakerStoreTest, OnlyFailuresInARowCount) {
    for (int i = 0; i < 5; ++i) {
        told_.refusal = Code::storage_unavailable;
        EXPECT_FALSE(read());
        EXPECT_FALSE(read());
        told_.refusal.reset();
        EXPECT_TRUE(read());
    }
    EXPECT_EQ(store_.state(), State::closed);
}

}  // namespace
}  // namespace comfyd::assets
