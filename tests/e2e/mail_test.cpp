// Mails and short messages of the real binary: to a real SMTP server, and to a gateway.
#include <gtest/gtest.h>

#include <set>

#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/comfyd.hpp"
#include "support/mail_server.hpp"
#include "support/temp_dir.hpp"
#include "support/webhook_receiver.hpp"

namespace comfyd::support {
namespace {

std::string mail_channel(const MailServer& server, const std::string& more = "") {
    return R"(notify:
  channels:
    - name: ops
      kind: mail
      host: localhost
      port: )" +
           std::to_string(server.port()) + R"(
      security: starttls
      ca_file: )" +
           server.ca_file() + R"(
      user: comfyd@example.com
      password: right
      from: comfyd@example.com
)" + more;
}

json::object wants_login() {
    return {
        {"security", "starttls"}, {"login", {{"user", "comfyd@example.com"}, {"password", "right"}}}
    };
}

ComfydOptions with_config(const TempDir& folder, const std::string& yaml) {
    ComfydOptions options;
    options.arguments = {"--config", folder.write("comfyd.yaml", yaml)};
    return options;
}

TEST(Mail, TheOperatorIsToldOfWhatTheRulesSay) {
    const TempDir folder;
    MailServer server(wants_login());
    Comfyd comfyd(with_config(
        folder, "public_url: https://comfyd.example.com\n" + mail_channel(server, R"(  rules:
    - {channel: ops, to: [one@example.com, two@example.com], events: [completed]}
    - {channel: ops, to: one@example.com, events: [completed, failed]}
    - {channel: ops, to: slow@example.com, events: [completed], min_duration_s: 3600}
    - {channel: ops, to: other@example.com, events: [completed], tenant: somebody}
)")
    ));
    const std::string id = comfyd.submit(small_picture());
    const auto mails = server.wait_for(2);
    ASSERT_EQ(mails.size(), 2U);
    std::set<std::string> told;
    for (const ReceivedMail& mail : mails) {
        EXPECT_TRUE(mail.is_well_formed()) << json::serialize(mail.all);
        told.insert(mail.to());
        EXPECT_EQ(mail.header("Subject"), "[comfyd] Job completed");
        EXPECT_NE(mail.text("text").find(id), std::string::npos);
        EXPECT_NE(
            mail.text("text").find("https://comfyd.example.com/api/v2/assets/"), std::string::npos
        );
        EXPECT_TRUE(mail.text("picture").starts_with("/9j/")) << "no JPEG";
    }
    EXPECT_EQ(told, (std::set<std::string>{"one@example.com", "two@example.com"}));
}

// A worker on which jobs can be made to fail.
class Worker {
public:
    Worker() : double_(thread_.context(), {}) {
        thread_.start();
        double_.start();
    }
    std::string url() const { return double_.url(); }

private:
    net::IoThread thread_{"double"};
    ComfyDouble double_;
};

const std::string kRuleOfFailures =
    "  rules:\n    - {channel: ops, to: a@example.com, events: [failed]}\n";

ComfydOptions with_worker(const TempDir& folder, const std::string& yaml, const Worker& worker) {
    ComfydOptions options = with_config(folder, yaml);
    options.arguments.insert(
        options.arguments.end(), {"--worker", worker.url(), "--set", "fleet.poll_ms=100"}
    );
    return options;
}

std::set<std::string> message_ids(const std::vector<ReceivedMail>& mails) {
    std::set<std::string> ids;
    for (const ReceivedMail& mail : mails) {
        ids.insert(mail.header("Message-ID"));
    }
    return ids;
}

// Once nothing waits to be told.
bool has_told_all(Comfyd& comfyd) {
    return wait_until([&comfyd] {
        return comfyd.http().get("/metrics").body.find("\ncomfyd_webhooks_pending 0\n") !=
               std::string::npos;
    });
}

TEST(Mail, ArrivesOnceAlthoughComfydWasKilledInBetween) {
    const TempDir folder;
    const Worker worker;
    json::object told = wants_login();
    told["answers"] = {{"mail", {"451 4.3.0 later", "451 4.3.0 later", "451 4.3.0 later"}}};
    MailServer server(told);
    Comfyd comfyd(with_worker(folder, mail_channel(server, kRuleOfFailures), worker));
    const std::string id = comfyd.submit(text_to_image("x", "node_error"));
    ASSERT_TRUE(server.wait_for_sessions(1)) << comfyd.log();
    comfyd.restart();
    ASSERT_EQ(server.wait_for(1).size(), 1U) << comfyd.log();
    EXPECT_NE(server.mails()[0].text("text").find(id), std::string::npos);
    // Written down, it is not sent again: the next one comes after whatever would still have come.
    ASSERT_TRUE(has_told_all(comfyd)) << comfyd.log();
    comfyd.restart();
    comfyd.submit(text_to_image("y", "node_error"));
    const auto mails = server.wait_for(2);
    ASSERT_EQ(mails.size(), 2U) << comfyd.log();
    EXPECT_EQ(message_ids(mails).size(), 2U);
}

TEST(Mail, WhoseAnswerWasLostComesAgainAsTheSameMail) {
    const TempDir folder;
    const Worker worker;
    json::object told = wants_login();
    told["drops"] = {"end", "end"};
    MailServer server(told);
    Comfyd comfyd(with_worker(folder, mail_channel(server, kRuleOfFailures), worker));
    comfyd.submit(text_to_image("x", "node_error"));
    ASSERT_GE(server.wait_for(1).size(), 1U) << comfyd.log();
    comfyd.restart();
    ASSERT_TRUE(has_told_all(comfyd)) << comfyd.log();
    const auto mails = server.wait_for(2);
    ASSERT_GE(mails.size(), 2U) << comfyd.log();
    EXPECT_EQ(message_ids(mails).size(), 1U);
}

TEST(Sms, TheGatewayIsAsked) {
    const TempDir folder;
    WebhookReceiver gateway;
    gateway.script({{.status = 503}, {.status = 201, .body = R"({"sid":"SM1"})"}});
    Comfyd comfyd(with_config(folder, R"(notify:
  channels:
    - name: pager
      kind: twilio
      url: )" + gateway.url("") + R"(
      account: AC1
      secret: token
      from: "+15550001111"
  rules:
    - {channel: pager, to: "+491711234567", events: [completed]}
)"));
    const std::string id = comfyd.submit(small_picture());
    ASSERT_TRUE(gateway.wait_for(2));
    const ReceivedRequest request = gateway.requests().back();
    EXPECT_EQ(request.path, "/2010-04-01/Accounts/AC1/Messages.json");
    EXPECT_NE(request.body.find("To=%2B491711234567"), std::string::npos) << request.body;
    EXPECT_NE(request.body.find(id), std::string::npos) << request.body;
}

TEST(Notify, ASampleIsSentAndAWrongConfigurationRefused) {
    const TempDir folder;
    MailServer server(wants_login());
    const std::string right = folder.write("right.yaml", mail_channel(server, kRuleOfFailures));
    const auto run = [](std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), COMFYD_BINARY);
        auto process = std::make_unique<Process>(std::move(arguments));
        process->wait();
        return process;
    };
    auto sent = run({"notify", "test", "--channel", "ops", "--config", right});
    EXPECT_EQ(sent->wait(), 0) << sent->errors();
    EXPECT_EQ(sent->output(), "sent to a@example.com\n");
    ASSERT_EQ(server.wait_for(1).size(), 1U);
    EXPECT_NE(server.mails()[0].text("text").find("This is a sample"), std::string::npos);

    auto unknown = run({"notify", "test", "--channel", "opps", "--config", right});
    EXPECT_EQ(unknown->wait(), 2);
    EXPECT_NE(unknown->errors().find("'opps'"), std::string::npos);

    auto shown = run({"config", "--config", right});
    EXPECT_EQ(shown->wait(), 0);
    EXPECT_NE(shown->output().find("password: \"********\""), std::string::npos);
    EXPECT_EQ(shown->output().find("\"right\""), std::string::npos);

    const std::string wrong =
        folder.write("wrong.yaml", mail_channel(server, "      colour: red\n"));
    auto refused =
        run({"serve", "--listen", "127.0.0.1:0", "--data", folder / "data", "--config", wrong});
    EXPECT_EQ(refused->wait(), 2);
    EXPECT_NE(refused->errors().find("the channel 'ops' has no 'colour'"), std::string::npos)
        << refused->errors();
}

}  // namespace
}  // namespace comfyd::support
