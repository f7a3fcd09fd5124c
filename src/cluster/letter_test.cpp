#include "cluster/letter.hpp"

#include <gtest/gtest.h>

#include <random>

#include "cluster/job_json.hpp"

namespace comfyd::cluster {
namespace {

JobId some_job() {
    return JobId::make(SystemClock().now());
}

// With every member other than it is by itself.
jobs::Job whole_job() {
    jobs::Job job;
    job.id = some_job();
    job.tenant = "tenant";
    job.dialect = "native";
    job.state = jobs::State::failed;
    job.priority = 7;
    job.batch = true;
    job.fairness_key = "project";
    job.created_at = from_unix_ms(1);
    job.started_at = from_unix_ms(2);
    job.finished_at = from_unix_ms(3);
    job.not_before = from_unix_ms(4);
    job.deadline = from_unix_ms(5);
    job.timeout = Millis(6);
    job.attempt = 2;
    job.max_attempts = 9;
    job.worker = "gpu-1";
    job.shared = jobs::BatchPlace{PromptId::make(SystemClock().now()), 3};
    job.cancel_requested = true;
    job.sequence = 1'000'000'007;
    job.revision = 8;
    job.workflow_id = "workflow";
    job.metadata = {{"a", 1.5}};
    job.dialect_data = {{"b", json::array{1, "x"}}};
    job.has_webhook = true;
    job.node_count = 12;
    jobs::Output output;
    output.asset = AssetId::make(SystemClock().now());
    output.name = "picture.png";
    output.size_bytes = 77;
    job.outputs = {output};
    job.ui_outputs = {{"9", json::object{}}};
    job.failure.emplace();
    job.failure->code = Code::out_of_memory;
    job.failure->message = "no room";
    job.failure->node_id = "4";
    job.failure->class_type = "KSampler";
    job.failure->traceback = "trace";
    job.usage = jobs::Usage{};
    job.usage->gpu = Millis(99);
    job.reuse_key = "key";
    job.reused_from = some_job();
    return job;
}

template <class Kind>
Kind there_and_back(const Kind& letter) {
    auto decoded = decode(encode(letter));
    if (!decoded || !*decoded) {
        throw std::runtime_error(decoded ? "not known" : decoded.error().message);
    }
    return std::get<Kind>(std::move(**decoded));
}

TEST(Letter, OfAJobHasAllOfIt) {
    const jobs::Job job = whole_job();
    const std::string text = json::serialize(to_json(job));
    const auto back = job_from_json(*json::parse_object(text));
    ASSERT_TRUE(back);
    EXPECT_EQ(json::serialize(to_json(*back)), text);
    EXPECT_EQ(back->id, job.id);
    EXPECT_EQ(back->state, job.state);
    EXPECT_EQ(back->batch, job.batch);
    EXPECT_EQ(back->fairness_key, job.fairness_key);
    EXPECT_EQ(back->not_before, job.not_before);
    EXPECT_EQ(back->shared->place, job.shared->place);
    EXPECT_EQ(back->shared->prompt, job.shared->prompt);
    EXPECT_EQ(back->sequence, job.sequence);
    EXPECT_EQ(back->metadata, job.metadata);
    EXPECT_EQ(back->dialect_data, job.dialect_data);
    EXPECT_EQ(back->outputs.at(0).asset, job.outputs.at(0).asset);
    EXPECT_EQ(back->failure->code, Code::out_of_memory);
    EXPECT_EQ(back->usage, job.usage);
    EXPECT_EQ(back->reused_from, job.reused_from);

    // One of which little is known.
    const jobs::Job plain;
    EXPECT_EQ(to_json(*job_from_json(to_json(plain))), to_json(plain));
}

TEST(Letter, TellsWhatBecameOfAJob) {
    const auto job = std::make_shared<const jobs::Job>(whole_job());
    auto event = std::make_shared<jobs::Event>();
    event->job = job->id;
    event->sequence = 5;
    event->type = jobs::EventType::failed;
    event->at = from_unix_ms(42);
    event->state = jobs::State::failed;
    event->data = {{"x", 1}};
    const Told::Head head{job->id, "tenant", "native", 5, 8};

    const auto changed = there_and_back(Told{head, events::Changed{job, event, 4}, {7, 11}});
    EXPECT_EQ(changed.head.id, job->id);
    EXPECT_EQ(changed.head.tenant, "tenant");
    EXPECT_EQ(changed.head.dialect, "native");
    EXPECT_EQ(changed.head.sequence, 5U);
    EXPECT_EQ(changed.head.revision, 8);
    EXPECT_EQ(changed.place, (Place{7, 11}));
    const auto& change = std::get<events::Changed>(changed.notice);
    EXPECT_EQ(to_json(*change.job), to_json(*job));
    EXPECT_EQ(to_json(*change.event), to_json(*event));
    EXPECT_EQ(change.unfinished, 4U);

    const auto brief = there_and_back(Told{head, events::Changed{nullptr, event, 0}, {}});
    EXPECT_EQ(std::get<events::Changed>(brief.notice).job, nullptr);

    const auto arrived =
        there_and_back(Told{head, events::Arrived{job, events::Arrived::How::restored, 3}, {}});
    const auto& arrival = std::get<events::Arrived>(arrived.notice);
    EXPECT_EQ(arrival.how, events::Arrived::How::restored);
    EXPECT_EQ(arrival.unfinished, 3U);
    EXPECT_EQ(arrival.job->id, job->id);
}

TEST(Letter, CarriesPicturesAsTheyAre) {
    auto event = std::make_shared<jobs::Event>();
    event->job = some_job();
    event->type = jobs::EventType::preview;
    event->preview = std::string("\x89PNG\0\xFF", 6);
    event->preview_type = "image/png";
    const auto shown =
        there_and_back(Told{{event->job, "", "", 1, 1}, events::Shown{event}, {1, 2}});
    EXPECT_EQ(std::get<events::Shown>(shown.notice).event->preview, event->preview);
    EXPECT_EQ(std::get<events::Shown>(shown.notice).event->preview_type, "image/png");
    EXPECT_EQ(shown.place, (Place{1, 2}));

    const auto said = there_and_back(Told{
        {event->job, "", "", 1, 1},
        events::Said{event->job, {"preview", {{"n", 1}}, event->preview, "image/png"}},
        {}
    });
    const auto& message = std::get<events::Said>(said.notice).message;
    EXPECT_EQ(message.type, "preview");
    EXPECT_EQ(message.data, (json::object{{"n", 1}}));
    EXPECT_EQ(message.bytes, event->preview);
    EXPECT_EQ(message.content_type, "image/png");
}

TEST(Letter, IsForAnotherPlace) {
    std::string message = encode(SoFar{{1, 2}});
    set_place(message, {3, 4});
    EXPECT_EQ(std::get<SoFar>(**decode(message)).place, (Place{3, 4}));
}

TEST(Letter, OfTheOtherKinds) {
    EXPECT_EQ(there_and_back(Poke{"main"}).domain, "main");
    there_and_back(Greeting{});

    const Interest interest{
        false,
        {{.tenant = "a", .progress = true}, {.previews = true, .messages_of = "native"}},
        true,
        {some_job(), some_job()}
    };
    const auto back = there_and_back(interest);
    EXPECT_EQ(back.is_all, interest.is_all);
    EXPECT_EQ(back.feeds, interest.feeds);
    EXPECT_EQ(back.previews, interest.previews);
    EXPECT_EQ(back.watched, interest.watched);

    const auto ask = there_and_back(Ask{7, "how", {{"a", 1}}, Millis(250)});
    EXPECT_EQ(ask.id, 7U);
    EXPECT_EQ(ask.question, "how");
    EXPECT_EQ(ask.details, (json::value{{"a", 1}}));
    EXPECT_EQ(ask.patience, Millis(250));

    EXPECT_EQ(*there_and_back(Answer{7, json::value("so")}).value, json::value("so"));
    const auto refused = there_and_back(Answer{7, fail(Code::not_found, "no", {{"field", "x"}})});
    ASSERT_FALSE(refused.value);
    EXPECT_EQ(refused.value.error().code, Code::not_found);
    EXPECT_EQ(refused.value.error().message, "no");
    EXPECT_EQ(refused.value.error().details, (json::object{{"field", "x"}}));
}

TEST(Letter, OfALaterVersionOrKindIsLeftAlone) {
    std::string later = encode(Poke{"main"});
    later[0] = 2;
    const auto version = decode(later);
    ASSERT_TRUE(version);
    EXPECT_FALSE(*version);

    std::string other = encode(Poke{"main"});
    other[1] = 99;
    const auto kind = decode(other);
    ASSERT_TRUE(kind);
    EXPECT_FALSE(*kind);
}

TEST(Letter, WithMoreInItThanIsKnownIsRead) {
    const std::string text = R"({"domain":"main","more":[1]})";
    const std::string message = std::string("\x01\x01", 2) + static_cast<char>(text.size()) +
                                std::string(3, '\0') + text + "and bytes";
    const auto letter = decode(message);
    ASSERT_TRUE(letter && *letter);
    EXPECT_EQ(std::get<Poke>(**letter).domain, "main");
}

TEST(Letter, ThatIsBrokenIsRefused) {
    std::mt19937 random(1);
    auto event = std::make_shared<jobs::Event>();
    event->job = some_job();
    const auto job = std::make_shared<const jobs::Job>(whole_job());
    const std::vector<std::string> good{
        encode(Told{{event->job, "t", "d", 1, 1}, events::Changed{job, event, 1}, {1, 1}}),
        encode(Interest{true, {{.tenant = "a"}}, true, {some_job()}}),
        encode(Answer{1, fail(Code::conflict, "no")}),
    };
    for (const std::string& letter : good) {
        for (std::size_t size = 0; size < letter.size(); ++size) {
            (void)decode(letter.substr(0, size));
        }
        for (int count = 0; count < 20'000; ++count) {
            std::string broken = letter;
            broken[random() % broken.size()] = static_cast<char>(random());
            (void)decode(broken);
        }
    }
    EXPECT_FALSE(decode(""));
    EXPECT_FALSE(decode("abc"));
    EXPECT_FALSE(decode(std::string("\x01\x04\xFF\xFF\xFF\xFF{}", 8)));
    EXPECT_FALSE(decode(std::string("\x01\x04\x02\x00\x00\x00{}", 8)));
    EXPECT_FALSE(decode(std::string("\x01\x05\x02\x00\x00\x00{}", 8)));
}

}  // namespace
}  // namespace comfyd::cluster
