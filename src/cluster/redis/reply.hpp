// What a Redis server says, and the reading and writing of its protocol (RESP2, over hiredis).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

struct redisReader;

namespace comfyd::cluster::redis {

struct Reply {
    enum class Kind { nil, integer, text, error, list };

    Kind kind = Kind::nil;
    std::int64_t number = 0;
    std::string text{};  // of an error, too
    std::vector<Reply> items{};

    bool is(Kind which) const { return kind == which; }
};

// A command and its arguments as they go over the wire.
std::string encode(const std::vector<std::string>& words);

// Makes replies of bytes, in whatever pieces they come.
class ReplyReader {
public:
    // So much of a reply that is not complete yet is kept.
    static constexpr std::size_t kBytesMax = 64 * 1024 * 1024;

    ReplyReader();
    ~ReplyReader();

    // Code::protocol_error: what comes is no Redis; no more can be read.
    Result<> feed(std::string_view bytes);
    // nullopt: it takes more bytes.
    Result<std::optional<Reply>> next();

private:
    struct Free {
        void operator()(redisReader* reader) const;
    };
    std::unique_ptr<redisReader, Free> reader_;
};

}  // namespace comfyd::cluster::redis
