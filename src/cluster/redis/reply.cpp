#include "cluster/redis/reply.hpp"

#include <hiredis/hiredis.h>

#include <utility>

namespace comfyd::cluster::redis {
namespace {

std::string text_of(const redisReply& from) {
    return from.str == nullptr ? std::string()
                               : std::string(from.str, static_cast<std::size_t>(from.len));
}

Reply to_reply(const redisReply& from) {
    Reply reply;
    switch (from.type) {
        case REDIS_REPLY_INTEGER:
            reply.kind = Reply::Kind::integer;
            reply.number = from.integer;
            break;
        case REDIS_REPLY_STRING:
        case REDIS_REPLY_STATUS:
            reply.kind = Reply::Kind::text;
            reply.text = text_of(from);
            break;
        case REDIS_REPLY_ERROR:
            reply.kind = Reply::Kind::error;
            reply.text = text_of(from);
            break;
        case REDIS_REPLY_ARRAY:
            reply.kind = Reply::Kind::list;
            reply.items.reserve(from.elements);
            for (std::size_t at = 0; at < from.elements; ++at) {
                reply.items.push_back(to_reply(*from.element[at]));
            }
            break;
        default:
            break;
    }
    return reply;
}

}  // namespace

std::string encode(const std::vector<std::string>& words) {
    std::vector<const char*> texts;
    std::vector<std::size_t> sizes;
    texts.reserve(words.size());
    sizes.reserve(words.size());
    for (const std::string& word : words) {
        texts.push_back(word.data());
        sizes.push_back(word.size());
    }
    char* made = nullptr;
    const auto size =
        redisFormatCommandArgv(&made, static_cast<int>(words.size()), texts.data(), sizes.data());
    std::string encoded(made, size < 0 ? 0 : static_cast<std::size_t>(size));
    redisFreeCommand(made);
    return encoded;
}

void ReplyReader::Free::operator()(redisReader* reader) const {
    redisReaderFree(reader);
}

ReplyReader::ReplyReader() : reader_(redisReaderCreate()) {}
ReplyReader::~ReplyReader() = default;

Result<> ReplyReader::feed(std::string_view bytes) {
    const std::size_t waiting = reader_->len - reader_->pos;
    if (waiting + bytes.size() > kBytesMax) {
        return fail(Code::protocol_error, "Redis sends a reply that is too large");
    }
    if (redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != REDIS_OK) {
        return fail(
            Code::protocol_error, "what comes is no Redis: " + std::string(reader_->errstr)
        );
    }
    return {};
}

Result<std::optional<Reply>> ReplyReader::next() {
    void* made = nullptr;
    if (redisReaderGetReply(reader_.get(), &made) != REDIS_OK) {
        return fail(
            Code::protocol_error, "what comes is no Redis: " + std::string(reader_->errstr)
        );
    }
    if (made == nullptr) {
        return std::nullopt;
    }
    const std::unique_ptr<void, decltype(&freeReplyObject)> owned(made, &freeReplyObject);
    return to_reply(*static_cast<const redisReply*>(made));
}

}  // namespace comfyd::cluster::redis
