// Deliveries to tenants' endpoints: schemes, bodies, rotation, and one that is gone.
#include <gmock/gmock.h>

#include <map>

#include "base/crypto.hpp"
#include "notify/endpoint_book.hpp"
#include "notify/test_support.hpp"

namespace comfyd::notify::test {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

// Endpoints in memory, by the same contract as on disk.
class MemoryEndpoints final : public EndpointStore {
public:
    Task<Result<>> save_endpoint(Endpoint endpoint) override {
        const std::lock_guard lock(mutex_);
        const auto stored = all_.find(endpoint.id);
        const std::uint64_t revision = stored == all_.end() ? 0 : stored->second.revision;
        if (refusals_ > 0 || revision + 1 != endpoint.revision) {
            refusals_ = std::max(0, refusals_ - 1);
            co_return fail(Code::conflict, "stale");
        }
        all_[endpoint.id] = std::move(endpoint);
        ++changes_;
        co_return Result<>();
    }
    Task<Result<bool>> remove_endpoint(EndpointId id) override {
        const std::lock_guard lock(mutex_);
        ++changes_;
        co_return all_.erase(id) > 0;
    }
    Task<Result<AllEndpoints>> all_endpoints() override {
        const std::lock_guard lock(mutex_);
        ++reads_;
        AllEndpoints all;
        all.changes = changes_;
        for (const auto& [id, endpoint] : all_) {
            all.endpoints.push_back(endpoint);
        }
        co_return all;
    }
    Task<Result<std::uint64_t>> endpoint_changes() override {
        const std::lock_guard lock(mutex_);
        co_return changes_;
    }
    void refuse(int times) { refusals_ = times; }
    int reads() {
        const std::lock_guard lock(mutex_);
        return reads_;
    }

private:
    std::mutex mutex_;
    std::map<EndpointId, Endpoint> all_;
    std::uint64_t changes_ = 0;
    int reads_ = 0;
    int refusals_ = 0;
};

class EndpointsTest : public WebhooksTest {
protected:
    EndpointsTest() {
        webhook_options_.find_endpoint = [this](EndpointId id) { return book_.find(id); };
        options_.disable_endpoint = [this](EndpointId id, std::string why) {
            return book_.disable(id, std::move(why));
        };
    }
    // Before the book goes, which is asked until then.
    ~EndpointsTest() override {
        if (webhooks_) {
            loop_.run(webhooks_->stop());
        }
    }
    Endpoint make(const std::function<void(Endpoint&)>& change = {}) {
        Endpoint endpoint;
        endpoint.id = EndpointId::make(clock_.now());
        endpoint.tenant = "local";
        endpoint.webhook.url = receiver_.url("/endpoint");
        endpoint.webhook.secret = "whsec_c2VjcmV0";
        if (change) {
            change(endpoint);
        }
        return *loop_.run(book_.save(endpoint)).value();
    }
    // A job whose end is told to the endpoint, and its event.
    jobs::Job tell_end(const Endpoint& endpoint) {
        jobs::Spec spec;
        spec.webhook.emplace();
        const auto change = jobs::make_job(JobId::make(clock_.now()), spec, clock_.now());
        ledger_.save(change, spec);
        ledger_.redirect(change.job.id, endpoint.delivery_name(), EndpointTarget{endpoint.id});
        return complete(begin(change.job));
    }
    static std::string standard_signature(const Received& received, const std::string& key) {
        const std::string text = std::string(received.headers.get("webhook-id")) + "." +
                                 std::string(received.headers.get("webhook-timestamp")) + "." +
                                 received.body;
        const Digest digest = hmac_sha256(key, text);
        return "v1," + to_base64({reinterpret_cast<const char*>(digest.data()), digest.size()});
    }

    MemoryEndpoints store_;
    Routing routing_;
    EndpointBook book_{loop_.executor(), clock_, store_, routing_};
};

TEST_F(EndpointsTest, StandardWebhooksIsTheDefault) {
    start();
    const auto job = tell_end(make());
    webhooks_->wake();
    const auto received = receiver_.wait_for(1).at(0);
    EXPECT_EQ(received.path, "/endpoint");
    EXPECT_EQ(received.headers.get("webhook-id"), "msg_" + job.id.to_string() + "_3");
    EXPECT_EQ(received.headers.get("webhook-signature"), standard_signature(received, "secret"));
    for (const char* name : {"X-Signature", "X-Webhook-Signature", "X-Execution-ID"}) {
        EXPECT_FALSE(received.headers.contains(name)) << name;
    }
    EXPECT_EQ(json::parse(received.body)->at("type"), "execution.completed");
}

TEST_F(EndpointsTest, OtherSchemesHaveTheirOwnHeaders) {
    start();
    tell_end(make([](Endpoint& endpoint) { endpoint.scheme = Scheme::x_signature; }));
    webhooks_->wake();
    const auto one = receiver_.wait_for(1).at(0);
    EXPECT_EQ(one.headers.get("User-Agent"), "ComfyUI-Serverless/1.0");
    EXPECT_EQ(
        one.headers.get("X-Signature"), "sha256=" + to_hex(hmac_sha256("whsec_c2VjcmV0", one.body))
    );
    EXPECT_TRUE(one.headers.contains("X-Execution-ID"));
    EXPECT_FALSE(one.headers.contains("webhook-id"));
    EXPECT_FALSE(one.headers.contains("X-Webhook-Event"));

    tell_end(make([](Endpoint& endpoint) { endpoint.scheme = Scheme::x_webhook; }));
    webhooks_->wake();
    const auto two = receiver_.wait_for(2).at(1);
    EXPECT_EQ(two.headers.get("User-Agent"), "ComfyUI-Webhooks/1.0");
    EXPECT_EQ(two.headers.get("X-Webhook-Event"), "execution.completed");
    EXPECT_EQ(
        two.headers.get("X-Webhook-Signature"),
        "sha256=" + to_hex(hmac_sha256("whsec_c2VjcmV0", two.body))
    );
    EXPECT_FALSE(two.headers.contains("X-Signature"));
}

TEST_F(EndpointsTest, CloudEventsCarryTheSameData) {
    start();
    const auto job =
        tell_end(make([](Endpoint& endpoint) { endpoint.body = BodyForm::cloud_events; }));
    webhooks_->wake();
    const auto received = receiver_.wait_for(1).at(0);
    EXPECT_EQ(received.headers.get("Content-Type"), "application/cloudevents+json; charset=UTF-8");
    const auto body = json::parse(received.body).value().as_object();
    EXPECT_EQ(body.at("specversion"), "1.0");
    EXPECT_EQ(body.at("id"), json::value(received.headers.get("webhook-id")));
    EXPECT_EQ(body.at("type"), "execution.completed");
    EXPECT_EQ(body.at("subject"), json::value(job.id.to_string()));
    EXPECT_EQ(body.at("data").at("execution_id"), json::value(job.id.to_string()));
    EXPECT_EQ(received.headers.get("webhook-signature"), standard_signature(received, "secret"));
}

TEST_F(EndpointsTest, AfterARotationBothSecretsSignForAWhile) {
    start();
    Endpoint endpoint = make();
    endpoint.previous_secret = std::exchange(endpoint.webhook.secret, "whsec_bmV3");
    endpoint.previous_until = clock_.now() + Millis(1'000);
    endpoint = *loop_.run(book_.save(endpoint)).value();
    tell_end(endpoint);
    webhooks_->wake();
    const auto both = receiver_.wait_for(1).at(0);
    EXPECT_EQ(
        both.headers.get("webhook-signature"),
        standard_signature(both, "new") + " " + standard_signature(both, "secret")
    );
    clock_.advance(Millis(1'000));
    tell_end(endpoint);
    webhooks_->wake();
    const auto one = receiver_.wait_for(2).at(1);
    EXPECT_EQ(one.headers.get("webhook-signature"), standard_signature(one, "new"));
}

TEST_F(EndpointsTest, OneThatIsGoneIsDisabledAndNothingWaitsForIt) {
    const Endpoint endpoint =
        make([this](Endpoint& one) { one.webhook.url = receiver_.url("/gone"); });
    receiver_.answer_next(410);
    for (int i = 0; i < 3; ++i) {
        tell_end(endpoint);
    }
    options_.in_flight_per_lane_max = 1;
    store_.refuse(1);  // somebody else changes it in the same moment
    start();
    const auto writes = ledger_.wait_for(3);
    for (const auto& write : writes) {
        EXPECT_EQ(write.kind, "give_up");
    }
    EXPECT_THAT(receiver_.received(), SizeIs(1));
    const auto disabled = book_.find(endpoint.id);
    ASSERT_TRUE(disabled && disabled->disabled);
    EXPECT_NE(disabled->disabled->find("410"), std::string::npos);
    jobs::Job job;
    job.tenant = "local";
    jobs::Event event;
    event.type = jobs::EventType::completed;
    EXPECT_THAT(routing_.now()->of(job, event), IsEmpty()) << "nothing new is told to it";
}

TEST_F(EndpointsTest, WhatWaitsGoesToTheAddressOfToday) {
    Endpoint endpoint = make([this](Endpoint& one) { one.webhook.url = receiver_.url("/old"); });
    tell_end(endpoint);
    endpoint.webhook.url = receiver_.url("/new");
    endpoint = *loop_.run(book_.save(endpoint)).value();
    start();
    EXPECT_EQ(receiver_.wait_for(1).at(0).path, "/new");
    tell_end(endpoint);
    EXPECT_TRUE(loop_.run(book_.remove(endpoint.id)).value());
    webhooks_->wake();
    const auto writes = ledger_.wait_for(2);
    EXPECT_EQ(writes[1].kind, "give_up");
    EXPECT_EQ(writes[1].error, "the endpoint was removed");
}

TEST_F(EndpointsTest, AreReadAgainOnlyWhenOneHasChanged) {
    make();
    EXPECT_EQ(store_.reads(), 1);
    for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(loop_.run(book_.refresh()));
    }
    EXPECT_EQ(store_.reads(), 1);
    Routing elsewhere;
    EndpointBook other(loop_.executor(), clock_, store_, elsewhere);
    EXPECT_TRUE(loop_.run(other.refresh()));
    EXPECT_THAT(other.of_tenant("local"), SizeIs(1));
    EXPECT_THAT(other.of_tenant("other"), IsEmpty());
    make();
    EXPECT_THAT(other.of_tenant("local"), SizeIs(1));
    EXPECT_TRUE(loop_.run(other.refresh()));
    EXPECT_THAT(other.of_tenant("local"), SizeIs(2)) << "what another node made";
}

TEST_F(EndpointsTest, ASampleIsSentPastAllQueues) {
    start();
    const Endpoint endpoint = make();
    receiver_.answer_next(503);
    Message message;
    message.to = EndpointTarget{endpoint.id};
    message.job.id = JobId::make(clock_.now());
    message.event.job = message.job.id;
    const auto outcome = loop_.run(webhooks_->try_once(message));
    EXPECT_EQ(outcome.kind, Outcome::Kind::retry);
    EXPECT_EQ(outcome.status, 503);
    EXPECT_EQ(loop_.run(webhooks_->try_once(message)).kind, Outcome::Kind::delivered);
    EXPECT_EQ(ledger_.pending(), 0U);
}

TEST_F(EndpointsTest, UnverifiedServersOnlyWhereAllowed) {
    const Endpoint endpoint = make([](Endpoint& one) { one.webhook.verify_tls = false; });
    tell_end(endpoint);
    start();
    EXPECT_EQ(ledger_.wait_for(1).at(0).kind, "give_up");
    EXPECT_THAT(receiver_.received(), IsEmpty());
}

}  // namespace
}  // namespace comfyd::notify::test
