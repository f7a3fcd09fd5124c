#include "app/config/notify_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "app/config/config.hpp"

namespace comfyd::app {
namespace {

using testing::HasSubstr;
using testing::Not;

class File {
public:
    File(const std::string& name, const std::string& text)
        : path(testing::TempDir() + "comfyd_notify_" + std::to_string(::getpid()) + name) {
        std::ofstream(path) << text;
    }
    ~File() { std::remove(path.c_str()); }
    const std::string path;
};

Result<Config> load(const std::string& yaml) {
    const File file(".yaml", yaml);
    ConfigSources sources;
    sources.file = file.path;
    auto config = load_config(sources);
    if (config) {
        if (auto checked = check_config(*config); !checked) {
            return fail(std::move(checked.error()));
        }
    }
    return config;
}

std::string complaint(const std::string& yaml) {
    const auto config = load(yaml);
    return config ? "(none)" : config.error().message;
}

const std::string kMail = R"(notify:
  channels:
    - name: ops
      kind: mail
      host: smtp.example.com
      from: comfyd@example.com
)";

TEST(NotifyConfig, ChannelsAndRulesBecomeRoutes) {
    const File secret("_secret", "hush\n");
    const auto config = load(
        R"(notify:
  channels:
    - name: ops
      kind: mail
      host: smtp.example.com
      security: tls
      user: comfyd@example.com
      password_file: )" +
        secret.path + R"(
      from: comfyd@example.com
      digest_s: 900
      per_minute: 5
      unsubscribe: https://example.com/stop
    - name: pager
      kind: twilio
      account: AC1
      secret: murmur
      from: "+15550001111"
    - name: gateway
      kind: sms
      url: https://sms.example.com/send?key=abc
      headers: {X-Key: deep-secret}
      body: '{"to":"{{to}}","text":"{{text}}"}'
      ok: {status: [200], json_pointer: /status, equals: sent}
      retry: {status: [503]}
  rules:
    - channel: ops
      to: [a@example.com, b@example.com]
      events: [failed]
      tenant: acme
      min_duration_s: 1.5
    - channel: pager
      to: "+491711234567"
      workflow: portraits
)"
    );
    ASSERT_TRUE(config) << config.error().message;
    const auto mail = mail_senders(config->notify).at("ops");
    EXPECT_EQ(mail.smtp.server.port, 465);
    EXPECT_EQ(mail.smtp.password, "hush");
    EXPECT_EQ(mail.smtp.server.hello_name, "example.com");
    EXPECT_EQ(mail.digest, Millis(900'000));
    EXPECT_EQ(mail.limits.of_channel.count, 5);
    const auto sms = sms_senders(config->notify);
    EXPECT_EQ(sms.size(), 2U);
    EXPECT_EQ(sms.at("gateway").gateway.ok.pointer, "/status");
    const auto routes = routes_of(config->notify);
    ASSERT_EQ(routes.size(), 3U);
    EXPECT_EQ(routes[0].to.endpoint, "channel:ops:a@example.com");
    EXPECT_EQ(routes[0].tenant, "acme");
    EXPECT_EQ(routes[0].events, std::vector<std::string>{"execution.failed"});
    EXPECT_EQ(routes[0].ran_at_least, Millis(1500));
    EXPECT_EQ(std::get<notify::SmsTarget>(routes[2].to.target).number, "+491711234567");
    EXPECT_EQ(routes[2].workflow_id, "portraits");
    EXPECT_TRUE(routes[2].events.empty());

    const std::string shown = show_config(*config);
    for (const char* word : {"hush", "murmur", "deep-secret", "key=abc", "{{text}}"}) {
        EXPECT_THAT(shown, Not(HasSubstr(word)));
    }
    EXPECT_THAT(shown, HasSubstr("smtp.example.com"));
    EXPECT_THAT(shown, HasSubstr("secret: \"********\""));
    EXPECT_THAT(shown, HasSubstr("a@example.com"));
}

TEST(NotifyConfig, OauthInsteadOfAPassword) {
    const auto config = load(R"(notify:
  channels:
    - name: ops
      kind: mail
      host: smtp.office365.com
      user: comfyd@example.com
      from: comfyd@example.com
      oauth:
        token_url: https://login.microsoftonline.com/t/oauth2/v2.0/token
        client_id: id
        client_secret: cs
        refresh_token: rt
)");
    ASSERT_TRUE(config) << config.error().message;
    const auto mail = mail_senders(config->notify).at("ops");
    ASSERT_TRUE(mail.smtp.tokens);
    EXPECT_EQ(mail.smtp.tokens->refresh_token, "rt");
    EXPECT_THAT(show_config(*config), Not(HasSubstr("microsoftonline")));
}

TEST(NotifyConfig, WhatIsWrongIsNamed) {
    EXPECT_THAT(
        complaint(kMail + "  rules:\n    - {channel: opps, to: a@b.de}\n"), HasSubstr("'opps'")
    );
    EXPECT_THAT(
        complaint(kMail + "  rules:\n    - {channel: ops, to: nobody}\n"), HasSubstr("'nobody'")
    );
    EXPECT_THAT(complaint(kMail + "  rules:\n    - {channel: ops}\n"), HasSubstr("'to'"));
    EXPECT_THAT(
        complaint(kMail + "  rules:\n    - {channel: ops, to: a@b.de, events: [progress]}\n"),
        HasSubstr("'progress'")
    );
    EXPECT_THAT(
        complaint(kMail + "  rules:\n    - {channel: ops, to: a@b.de, tennant: x}\n"),
        HasSubstr("'tennant'")
    );
    EXPECT_THAT(complaint(kMail + "      pasword: x\n"), HasSubstr("'pasword'"));
    EXPECT_THAT(complaint(kMail + "      password: x\n"), HasSubstr("'user'"));
    EXPECT_THAT(complaint(kMail + "      port: 70000\n"), HasSubstr("'port'"));
    EXPECT_THAT(complaint(kMail + "      security: maybe\n"), HasSubstr("'maybe'"));
    EXPECT_THAT(
        complaint(kMail + "      security: none\n      user: u\n      password: p\n"),
        HasSubstr("in plain")
    );
    EXPECT_THAT(complaint(kMail + "      unsubscribe: ftp://x\n"), HasSubstr("'unsubscribe'"));
    EXPECT_THAT(complaint(kMail + "      ca_file: /nonexistent\n"), HasSubstr("'ca_file'"));
    EXPECT_THAT(
        complaint(kMail + "      user: u\n      password_file: /nonexistent\n"),
        HasSubstr("'password_file'")
    );
    EXPECT_THAT(
        complaint("notify:\n  channels:\n    - {name: x, kind: fax}\n"), HasSubstr("'fax'")
    );
    EXPECT_THAT(
        complaint("notify:\n  channels:\n    - {name: X Y, kind: mail}\n"), HasSubstr("'name'")
    );
    EXPECT_THAT(
        complaint("notify:\n  channels:\n    - {name: x, kind: twilio, account: A, secret: s}\n"),
        HasSubstr("'messaging_service'")
    );
    EXPECT_THAT(
        complaint("notify:\n  channels:\n    - {name: x, kind: sms, url: 'https://a.de/{{to}}'}\n"),
        HasSubstr("'body'")
    );
    EXPECT_THAT(complaint("notify:\n  channel: []\n"), HasSubstr("notify.channels"));
    EXPECT_THAT(complaint(kMail), "(none)");
    EXPECT_THAT(complaint(kMail + "      pasword: x\n"), HasSubstr(".yaml:"));
}

}  // namespace
}  // namespace comfyd::app
