#include "app/commands/notify_command.hpp"

#include <algorithm>
#include <cstdio>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "app/commands/cli.hpp"
#include "net/io_threads.hpp"
#include "notify/channels.hpp"

namespace comfyd::app {
namespace {

int complain(const std::string& message) {
    std::fprintf(stderr, "comfyd: %s\n", message.c_str());
    return kExitUsage;
}

// Whom the rules lead to by this channel, each once.
std::vector<std::string> recipients_of(const NotifyConfig& config, const std::string& channel) {
    std::vector<std::string> found;
    for (const RuleSetting& rule : config.rules) {
        for (const std::string& to : rule.to) {
            if (rule.channel == channel && std::ranges::find(found, to) == found.end()) {
                found.push_back(to);
            }
        }
    }
    return found;
}

// What a job that failed would be told of.
notify::Message sample(notify::Target to, Time now) {
    jobs::Spec spec;
    spec.dialect = "sample";
    spec.workflow_id = "sample";
    const jobs::Change made = jobs::make_job(JobId::make(now), spec, now);
    auto started = jobs::start(made.job, "sample", made.job.sequence + 1, now);
    jobs::Failure failure;
    failure.message = "This is a sample: no job has failed.";
    auto failed = jobs::fail_job(started->job, failure, started->job.sequence + 1, now);
    return {std::move(to), failed->job, failed->event};
}

// At once: neither a digest nor a limit holds a sample back.
notify::ChannelOptions options_of(const NotifyConfig& config) {
    notify::ChannelOptions options;
    options.mail = mail_senders(config);
    options.sms = sms_senders(config);
    for (auto& [name, mail] : options.mail) {
        mail.digest = Millis(0);
        mail.limits = {};
    }
    for (auto& [name, sms] : options.sms) {
        sms.limits = {};
    }
    return options;
}

}  // namespace

int run_notify_test(const Config& config, const NotifyTestFlags& flags) {
    const auto channel =
        std::ranges::find(config.notify.channels, flags.channel, &ChannelSetting::name);
    if (channel == config.notify.channels.end()) {
        return complain("there is no channel '" + flags.channel + "' in 'notify.channels'");
    }
    const std::vector<std::string> recipients =
        flags.to.empty() ? recipients_of(config.notify, channel->name) : flags.to;
    if (recipients.empty()) {
        return complain(
            "no rule leads to the channel '" + channel->name + "': say --to whom to send the sample"
        );
    }
    SystemClock clock;
    net::IoThread thread("notify-test");
    auto channels = notify::make_channels(thread.executor(), clock, options_of(config.notify));
    thread.start();
    int code = kExitOk;
    for (const std::string& to : recipients) {
        const notify::Target target = target_of(*channel, to);
        notify::Channel& sender = *channels.at(target.index());
        if (auto lane = sender.lane_of(target); !lane) {
            code = complain(lane.error().message);
            continue;
        }
        const notify::Outcome outcome = boost::asio::co_spawn(
                                            thread.executor(),
                                            sender.deliver(sample(target, clock.now())),
                                            boost::asio::use_future
        )
                                            .get();
        if (outcome.kind == notify::Outcome::Kind::delivered) {
            std::printf("sent to %s\n", to.c_str());
        } else {
            std::fprintf(stderr, "comfyd: not sent to %s: %s\n", to.c_str(), outcome.error.c_str());
            code = kExitUnavailable;
        }
    }
    std::fflush(stdout);
    thread.stop();
    return code;
}

}  // namespace comfyd::app
