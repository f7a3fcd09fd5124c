#include "assets/s3/requests.hpp"

#include <algorithm>
#include <utility>

#include "assets/guarded.hpp"
#include "assets/read_source.hpp"
#include "assets/s3/md5.hpp"
#include "assets/s3/verdict.hpp"
#include "base/crypto.hpp"
#include "base/log.hpp"
#include "base/on_executor.hpp"

namespace comfyd::assets::s3 {
namespace {

constexpr std::size_t kPayloadsMax = 4;

// Over TLS the connection and MD5 guard the bytes already.
Payload payload_of(std::string bytes, bool is_tls) {
    Payload payload;
    payload.md5 = md5(bytes);
    payload.hash = is_tls ? std::string(kUnsignedPayload) : to_hex(sha256(bytes));
    payload.bytes = std::move(bytes);
    return payload;
}

}  // namespace

Result<std::unique_ptr<Requests>> Requests::make(
    Executor executor,
    RequestOptions options,
    CredentialSettings credentials,
    Clock& clock,
    Pool& pool
) {
    auto address = address_of(options.name);
    if (!address) {
        return fail(std::move(address.error()));
    }
    std::optional<Address> public_address;
    if (!options.public_endpoint.empty()) {
        BucketName shown = options.name;
        shown.endpoint = options.public_endpoint;
        auto found = address_of(shown);
        if (!found) {
            return fail(std::move(found.error()));
        }
        public_address = std::move(*found);
    }
    return std::unique_ptr<Requests>(new Requests(
        executor,
        std::move(options),
        std::move(credentials),
        clock,
        pool,
        std::move(*address),
        std::move(public_address)
    ));
}

Requests::Requests(
    Executor executor,
    RequestOptions options,
    CredentialSettings credentials,
    Clock& clock,
    Pool& pool,
    Address address,
    std::optional<Address> public_address
)
    : executor_(executor),
      options_(std::move(options)),
      clock_(clock),
      pool_(pool),
      credentials_(executor, std::move(credentials), clock, pool),
      client_(
          executor,
          {.policy = options_.policy,
           .idle_per_origin_max = options_.parallel_max,
           .ca_file = options_.ca_file}
      ),
      gate_(executor, options_.parallel_max),
      payload_gate_(executor, kPayloadsMax),
      address_(std::move(address)),
      public_address_(std::move(public_address)),
      region_(region_of(options_.name)) {}

Payload Requests::make_payload(std::string bytes) const {
    return payload_of(std::move(bytes), address_.scheme == "https");
}

Task<Result<Payload>> Requests::read_payload(
    Source source, std::uint64_t first, std::uint64_t length
) {
    const bool is_tls = address_.scheme == "https";
    return pool_.run(guarded([=, source = std::move(source)]() -> Result<Payload> {
        auto bytes = read_source(source, first, length);
        if (!bytes) {
            return fail(std::move(bytes.error()));
        }
        return payload_of(std::move(*bytes), is_tls);
    }));
}

Signer Requests::signer_with(Credentials credentials) const {
    return {std::move(credentials), region_, clock_.now() + clock_offset_};
}

Task<Result<net::ClientResponse>> Requests::send(Call call) {
    COMFYD_ON(executor_);
    Cures cures;
    for (int tries = 1;; ++tries) {
        auto tried = co_await try_once(call, cures);
        Verdict& verdict = tried.verdict;
        if (verdict.action == Action::none) {
            co_return std::move(tried.answer);
        }
        const bool is_cured = cure(verdict, tried.credentials, cures);
        if (!is_cured || tries >= options_.patience.tries_max) {
            co_return fail(std::move(verdict.error));
        }
        if (verdict.action == Action::again || verdict.action == Action::slower) {
            const bool slept = co_await sleep_for(pause_after(tries, options_.patience));
            if (!slept) {
                co_return fail(Code::cancelled, "the request to the store was cancelled");
            }
        }
    }
}

Task<Requests::Tried> Requests::try_once(const Call& call, const Cures& cures) {
    Tried tried;
    const auto pass = co_await gate_.enter();
    if (!pass) {
        tried.verdict = judge(Error(Code::cancelled, "the request to the store was cancelled"));
        co_return tried;
    }
    // Within, so that those who wait for the gate do not sign with what is worn out meanwhile.
    auto credentials = co_await credentials_.get();
    if (!credentials) {
        tried.verdict = {.action = Action::give_up, .error = std::move(credentials.error())};
        co_return tried;
    }
    tried.credentials = std::move(*credentials);
    const Address address = cures.elsewhere.value_or(address_);
    const std::string region = region_;
    auto answer = co_await attempt(call, tried.credentials, address);
    tried.verdict = answer ? judge(*answer, region, call.may_fail_late) : judge(answer.error());
    if (tried.verdict.action == Action::none) {
        gate_.went_well();
        tried.answer = std::move(*answer);
    }
    co_return tried;
}

Task<Result<net::ClientResponse>> Requests::attempt(
    const Call& call, const Credentials& credentials, const Address& address
) {
    const Target target{
        call.method, address.host, encode_path(address.path_of(call.key)), call.query
    };
    net::ClientRequest request;
    request.method = call.method;
    request.headers = call.headers;
    request.lent_body = call.payload.bytes;  // may be many megabytes, and sent again
    request.response_bytes_max = call.answer_bytes_max;
    request.timeout = call.answer_timeout + time_for(call.payload.bytes.size());
    if (!call.payload.md5.empty()) {
        request.headers.set("Content-MD5", to_base64(call.payload.md5));
    }
    const std::string hash = call.payload.hash.empty() ? to_hex(sha256("")) : call.payload.hash;
    sign(target, hash, signer_with(credentials), request.headers);
    const std::string query = encode_query(call.query);
    request.url =
        address.scheme + "://" + target.host + target.path + (query.empty() ? "" : "?") + query;
    auto answer = co_await client_.send(std::move(request));
    co_return answer;
}

bool Requests::cure(const Verdict& verdict, const Credentials& credentials, Cures& cures) {
    const auto once = [](bool& done) { return !std::exchange(done, true); };
    switch (verdict.action) {
        case Action::none:
        case Action::again:
            return true;
        case Action::slower:
            gate_.slow_down();
            return true;
        case Action::again_once:
            return once(cures.bytes);
        case Action::set_clock:
            clock_offset_ = *verdict.time - clock_.now();
            return once(cures.clock);
        case Action::refresh_credentials:
            credentials_.refuse(credentials);
            return once(cures.credentials);
        case Action::go_elsewhere:
            if (!once(cures.place)) {
                return false;
            }
            learn_place(verdict, cures);
            return true;
        case Action::give_up:
            return false;
    }
    return false;
}

void Requests::learn_place(const Verdict& verdict, Cures& cures) {
    const auto at = [this](const std::string& host) {
        const bool is_named = host.starts_with(options_.name.bucket + ".");
        return Address{address_.scheme, host, is_named ? "" : "/" + options_.name.bucket};
    };
    if (verdict.is_for_this_request_only) {
        cures.elsewhere = at(verdict.host);
        return;
    }
    if (!verdict.region.empty()) {
        region_ = verdict.region;
    }
    if (is_aws(options_.name) && !verdict.region.empty()) {
        BucketName there = options_.name;
        there.region = verdict.region;
        there.endpoint.clear();
        address_ = address_of(there).value_or(address_);
    } else if (!verdict.host.empty()) {
        address_ = at(verdict.host);
    }
    log::warning(
        "a bucket is elsewhere than configured",
        {{"bucket", options_.name.bucket}, {"host", address_.host}, {"region", region_}}
    );
}

Task<Result<Redirect>> Requests::link_to(std::string key, Millis life, Query more) {
    COMFYD_ON(executor_);
    auto credentials = co_await credentials_.get();
    if (!credentials) {
        co_return fail(std::move(credentials.error()));
    }
    const Address& address = public_address_ ? *public_address_ : address_;
    const Target target{"GET", address.host, encode_path(address.path_of(key)), std::move(more)};
    const Signer signer = signer_with(std::move(*credentials));
    const auto seconds = std::chrono::floor<std::chrono::seconds>(life);
    const std::string query = presign(target, seconds, signer);
    co_return Redirect{
        address.scheme + "://" + target.host + target.path + "?" + query,
        clock_.now() + link_life(seconds, signer)
    };
}

}  // namespace comfyd::assets::s3
