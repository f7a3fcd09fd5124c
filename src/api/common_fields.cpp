#include <algorithm>
#include <cmath>
#include <utility>

#include "api/submission.hpp"
#include "api/webhook_fields.hpp"
#include "jobs/output_wishes.hpp"

namespace comfyd::api {
namespace {

constexpr int kMaxAttemptsMax = 10;

boost::json::string_view text(std::string_view of) {
    return {of.data(), of.size()};
}

tl::unexpected<Error> wrong(std::string_view field, std::string message) {
    return fail(Code::invalid_argument, std::move(message), {{"field", text(field)}});
}

std::string shown(double value) {
    return value == std::trunc(value) && std::abs(value) < 1e15
               ? std::to_string(static_cast<std::int64_t>(value))
               : std::to_string(value);
}

tl::unexpected<Error> out_of_bounds(std::string_view field, double value, double min, double max) {
    return fail(
        Code::invalid_argument,
        "'" + std::string(field) + "' is " + shown(value) + ", but must be from " + shown(min) +
            " to " + shown(max),
        {{"field", text(field)}, {"value", value}, {"min", min}, {"max", max}}
    );
}

Result<> decode_int(const json::object& body, std::string_view field, int min, int max, int& into) {
    const auto value = json::find_int(body, field);
    if (!value) {
        return fail(value.error());
    }
    if (!*value) {
        return {};
    }
    if (**value < min || **value > max) {
        return out_of_bounds(field, static_cast<double>(**value), min, max);
    }
    into = static_cast<int>(**value);
    return {};
}

Result<> decode_times(const json::object& body, const Services& services, jobs::Spec& spec) {
    const auto timeout = json::find_number(body, "timeout");
    if (!timeout) {
        return fail(timeout.error());
    }
    if (*timeout) {
        constexpr double kMax = std::chrono::duration<double>(jobs::kTimeoutMax).count();
        if (!(**timeout >= 1 && **timeout <= kMax)) {
            return out_of_bounds("timeout", **timeout, 1, kMax);
        }
        spec.timeout = Millis(std::llround(**timeout * 1000));
    }
    const auto deadline = json::find_string(body, "deadline");
    if (!deadline) {
        return fail(deadline.error());
    }
    if (*deadline) {
        const auto time = parse_rfc3339(**deadline);
        if (!time) {
            return wrong(
                "deadline",
                "'deadline' must be a time such as \"2030-01-31T12:00:00Z\" (RFC 3339), not \"" +
                    (*deadline)->substr(0, 64) + "\""
            );
        }
        const Time now = services.clock.now();
        if (*time <= now) {
            return wrong(
                "deadline",
                "'deadline' is " + to_rfc3339(*time) + ", but it is already " + to_rfc3339(now)
            );
        }
        spec.deadline = *time;
    }
    return {};
}

Result<> decode_metadata(const json::object& body, jobs::Spec& spec) {
    const auto metadata = json::find_object(body, "metadata");
    if (!metadata) {
        return fail(metadata.error());
    }
    if (*metadata == nullptr) {
        return {};
    }
    const std::size_t bytes = json::serialize(**metadata).size();
    if (bytes > jobs::kMetadataBytesMax) {
        return wrong(
            "metadata",
            "'metadata' has " + std::to_string(bytes) + " bytes, but may have at most " +
                std::to_string(jobs::kMetadataBytesMax)
        );
    }
    spec.metadata = **metadata;
    return {};
}

bool is_printable(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return c >= 0x20 && c < 0x7F;
    });
}

}  // namespace

Result<> decode_turn(const Call& call, const json::object& from, jobs::Spec& spec) {
    auto key = member_or_header(call, from, "fairness_key", "X-Comfyd-Fairness-Key");
    if (!key) {
        return fail(std::move(key.error()));
    }
    if (key->size() > jobs::kFairnessKeyBytesMax || !is_printable(*key)) {
        return wrong(
            "fairness_key",
            "'fairness_key' may have at most " + std::to_string(jobs::kFairnessKeyBytesMax) +
                " printable ASCII characters"
        );
    }
    auto wait_class = member_or_header(call, from, "class", "X-Comfyd-Class");
    if (!wait_class) {
        return fail(std::move(wait_class.error()));
    }
    if (!wait_class->empty() && *wait_class != "batch") {
        return wrong(
            "class", "'class' can only be \"batch\"; the other classes follow from 'priority'"
        );
    }
    spec.fairness_key = std::move(*key);
    spec.batch = !wait_class->empty();
    return {};
}

Result<> decode_output_config(const json::object& from, jobs::Spec& spec) {
    const auto config = json::find_object(from, "output_config");
    if (!config) {
        return fail(config.error());
    }
    if (*config == nullptr) {
        return {};
    }
    if (const auto wishes = jobs::OutputWishes::from_json(**config); !wishes) {
        return fail(wishes.error());
    }
    spec.dialect_data["output_config"] = **config;
    return {};
}

Result<> decode_reuse(const json::object& from, jobs::Spec& spec) {
    const auto reuse = json::find_bool(from, "reuse");
    if (!reuse) {
        return fail(reuse.error());
    }
    spec.reuse = *reuse;
    return {};
}

// Structured-field strings come in quotes, plain keys without; both are in use.
Result<std::string> decode_idempotency_key(const Call& call) {
    constexpr std::string_view kHeader = "Idempotency-Key";
    if (!call.request.headers.contains(kHeader)) {
        return std::string();
    }
    std::string_view key = call.request.headers.get(kHeader);
    if (key.size() >= 2 && key.front() == '"' && key.back() == '"') {
        key = key.substr(1, key.size() - 2);
    }
    if (key.empty() || key.size() > jobs::kIdempotencyKeyBytesMax) {
        return wrong(
            kHeader,
            "header Idempotency-Key has " + std::to_string(key.size()) +
                " bytes, but must have from 1 to " + std::to_string(jobs::kIdempotencyKeyBytesMax)
        );
    }
    if (!is_printable(key)) {
        return wrong(kHeader, "header Idempotency-Key may have printable ASCII characters only");
    }
    return std::string(key);
}

Result<> decode_common(
    const Call& call, const Services& services, const json::object& body, jobs::Spec& spec
) {
    if (auto done =
            decode_int(body, "priority", jobs::kPriorityMin, jobs::kPriorityMax, spec.priority);
        !done) {
        return done;
    }
    if (auto done = decode_turn(call, body, spec); !done) {
        return done;
    }
    const auto machine = decode_machine(call, services, body);
    if (!machine) {
        return fail(machine.error());
    }
    spec.requirement = spec.requirement.on(*machine);
    if (auto done = decode_int(body, "max_attempts", 1, kMaxAttemptsMax, spec.max_attempts);
        !done) {
        return done;
    }
    if (auto done = decode_times(body, services, spec); !done) {
        return done;
    }
    if (auto done = decode_metadata(body, spec); !done) {
        return done;
    }
    if (auto done = decode_reuse(body, spec); !done) {
        return done;
    }
    if (auto done = decode_output_config(body, spec); !done) {
        return done;
    }
    if (auto done = decode_keeping(call, services, body, spec); !done) {
        return done;
    }
    if (auto done = decode_webhook(call, services, body, spec); !done) {
        return done;
    }
    auto key = decode_idempotency_key(call);
    if (!key) {
        return fail(std::move(key.error()));
    }
    spec.idempotency_key = std::move(*key);
    return {};
}

}  // namespace comfyd::api
