// Models by their contents: brings each to the cache once, however many ask for it, and links it to
// where ComfyUI looks for it. A server that failed several times is left alone for a while.
//
// One executor: call it only there; the disk is the pool's.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/dependency.hpp"
#include "base/pool.hpp"
#include "base/task.hpp"
#include "base/turnstile.hpp"
#include "models/contents.hpp"
#include "models/fetch.hpp"
#include "models/source.hpp"
#include "models/web.hpp"
#include "models/wish.hpp"

namespace comfyd::models {

struct LibraryOptions {
    ContentsOptions contents{};
    WebOptions web{};
    FetchOptions fetch{};
    Endpoints endpoints{};
    bool allows_pickles = false;
    std::size_t fetches_max = 3;  // at once
    CircuitBreaker::Limits breaker{
        .failures = 3,
        .open_first = std::chrono::seconds(120),
        .open_max = std::chrono::seconds(120)
    };
};

struct Placed {
    std::string sha256{};  // empty: a file that was there already, which nobody has read
    std::uint64_t bytes = 0;
    json::object about{};  // as Contents::about()
};

// What the gateway says of where a model may be had from for now.
struct Ways {
    std::vector<std::string> peers{};  // addresses of other agents that may have the content
    std::string link{};                // of a source that needs one (Source::needs_link())
};

class Library {
public:
    // All outlive it.
    Library(
        Executor executor,
        Pool& pool,
        LibraryOptions options,
        const Clock& clock = SteadyClock::of_process()
    );
    ~Library();
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

    // Before everything else. Blocks. Those of the disk.
    Result<> open();

    // Whether it may be had at all. Code::forbidden: a pickle.
    Result<> check(const ModelWish& wish) const;
    // A file of its name is in ComfyUI's folder now.
    Task<bool> is_there(ModelWish wish);
    // The model is in ComfyUI's folder when this returns. A file that somebody else has put there
    // under its name is taken for it, where size and hash do not say otherwise. `seen` is told how
    // far its fetch is; it may be nullptr. What has a known hash is asked of the peers first.
    // Whoever gives up waiting does not stop a fetch that others wait for, too: end() does. Those
    // of check(), Code::conflict, and those of sources, Fetcher and Contents.
    Task<Result<Placed>> place(ModelWish wish, std::shared_ptr<FetchProgress> seen, Ways ways = {});
    // Bytes that have come since the start, whatever became of them: of other agents, or of
    // sources.
    std::uint64_t received(bool from_peers) const { return fetcher_.received(from_peers); }
    // A content, for other agents; nullopt: it is not here.
    Task<std::optional<std::filesystem::path>> find_content(std::string sha256);

    // Ends all fetches; what has come stays for the next time.
    Task<> end();

private:
    struct Flight;
    struct Brought {
        std::string sha256{};
        std::shared_ptr<PartFile> held{};  // it is not given up as long as this is there
    };

    Task<Result<std::optional<Placed>>> find_here(ModelWish wish);
    Task<Result<Brought>> bring(ModelWish wish, std::shared_ptr<FetchProgress> seen, Ways ways);
    Task<> fly(std::string key, ModelWish wish);
    Task<Result<std::string>> fetch(ModelWish wish, std::shared_ptr<Flight> flight);
    Task<Result<Target>> resolve(Source source, std::string link);
    enum class From { source, link, peer };
    Task<Result<std::string>> fetch_alone(
        ModelWish wish, Target target, From from, std::shared_ptr<Flight> flight
    );
    Task<Result<std::string>> fetch_content(
        ModelWish wish, Target target, From from, std::string key, std::shared_ptr<Flight> flight
    );
    Task<Result<PartFile>> open_part(std::string key);
    Task<Result<>> make_room(PartFile& part, std::uint64_t total);
    Dependency& breaker_of(const Source& source, const std::string& link);
    static void judge(Dependency& server, const Error* failure);

    Executor executor_;
    Pool& pool_;
    const LibraryOptions options_;
    const Clock& clock_;
    Contents contents_;
    Web web_;
    Fetcher fetcher_;
    Turnstile gate_;
    std::map<std::string, std::shared_ptr<Flight>> flights_;  // by source and what it must be
    std::set<std::string> busy_;                              // contents that are being brought
    Signal content_done_;
    std::map<std::string, std::unique_ptr<Dependency>> servers_;
    std::shared_ptr<std::atomic<bool>> ending_;
    TaskGroup tasks_;
};

}  // namespace comfyd::models
