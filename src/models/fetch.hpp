// Brings one file from a server to a folder, whatever the server does and whenever this process
// ends: what has come is gone on with, what changed meanwhile is begun anew, and only what was
// found to be right is given its name.
//
// One executor: call it only there; the disk is the pool's.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/pool.hpp"
#include "base/task.hpp"
#include "models/part_file.hpp"
#include "models/web.hpp"

namespace comfyd::models {

struct FetchOptions {
    int tries = 5;            // in a row of which none got further by a MiB
    Millis pause_min{1'000};  // between them; doubles
    Millis pause_max{30'000};
    Millis stall{30'000};                   // in which there must be some bytes,
    std::uint64_t stall_bytes = 32 * 1024;  // so many
    std::uint64_t bytes_max = std::uint64_t{1} << 40;
    std::size_t piece_bytes = 1024 * 1024;  // that are hashed and written at once
};

struct FetchOrder {
    std::string source{};  // what is remembered of where it is from
    net::Url url{};
    std::string sha256{};                  // that it must have; empty: any
    std::optional<std::uint64_t> bytes{};  // likewise
    bool is_safetensors = false;           // it must be a whole one
    // Of the version that is here already: then it is not sent again.
    std::string known_etag{};
    bool is_peer = false;  // another agent of ours is asked: once
    // The gateway has named the address: it may be private, and nobody whom it names is asked.
    bool is_given = false;
};

struct FetchProgress {
    std::uint64_t bytes = 0;
    std::optional<std::uint64_t> total{};
};

struct Fetched {
    PartFile::Content content{};
    std::string etag{};
    bool is_known = false;  // it is the version with `known_etag`; there is no content
};

class Fetcher {
public:
    // All outlive it.
    Fetcher(Executor executor, Pool& pool, Web& web, FetchOptions options);

    // Room for a file of so many bytes is asked of `make_room` as soon as the size is known, and
    // before anything is written; where it is not told, again for each piece. On success the
    // content is judged, and waits in `part` for its name. Code::hash_mismatch: what came is not
    // what was ordered, and nothing stays of it. Code::storage_full: likewise. After other
    // failures, what has come waits for the next try.
    using MakeRoom = std::function<Task<Result<>>(std::uint64_t total)>;
    using Told = std::function<void(FetchProgress)>;
    Task<Result<Fetched>> fetch(FetchOrder order, PartFile& part, MakeRoom make_room, Told told);

    // Bytes that have come so far, whatever became of them.
    std::uint64_t received(bool from_peers) const { return received_[from_peers ? 1 : 0]; }

private:
    struct Run;
    Task<Result<>> try_once(Run& run);
    Task<Result<>> take_up_part(Run& run);
    Result<bool> judge_head(Run& run, const Web::Answer& answer, std::uint64_t from) const;
    Task<Result<>> prepare(Run& run, const Web::Answer& answer, std::uint64_t from);
    Task<Result<>> pump(Run& run, net::Passage& body);
    Task<Result<>> write(Run& run, std::string bytes);
    Task<> write_out(Run& run, std::string bytes);
    Task<Result<>> finish(Run& run);

    Executor executor_;
    Pool& pool_;
    Web& web_;
    FetchOptions options_;
    std::array<std::uint64_t, 2> received_{};  // by whether a peer sent them
};

}  // namespace comfyd::models
