#include "app/mail_content.hpp"

#include <utility>

#include "api/dialects/execution/execution.hpp"
#include "app/pictures.hpp"
#include "base/log.hpp"

namespace comfyd::app {
namespace {

constexpr std::uint64_t kSourceBytesMax = 64ULL << 20;
constexpr int kLongestSide = 512;
constexpr int kQuality = 80;

std::vector<jobs::Output> outputs_of(const jobs::Event& event) {
    std::vector<jobs::Output> outputs;
    const json::value* listed = json::find(event.data, "outputs");
    if (event.type == jobs::EventType::completed && listed != nullptr && listed->is_array()) {
        for (const json::value& output : listed->get_array()) {
            if (output.is_object()) {
                outputs.push_back(jobs::Output::from_json(output.get_object()));
            }
        }
    }
    return outputs;
}

std::vector<notify::Link> links_of(
    const api::Services& services, const jobs::Job& job, const jobs::Event& event
) {
    const auto link = api::execution::links_at(services, job, event.at);
    std::vector<notify::Link> links;
    for (const jobs::Output& output : outputs_of(event)) {
        std::string url = link(output.asset).url;
        if (url.starts_with("http")) {  // else nobody knows under which name we are reached
            links.push_back({output.name, std::move(url)});
        }
    }
    return links;
}

// Of the first picture. Nothing that goes wrong here holds up the mail.
Task<std::string> picture_of(assets::Store& assets, Pool& media, jobs::Job job, jobs::Event event) {
    for (const jobs::Output& output : outputs_of(event)) {
        if (output.type != "image" || output.size_bytes > kSourceBytesMax) {
            continue;
        }
        auto asset = co_await assets.get(job.tenant, output.asset);
        if (!asset) {
            break;
        }
        auto bytes = co_await assets.read(std::move(*asset), kSourceBytesMax);
        if (!bytes) {
            break;
        }
        auto made = co_await media.run([bytes = std::move(*bytes)] {
            comfy::server::PictureForm form;
            form.channel = comfy::server::Channel::rgb;
            form.format = comfy::server::PictureFormat::jpeg;
            form.quality = kQuality;
            form.longest_side = kLongestSide;
            return convert_picture(bytes, form);
        });
        if (!made) {
            log::debug(
                "a mail goes without its picture",
                {{"job", job.id}, {"error", made.error().message}}
            );
        }
        co_return made ? std::move(*made) : std::string();
    }
    co_return std::string();
}

}  // namespace

notify::mail::MailContent mail_content(
    const std::unique_ptr<api::Services>& services, assets::Store& assets, Pool& media
) {
    notify::mail::MailContent content;
    content.links = [&services](const jobs::Job& job, const jobs::Event& event) {
        return links_of(*services, job, event);
    };
    content.picture = [&assets, &media](jobs::Job job, jobs::Event event) {
        return picture_of(assets, media, std::move(job), std::move(event));
    };
    return content;
}

}  // namespace comfyd::app
