#include "net/multipart_stream.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "net/http.hpp"

namespace comfyd::net {
namespace {

class Collected final : public PartSink {
public:
    Result<> begin_part(PartHead head) override {
        EXPECT_FALSE(in_part);
        in_part = true;
        if (head.name == refuse) {
            return fail(Code::storage_full, "no room");
        }
        parts.push_back({head.name, head.filename, head.content_type, ""});
        return {};
    }
    Result<> part_data(std::string_view piece) override {
        EXPECT_TRUE(in_part);
        parts.back().data += piece;
        return {};
    }
    Result<> end_part() override {
        EXPECT_TRUE(in_part);
        in_part = false;
        return {};
    }

    std::vector<FormPart> parts;
    bool in_part = false;
    std::string refuse = "refused";
};

constexpr std::string_view kType = "multipart/form-data; boundary=BB";

Result<> feed_in_two(std::string_view body, std::size_t split, Collected& sink) {
    auto stream = MultipartStream::make(kType, sink);
    EXPECT_TRUE(stream);
    for (const auto piece : {body.substr(0, split), body.substr(split)}) {
        if (auto fed = stream->feed(piece); !fed) {
            return fed;
        }
    }
    return stream->finish();
}

Result<> feed(std::string_view body, Collected& sink) {
    return feed_in_two(body, body.size(), sink);
}

const std::string kBody =
    "a preamble\r\n"
    "--BB\r\n"
    "Content-Disposition: form-data; name=\"tags\"\r\n\r\n"
    "input\r\n"
    "--BB  \r\n"
    "Content-Disposition: form-data; name=\"file\"; filename=\"a b.png\"\r\n"
    "Content-Type: image/png\r\n\r\n"
    "\r\n--B\r\n-\r\n--\r\nnot yet\r\n\r\n"
    "--BB\r\n"
    "Content-Disposition: form-data; name=\"empty\"\r\n\r\n"
    "\r\n"
    "--BB--\r\nan epilogue";

void expect_body(const Collected& sink) {
    ASSERT_EQ(sink.parts.size(), 3U);
    EXPECT_EQ(sink.parts[0].name, "tags");
    EXPECT_EQ(sink.parts[0].data, "input");
    EXPECT_EQ(sink.parts[0].filename, std::nullopt);
    EXPECT_EQ(sink.parts[1].name, "file");
    EXPECT_EQ(sink.parts[1].filename, "a b.png");
    EXPECT_EQ(sink.parts[1].content_type, "image/png");
    EXPECT_EQ(sink.parts[1].data, "\r\n--B\r\n-\r\n--\r\nnot yet\r\n");
    EXPECT_EQ(sink.parts[2].name, "empty");
    EXPECT_EQ(sink.parts[2].data, "");
    EXPECT_FALSE(sink.in_part);
}

TEST(MultipartStream, ReadsABodySplitAnywhere) {
    for (std::size_t split = 0; split <= kBody.size(); ++split) {
        Collected sink;
        const auto done = feed_in_two(kBody, split, sink);
        ASSERT_TRUE(done) << split << ": " << done.error().message;
        expect_body(sink);
    }
}

TEST(MultipartStream, ReadsABodyByteByByte) {
    Collected sink;
    auto stream = MultipartStream::make(kType, sink);
    ASSERT_TRUE(stream);
    for (const char& byte : kBody) {
        ASSERT_TRUE(stream->feed(std::string_view(&byte, 1)));
    }
    ASSERT_TRUE(stream->finish());
    expect_body(sink);
}

TEST(MultipartStream, AgreesWithTheWholeBodyParser) {
    std::vector<FormPart> parts;
    parts.push_back({"file", "ü\"%.bin", "application/octet-stream", std::string(200'000, '\n')});
    parts.push_back({"x", std::nullopt, "", std::string("\0\r\n--", 5)});
    const auto form = make_multipart(parts);
    Collected sink;
    auto stream = MultipartStream::make(form.content_type, sink);
    ASSERT_TRUE(stream);
    for (std::size_t at = 0; at < form.body.size(); at += 4099) {
        ASSERT_TRUE(stream->feed(std::string_view(form.body).substr(at, 4099)));
    }
    ASSERT_TRUE(stream->finish());
    const auto whole = parse_multipart(form.content_type, form.body);
    ASSERT_TRUE(whole);
    ASSERT_EQ(sink.parts.size(), whole->size());
    for (std::size_t i = 0; i < whole->size(); ++i) {
        EXPECT_EQ(sink.parts[i].name, (*whole)[i].name);
        EXPECT_EQ(sink.parts[i].filename, (*whole)[i].filename);
        EXPECT_EQ(sink.parts[i].data, (*whole)[i].data);
    }
}

// Sizes around those of headers, of what is read at once, and of nothing.
const std::vector<std::size_t> kFileSizes{
    0,
    1,
    2,
    15 << 10,
    (16 << 10) - 1,
    16 << 10,
    (16 << 10) + 1,
    17 << 10,
    50 << 10,
    (64 << 10) - 1,
    64 << 10,
    (64 << 10) + 1,
    200 << 10,
    5 << 20,
};

// Looks like the start of a delimiter again and again.
std::string file_of(std::size_t bytes) {
    std::string file;
    file.reserve(bytes + 8);
    while (file.size() < bytes) {
        file += "\r\n--B" + std::to_string(file.size());
    }
    file.resize(bytes);
    return file;
}

std::string form_with(std::string_view file) {
    std::string body = "--BB\r\nContent-Disposition: form-data; name=\"before\"\r\n\r\n1\r\n";
    body += "--BB\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n";
    body += file;
    body += "\r\n--BB\r\nContent-Disposition: form-data; name=\"after\"\r\n\r\n2\r\n--BB--\r\n";
    return body;
}

void expect_form(const Collected& sink, std::string_view file) {
    ASSERT_EQ(sink.parts.size(), 3U);
    EXPECT_EQ(sink.parts[0].data, "1");
    EXPECT_TRUE(sink.parts[1].data == file);
    EXPECT_EQ(sink.parts[2].data, "2");
}

TEST(MultipartStream, ReadsFilesOfEverySizeInPiecesOfEverySize) {
    const std::vector<std::size_t> piece_sizes{
        1,
        2,
        3,
        7,
        64,
        1000,
        4096,
        (16 << 10) - 1,
        16 << 10,
        (16 << 10) + 1,
        64 << 10,
        100'000,
        1 << 20,
    };
    for (const std::size_t bytes : kFileSizes) {
        const std::string file = file_of(bytes);
        const std::string body = form_with(file);
        for (const std::size_t piece : piece_sizes) {
            SCOPED_TRACE(std::to_string(bytes) + " bytes in pieces of " + std::to_string(piece));
            Collected sink;
            auto stream = MultipartStream::make(kType, sink);
            ASSERT_TRUE(stream);
            for (std::size_t at = 0; at < body.size(); at += piece) {
                const auto fed = stream->feed(std::string_view(body).substr(at, piece));
                ASSERT_TRUE(fed) << fed.error().message;
            }
            ASSERT_TRUE(stream->finish());
            expect_form(sink, file);
        }
    }
}

TEST(MultipartStream, ABoundaryIsFoundWhereverLargePiecesCutIt) {
    for (const std::size_t bytes : {17U << 10, 70U << 10}) {
        const std::string file = file_of(bytes);
        const std::string body = form_with(file);
        const std::size_t first = body.find(file) + file.size();
        const std::size_t last = body.find("BB--") + 4;
        for (std::size_t split = first; split <= last; ++split) {
            Collected sink;
            const auto done = feed_in_two(body, split, sink);
            ASSERT_TRUE(done) << split << ": " << done.error().message;
            expect_form(sink, file);
        }
        for (std::size_t split = 0; split <= body.find(file); ++split) {
            Collected sink;
            const auto done = feed_in_two(body, split, sink);
            ASSERT_TRUE(done) << split << ": " << done.error().message;
            expect_form(sink, file);
        }
    }
}

TEST(MultipartStream, EveryCutIsNoticed) {
    const auto end = kBody.find("--BB--") + 6;
    for (std::size_t length = 0; length < end; ++length) {
        Collected sink;
        EXPECT_FALSE(feed(std::string_view(kBody).substr(0, length), sink)) << length;
    }
}

TEST(MultipartStream, RefusesMalformedBodies) {
    for (const char* body : {
             "--BB\r\n\r\nno headers\r\n--BB--",
             "--BBx\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n--BB--",
             "--BB\r\nContent-Disposition: form-data\r\n\r\nno name\r\n--BB--",
             "--BB\r\nX-Nothing: 1\r\n\r\nx\r\n--BB--",
             "--BB \r\r\n",
         }) {
        Collected sink;
        const auto done = feed(body, sink);
        ASSERT_FALSE(done) << body;
        EXPECT_EQ(done.error().code, Code::invalid_argument) << body;
    }
}

TEST(MultipartStream, LimitsHeadersAndParts) {
    Collected sink;
    EXPECT_FALSE(feed("--BB\r\nX: " + std::string(20'000, 'x'), sink));
    EXPECT_FALSE(feed("--BB" + std::string(20'000, ' '), sink));
    std::string many;
    for (std::size_t i = 0; i <= MultipartStream::kPartsMax; ++i) {
        many += "--BB\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n";
    }
    Collected all;
    EXPECT_FALSE(feed(many + "--BB--", all));
    EXPECT_EQ(all.parts.size(), MultipartStream::kPartsMax);
}

TEST(MultipartStream, FailuresOfTheSinkEndIt) {
    Collected sink;
    sink.refuse = "file";
    const auto done = feed(kBody, sink);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::storage_full);
}

TEST(MultipartStream, NeedsABoundary) {
    Collected sink;
    for (const char* type : {
             "",
             "application/json",
             "multipart/form-data",
             "multipart/form-data; boundary=",
             "multipart/form-data; boundary=\"\"",
             "multipart/mixed; boundary=x",
         }) {
        const auto stream = MultipartStream::make(type, sink);
        ASSERT_FALSE(stream) << type;
        EXPECT_EQ(stream.error().code, Code::unsupported_media_type) << type;
    }
    EXPECT_FALSE(
        MultipartStream::make("multipart/form-data; boundary=" + std::string(71, 'b'), sink)
    );
    EXPECT_TRUE(MultipartStream::make("Multipart/Form-Data; charset=x; Boundary=\"a b\"", sink));
}

}  // namespace
}  // namespace comfyd::net
