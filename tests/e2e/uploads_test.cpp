// Files of every size class, sent in pieces of many sizes to every route that takes them.
#include <gtest/gtest.h>

#include <vector>

#include "support/comfyd.hpp"
#include "support/raw_socket.hpp"

namespace comfyd::support {
namespace {

const std::vector<std::size_t> kSizes{
    0,
    1,
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

std::string file_of(std::size_t bytes) {
    std::string file;
    file.reserve(bytes + 32);
    while (file.size() < bytes) {
        file += "\r\n--comfyd-" + std::to_string(file.size() * 7919);
    }
    file.resize(bytes);
    return file;
}

class Uploads : public testing::Test {
protected:
    // The status line and the body of the answer to a form sent in pieces of `piece` bytes.
    std::pair<std::string, std::string> send_in_pieces(
        const std::string& path, const net::Multipart& form, std::size_t piece
    ) {
        RawSocket socket(comfyd_.url());
        socket.send(
            "POST " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: " +
            form.content_type + "\r\nContent-Length: " + std::to_string(form.body.size()) +
            "\r\n\r\n"
        );
        const std::string_view body = form.body;
        for (std::size_t at = 0; at < body.size(); at += piece) {
            socket.send(body.substr(at, piece));
        }
        const std::string head = socket.read_until("\r\n\r\n");
        return {head.substr(0, head.find("\r\n")), socket.read_until("\n\n\n")};
    }

    void expect_taken(
        const std::string& path,
        const std::string& field,
        const std::vector<net::FormPart>& more,
        const std::string& status,
        const std::function<void(const json::value& answer, const std::string& file)>& check
    ) {
        for (const std::size_t bytes : kSizes) {
            const std::string file = file_of(bytes);
            for (const std::size_t piece : {4099U, 16U << 10, 64U << 10, 1U << 20}) {
                SCOPED_TRACE(
                    path + ": " + std::to_string(bytes) + " bytes in pieces of " +
                    std::to_string(piece)
                );
                std::vector<net::FormPart> parts{{field, "a.bin", "image/png", file}};
                parts.insert(parts.end(), more.begin(), more.end());
                const auto [line, answer] = send_in_pieces(path, net::make_multipart(parts), piece);
                ASSERT_TRUE(line.starts_with("HTTP/1.1 " + status)) << line << "\n" << answer;
                const auto parsed = json::parse(answer);
                ASSERT_TRUE(parsed) << answer;
                check(*parsed, file);
            }
        }
    }

    Comfyd comfyd_;
};

TEST_F(Uploads, OfPictures) {
    expect_taken(
        "/upload/image",
        "image",
        {{"overwrite", std::nullopt, "", "true"}},
        "200",
        [this](const json::value& answer, const std::string& file) {
            EXPECT_EQ(answer.at("name"), "a.bin");
            EXPECT_TRUE(comfyd_.http().get("/view?filename=a.bin&type=input").body == file);
        }
    );
}

TEST_F(Uploads, OfMasks) {
    // Without the picture that it belongs to a mask is taken and nothing is made of it.
    expect_taken(
        "/upload/mask",
        "image",
        {{"original_ref", std::nullopt, "", R"({"filename":"nobody.png"})"}},
        "200",
        [](const json::value& answer, const std::string&) { EXPECT_EQ(answer.at("name"), "a.bin"); }
    );
}

TEST_F(Uploads, OfAssets) {
    expect_taken(
        "/api/v2/assets",
        "file",
        {{"tags", std::nullopt, "", "input"}},
        "20",  // 201, and 200 where the same bytes are there already
        [this](const json::value& answer, const std::string& file) {
            EXPECT_EQ(answer.at("size_bytes"), file.size());
            EXPECT_EQ(answer.at("tags").as_array().size(), 1U);
            const std::string id(answer.at("id").as_string());
            EXPECT_TRUE(comfyd_.http().get("/api/v2/assets/" + id + "/content").body == file);
        }
    );
}

}  // namespace
}  // namespace comfyd::support
