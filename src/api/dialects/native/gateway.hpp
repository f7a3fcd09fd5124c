// The whole fleet, as what stands behind ComfyUI's public surface: for one request, of whose caller
// it shows the own queue, history, files and settings. On the connection's thread.
#pragma once

#include "api/dialects/native/context.hpp"
#include "comfy/server/backend.hpp"

namespace comfyd::api::native {

class Gateway final : public comfy::server::Backend {
public:
    Gateway(Context& context, Call& call) : context_(context), call_(call) {}

    Pool& disk() override { return context_.parts.pool; }
    comfy::server::Limits limits() const override;

    Task<comfy::server::Document> node_classes() override;
    Task<comfy::server::Document> node_class(std::string name) override;
    json::array choices(std::string_view class_type, std::string_view input) const override;
    json::object node_replacements() const override;
    Task<comfy::server::System> system() override;
    std::filesystem::path editor() const override { return context_.parts.frontend; }
    // Logs of this program are for its operator, not for its clients.
    json::array log_lines() const override { return {}; }
    void follow_log(const std::string& /*client_id*/, bool /*wanted*/) override {}

    comfy::UserStore& user() override { return context_.user_of(tenant()); }

private:
    const std::string& tenant() const { return call_.caller.tenant; }

    Context& context_;
    Call& call_;
};

}  // namespace comfyd::api::native
