#include "jobs/preparing.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "jobs/cause.hpp"

namespace comfyd::jobs {
namespace {

constexpr Millis kLookPause{50};        // what comes together is looked at together
constexpr Millis kRetryPause{2'000};    // after a worker that went away
constexpr double kFetchOverhead_s = 2;  // of being asked, and of reading the lists
constexpr int kRoundsMax = 3;
constexpr std::size_t kReasonsMax = 3;
constexpr std::size_t kToldMax = 256;  // jobs of a need that are told of each step

std::string text_of(const json::object& from, std::string_view key) {
    return json::find_string(from, key).value_or(std::nullopt).value_or("");
}

std::uint64_t bytes_of(const json::object& wish) {
    const auto bytes = json::find_int(wish, "bytes").value_or(std::nullopt);
    return static_cast<std::uint64_t>(std::max<std::int64_t>(bytes.value_or(0), 0));
}

// Another worker may do it, and nothing is said against the model.
bool is_of_worker(Code code) {
    return code == Code::worker_lost || code == Code::worker_unavailable ||
           code == Code::connection_failed || code == Code::request_timeout ||
           code == Code::shutting_down;
}

Error not_listed(const std::string& worker, const json::object& wish) {
    return Error(
        Code::not_found,
        "the worker " + worker + " has fetched '" + text_of(wish, "name") +
            "', and its ComfyUI does not list it"
    );
}

std::string shown_bytes(std::uint64_t bytes) {
    constexpr std::uint64_t kMB = 1'000'000;
    return std::to_string((bytes + kMB / 2) / kMB) + " MB";
}

}  // namespace

void Preparing::add(const Job& job, const Requirement& requirement) {
    const json::value* list = json::find(job.dialect_data, kModelsMember);
    if (list == nullptr || !list->is_array() || is_terminal(job.state)) {
        return;
    }
    if (by_job_.contains(job.id)) {
        return;  // it comes back from an attempt
    }
    NeedPtr& need = needs_[requirement.encoded() + '\n' + json::serialize(*list)];
    if (!need) {
        need = std::make_shared<Need>();
        need->requirement = requirement;
        for (const json::value& wish : list->get_array()) {
            if (wish.is_object()) {
                need->bytes += bytes_of(wish.get_object());
                need->wishes.push_back(wish.get_object());
            }
        }
    }
    // Numbers of what is not stored go on from where they were before a restart.
    const auto waited = std::max<Millis>(p_.clock.now() - job.created_at, Millis(0));
    const std::uint64_t told =
        next_sequence_block(job.sequence) +
        static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(waited).count()
        );
    need->jobs[job.id] = {job.tenant, told};
    p_.table.set_told(job.id, told);
    by_job_[job.id] = need;
    look();
}

void Preparing::remove(const JobId& id) {
    const auto found = by_job_.find(id);
    if (found == by_job_.end()) {
        return;
    }
    const NeedPtr need = std::move(found->second);
    by_job_.erase(found);
    need->jobs.erase(id);
    if (need->jobs.empty()) {
        std::erase_if(needs_, [&need](const auto& entry) { return entry.second == need; });
    }
}

void Preparing::forget(const std::string& worker) {
    flights_.forget(worker);
    for (const auto& [key, need] : needs_) {
        need->early.erase(worker);
    }
}

void Preparing::look() {
    if (!needs_.empty() && !p_.is_stopping && !std::exchange(is_looking_, true)) {
        p_.tasks.spawn("models for jobs", look_soon());
    }
}

Task<> Preparing::look_soon() {
    const bool goes_on = co_await sleep_for(kLookPause);
    is_looking_ = false;
    if (!goes_on || p_.is_stopping) {
        co_return;
    }
    const Time now = p_.clock.now();
    bool is_early = false;
    for (const auto& [key, need] : std::map(needs_)) {
        if (need->not_before > now) {
            is_early = true;
        } else {
            serve(need);
        }
        serve_coming(need);
    }
    if (is_early) {
        const bool still = co_await sleep_for(kRetryPause);
        if (still) {
            look();
        }
    }
}

std::optional<JobId> Preparing::find_waiting(const Need& need) const {
    const auto found = std::ranges::find_if(need.jobs, [this](const auto& job) {
        return p_.table.is<Ready>(job.first);
    });
    return found == need.jobs.end() ? std::nullopt : std::optional(found->first);
}

// The fetch takes less time than the wait for a worker that has the files. Of what size nobody
// knows nothing is fetched for that.
bool Preparing::is_worth_it(const Need& need, std::uint64_t bytes) const {
    const auto job = find_waiting(need);
    const auto wait = job && bytes > 0 ? p_.expected_wait(*job) : std::nullopt;
    return wait && *wait > static_cast<double>(bytes) / bytes_per_s_ + kFetchOverhead_s;
}

void Preparing::serve(const NeedPtr& need) {
    if (!need->worker.empty() || !find_waiting(*need)) {
        return;
    }
    auto choice = choose(*need);
    if (!choice) {
        need->rounds = 0;
    }
    if (choice && choice->is_spare && !is_worth_it(*need, choice->bytes)) {
        need->not_before = p_.clock.now() + kRetryPause;  // asked again when something changes
        return;
    }
    if (choice && choice->worker && must_wait(*choice)) {
        need->not_before = p_.clock.now() + kRetryPause;
        look();
        return;
    }
    if (choice && choice->worker) {
        need->worker = choice->worker->id();
        need->fetched = {0, need->bytes};
        choice->departure = std::make_shared<Departure>(*this, *choice);
        p_.tasks.spawn("a worker fetches models", fetch(need, std::move(*choice)));
    }
}

// What is on its way to a worker, from the decision to its end.
class Preparing::Departure {
public:
    Departure(Preparing& of, const Choice& choice)
        : of_(of),
          worker_(choice.worker->id()),
          region_(choice.worker->info().region),
          bytes_(choice.bytes) {
        ++of_.busy_[worker_];
        of_.on_their_way_[worker_] += bytes_;
        for (const json::object& wish : choice.wishes) {
            if (std::string sha256 = text_of(wish, "sha256"); !sha256.empty()) {
                const bool gives = choice.worker->models()->content_address(sha256).has_value();
                of_.flights_.begin(region_, sha256, worker_, gives);
                contents_.push_back(std::move(sha256));
            }
        }
    }
    ~Departure() {
        for (const std::string& sha256 : contents_) {
            of_.flights_.end(region_, sha256, worker_, has_arrived_);
        }
        const auto busy = of_.busy_.find(worker_);
        if (--busy->second == 0) {
            of_.busy_.erase(busy);
        }
        const auto coming = of_.on_their_way_.find(worker_);
        coming->second -= bytes_;
        if (coming->second == 0) {
            of_.on_their_way_.erase(coming);
        }
    }
    Departure(const Departure&) = delete;
    Departure& operator=(const Departure&) = delete;

    void arrived() { has_arrived_ = true; }

private:
    Preparing& of_;
    const std::string worker_;
    const std::string region_;
    const std::uint64_t bytes_;
    std::vector<std::string> contents_;
    bool has_arrived_ = false;
};

Task<Result<>> Preparing::bring(NeedPtr need, Choice choice) {
    const std::string worker = choice.worker->id();
    auto fetched = co_await choice.worker->models()->fetch_models(
        choice.wishes,
        [this, need, worker](ModelHolder::Fetched told) { tell(*need, worker, told); }
    );
    if (fetched) {
        choice.departure->arrived();
    }
    co_return fetched;
}

// A machine that is on its way up has time: what waits for such machines is there when it is.
void Preparing::serve_coming(const NeedPtr& need) {
    if (!find_waiting(*need)) {
        return;
    }
    for (auto& worker : p_.fleet.workers()) {
        const ModelHolder* holder = worker->models();
        if (holder == nullptr || !holder->is_coming() || !holder->may_run(need->requirement)) {
            continue;
        }
        const auto asked = need->early.find(worker->id());
        const bool may_ask =
            asked == need->early.end() || (asked->second && *asked->second <= p_.clock.now());
        if (!may_ask || !has_room(*worker, *holder, need->bytes)) {
            continue;
        }
        Choice choice{worker, need->wishes, need->bytes, false, nullptr};
        if (!must_wait(choice)) {
            choice.departure = std::make_shared<Departure>(*this, choice);
            need->early[worker->id()] = std::nullopt;
            p_.tasks.spawn("a coming worker fetches models", fetch_early(need, std::move(choice)));
        }
    }
}

Task<> Preparing::fetch_early(NeedPtr need, Choice choice) {
    name_peers(*need, choice);
    const std::string worker = choice.worker->id();
    need->early_worker = worker;
    log::info(
        "a worker that comes up is asked for models that jobs wait for",
        {{"worker", worker},
         {"models", choice.wishes.size()},
         {"first", text_of(choice.wishes.front(), "name")},
         {"jobs", need->jobs.size()}}
    );
    auto fetched = co_await bring(need, std::move(choice));
    const bool stop = co_await is_cancelled();
    if (need->early_worker == worker) {
        need->early_worker.clear();
    }
    if (stop || p_.is_stopping) {
        co_return;
    }
    if (!fetched) {
        // Once it is up it is asked like all others, whose failures count.
        log::info(
            "a worker that comes up did not fetch models",
            {{"worker", worker}, {"error", fetched.error().message}}
        );
        if (is_of_worker(fetched.error().code)) {
            need->early[worker] = p_.clock.now() + kRetryPause;
            co_await sleep_for(kRetryPause);
        }
    }
    look();
}

Task<> Preparing::fetch(NeedPtr need, Choice choice) {
    name_peers(*need, choice);
    const std::string worker = choice.worker->id();
    log::info(
        "a worker is asked for models that jobs wait for",
        {{"worker", worker},
         {"models", choice.wishes.size()},
         {"first", text_of(choice.wishes.front(), "name")},
         {"jobs", need->jobs.size()}}
    );
    const Time begun = p_.clock.now();
    const json::object first = choice.wishes.front();
    const bool is_spare = choice.is_spare;
    auto fetched = co_await bring(need, std::move(choice));
    const bool stop = co_await is_cancelled();
    need->worker.clear();
    if (stop || p_.is_stopping) {
        co_return;
    }
    if (fetched) {
        learn(need->fetched.bytes, p_.clock.now() - begun);
        need->failed_on.clear();
        need->not_before = p_.clock.now() + kRetryPause;
        if (!is_spare && ++need->rounds >= kRoundsMax) {
            fetch_failed(need, worker, not_listed(worker, first));
        }
    } else {
        fetch_failed(need, worker, fetched.error());
    }
    look();
}

void Preparing::learn(std::uint64_t bytes, Millis took) {
    constexpr double kWeight = 0.3;
    constexpr std::uint64_t kBytesMin = 10'000'000;  // less tells nothing of a rate
    const double seconds = std::chrono::duration<double>(took).count();
    if (bytes >= kBytesMin && seconds > 0) {
        const double rate = static_cast<double>(bytes) / seconds;
        bytes_per_s_ += kWeight * (rate - bytes_per_s_);
    }
}

void Preparing::fetch_failed(const NeedPtr& need, const std::string& worker, const Error& error) {
    log::warning(
        "a worker could not fetch models that jobs wait for",
        {{"worker", worker}, {"code", to_string(error.code)}, {"error", error.message}}
    );
    const bool is_new = need->failed_on.insert(worker).second;
    if (is_of_worker(error.code)) {
        need->not_before = p_.clock.now() + kRetryPause;
        return;
    }
    const auto other = choose(*need);
    const bool may_help = error.code == Code::storage_full || comfyd::info(error.code).retryable;
    const bool has_other = other && other->worker && !need->failed_on.contains(other->worker->id());
    if (is_new && may_help && has_other) {
        return;
    }
    p_.tasks.spawn("jobs whose models are not to be had", fail_all(need, error));
}

// Those that still wait.
Task<> Preparing::fail_all(NeedPtr need, Error error) {
    need->worker = "none";  // nobody is asked meanwhile
    std::vector<JobId> waiting;
    for (const auto& [id, job] : need->jobs) {
        if (p_.table.is<Ready>(id)) {
            waiting.push_back(id);
        }
    }
    Failure failure = Failure::from(error);
    failure.details[kCauseKey] = to_string(cause_of_fetch(error.code));
    for (const JobId& id : waiting) {
        auto failed = co_await p_.changes.make(
            id,
            [this, &failure](const Job& job, std::uint64_t sequence) -> Result<Change> {
                if (job.state != State::queued) {
                    return fail(Code::conflict, "the job does not wait any more");
                }
                return fail_job(job, failure, sequence, p_.clock.now());
            }
        );
        static_cast<void>(failed);  // it runs, or somebody else has ended it
    }
    need->worker.clear();
    need->failed_on.clear();
    need->rounds = 0;
    look();
}

void Preparing::tell(Need& need, const std::string& worker, ModelHolder::Fetched fetched) {
    if (worker != teller_of(need)) {
        return;  // one of several
    }
    fetched.total = std::max(fetched.total, need.bytes);
    need.fetched = fetched;
    const Progress progress = shown(need);
    json::object data = progress.to_json();
    data["eta_seconds"] = nullptr;
    data["preparing"] = {
        {"worker", worker}, {"bytes", fetched.bytes}, {"total_bytes", fetched.total}
    };
    std::size_t told = 0;
    for (auto& [id, waiting] : need.jobs) {
        if (++told > kToldMax) {
            break;
        }
        Job job;
        job.id = id;
        job.tenant = waiting.tenant;
        // A change that is under way has its number already: nothing with a higher one comes first.
        if (!p_.table.is<Ready>(id) || p_.changes.is_held(id) || !p_.hub.wants_progress(job)) {
            continue;
        }
        p_.table.set_told(id, ++waiting.told);
        auto event = std::make_shared<Event>();
        event->job = id;
        event->sequence = waiting.told;
        event->type = EventType::progress;
        event->at = p_.clock.now();
        event->state = State::queued;
        event->data = data;
        p_.hub.publish(job, events::Shown{std::move(event)});
    }
}

Progress Preparing::shown(const Need& need) {
    const std::uint64_t total = std::max(need.fetched.total, need.fetched.bytes);
    Progress progress;
    progress.message = "preparing: ";
    const std::string& worker = teller_of(need);
    if (worker.empty()) {
        progress.message += "no worker that could fetch its models is there now";
    } else {
        progress.message +=
            worker + " fetches " + text_of(need.wishes.front(), "name") +
            (need.wishes.size() > 1 ? " and " + std::to_string(need.wishes.size() - 1) + " more"
                                    : "");
        progress.message +=
            ", " + shown_bytes(need.fetched.bytes) + (total > 0 ? " of " + shown_bytes(total) : "");
    }
    return progress;
}

std::size_t Preparing::fetches_of(const std::string& worker) const {
    const auto busy = busy_.find(worker);
    return busy == busy_.end() ? 0 : static_cast<std::size_t>(busy->second);
}

std::optional<Progress> Preparing::progress(const JobId& id) const {
    const auto found = by_job_.find(id);
    if (found == by_job_.end() || !p_.table.is<Ready>(id)) {
        return std::nullopt;
    }
    const Need& need = *found->second;
    return teller_of(need).empty() ? std::nullopt : std::optional(shown(need));
}

std::vector<std::string> Preparing::reasons(const JobId& id) const {
    std::vector<std::string> reasons;
    const auto found = by_job_.find(id);
    if (found == by_job_.end() || !found->second->worker.empty()) {
        return reasons;
    }
    const Need& need = *found->second;
    for (const auto& worker : p_.fleet.workers()) {
        const ModelHolder* holder = worker->models();
        const bool lacks = holder != nullptr && !worker->can_run(need.requirement) &&
                           (holder->lacking(need.requirement) || holder->is_coming());
        if (lacks && !has_room(*worker, *holder, need.bytes) && reasons.size() < kReasonsMax) {
            reasons.push_back(
                "the disk of worker '" + worker->id() + "' has " +
                shown_bytes(holder->free_bytes()) + " free, the job's models take " +
                shown_bytes(need.bytes)
            );
        }
    }
    return reasons;
}

// Whose progress is shown.
const std::string& Preparing::teller_of(const Need& need) {
    return need.worker.empty() ? need.early_worker : need.worker;
}

}  // namespace comfyd::jobs
