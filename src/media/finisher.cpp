#include "media/finisher.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/this_coro.hpp>

#include "media/headers.hpp"
#include "media/locate.hpp"

namespace comfyd::media {
namespace {

constexpr std::size_t kAtOnce = 4;            // files of one job
constexpr std::size_t kHeadBytes = 1 << 20;   // of a file that are read here
constexpr std::size_t kFirstBytes = 1 << 16;  // which do for nearly every PNG

std::vector<int> with_all(std::vector<int> sizes, const std::vector<int>& others) {
    sizes.insert(sizes.end(), others.begin(), others.end());
    std::ranges::sort(sizes, std::greater<>());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    return sizes;
}

json::object failed_variant(std::string_view kind, int size, Code code, std::string_view why) {
    json::object made{{"variant", kind}, {"error", {{"code", to_string(code)}, {"message", why}}}};
    if (size != 0) {
        made["size"] = size;
    }
    return made;
}

// All that was to be made of the file.
json::array all_failed(const jobs::OutputWishes& wishes, const Error& error) {
    json::array failed;
    const auto add = [&](std::string_view kind, int size) {
        failed.emplace_back(failed_variant(kind, size, error.code, error.message));
    };
    if (wishes.format || wishes.resizes()) {
        add("converted", 0);
    } else if (wishes.strip_metadata) {
        add("stripped", 0);
    }
    if (wishes.poster) {
        add("poster", 0);
    }
    for (const int size : wishes.thumbnails) {
        add("thumbnail", size);
    }
    if (failed.empty()) {
        add("inspection", 0);
    }
    return failed;
}

// Not mapped: a disk that fails would end the gateway.
void read_on(const Descriptor& file, std::string& head, std::size_t bytes_max) {
    std::size_t size = head.size();
    head.resize(bytes_max);
    ssize_t count = 1;
    while (file && count > 0 && size < head.size()) {
        count = ::pread(
            file.number(), head.data() + size, head.size() - size, static_cast<off_t>(size)
        );
        size += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
    }
    head.resize(size);
}

std::string read_head(const std::filesystem::path& path) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    std::string head;
    read_on(file, head, kFirstBytes);
    // Behind the beginning of its pixels there is nothing to be known of a still PNG.
    const bool is_enough = head.starts_with("\x89PNG") && head.find("IDAT") != std::string::npos &&
                           head.find("acTL") == std::string::npos;
    if (head.size() == kFirstBytes && !is_enough) {
        read_on(file, head, kHeadBytes);
    }
    return head;
}

// All that is to be known stands at the beginning of the file. Animations are to be counted
// through, and a WebP has its texts at its end.
bool is_said_first(const Facts& facts) {
    return facts.kind != Kind::animated_image && facts.format != "webp" && facts.format != "gif";
}

// "cat_00001_.webp", "cat_00001__256.webp", "cat_00001__poster.webp"
std::string name_of(const Variant& variant, const std::string& name) {
    if (variant.kind == "stripped") {
        return name;
    }
    std::string made = name.substr(0, name.rfind('.'));
    if (variant.kind == "thumbnail") {
        made += "_" + std::to_string(variant.size);
    } else if (variant.kind == "poster") {
        made += "_poster";
    }
    return made + "." + (variant.facts.format == "jpeg" ? "jpg" : variant.facts.format);
}

}  // namespace

// The outputs of one job, of which several are worked on at once.
struct Finisher::Run {
    jobs::Job job;
    std::vector<jobs::Output> outputs;
    jobs::OutputWishes wishes;
    std::stop_token stop;
    std::size_t next = 0;
    bool is_stopped = false;
};

Task<Result<std::vector<jobs::Output>>> Finisher::finish(
    jobs::Job job, std::vector<jobs::Output> outputs, std::stop_token stop
) {
    jobs::OutputWishes wishes = jobs::OutputWishes::of(job.dialect_data);
    wishes.thumbnails = with_all(std::move(wishes.thumbnails), thumbnails_);
    Run run{std::move(job), std::move(outputs), std::move(wishes), std::move(stop)};
    if (run.outputs.size() == 1) {
        co_await finish_some(run);
    } else {
        const Executor here = co_await boost::asio::this_coro::executor;
        TaskGroup tasks(here);
        for (std::size_t i = 0; i < std::min(kAtOnce, run.outputs.size()); ++i) {
            tasks.spawn("finish outputs", finish_some(run));  // the run lives until all have ended
        }
        // A join that is itself cancelled returns early; the tasks end all the same.
        while (tasks.size() > 0) {
            co_await tasks.join();
        }
    }
    if (run.is_stopped) {
        co_return fail(Code::cancelled, "the job was stopped while its outputs were finished");
    }
    co_return std::move(run.outputs);
}

Task<> Finisher::finish_some(Run& run) {
    while (!run.is_stopped && run.next < run.outputs.size()) {
        jobs::Output& output = run.outputs[run.next++];
        auto finished = co_await finish_one(run, output);
        run.is_stopped = run.is_stopped || !finished;
    }
}

// Fails for a stop alone.
Task<Result<>> Finisher::finish_one(const Run& run, jobs::Output& output) {
    auto source = co_await locate(store_, output);
    if (!source) {
        output.failed_variants = all_failed(run.wishes, source.error());
        co_return Result<>();
    }
    const Look look = co_await look_at(*source, output.name, output.content_type);
    const Facts& facts = look.facts;
    const jobs::OutputWishes wishes = wishes_for(facts, run.wishes);
    if (look.is_all && !facts.is_moving() && !wishes.any()) {
        output.media = facts.to_json();
        co_return Result<>();
    }
    auto answer = co_await helpers_.ask(
        {output.name, output.content_type, wishes}, std::move(*source), run.stop
    );
    if (!answer && answer.error().code == Code::cancelled) {
        co_return fail(std::move(answer.error()));
    }
    if (!answer) {
        output.media = facts.to_json();
        output.failed_variants = all_failed(wishes, answer.error());
        co_return Result<>();
    }
    output.media = answer->facts.to_json();
    for (const FailedVariant& failed : answer->failed) {
        output.failed_variants.emplace_back(
            failed_variant(failed.kind, failed.size, Code::unsupported_media_type, failed.reason)
        );
    }
    for (Variant& variant : answer->variants) {
        co_await keep(run.job, std::move(variant), output);
    }
    co_return Result<>();
}

Task<Finisher::Look> Finisher::look_at(Source source, std::string name, std::string content_type) {
    if (const auto* bytes = std::get_if<std::shared_ptr<const std::string>>(&source)) {
        co_return Look{read_headers(**bytes, name, content_type), true};
    }
    auto look = co_await pool_.run([&] {
        const std::string head = read_head(std::get<std::filesystem::path>(source));
        const Facts facts = read_headers(head, name, content_type);
        return Look{facts, head.size() < kHeadBytes || is_said_first(facts)};
    });
    co_return look;
}

Task<> Finisher::keep(const jobs::Job& job, Variant variant, jobs::Output& output) {
    assets::NewAsset asset;
    asset.tenant = job.tenant;
    asset.content_type = content_type_of(variant.facts.format);
    asset.file_path = name_of(variant, output.name);
    asset.job = job.id;
    auto added = co_await store_.add(std::move(variant.bytes), std::move(asset));
    if (!added) {
        const Error& error = added.error();
        output.failed_variants.emplace_back(
            failed_variant(variant.kind, variant.size, error.code, error.message)
        );
        co_return;
    }
    jobs::Output made;
    made.asset = added->asset.id;
    made.node_id = output.node_id;
    made.name = added->asset.file_path;
    made.subfolder = output.subfolder;
    made.folder = output.folder;
    made.type = "image";
    made.content_type = added->asset.content_type;
    made.size_bytes = added->asset.size_bytes;
    made.hash = added->asset.hash;
    made.crc32 = added->asset.crc32;
    made.bytes = added->asset.bytes;
    made.generation = added->asset.generation;
    made.media = variant.facts.to_json();
    if (variant.size != 0) {
        made.media["size"] = variant.size;
    }
    made.variant = variant.kind;
    output.variants.push_back(std::move(made));
}

}  // namespace comfyd::media
