#include "api/answer_shelf.hpp"

#include <algorithm>
#include <utility>

#include "api/dialects/kept_outputs.hpp"
#include "api/router.hpp"
#include "api/services.hpp"
#include "api/submission.hpp"

namespace comfyd::api {
namespace {

constexpr Millis kGoodFor = std::chrono::minutes(1);
constexpr int kPartOfLinksLife = 16;  // at most so much of it is lost to whoever gets an old link

// When time alone makes another answer of it.
Time good_until(const jobs::Job& job, Time now, Millis links_life) {
    Time until = now + std::min(kGoodFor, links_life / kPartOfLinksLife);
    jobs::each_file(job.outputs, [&](const jobs::Output& output) {
        if (output.expires_at && *output.expires_at > now) {
            until = std::min(until, *output.expires_at);
        }
    });
    return until;
}

}  // namespace

bool AnswerShelf::Answer::is_of(const jobs::Stamp& stamp) const {
    return tenant == stamp.tenant && revision == stamp.revision &&
           (!webhook_delivered || *webhook_delivered == stamp.webhook_delivered);
}

std::size_t AnswerShelf::Entry::bytes() const {
    constexpr std::size_t kOfTheEntry = 256;
    return kOfTheEntry + form.size() + answer->tenant.size() + answer->body.size();
}

AnswerShelf::Part::Found AnswerShelf::Part::find(const JobId& job, std::string_view form) const {
    const auto [begin, end] = index.equal_range(job);
    const auto found =
        std::find_if(begin, end, [form](const auto& one) { return one.second->form == form; });
    return found == end ? index.end() : found;
}

void AnswerShelf::Part::erase(Found found) {
    bytes -= found->second->bytes();
    entries.erase(found->second);
    index.erase(found);
}

AnswerShelf::AnswerPtr AnswerShelf::find(const JobId& job, std::string_view form) const {
    const Part& part = part_of(job);
    const Lock lock(part.mutex);
    const auto found = part.find(job, form);
    return found == part.index.end() ? nullptr : found->second->answer;
}

void AnswerShelf::put(const JobId& job, std::string form, Answer answer) {
    if (answer.body.size() > kAnswerBytesMax) {
        return;
    }
    Entry entry{job, std::move(form), std::make_shared<const Answer>(std::move(answer))};
    Part& part = part_of(job);
    const Lock lock(part.mutex);
    if (const auto found = part.find(job, entry.form); found != part.index.end()) {
        part.erase(found);
    }
    part.bytes += entry.bytes();
    part.index.emplace(job, part.entries.insert(part.entries.end(), std::move(entry)));
    while (part.bytes > kBytesMax / kParts) {
        const Entry& oldest = part.entries.front();
        part.erase(part.find(oldest.job, oldest.form));
    }
}

std::size_t AnswerShelf::bytes() const {
    std::size_t sum = 0;
    for (const Part& part : parts_) {
        const Lock lock(part.mutex);
        sum += part.bytes;
    }
    return sum;
}

KeptAnswer::KeptAnswer(
    const Call& call, const Services& services, const JobId& job, std::string_view dialect
)
    : call_(call),
      services_(services),
      job_(job),
      form_(std::string(dialect) + '\n' + base_url(call.request, services.options)) {}

Task<AnswerShelf::AnswerPtr> KeptAnswer::find() {
    asked_at_ = services_.answers->changes();
    auto kept = services_.answers->find(job_, form_);
    if (kept == nullptr || kept->tenant != call_.caller.tenant ||
        kept->good_until <= services_.clock.now()) {
        co_return AnswerShelf::AnswerPtr();
    }
    if (asked_at_ && kept->seen_at->load() == *asked_at_) {
        co_return std::move(kept);
    }
    const auto stamp = co_await services_.jobs.stamp(job_);
    const bool holds = stamp && *stamp && kept->is_of(**stamp);
    if (holds && asked_at_) {
        kept->seen_at->store(*asked_at_);
    }
    co_return holds ? std::move(kept) : nullptr;
}

void KeptAnswer::made_of(const jobs::Job& job, std::optional<bool> webhook_delivered) {
    if (!jobs::is_terminal(job.state) || has_passing_parts(job)) {
        return;
    }
    made_ = AnswerShelf::Answer{
        .tenant = job.tenant,
        .revision = job.revision,
        .webhook_delivered = webhook_delivered,
        .good_until = good_until(job, services_.clock.now(), services_.links.lifetime()),
        .body = {},
    };
}

void KeptAnswer::keep(const std::string& body) {
    if (made_ && body.size() <= AnswerShelf::kAnswerBytesMax) {
        made_->body = body;
        made_->seen_at->store(asked_at_.value_or(0));
        services_.answers->put(job_, form_, std::move(*made_));
        made_.reset();
    }
}

}  // namespace comfyd::api
