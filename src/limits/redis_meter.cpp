#include "limits/redis_meter.hpp"

#include <charconv>
#include <utility>

#include "base/crypto.hpp"
#include "base/hop.hpp"
#include "base/log.hpp"

namespace comfyd::limits {
namespace {

using cluster::redis::Reply;

// For each key two arguments: the tolerance, and what is to be taken. Answers with the time and
// with what was kept for each key; weigh() makes of it what the script has decided. Numbers go out
// by %.0f, because Lua writes large ones with an exponent and fewer digits.
constexpr std::string_view kScript = R"lua(
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local answer = {string.format('%.0f', now)}
local after = {}
local fits = true
for i, key in ipairs(KEYS) do
  local tolerance = tonumber(ARGV[2 * i - 1])
  local tat = tonumber(redis.call('GET', key)) or 0
  answer[i + 1] = string.format('%.0f', tat)
  after[i] = math.max(now, math.min(tat, now + tolerance)) + tonumber(ARGV[2 * i])
  fits = fits and after[i] - now <= tolerance
end
if fits then
  for i, key in ipairs(KEYS) do
    local life = string.format('%.0f', math.ceil((after[i] - now) / 1000) + 1)
    redis.call('SET', key, string.format('%.0f', after[i]), 'PX', life)
  end
end
return answer
)lua";

std::optional<std::int64_t> number_of(const Reply& reply) {
    std::int64_t number = 0;
    const char* end = reply.text.data() + reply.text.size();
    const auto read = std::from_chars(reply.text.data(), end, number);
    return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

std::optional<Weighed> weighed_by(
    const Reply& reply, const std::vector<Bucket>& buckets, double cost
) {
    if (reply.items.size() != buckets.size() + 1) {
        return std::nullopt;
    }
    const auto now = number_of(reply.items[0]);
    Weighed weighed;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
        const auto tat = number_of(reply.items[i + 1]);
        if (!now || !tat) {
            return std::nullopt;
        }
        weighed.bids.push_back(weigh(buckets[i].rate, *tat, *now, cost));
    }
    return weighed;
}

}  // namespace

RedisMeter::RedisMeter(Executor executor, cluster::redis::Url url, const std::string& cluster)
    : executor_(executor),
      prefix_("comfyd:" + cluster + ":limit:"),
      client_(executor, std::move(url), [this](bool is_up, const Error& why) {
          if (is_up_.exchange(is_up) && !is_up) {
              log::warning(
                  "nodes cannot count requests together: each allows its part",
                  {{"error", why.message}}
              );
          }
      }) {}

Task<std::optional<Weighed>> RedisMeter::take(
    std::string tenant, std::vector<Bucket> buckets, double cost
) {
    if (!is_up_) {
        co_return std::nullopt;
    }
    auto weighed = co_await await_on(executor_, ask(std::move(tenant), std::move(buckets), cost));
    co_return weighed;
}

Task<std::optional<Weighed>> RedisMeter::ask(
    std::string tenant, std::vector<Bucket> buckets, double cost
) {
    // What a tenant is called may be anything. One tag: all keys of a request lie on one server of
    // a Redis cluster.
    const std::string tag = to_hex(sha256(tenant)).substr(0, 32);
    Words words{"EVALSHA", "", std::to_string(buckets.size())};
    for (const Bucket& bucket : buckets) {
        words.push_back(prefix_ + "{" + tag + "}:" + to_hex(sha256(bucket.name)).substr(0, 32));
    }
    for (const Bucket& bucket : buckets) {
        words.push_back(std::to_string(bucket.rate.tolerance));
        words.push_back(std::to_string(step_of(bucket.rate, cost)));
    }
    auto reply = co_await run_script(std::move(words));
    if (!reply) {
        co_return std::nullopt;
    }
    co_return weighed_by(*reply, buckets, cost);
}

Task<Result<Reply>> RedisMeter::run_script(Words words) {
    const Deadline deadline = Deadline::in(kPatience);
    Result<Reply> reply = fail(Code::upstream_error, "NOSCRIPT");
    // A server that was started anew does not know it any more.
    for (int attempt = 0; attempt < 2; ++attempt) {
        if (script_.empty()) {
            auto loaded = co_await load_script(deadline);
            if (!loaded) {
                co_return fail(std::move(loaded.error()));
            }
        }
        words[1] = script_;
        reply = co_await client_.command(words, deadline);
        if (reply || reply.error().message.find("NOSCRIPT") == std::string::npos) {
            break;
        }
        script_.clear();
    }
    co_return reply;
}

Task<Result<>> RedisMeter::load_script(Deadline deadline) {
    auto loaded = co_await client_.command({"SCRIPT", "LOAD", std::string(kScript)}, deadline);
    if (!loaded) {
        co_return fail(std::move(loaded.error()));
    }
    script_ = loaded->text;
    co_return Result<>();
}

}  // namespace comfyd::limits
