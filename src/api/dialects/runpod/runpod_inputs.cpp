// What a RunPod request names and does not bring: its workflow and its pictures.
#include <algorithm>
#include <utility>

#include "admission/inputs.hpp"
#include "admission/workflow_file.hpp"
#include "api/dialects/runpod/runpod.hpp"
#include "api/workflow_source.hpp"
#include "comfy/members.hpp"
#include "workflow/parameters/parameters.hpp"
#include "workflow/rules/check.hpp"

namespace comfyd::api::runpod {
namespace {

// Expired after the job can no longer be asked for or retried.
Time image_expiry(const Services& services, Millis time_to_live) {
    return services.clock.now() + std::max(services.rules.retention, time_to_live) +
           std::chrono::hours(24);
}

// Those of the pictures that are to be had elsewhere.
Task<Result<>> fetch_images(
    const Call& call,
    const Services& services,
    const std::vector<InputImage>& images,
    std::vector<StoredImage>& into
) {
    std::vector<workflow::FileSource> sources;
    for (const InputImage& image : images) {
        if (!image.source.empty()) {
            workflow::FileSource source;
            source.input = image.field;
            source.source = image.source;
            sources.push_back(std::move(source));
            into.push_back({image.name, {}});
        }
    }
    if (sources.empty()) {
        co_return Result<>();
    }
    auto fetched =
        co_await admission::fetch_inputs(services, call.caller.tenant, std::move(sources));
    if (!fetched) {
        co_return fail(std::move(fetched.error()));
    }
    if (!fetched->issues.empty()) {
        co_return fail(admission::inputs_error(fetched->issues));
    }
    for (std::size_t i = 0; i < into.size(); ++i) {
        into[i].hash = std::move(fetched->assets[i].hash);
    }
    co_return Result<>();
}

// The nodes, also where a stored workflow has its declarations beside them.
json::object& graph_of(json::object& workflow) {
    const json::object& inner = workflow::unwrap(workflow);
    if (&inner == &workflow) {
        return workflow;
    }
    json::object wrapped(workflow.storage());
    wrapped["prompt"] = inner;
    if (const json::object* declared = workflow::declared_parameters(workflow)) {
        wrapped["parameters"] = *declared;
    }
    workflow = std::move(wrapped);
    return workflow.at("prompt").get_object();
}

}  // namespace

Task<Result<>> open_workflow_of(const Call& call, const Services& services, Decoded& decoded) {
    Submission& submission = decoded.submission;
    if (decoded.named) {
        submission.spec.dialect_data["named_workflow"] = decoded.named->name;
        auto filled = co_await named::fill(
            services,
            call.caller.tenant,
            std::move(*decoded.named),
            std::move(decoded.values),
            submission
        );
        co_return filled;
    }
    if (!submission.workflow_source.empty()) {
        auto workflow = co_await admission::fetch_workflow(
            services,
            call.caller.tenant,
            std::move(submission.workflow_source),
            submission.workflow_field
        );
        if (!workflow) {
            co_return fail(std::move(workflow.error()));
        }
        submission.workflow_source.clear();
        submission.workflow = std::move(*workflow);
    }
    co_return Result<>();
}

Task<Result<>> place_images(const Call& call, const Services& services, Decoded& decoded) {
    std::vector<StoredImage> stored;
    auto fetched = co_await fetch_images(call, services, decoded.images, stored);
    if (!fetched) {
        co_return fetched;
    }
    for (InputImage& image : decoded.images) {
        if (!image.source.empty()) {
            continue;
        }
        assets::NewAsset asset;
        asset.tenant = call.caller.tenant;
        asset.content_type = std::move(image.content_type);
        asset.file_path = image.name.substr(image.name.rfind('/') + 1);
        asset.expires_at = image_expiry(services, *decoded.submission.time_to_live);
        auto added = co_await services.assets.add(std::move(image.bytes), std::move(asset));
        if (!added) {
            co_return fail(std::move(added.error()));
        }
        stored.push_back({std::move(image.name), std::move(added->asset.hash)});
    }
    const auto catalogue = services.catalogue();
    json::array warnings;
    json::object& graph = graph_of(decoded.submission.workflow);
    for (const std::string& name : bind_images(graph, *catalogue, stored)) {
        warnings.emplace_back("the input image '" + name + "' is not used by any node");
    }
    if (!warnings.empty()) {
        decoded.submission.spec.dialect_data["warnings"] = std::move(warnings);
    }
    co_return Result<>();
}

}  // namespace comfyd::api::runpod
