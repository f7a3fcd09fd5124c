// Decoding of RunPod's requests.
#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "api/dialects/runpod/runpod.hpp"
#include "api/workflow_source.hpp"
#include "api/wrong_field.hpp"
#include "base/crypto.hpp"
#include "comfy/members.hpp"
#include "workflow/files/asset_ref.hpp"
#include "workflow/files/file_inputs.hpp"

namespace comfyd::api::runpod {
namespace {

constexpr std::int64_t kExecutionTimeoutMin = 5'000;
constexpr std::int64_t kTimeToLiveMin = 10'000;
constexpr std::int64_t kWeek = 7LL * 24 * 3600 * 1000;
constexpr std::int64_t kWaitMin = 1'000;
constexpr std::int64_t kWaitMax = 300'000;
constexpr std::int64_t kWaitDefault = 90'000;
constexpr std::size_t kEndpointBytesMax = 128;
constexpr std::size_t kImagesMax = 100;
constexpr std::size_t kNameBytesMax = 255;

Result<Millis> decode_ms(
    const json::object& policy,
    std::string_view key,
    std::int64_t min,
    std::int64_t max,
    Millis otherwise
) {
    const std::string field = "policy." + std::string(key);
    const auto value = json::find_int(policy, key);
    if (!value) {
        return wrong(field, "'" + field + "' must be a whole number of milliseconds");
    }
    if (!*value) {
        return otherwise;
    }
    if (**value < min || **value > max) {
        return wrong(
            field,
            "'" + field + "' is " + std::to_string(**value) + ", but must be from " +
                std::to_string(min) + " to " + std::to_string(max) + " milliseconds"
        );
    }
    return Millis(**value);
}

Result<> decode_policy(const json::object& body, Submission& into) {
    const auto given = json::find_object(body, "policy");
    if (!given) {
        return fail(given.error());
    }
    static const json::object kNone;
    const json::object& policy = *given == nullptr ? kNone : **given;
    const auto timeout = decode_ms(
        policy, "executionTimeout", kExecutionTimeoutMin, kWeek, kExecutionTimeoutDefault
    );
    if (!timeout) {
        return fail(timeout.error());
    }
    const auto ttl = decode_ms(policy, "ttl", kTimeToLiveMin, kWeek, kTimeToLiveDefault);
    if (!ttl) {
        return fail(ttl.error());
    }
    const auto low = json::find_bool(policy, "lowPriority");
    if (!low) {
        return wrong("policy.lowPriority", "'policy.lowPriority' must be true or false");
    }
    into.spec.timeout = *timeout;
    into.time_to_live = *ttl;
    into.spec.priority = low->value_or(false) ? kLowPriority : jobs::kPriorityDefault;
    return {};
}

// Lines are often broken for transport.
std::string without_spaces(std::string_view text) {
    std::string kept;
    kept.reserve(text.size());
    std::copy_if(text.begin(), text.end(), std::back_inserter(kept), [](char c) {
        return c != ' ' && c != '\n' && c != '\r' && c != '\t';
    });
    return kept;
}

// "data:image/png;base64,…", the base64 alone, or where the picture is to be had.
Result<InputImage> decode_image(const std::string& field, std::string name, std::string_view text) {
    InputImage image;
    image.name = std::move(name);
    image.field = field;
    if (text.starts_with("data:")) {
        const std::size_t comma = text.find(',');
        const std::string_view head = text.substr(0, comma);
        if (comma == std::string_view::npos || !head.ends_with(";base64")) {
            return wrong(field, "'" + field + "' must be a data URL with base64 content");
        }
        const std::string_view type = head.substr(5, std::min(head.find(';'), head.size()) - 5);
        image.content_type = type.size() <= 100 ? std::string(type) : std::string();
        text.remove_prefix(comma + 1);
    } else if (workflow::is_file_source(text)) {
        image.source = text;
        return image;
    }
    auto bytes = from_base64(without_spaces(text));
    if (!bytes || bytes->empty()) {
        return wrong(field, "'" + field + "' is not base64");
    }
    image.bytes = std::move(*bytes);
    return image;
}

Result<std::vector<InputImage>> decode_images(const json::object& input) {
    const auto given = json::find_array(input, "images");
    if (!given) {
        return wrong(
            "input.images", "'input.images' must be a list of {\"name\": …, \"image\": …}"
        );
    }
    std::vector<InputImage> images;
    if (*given == nullptr) {
        return images;
    }
    if ((*given)->size() > kImagesMax) {
        return wrong(
            "input.images", "'input.images' may have at most " + std::to_string(kImagesMax)
        );
    }
    std::set<std::string> names;
    for (std::size_t i = 0; i < (*given)->size(); ++i) {
        const std::string field = "input.images[" + std::to_string(i) + "]";
        const json::object* entry = (**given)[i].if_object();
        if (entry == nullptr || !comfy::maybe_text(*entry, "image")) {
            return wrong(field, "'" + field + "' must be {\"name\": …, \"image\": …} with texts");
        }
        std::string name = comfy::text_of(*entry, "name");
        if (name.empty() || name.size() > kNameBytesMax) {
            return wrong(
                field + ".name",
                "'" + field + ".name' must have from 1 to " + std::to_string(kNameBytesMax) +
                    " bytes"
            );
        }
        if (!names.insert(name).second) {
            return wrong(field + ".name", "'" + field + ".name' is used twice: " + name);
        }
        const boost::json::string& text = entry->at("image").get_string();
        auto image = decode_image(field + ".image", std::move(name), {text.data(), text.size()});
        if (!image) {
            return fail(std::move(image.error()));
        }
        images.push_back(std::move(*image));
    }
    return images;
}

// worker-comfyui also takes the input as JSON text.
Result<json::object> take_input(json::object& body) {
    json::value* input = body.if_contains("input");
    if (input != nullptr && input->is_string()) {
        const boost::json::string& text = input->get_string();
        auto parsed = json::parse_object({text.data(), text.size()});
        return parsed ? std::move(parsed)
                      : wrong("input", "'input' is a text, but not JSON of an object");
    }
    if (input == nullptr || !input->is_object()) {
        return wrong("input", "'input' is missing: send {\"input\": {\"workflow\": {…}}}");
    }
    return std::move(input->get_object());
}

Result<> decode_return(const json::object& input, jobs::Spec& spec) {
    const auto how = json::find_string(input, "return");
    const std::string text = how ? how->value_or("base64") : std::string();
    if (text != "base64" && text != "url") {
        return wrong("input.return", "'input.return' must be \"base64\" or \"url\"");
    }
    if (text == "url") {
        spec.dialect_data["return"] = text;
    }
    return {};
}

// The name of a stored workflow, from "workflow_id" or in the place of a workflow.
std::optional<std::string_view> name_in(const json::object& input) {
    const json::value* workflow = json::find(input, "workflow");
    const json::value* given = workflow != nullptr ? workflow : json::find(input, "workflow_id");
    if (given == nullptr || !given->is_string()) {
        return std::nullopt;
    }
    const boost::json::string& text = given->get_string();
    const std::string_view name(text.data(), text.size());
    return workflow != nullptr && workflow::is_file_source(name) ? std::nullopt
                                                                 : std::optional(name);
}

Result<> take_workflow_of(json::object& input, Decoded& into) {
    const auto name = name_in(input);
    if (!name) {
        return take_workflow(input, "workflow", "input.workflow", into.submission);
    }
    into.named = named::parse_reference(*name);
    if (!into.named) {
        const std::string field =
            json::find(input, "workflow") != nullptr ? "input.workflow" : "input.workflow_id";
        return wrong(
            field,
            "'" + field +
                "' is a text, but neither the name of a stored workflow, such as "
                "\"portrait\" or \"portrait@3\", nor where one is to be had (https://…, data:…, "
                "asset:<id>)"
        );
    }
    const auto values = json::find_object(input, "params");
    if (!values) {
        return wrong("input.params", "'input.params' must be an object");
    }
    into.values = *values == nullptr ? json::object() : **values;
    return {};
}

// By what was sent, and not by what is found under a name or an address this time.
void keep_request(const json::object& body, const json::object& input, Submission& into) {
    json::object sent = input;
    sent.erase("comfy_org_api_key");
    into.request["input"] = std::move(sent);
    for (const std::string_view key : {"policy", "webhook"}) {
        if (const json::value* given = json::find(body, key)) {
            into.request[key] = *given;
        }
    }
}

bool chooses_file(
    const workflow::Catalogue& catalogue,
    const std::string& class_type,
    std::string_view input,
    const json::object& inputs
) {
    if (class_type.find("Load") != std::string::npos) {
        return true;
    }
    const workflow::NodeDefinition* definition = catalogue.find(class_type);
    const workflow::InputDefinition* found =
        definition == nullptr ? nullptr : definition->find_input(input, inputs);
    return found != nullptr && (found->takes_upload() || found->type == "COMBO");
}

json::object reference_to(const StoredImage& image) {
    const std::size_t slash = image.name.rfind('/');
    const std::string file = slash == std::string::npos ? image.name : image.name.substr(slash + 1);
    return workflow::AssetRef{.hash = image.hash, .file_path = file, .name = image.name}.to_json();
}

}  // namespace

Result<Decoded> decode_request(json::object body) {
    auto input = take_input(body);
    if (!input) {
        return fail(std::move(input.error()));
    }
    Decoded decoded;
    auto bucket = decode_bucket(body);
    if (!bucket) {
        return fail(std::move(bucket.error()));
    }
    decoded.bucket = std::move(*bucket);
    if (auto taken = take_workflow_of(*input, decoded); !taken) {
        return fail(std::move(taken.error()));
    }
    jobs::Spec& spec = decoded.submission.spec;
    spec.dialect = kDialect;
    if (auto policy = decode_policy(body, decoded.submission); !policy) {
        return fail(std::move(policy.error()));
    }
    if (auto how = decode_return(*input, spec); !how) {
        return fail(std::move(how.error()));
    }
    auto images = decode_images(*input);
    if (!images) {
        return fail(std::move(images.error()));
    }
    decoded.images = std::move(*images);
    if (const json::value* key = json::find(*input, "comfy_org_api_key")) {
        spec.extra_data["api_key_comfy_org"] = *key;
    }
    if (const json::value* webhook = json::find(body, "webhook")) {
        decoded.common["webhook_url"] = *webhook;
    }
    if (const json::value* config = json::find(*input, "output_config")) {
        decoded.common["output_config"] = *config;
    }
    const json::value* policy = json::find(body, "policy");
    const auto take = [&](std::string_view key) {
        const json::value* given = policy == nullptr || !policy->is_object()
                                       ? nullptr
                                       : json::find(policy->get_object(), key);
        if (given != nullptr) {
            decoded.common[key] = *given;
        }
    };
    std::ranges::for_each(
        std::to_array<std::string_view>({"class", "fairness_key", "reuse"}), take
    );
    std::ranges::for_each(kMachineMembers, take);
    const bool is_elsewhere = !decoded.submission.workflow_source.empty() || decoded.named ||
                              std::ranges::any_of(decoded.images, [](const InputImage& image) {
                                  return !image.source.empty();
                              });
    if (is_elsewhere) {
        keep_request(body, *input, decoded.submission);
        if (decoded.bucket) {
            decoded.submission.request["s3Config"] = {
                {"bucketName", decoded.bucket->bucket}, {"endpointUrl", decoded.bucket->endpoint}
            };
        }
    }
    return decoded;
}

Result<> check_endpoint(std::string_view endpoint) {
    const bool printable =
        std::all_of(endpoint.begin(), endpoint.end(), [](char c) { return c > 0x20 && c < 0x7F; });
    if (endpoint.empty() || endpoint.size() > kEndpointBytesMax || !printable) {
        return fail(
            Code::not_found,
            "there is no such endpoint: its name has from 1 to " +
                std::to_string(kEndpointBytesMax) + " printable ASCII characters"
        );
    }
    return {};
}

Result<Millis> decode_wait(std::string_view text) {
    if (text.empty()) {
        return Millis(kWaitDefault);
    }
    std::int64_t wait = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), wait);
    if (error != std::errc() || end != text.data() + text.size() || wait < kWaitMin ||
        wait > kWaitMax) {
        return wrong(
            "wait",
            "'wait' must be a whole number of milliseconds from " + std::to_string(kWaitMin) +
                " to " + std::to_string(kWaitMax)
        );
    }
    return Millis(wait);
}

std::vector<std::string> bind_images(
    json::object& graph,
    const workflow::Catalogue& catalogue,
    const std::vector<StoredImage>& images
) {
    std::set<std::string> used;
    for (auto& [id, node] : graph) {
        json::object* members = node.if_object();
        json::value* given = members == nullptr ? nullptr : members->if_contains("inputs");
        json::object* inputs = given == nullptr ? nullptr : given->if_object();
        if (inputs == nullptr) {
            continue;
        }
        const std::string class_type = comfy::text_of(*members, "class_type");
        for (auto& [key, value] : *inputs) {
            const boost::json::string* text = value.if_string();
            if (text == nullptr) {
                continue;
            }
            const auto image =
                std::find_if(images.begin(), images.end(), [text](const StoredImage& one) {
                    return *text == one.name || *text == one.name + " [input]";
                });
            if (image != images.end() && chooses_file(catalogue, class_type, key, *inputs)) {
                used.insert(image->name);
                value = reference_to(*image);
            }
        }
    }
    std::vector<std::string> unused;
    for (const StoredImage& image : images) {
        if (!used.contains(image.name)) {
            unused.push_back(image.name);
        }
    }
    return unused;
}

}  // namespace comfyd::api::runpod
