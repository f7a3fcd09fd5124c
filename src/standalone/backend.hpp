// The engine by itself, as what stands behind ComfyUI's public surface. Belongs to the server's
// thread; there is one caller.
#pragma once

#include "comfy/server/backend.hpp"
#include "standalone/core.hpp"

namespace comfyd::standalone {

class EngineBackend final : public comfy::server::Backend {
public:
    explicit EngineBackend(Core& core) : core_(core) {}

    Pool& disk() override { return core_.pool; }
    comfy::server::Limits limits() const override;

    Task<comfy::server::Document> node_classes() override;
    Task<comfy::server::Document> node_class(std::string name) override;
    json::array choices(std::string_view class_type, std::string_view input) const override;
    json::object node_replacements() const override { return {}; }
    Task<comfy::server::System> system() override;
    std::filesystem::path editor() const override { return core_.options.frontend; }
    json::array log_lines() const override { return core_.logs.lines(); }
    void follow_log(const std::string& client_id, bool wanted) override;

    comfy::UserStore& user() override { return core_.users; }

private:
    Core& core_;
};

}  // namespace comfyd::standalone
