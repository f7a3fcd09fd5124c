#include "cluster/redis/reply.hpp"

#include <gtest/gtest.h>

namespace comfyd::cluster::redis {
namespace {

TEST(RedisReply, IsReadFromPieces) {
    const std::string whole = std::string("+OK\r\n-ERR no\r\n:42\r\n$-1\r\n$3\r\na") + '\0' +
                              "b\r\n*2\r\n$1\r\nx\r\n*1\r\n:1\r\n";
    ReplyReader reader;
    std::vector<Reply> replies;
    for (const char byte : whole) {
        ASSERT_TRUE(reader.feed({&byte, 1}));
        auto reply = reader.next();
        ASSERT_TRUE(reply);
        if (*reply) {
            replies.push_back(std::move(**reply));
        }
    }
    ASSERT_EQ(replies.size(), 6U);
    EXPECT_EQ(replies[0].text, "OK");
    EXPECT_TRUE(replies[1].is(Reply::Kind::error));
    EXPECT_EQ(replies[1].text, "ERR no");
    EXPECT_EQ(replies[2].number, 42);
    EXPECT_TRUE(replies[3].is(Reply::Kind::nil));
    EXPECT_EQ(replies[4].text, std::string("a\0b", 3));
    ASSERT_EQ(replies[5].items.size(), 2U);
    EXPECT_EQ(replies[5].items[1].items.front().number, 1);
}

TEST(RedisReply, OfWhatIsNoRedisIsRefused) {
    ReplyReader reader;
    ASSERT_TRUE(reader.feed("HTTP/1.1 400 Bad Request\r\n\r\n"));
    const auto reply = reader.next();
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, Code::protocol_error);
}

TEST(RedisReply, ThatNeverEndsIsRefused) {
    ReplyReader reader;
    ASSERT_TRUE(reader.feed("$500000000\r\n"));
    const std::string piece(1024 * 1024, 'x');
    Result<> fed;
    for (std::size_t sent = 0; fed && sent <= ReplyReader::kBytesMax; sent += piece.size()) {
        fed = reader.feed(piece);
        EXPECT_TRUE(reader.next());
    }
    ASSERT_FALSE(fed);
    EXPECT_EQ(fed.error().code, Code::protocol_error);
}

TEST(RedisCommand, HasItsBytesAsTheyAre) {
    EXPECT_EQ(
        encode({"SET", std::string("a\0\r", 3), ""}),
        std::string("*3\r\n$3\r\nSET\r\n$3\r\na") + '\0' + "\r\r\n$0\r\n\r\n"
    );
}

}  // namespace
}  // namespace comfyd::cluster::redis
