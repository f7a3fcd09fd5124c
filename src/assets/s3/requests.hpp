// Requests to one bucket: signed, sent, and repeated as the table of errors says. What it learns on
// the way stays: the bucket's region and host, the service's time, how much it bears at once.
//
// Belongs to one executor.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "assets/blob_store.hpp"
#include "assets/gate.hpp"
#include "assets/patience.hpp"
#include "assets/s3/address.hpp"
#include "assets/s3/credentials.hpp"
#include "assets/s3/signature.hpp"
#include "assets/s3/verdict.hpp"
#include "base/pool.hpp"
#include "base/task.hpp"
#include "base/time.hpp"
#include "net/client.hpp"

namespace comfyd::assets::s3 {

struct RequestOptions {
    BucketName name;
    std::size_t parallel_max = 8;
    std::string public_endpoint{};  // in links, where clients reach the service by another name
    Patience patience{};
    std::string ca_file{};
    net::AddressPolicy policy = net::AddressPolicy::any;  // where the operator named the bucket
};

// A body with what proves that it arrived whole. To be made on the pool where it is large.
struct Payload {
    std::string bytes{};
    std::string md5{};   // binary; empty: not told
    std::string hash{};  // empty: of no bytes
};

struct Call {
    std::string method = "GET";
    std::string key{};  // empty: the bucket
    Query query{};
    net::Headers headers{};
    Payload payload{};
    bool may_fail_late = false;
    std::uint64_t answer_bytes_max = 4 * 1024 * 1024;
    Millis answer_timeout{30'000};  // beside the time that its own bytes take
};

class Requests {
public:
    // Code::config_invalid. `clock` and `pool` outlive it.
    static Result<std::unique_ptr<Requests>> make(
        Executor executor,
        RequestOptions options,
        CredentialSettings credentials,
        Clock& clock,
        Pool& pool
    );

    // An answer that means success. Code::not_found, Code::output_unavailable (it is archived),
    // Code::conflict, Code::range_not_satisfiable, Code::storage_full, Code::storage_unavailable,
    // Code::config_invalid, Code::cancelled. Not repeated in vain: what it asks for can be asked
    // twice.
    Task<Result<net::ClientResponse>> send(Call call);
    // A link to GET it. `more`: overrides of the answer's headers.
    Task<Result<Redirect>> link_to(std::string key, Millis life, Query more);

    Payload make_payload(std::string bytes) const;
    // Of a part of what goes into the store, read on the pool. Code::storage_unavailable.
    Task<Result<Payload>> read_payload(Source source, std::uint64_t first, std::uint64_t length);
    // For those who hold a large payload: not more of them at a time than memory may hold.
    Gate& payload_gate() { return payload_gate_; }

    const BucketName& name() const { return options_.name; }
    Executor executor() const { return executor_; }

private:
    struct Cures {
        bool clock = false;
        bool credentials = false;
        bool place = false;
        bool bytes = false;
        std::optional<Address> elsewhere{};
    };
    struct Tried {
        Verdict verdict{};
        Credentials credentials{};
        net::ClientResponse answer{};  // of a success
    };

    Requests(
        Executor executor,
        RequestOptions options,
        CredentialSettings credentials,
        Clock& clock,
        Pool& pool,
        Address address,
        std::optional<Address> public_address
    );
    Task<Tried> try_once(const Call& call, const Cures& cures);
    Task<Result<net::ClientResponse>> attempt(
        const Call& call, const Credentials& credentials, const Address& address
    );
    // False: nothing is left to try.
    bool cure(const Verdict& verdict, const Credentials& credentials, Cures& cures);
    void learn_place(const Verdict& verdict, Cures& cures);
    Signer signer_with(Credentials credentials) const;

    Executor executor_;
    RequestOptions options_;
    Clock& clock_;
    Pool& pool_;
    CredentialSource credentials_;
    net::Client client_;
    Gate gate_;
    Gate payload_gate_;
    Address address_;
    std::optional<Address> public_address_;
    std::string region_;
    Millis clock_offset_{0};  // of the service's clock from ours
};

}  // namespace comfyd::assets::s3
