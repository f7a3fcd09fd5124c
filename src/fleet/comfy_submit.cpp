#include <utility>

#include "base/foreign_text.hpp"
#include "base/log.hpp"
#include "comfy/members.hpp"
#include "comfy/owner.hpp"
#include "fleet/comfy_attempt.hpp"

namespace comfyd::fleet {
namespace {

constexpr int kSubmissionsMax = 3;
constexpr std::size_t kUploadsRememberedMax = 10'000;

// An answer in HTTP that is no acceptance, as the jobs room knows it.
Error refusal(const Error& error, const std::string& what) {
    const auto* status = error.details.if_contains("status");
    const bool too_large = status != nullptr && *status == 413;
    if (too_large) {
        return {Code::worker_rejected, what + " is larger than the worker accepts", error.details};
    }
    return {Code::worker_unavailable, error.message, error.details};
}

Error as_clients_see(Error error) {
    error.message = workflow::without_private_folders(std::move(error.message));
    workflow::hide_private_folders(error.details);
    return error;
}

}  // namespace

Task<Result<>> ComfyAttempt::place_inputs(json::object& prompt) {
    auto uses = find_asset_uses(prompt);
    for (const AssetUse& use : uses) {
        auto value = co_await upload(use);
        if (!value) {
            co_return fail(std::move(value.error()));
        }
        *use.place = *value;  // stays valid: replacing one value moves no other
    }
    co_return Result<>();
}

std::string ComfyAttempt::tenant_of(const std::string& node) const {
    const auto owner = owner_of(node);
    return owner ? owner->tenant : assignment_.tenant;
}

Task<Result<std::string>> ComfyAttempt::upload(const AssetUse& use) {
    const std::string tenant = tenant_of(use.node_id);
    auto asset = co_await find_asset(link_.store, tenant, use);
    if (!asset) {
        co_return fail(std::move(asset.error()));
    }
    const std::string folder = options_.folders.of_inputs(tenant);
    const std::string file = input_name(*asset);
    const std::string name = folder + "/" + file;
    if (const auto known = link_.uploaded.find(name); known != link_.uploaded.end()) {
        reused_uploads_.push_back(name);
        co_return known->second;
    }
    auto bytes = co_await link_.store.read(*asset, options_.upload_bytes_max);
    if (!bytes) {
        co_return fail(std::move(bytes.error()));
    }
    auto stored =
        co_await link_.client.upload(folder, file, asset->content_type, std::move(*bytes));
    if (!stored && stored.error().code == Code::cancelled) {
        co_return fail(std::move(stored.error()));
    }
    if (!stored) {
        co_return fail(refusal(stored.error(), "the input file of node " + use.node_id));
    }
    if (link_.uploaded.size() >= kUploadsRememberedMax) {
        link_.uploaded.clear();
    }
    link_.uploaded[name] = stored->path();
    log::debug(
        "input uploaded",
        {{"job", assignment_.job}, {"worker", link_.worker_id}, {"file", stored->path()}}
    );
    co_return stored->path();
}

Task<Result<>> ComfyAttempt::submit(json::object prompt) {
    const bool uses_assets = may_use_assets(assignment_.workflow);
    if (uses_assets) {
        auto placed = co_await place_inputs(prompt);
        if (!placed) {
            co_return placed;
        }
    }
    const bool changed = place_outputs(prompt) || uses_assets;
    auto submitted = co_await submit_text(changed ? json::serialize(prompt) : assignment_.workflow);
    co_return submitted;
}

bool ComfyAttempt::place_outputs(json::object& prompt) const {
    if (link_.is_engine) {
        return false;  // extra_data() says whose they are
    }
    bool changed = false;
    for (auto& [id, node] : prompt) {
        const std::string tenant = tenant_of(std::string(id.data(), id.size()));
        const std::string folder = options_.folders.of_outputs(tenant);
        if (!folder.empty() && node.is_object()) {
            changed = workflow::save_in_folder(node.get_object(), folder) || changed;
        }
    }
    return changed;
}

json::object ComfyAttempt::extra_data() const {
    json::object data = assignment_.extra_data;
    data.erase(comfy::kOwnerKey);
    data.erase(comfy::kLeadKey);
    if (mandate_) {
        data[comfy::kLeadKey] = comfy::LeadMark{mandate_->domain, mandate_->epoch}.to_json();
    }
    if (const std::string owner = options_.folders.of_outputs(assignment_.tenant);
        link_.is_engine && !owner.empty()) {
        data[comfy::kOwnerKey] = owner;
    }
    return data;
}

comfy::FileName ComfyAttempt::on_worker(comfy::FileName file) const {
    const std::string owner = options_.folders.of_outputs(assignment_.tenant);
    if (link_.is_engine && !owner.empty() && file.type != "input") {
        file.subfolder = file.subfolder.empty() ? owner : owner + "/" + file.subfolder;
    }
    return file;
}

Task<Result<>> ComfyAttempt::submit_text(std::string text) {
    for (int tried = 0; tried < kSubmissionsMax; ++tried) {
        if (auto may = may_send(); !may) {
            co_return may;
        }
        sent_ = true;
        auto answer = co_await link_.client.submit(comfy::Submission{
            prompt_id_,
            link_.client_id,
            text,
            extra_data(),
            assignment_.targets,
        });
        if (answer) {
            accepted_ = true;
            if (!answer->node_errors.empty()) {
                log::warning(
                    "the worker runs only a part of the workflow's outputs",
                    {{"job", assignment_.job},
                     {"worker", link_.worker_id},
                     {"node_errors", log::foreign(json::serialize(answer->node_errors))}}
                );
            }
            co_return Result<>();
        }
        const Code code = answer.error().code;
        if (code == Code::lead_lost) {
            sent_ = false;
            co_return fail(lose_lead(std::move(answer.error())));
        }
        if (code == Code::conflict) {
            // Sent by whom led before, or by us without an answer.
            accepted_ = reattached_ = true;
            co_return Result<>();
        }
        if (code == Code::worker_rejected || comfy::is_refused(answer.error())) {
            sent_ = false;
            co_return fail(
                code == Code::worker_rejected ? as_clients_see(std::move(answer.error()))
                                              : refusal(answer.error(), "the workflow")
            );
        }
        if (code == Code::cancelled) {
            co_return fail(std::move(answer.error()));
        }
        auto has_it = co_await settle_submission();
        if (!has_it) {
            co_return fail(std::move(has_it.error()));
        }
        if (*has_it) {
            co_return Result<>();
        }
        sent_ = false;
        if (code == Code::upstream_error) {
            co_return fail(refusal(answer.error(), "the workflow"));
        }
    }
    co_return fail(
        Code::worker_unavailable,
        "the worker did not take the workflow: the connection broke each time"
    );
}

Task<Result<bool>> ComfyAttempt::settle_submission() {
    if (!seen_message_) {
        auto place = co_await locate();
        if (!place) {
            co_return fail(std::move(place.error()));
        }
        if (*place == Place::absent) {
            co_return false;
        }
    }
    accepted_ = true;
    log::debug(
        "the answer to a submission was lost, the prompt is there",
        {{"job", assignment_.job}, {"worker", link_.worker_id}}
    );
    co_return true;
}

}  // namespace comfyd::fleet
