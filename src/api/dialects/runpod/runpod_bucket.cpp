// RunPod's "s3Config": a bucket of the client's that the outputs of the job are to be brought to.
#include <array>
#include <utility>

#include "api/dialects/runpod/runpod.hpp"

namespace comfyd::api::runpod {
namespace {

using assets::s3::GivenBucket;

struct Member {
    std::string_view theirs;
    std::string_view ours;
    std::string GivenBucket::* value;
    bool is_needed;
};

constexpr std::array kMembers{
    Member{"bucketName", "bucket", &GivenBucket::bucket, true},
    Member{"accessId", "access_key", &GivenBucket::access_key, true},
    Member{"accessSecret", "secret_key", &GivenBucket::secret_key, true},
    Member{"endpointUrl", "endpoint", &GivenBucket::endpoint, false},  // without: AWS
};

// Values are not repeated: some are secret.
Error about(std::string_view member, const std::string& what, Code code = Code::invalid_argument) {
    const std::string field = "s3Config." + std::string(member);
    return Error(code, "'" + field + "' " + what, {{"field", field}});
}

std::string_view their_name(const Error& error) {
    const json::value* member = json::find(error.details, "member");
    const std::string_view name = member != nullptr && member->is_string()
                                      ? std::string_view(member->get_string())
                                      : std::string_view();
    for (const Member& known : kMembers) {
        if (known.ours == name) {
            return known.theirs;
        }
    }
    return kMembers.front().theirs;
}

}  // namespace

Result<std::optional<GivenBucket>> decode_bucket(const json::object& body) {
    const auto given = json::find_object(body, "s3Config");
    if (!given) {
        return fail(
            Code::invalid_argument, "'s3Config' must be an object", {{"field", "s3Config"}}
        );
    }
    if (*given == nullptr) {
        return std::nullopt;
    }
    GivenBucket bucket;
    for (const Member& member : kMembers) {
        auto value = json::find_string(**given, member.theirs);
        if (!value) {
            return fail(about(member.theirs, "must be a text"));
        }
        if (!*value && member.is_needed) {
            return fail(about(member.theirs, "is missing"));
        }
        bucket.*member.value = std::move(*value).value_or("");
    }
    return bucket;
}

Result<> keep_bucket(const Services& services, const GivenBucket& bucket, jobs::Spec& spec) {
    if (auto checked = bucket.check(services.options.allow_private_buckets); !checked) {
        const Error& error = checked.error();
        return fail(about(their_name(error), error.message, error.code));
    }
    if (!services.options.sealing) {
        return fail(
            Code::invalid_argument,
            "'s3Config' is not taken by this server: it has nothing to keep its keys with",
            {{"field", "s3Config"}}
        );
    }
    if (spec.reuse.value_or(false)) {
        return fail(
            Code::invalid_argument,
            "'s3Config' and \"policy\": {\"reuse\": true} exclude each other: outputs of another "
            "job "
            "are not brought to a bucket",
            {{"field", "policy.reuse"}}
        );
    }
    spec.reuse = false;
    spec.dialect_data["export"] = bucket.to_json(*services.options.sealing, spec.tenant);
    return {};
}

}  // namespace comfyd::api::runpod
