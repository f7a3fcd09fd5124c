#include "api/dialects/execution/execution.hpp"

#include <gtest/gtest.h>

#include "api/dialects/shapes_fixture.hpp"

namespace comfyd::api::execution {
namespace {

using fixture::event;
using fixture::shown;
using fixture::text;
using jobs::EventType;
using jobs::State;

TEST(Execution, EveryStateHasOneOfTheFiveStatuses) {
    EXPECT_EQ(status_of(State::queued), "queued");
    EXPECT_EQ(status_of(State::retry_waiting), "queued");
    EXPECT_EQ(status_of(State::running), "processing");
    EXPECT_EQ(status_of(State::completed), "completed");
    EXPECT_EQ(status_of(State::failed), "failed");
    EXPECT_EQ(status_of(State::expired), "failed");
    EXPECT_EQ(status_of(State::cancelled), "cancelled");
    EXPECT_EQ(states_of("queued"), (std::vector{State::queued, State::retry_waiting}));
    EXPECT_EQ(states_of("failed"), (std::vector{State::failed, State::expired}));
    EXPECT_TRUE(states_of("running").empty());
}

TEST(Execution, QueuedShowsItsPlaceAndNothingThatHasNotHappened) {
    auto queued = shown(State::queued);
    queued.view.queue_position = 3;
    queued.view.estimated_remaining_s = 45;
    EXPECT_EQ(
        json::value(encode_execution(queued, fixture::links())),
        json::parse(
            R"({"cancel_requested":false,"completed_at":null,"error":null,"estimated_remaining":45,)"
            R"("execution_id":"01890000-0000-7000-8000-000000000001","metadata":{"order":7},"priority":5,)"
            R"("progress":0.0,"queue_position":3,"result":null,"retry_count":0,"started_at":null,)"
            R"("status":"queued","submitted_at":"2023-11-14T22:13:20.000Z","unbound_inputs":[],)"
            R"("webhook_delivered":false,"worker":null})"
        )
            .value()
    );
}

TEST(Execution, RunningShowsKnownProgressOnly) {
    auto running = shown(State::running);
    EXPECT_TRUE(encode_execution(running, fixture::links()).at("progress").is_null());
    running.view.progress.emplace().value = 0.25;
    running.view.estimate_confidence = 0.876;
    const auto body = encode_execution(running, fixture::links());
    EXPECT_EQ(body.at("estimate_confidence"), 0.88);
    EXPECT_EQ(body.at("progress").as_double(), 0.25);
    EXPECT_EQ(body.at("worker"), "gpu-1");
    EXPECT_EQ(body.at("retry_count"), 1);
}

TEST(Execution, CompletedHasOutputsWithLinks) {
    auto completed = shown(State::completed);
    completed.webhook_delivered = true;
    const auto body = encode_execution(completed, fixture::links());
    EXPECT_EQ(body.at("progress").as_double(), 1.0);
    EXPECT_TRUE(body.at("webhook_delivered").as_bool());
    const auto& result = body.at("result").as_object();
    EXPECT_EQ(result.at("outputs").as_array().size(), 2U);
    EXPECT_EQ(
        text(result.at("outputs").as_array()[0]),
        R"({"asset_id":"01890000-0000-7000-8000-0000000000aa","content_type":"image/png","hash":"blake3:ab",)"
        R"("name":"a.png","node_id":"9","size_bytes":321,"type":"image",)"
        R"("url":"http://here/01890000-0000-7000-8000-0000000000aa","url_expires_at":"2023-11-14T23:13:20.000Z"})"
    );
    EXPECT_EQ(text(result.at("images")), R"(["http://here/01890000-0000-7000-8000-0000000000aa"])");
}

TEST(Execution, FailedSaysWhy) {
    const auto body = encode_execution(shown(State::failed), fixture::links());
    EXPECT_TRUE(body.at("progress").is_null());
    EXPECT_EQ(
        text(body.at("error")),
        R"({"category":"resource_error","class_type":"KSampler","code":"out_of_memory",)"
        R"("details":{"suggested_action":"reduce_batch_size_or_model_size"},"message":"the GPU is full",)"
        R"("node_id":"3","retry_after":60,"timestamp":"2023-11-14T22:13:25.500Z","traceback":null,)"
        R"("type":"out_of_memory"})"
    );
    const auto expired = encode_execution(shown(State::expired), fixture::links());
    EXPECT_EQ(expired.at("status"), "failed");
    EXPECT_EQ(expired.at("error").at("code"), "deadline_exceeded");
    EXPECT_EQ(expired.at("error").at("category"), "timeout_error");
}

TEST(Execution, AWaitingRetryAndACancelledJobHaveNoError) {
    EXPECT_TRUE(
        encode_execution(shown(State::retry_waiting), fixture::links()).at("error").is_null()
    );
    EXPECT_TRUE(encode_execution(shown(State::cancelled), fixture::links()).at("error").is_null());
}

TEST(Execution, NamesInputsThatHadNoEffect) {
    auto queued = shown(State::queued);
    queued.view.job.dialect_data = {{"unbound_inputs", json::object{{"prompt", "a cat"}}}};
    EXPECT_EQ(
        text(encode_execution(queued, fixture::links()).at("unbound_inputs")), R"(["prompt"])"
    );
}

TEST(Execution, MetricsTellWhatIsKnown) {
    EXPECT_EQ(
        json::value(encode_metrics(fixture::job(State::completed))),
        json::parse(
            R"({"cost":{"estimate_usd":null},"execution_id":"01890000-0000-7000-8000-000000000001",)"
            R"("quality":{"error_category":null,"retry_count":1,"success":true},)"
            R"("resources":{"cpu_usage_percent":null,"gpu_memory_peak_gb":null,"gpu_utilization_percent":null,)"
            R"("system_memory_gb":null},"timing":{"inference_time":3.5,"model_load_time":null,"queue_time":2.0,)"
            R"("total_time":5.5},"workflow":{"image_count":1,"model_count":null,"node_count":2}})"
        )
            .value()
    );
    const auto queued = encode_metrics(fixture::job(State::queued));
    EXPECT_TRUE(queued.at("timing").at("total_time").is_null());
    EXPECT_TRUE(queued.at("quality").at("success").is_null());
    EXPECT_TRUE(queued.at("workflow").at("image_count").is_null());
    const auto failed = encode_metrics(fixture::job(State::failed));
    EXPECT_FALSE(failed.at("quality").at("success").as_bool());
    EXPECT_EQ(failed.at("quality").at("error_category"), "resource_error");
}

TEST(Execution, ErrorsOfEveryCodeHaveShapeAndStatus) {
    const Time now = fixture::kCreated;
    EXPECT_EQ(
        text(encode_error(Error(Code::queue_full, "full"), now)),
        R"({"category":"resource_error","code":"queue_full","details":{"suggested_action":"retry_later"},)"
        R"("message":"full","retry_after":5,"timestamp":"2023-11-14T22:13:20.000Z"})"
    );
    EXPECT_EQ(retry_after(Error(Code::rate_limited, "", {{"retry_after", 17}})), 17);
    EXPECT_EQ(retry_after(Error(Code::not_found, "")), std::nullopt);
    EXPECT_EQ(http_status(Code::invalid_workflow), 400);
    EXPECT_EQ(http_status(Code::no_capable_worker), 400);
    EXPECT_EQ(http_status(Code::invalid_argument), 400);
    EXPECT_EQ(http_status(Code::not_found), 404);
    EXPECT_EQ(http_status(Code::conflict), 409);
    EXPECT_EQ(http_status(Code::idempotency_key_reuse), 422);
    EXPECT_EQ(http_status(Code::queue_full), 429);
    for (int code = 0; code <= static_cast<int>(Code::internal); ++code) {
        const Error error(static_cast<Code>(code), "text");
        EXPECT_EQ(
            encode_error(error, now).at("retry_after").is_null(), !info(error.code).retryable
        );
        EXPECT_GE(http_status(error.code), 400);
    }
}

TEST(EventEncoder, StatusChanges) {
    EventEncoder encoder(shown(State::queued).view, fixture::links());
    const auto started = encoder.encode(
        event(EventType::started, State::running, {{"worker", "gpu-1"}, {"attempt", 1}})
    );
    EXPECT_EQ(started.at("type"), "status_change");
    EXPECT_EQ(started.at("status"), "processing");
    EXPECT_EQ(started.at("sequence"), 20U);
    EXPECT_EQ(started.at("execution_id").as_string(), fixture::kJob.to_string());
    EXPECT_EQ(started.at("timestamp"), "2023-11-14T22:13:25.500Z");
    EXPECT_EQ(started.at("worker"), "gpu-1");
    EXPECT_FALSE(started.at("message").as_string().empty());
    const auto cancelled = encoder.encode(event(EventType::cancelled, State::cancelled));
    EXPECT_EQ(cancelled.at("type"), "status_change");
    EXPECT_EQ(cancelled.at("status"), "cancelled");
    const auto retrying = encoder.encode(event(
        EventType::retrying,
        State::retry_waiting,
        {{"error", fixture::job(State::failed).failure->to_json()},
         {"attempt", 1},
         {"retry_at", "soon"}}
    ));
    EXPECT_EQ(retrying.at("status"), "queued");
    EXPECT_EQ(retrying.at("error").at("code"), "out_of_memory");
    EXPECT_EQ(retrying.at("retry_at"), "soon");
}

TEST(EventEncoder, ProgressIsAFullSnapshot) {
    EventEncoder encoder(shown(State::running).view, fixture::links());
    jobs::Progress progress;
    progress.value = 0.5;
    progress.nodes_done = 1;
    progress.nodes_total = 2;
    progress.current_node = "3";
    progress.current_node_class = "KSampler";
    progress.step = 4;
    progress.steps = 20;
    const auto body =
        encoder.encode(event(EventType::progress, State::running, progress.to_json()));
    EXPECT_EQ(body.at("type"), "progress");
    EXPECT_EQ(body.at("progress").as_double(), 0.5);
    EXPECT_EQ(body.at("nodes_total"), 2);
    EXPECT_EQ(body.at("message"), "Running KSampler, step 4 of 20");
    EXPECT_FALSE(body.contains("value"));
}

TEST(EventEncoder, OutputsCarryLinks) {
    EventEncoder encoder(shown(State::running).view, fixture::links());
    const auto body = encoder.encode(event(
        EventType::output, State::running, {{"output", fixture::output("image", "a.png").to_json()}}
    ));
    EXPECT_EQ(body.at("type"), "output");
    EXPECT_EQ(
        body.at("output").at("url").as_string(), "http://here/" + fixture::kAsset.to_string()
    );
}

TEST(EventEncoder, CompletedCarriesTheResultAndTheTime) {
    EventEncoder encoder(shown(State::running).view, fixture::links());
    const auto body = encoder.encode(event(
        EventType::completed,
        State::completed,
        {{"outputs", json::array{fixture::output("image", "a.png").to_json()}}}
    ));
    EXPECT_EQ(body.at("type"), "completed");
    EXPECT_EQ(body.at("result").at("images").as_array().size(), 1U);
    EXPECT_EQ(body.at("execution_time").as_double(), 3.5);
}

TEST(EventEncoder, TimesTheLatestAttempt) {
    EventEncoder encoder(shown(State::queued).view, fixture::links());
    const auto unknown = encoder.encode(event(EventType::completed, State::completed));
    EXPECT_TRUE(unknown.at("execution_time").is_null());
    encoder.encode(event(EventType::started, State::running));
    auto completed = event(EventType::completed, State::completed);
    completed.at += Millis(1'250);
    EXPECT_EQ(encoder.encode(completed).at("execution_time").as_double(), 1.25);
}

TEST(EventEncoder, FailuresAreErrors) {
    EventEncoder encoder(shown(State::running).view, fixture::links());
    const auto failed = encoder.encode(event(
        EventType::failed,
        State::failed,
        {{"error", fixture::job(State::failed).failure->to_json()}}
    ));
    EXPECT_EQ(failed.at("type"), "error");
    EXPECT_EQ(failed.at("status"), "failed");
    EXPECT_EQ(failed.at("error").at("message"), "the GPU is full");
    EXPECT_EQ(failed.at("error").at("type"), "out_of_memory");
    EXPECT_EQ(failed.at("error").at("category"), "resource_error");
    const auto expired = encoder.encode(event(EventType::expired, State::expired));
    EXPECT_EQ(expired.at("type"), "error");
    EXPECT_EQ(expired.at("status"), "failed");
}

TEST(EventEncoder, TheEndOfAnEarlierLifeIsNotTheLastEvent) {
    auto revived = shown(State::queued);
    revived.view.job.sequence = 21;
    const EventEncoder encoder(revived.view, fixture::links());
    auto failed = event(EventType::failed, State::failed);
    EXPECT_FALSE(encoder.is_last(failed));
    failed.sequence = 40;
    EXPECT_TRUE(encoder.is_last(failed));
    EXPECT_FALSE(encoder.is_last(event(EventType::started, State::running)));
}

TEST(EventEncoder, StreamsStartAfterTheStateAndEndAfterTheLastEvent) {
    const auto queued = fixture::job(State::queued);
    EXPECT_EQ(since_state(queued), 1U);
    EXPECT_FALSE(is_over(queued, 1));
    const auto completed = fixture::job(State::completed);
    EXPECT_EQ(since_state(completed), 11U);
    EXPECT_FALSE(is_over(completed, 11));
    EXPECT_TRUE(is_over(completed, 12));
    EXPECT_TRUE(check_sequence(completed, 13).has_value());
    EXPECT_TRUE(check_sequence(completed, jobs::next_sequence_block(12)).has_value());
    EXPECT_FALSE(check_sequence(completed, ~std::uint64_t{0} >> 1).has_value());
}

TEST(ExecutionRequest, Sequences) {
    EXPECT_EQ(parse_sequence("")->has_value(), false);
    EXPECT_EQ(*parse_sequence("17"), 17U);
    EXPECT_FALSE(parse_sequence("-1").has_value());
    EXPECT_FALSE(parse_sequence("1x").has_value());
    EXPECT_FALSE(parse_sequence("99999999999999999999999").has_value());
}

TEST(ExecutionRequest, ExecutionConfigWinsOverTheBody) {
    const auto common = common_members(
        {{"timeout", 10},
         {"priority", 2},
         {"metadata", json::object{{"a", 1}}},
         {"callback_url", "http://there/"},
         {"workflow", json::object()},
         {"execution_config", json::object{{"timeout", 20}, {"max_retries", 2}}}}
    );
    ASSERT_TRUE(common.has_value());
    EXPECT_EQ(
        text(*common),
        R"({"callback_url":"http://there/","max_attempts":3,"metadata":{"a":1},"priority":2,"timeout":20})"
    );
}

TEST(ExecutionRequest, RefusesRetriesOutOfBounds) {
    EXPECT_EQ(common_members({{"max_retries", -1}}).error().code, Code::invalid_argument);
    EXPECT_EQ(common_members({{"max_retries", 10}}).error().code, Code::invalid_argument);
    EXPECT_EQ(common_members({{"max_retries", "3"}}).error().code, Code::invalid_argument);
    EXPECT_EQ(common_members({{"execution_config", 3}}).error().code, Code::invalid_argument);
    EXPECT_EQ(common_members({{"max_retries", 0}})->at("max_attempts"), 1);
}

TEST(ExecutionRequest, InputsAreParameters) {
    Submission submission;
    ASSERT_TRUE(take_inputs(
        {{"inputs", json::object{{"6.text", "a cat"}, {"prompt", "x"}}}}, "inputs", submission
    ));
    EXPECT_EQ(text(submission.parameters), R"({"6.text":"a cat","prompt":"x"})");
    EXPECT_TRUE(submission.spec.dialect_data.empty());
    EXPECT_FALSE(take_inputs({{"inputs", 3}}, "inputs", submission).has_value());
}

class ListQueryTest : public ::testing::Test {
protected:
    // Decoding reads nothing of the exchange.
    class NoExchange final : public net::Exchange {
    public:
        const net::Request& request() const override { return request_; }
        Task<Result<std::string>> read_body(std::uint64_t) override { co_return std::string(); }
        Task<Result<std::size_t>> read_some(char*, std::size_t) override {
            co_return std::size_t{0};
        }
        Task<Result<>> send(net::Response) override { co_return Result<>(); }
        Task<Result<>> send_file(net::Response, net::FileBody) override { co_return Result<>(); }
        Task<Result<>> begin_stream(net::Response) override { co_return Result<>(); }
        Task<Result<>> write_stream(std::string) override { co_return Result<>(); }
        Task<Result<>> end_stream() override { co_return Result<>(); }
        Task<bool> wait_closed(Millis) override { co_return true; }
        Task<Result<std::unique_ptr<net::WebSocket>>> upgrade(net::WebSocketOptions) override {
            co_return fail(Code::upgrade_required, "no");
        }
        void trust_peer() override {}
        bool answered() const override { return false; }
        Executor executor() const override { return context_.get_executor(); }
        bool draining() const override { return false; }

    private:
        net::Request request_;
        mutable boost::asio::io_context context_{1};
    };

    Result<jobs::ListQuery> decode(std::vector<std::pair<std::string, std::string>> query) {
        Call call{exchange_, exchange_.request(), {}, {}, std::move(query)};
        return decode_list_query(call, states_of, "queued, processing");
    }

    NoExchange exchange_;
};

TEST_F(ListQueryTest, DefaultsToAllOfTheTenant) {
    const auto query = decode({});
    ASSERT_TRUE(query.has_value());
    EXPECT_EQ(query->tenant, "local");
    EXPECT_TRUE(query->states.empty());
    EXPECT_EQ(query->limit, 50);
    EXPECT_FALSE(query->cursor.has_value());
}

TEST_F(ListQueryTest, ReadsEveryFilter) {
    const auto query = decode(
        {{"status", "queued, completed,queued"},
         {"limit", "7"},
         {"cursor", fixture::kJob.to_string()}}
    );
    ASSERT_TRUE(query.has_value());
    EXPECT_EQ(query->states, (std::vector{State::queued, State::retry_waiting, State::completed}));
    EXPECT_EQ(query->limit, 7);
    EXPECT_EQ(query->cursor, fixture::kJob);
}

TEST_F(ListQueryTest, RefusesWhatItDoesNotUnderstand) {
    EXPECT_EQ(decode({{"status", "sleeping"}}).error().code, Code::invalid_argument);
    EXPECT_EQ(decode({{"status", "queued,,"}}).error().code, Code::invalid_argument);
    for (const char* limit : {"0", "1001", "-1", "many", "5x", "99999999999999999999"}) {
        EXPECT_EQ(decode({{"limit", limit}}).error().code, Code::invalid_argument) << limit;
    }
    EXPECT_EQ(decode({{"cursor", "next"}}).error().code, Code::invalid_argument);
}

}  // namespace
}  // namespace comfyd::api::execution
