#include "media/exporter.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <boost/asio/post.hpp>

#include "assets/s3/bucket.hpp"
#include "base/deadline.hpp"
#include "base/hop.hpp"
#include "base/log.hpp"
#include "media/locate.hpp"

namespace comfyd::media {
namespace {

namespace s3 = assets::s3;

constexpr std::size_t kFilesAtATime = 4;
constexpr Millis kLinkLife = std::chrono::hours(24 * 7);  // the longest that services sign for
constexpr assets::Patience kPatience{
    .tries_max = 4, .first_pause = Millis(200), .longest_pause = Millis(5'000)
};

// As a file of the worker is called, and nothing that a reader of the bucket could take for a
// folder or a command.
std::string plain_name(const std::string& name) {
    std::string plain = name.substr(name.find_last_of("/\\") + 1);
    for (char& c : plain) {
        const auto byte = static_cast<unsigned char>(c);
        c = byte < 0x20 || byte == 0x7F ? '_' : c;
    }
    return plain.empty() || plain == "." || plain == ".." ? "output" : plain;
}

// Files of one job may share a name: they lie in several folders of the worker.
std::string own_name(const std::string& name, std::set<std::string>& taken) {
    const std::string plain = plain_name(name);
    std::string own = plain;
    for (int number = 2; !taken.insert(own).second; ++number) {
        own = std::to_string(number) + "_" + plain;
    }
    return own;
}

// Part of it may be what the bucket's service said.
json::object not_brought(std::string why) {
    for (char& c : why) {
        const auto byte = static_cast<unsigned char>(c);
        c = byte < 0x20 || byte >= 0x7F ? '?' : c;
    }
    return {{"error", std::move(why)}};
}

Error about_bucket(Error error) {
    const json::value* member = json::find(error.details, "member");
    const std::string name = member != nullptr && member->is_string()
                                 ? std::string(std::string_view(member->get_string())) + " "
                                 : std::string();
    error.message = "the bucket's " + name + error.message;
    return error;
}

}  // namespace

// The files of one job on their way.
struct Exporter::Run {
    jobs::Job job;
    std::vector<jobs::Output> outputs;
    std::stop_token stop;
    s3::GivenBucket given{};
    std::vector<File> files{};
    Deadline deadline = Deadline::never();
    std::shared_ptr<Signal> news{};  // a stop, or one of the tasks has ended
    std::unique_ptr<s3::Bucket> bucket{};
    std::size_t next = 0;
    std::size_t working = 0;
    std::optional<Error> failure{};  // of the bucket: the others need not be tried

    bool is_over() const { return stop.stop_requested() || deadline.has_passed(); }
    void fail_rest(const std::string& why) {
        for (File& file : files) {
            if (file.outcome.empty()) {
                file.outcome = not_brought(why);
            }
        }
    }
};

Exporter::Exporter(
    assets::Store& store, const Sealing& sealing, Clock& clock, Pool& pool, ExportOptions options
)
    : store_(store),
      sealing_(sealing),
      clock_(clock),
      pool_(pool),
      options_(std::move(options)),
      thread_("exports"),
      ended_(thread_.executor()) {
    thread_.start();
}

Exporter::~Exporter() {
    thread_.stop();
}

Task<Result<std::vector<jobs::Output>>> Exporter::bring(
    jobs::Job job, std::vector<jobs::Output> outputs, std::stop_token stop
) {
    const json::value* target = json::find(job.dialect_data, kExportMember);
    if (target == nullptr || !target->is_object()) {
        co_return std::move(outputs);
    }
    Run run{std::move(job), std::move(outputs), std::move(stop)};
    auto given = s3::GivenBucket::from_json(target->get_object(), sealing_, run.job.tenant);
    co_await find_files(run);
    if (given) {
        run.given = std::move(*given);
        const bool done = co_await await_on(thread_.executor(), bring_all(run));
        if (!done) {
            co_return fail(Code::cancelled, "the job was stopped while its outputs were exported");
        }
    } else {
        run.fail_rest(given.error().message);
    }
    for (File& file : run.files) {
        run.outputs[file.output].exported = std::move(file.outcome);
    }
    co_return std::move(run.outputs);
}

// Of each output the form that the client gets.
Task<> Exporter::find_files(Run& run) {
    std::set<std::string> taken;
    for (std::size_t i = 0; i < run.outputs.size(); ++i) {
        if (run.outputs[i].folder == "temp") {
            continue;
        }
        const jobs::Output& wanted = jobs::as_wanted(run.outputs[i]);
        File file;
        file.output = i;
        file.name = own_name(wanted.name, taken);
        auto bytes = co_await locate(store_, wanted);
        if (bytes) {
            file.source = {std::move(*bytes), wanted.size_bytes, wanted.hash, wanted.content_type};
        } else {
            file.outcome = not_brought(bytes.error().message);
        }
        run.files.push_back(std::move(file));
    }
}

// False: it was stopped.
Task<bool> Exporter::bring_all(Run& run) {
    const Executor here = thread_.executor();
    run.deadline = Deadline::in(options_.time_max);
    run.news = std::make_shared<Signal>(here);
    const std::stop_callback told(run.stop, [here, news = run.news] {
        boost::asio::post(here, [news] { news->notify(); });
    });
    const bool has_turn = co_await wait_for_turn(run);
    if (has_turn) {
        ++running_[run.job.tenant];
        ++running_count_;
        co_await bring_files(run);
        --running_count_;
        if (--running_[run.job.tenant] == 0) {
            running_.erase(run.job.tenant);
        }
        ended_.notify();
    }
    if (run.failure) {
        log::warning(
            "outputs could not be brought to the bucket of their request",
            {{"job", run.job.id.to_string()},
             {"bucket", run.given.bucket},
             {"error", run.failure->message}}
        );
    }
    run.fail_rest(
        run.failure ? run.failure->message : "the time for bringing outputs to the bucket was over"
    );
    co_return !run.stop.stop_requested();
}

bool Exporter::may_begin(const std::string& tenant) const {
    const auto own = running_.find(tenant);
    return running_count_ < options_.jobs_max &&
           (own == running_.end() || own->second < options_.jobs_per_tenant_max);
}

Task<bool> Exporter::wait_for_turn(Run& run) {
    while (!may_begin(run.job.tenant) && !run.is_over()) {
        // A stop is seen within a second.
        const bool changed = co_await ended_.wait_for(std::min(run.deadline.left(), Millis(1'000)));
        static_cast<void>(changed);
    }
    co_return !run.is_over();
}

Task<> Exporter::bring_files(Run& run) {
    s3::RequestOptions options{.name = run.given.name()};
    options.patience = kPatience;
    options.ca_file = options_.ca_file;
    options.policy =
        options_.allows_private ? net::AddressPolicy::any : net::AddressPolicy::public_only;
    // Once more: what is stored may be older than what the operator allows.
    if (auto checked = run.given.check(options_.allows_private); !checked) {
        run.failure = about_bucket(checked.error());
        co_return;
    }
    auto requests = s3::Requests::make(
        thread_.executor(), std::move(options), run.given.credentials(), clock_, pool_
    );
    if (!requests) {
        run.failure = std::move(requests.error());
        co_return;
    }
    s3::BucketOptions place{.prefix = run.job.id.to_string() + "/", .owns_prefix = true};
    run.bucket = std::make_unique<s3::Bucket>(std::move(*requests), std::move(place));
    TaskGroup tasks(thread_.executor());
    run.working = std::min(kFilesAtATime, run.files.size());
    for (std::size_t i = run.working; i > 0; --i) {
        tasks.spawn("export outputs", bring_some(run));
    }
    while (run.working > 0 && !run.is_over()) {
        const bool told = co_await run.news->wait_for(run.deadline.left());
        static_cast<void>(told);
    }
    const bool is_cut = run.working > 0;
    if (is_cut) {
        tasks.cancel();
    }
    co_await tasks.join();
    const bool has_parts = std::ranges::any_of(run.files, [](const File& file) {
        return file.source.size_bytes > s3::kPartBytes && !file.outcome.contains("url");
    });
    if (is_cut && has_parts) {
        // Who was cancelled could not take back what it had begun.
        auto removed = co_await run.bucket->remove_unfinished(clock_.now() + kLinkLife);
        static_cast<void>(removed);
    }
}

Task<> Exporter::bring_some(Run& run) {
    while (run.next < run.files.size() && !run.failure && !run.is_over()) {
        File& file = run.files[run.next++];
        if (!file.outcome.empty()) {
            continue;
        }
        auto brought = co_await bring_one(run, file);
        if (brought) {
            file.outcome = std::move(*brought);
        } else if (brought.error().code != Code::cancelled && !run.failure) {
            run.failure = std::move(brought.error());
        }
    }
    --run.working;
    run.news->notify();
}

Task<Result<json::object>> Exporter::bring_one(Run& run, const File& file) {
    auto put = co_await run.bucket->put(file.name, file.source);
    if (!put) {
        co_return fail(std::move(put.error()));
    }
    auto place = co_await run.bucket->find(file.name, {.life = kLinkLife});
    if (!place) {
        co_return fail(std::move(place.error()));
    }
    const auto& link = std::get<assets::Redirect>(**place);
    json::object brought{
        {"url", link.url},
        {"bucket", run.given.bucket},
        {"key", run.job.id.to_string() + "/" + file.name},
    };
    if (link.expires_at) {
        brought["expires_at"] = to_unix_ms(*link.expires_at);
    }
    co_return brought;
}

}  // namespace comfyd::media
