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

    Task<Result<tl::expected<comfy::server::AcceptedPrompt, comfy::server::PromptRefusal>>> submit(
        comfy::server::PromptPost post
    ) override;
    Task<std::size_t> unfinished() override;
    Task<Result<comfy::server::QueueView>> queue() override;
    Task<Result<>> clear_queue() override;
    Task<Result<>> dequeue(std::vector<std::string> ids) override;
    Task<Result<>> interrupt(std::string id) override;
    Task<Result<bool>> cancel(std::string id) override;
    Task<> free_memory(bool models, bool results) override;

    comfy::server::SocketRules socket_rules() const override;
    Result<std::unique_ptr<comfy::server::Hold>> reserve_socket() override;
    Task<comfy::server::Seat> attach(
        std::string client_id, std::shared_ptr<comfy::server::Mailbox> mailbox
    ) override;

    Task<Result<comfy::server::HistoryPage>> history(
        std::optional<std::int64_t> max_items, std::optional<std::int64_t> offset
    ) override;
    Task<Result<comfy::server::HistoryPage>> history_of(std::string id) override;
    Task<Result<>> clear_history() override;
    Task<Result<>> forget(std::vector<std::string> ids) override;
    Task<Result<comfy::server::JobsPage>> jobs(comfy::JobsQuery query) override;
    Task<Result<std::optional<comfy::server::JobView>>> job(std::string id) override;

    Task<Result<comfy::server::ShownFile>> find_file(comfy::server::FileName name) override;
    Task<std::vector<std::string>> file_names(std::string type) override;
    Result<std::unique_ptr<comfy::server::NewFile>> begin_file(std::string content_type) override;
    Task<Result<comfy::server::FileName>> keep_file(
        std::unique_ptr<comfy::server::NewFile> file, comfy::server::FileName wanted, bool overwrite
    ) override;
    Task<Result<std::string>> take_bytes(
        std::unique_ptr<comfy::server::NewFile> file, comfy::server::FileName name
    ) override;
    Task<Result<std::string>> convert_picture(std::string picture, comfy::server::PictureForm form)
        override;
    Task<Result<std::string>> replace_alpha(std::string picture, std::string mask) override;

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
