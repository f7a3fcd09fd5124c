#include "net/http.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include "net/gzip.hpp"

namespace comfyd::net {
namespace {

TEST(Headers, CompareNamesWithoutCase) {
    Headers headers;
    headers.add("Accept", "a");
    headers.add("accept", "b");
    EXPECT_EQ(headers.get("ACCEPT"), "a");
    EXPECT_EQ(headers.all().size(), 2U);
    headers.set("aCCEPT", "c");
    EXPECT_EQ(headers.all().size(), 1U);
    EXPECT_EQ(headers.get("Accept"), "c");
    EXPECT_TRUE(headers.contains("accept"));
    EXPECT_FALSE(headers.contains("Accept-Encoding"));
    EXPECT_EQ(headers.get("Host"), "");
}

TEST(Percent, DecodesAndRefusesBrokenEscapes) {
    EXPECT_EQ(percent_decode("%41b+c"), "Ab+c");
    EXPECT_EQ(percent_decode("%e4%bD%a0"), "\xe4\xbd\xa0");
    EXPECT_EQ(percent_decode("%4"), std::nullopt);
    EXPECT_EQ(percent_decode("%"), std::nullopt);
    EXPECT_EQ(percent_decode("%zz"), std::nullopt);
    EXPECT_EQ(percent_decode("a%00b"), std::nullopt);
    EXPECT_EQ(percent_decode(std::string_view("a\0b", 3)), std::nullopt);
}

TEST(Percent, EncodesAllButUnreserved) {
    EXPECT_EQ(percent_encode("a/b c~%\xff"), "a%2Fb%20c~%25%FF");
    EXPECT_EQ(percent_encode("a/b c", true), "a/b%20c");
}

TEST(Query, SplitsPairsAndKeepsBrokenEscapes) {
    using Pairs = std::vector<std::pair<std::string, std::string>>;
    EXPECT_EQ(
        parse_query("a=1&b=%20x&c&=d&&e=f=g+h"),
        (Pairs{{"a", "1"}, {"b", " x"}, {"c", ""}, {"", "d"}, {"e", "f=g h"}})
    );
    EXPECT_EQ(parse_query("a=%4&b=%"), (Pairs{{"a", "%4"}, {"b", "%"}}));
    EXPECT_TRUE(parse_query("").empty());
}

TEST(UrlParse, TakesThePartsApart) {
    const auto url = Url::parse("HTTPS://Example.ORG:8443/a%20b?q=1#part");
    ASSERT_TRUE(url);
    EXPECT_EQ(url->scheme, "https");
    EXPECT_EQ(url->host, "example.org");
    EXPECT_EQ(url->port, 8443);
    EXPECT_EQ(url->target, "/a%20b?q=1");
    EXPECT_EQ(url->host_header(), "example.org:8443");
    EXPECT_EQ(url->to_string(), "https://example.org:8443/a%20b?q=1");
    EXPECT_TRUE(url->is_tls());
}

TEST(UrlParse, KnowsDefaultsAndIpv6) {
    EXPECT_EQ(Url::parse("http://h")->port, 80);
    EXPECT_EQ(Url::parse("http://h")->target, "/");
    EXPECT_EQ(Url::parse("http://h?x=1")->target, "/?x=1");
    EXPECT_EQ(Url::parse("wss://h/ws")->port, 443);
    EXPECT_EQ(Url::parse("ws://h:443")->host_header(), "h:443");
    const auto v6 = Url::parse("http://[::1]:8188/x");
    ASSERT_TRUE(v6);
    EXPECT_EQ(v6->host, "::1");
    EXPECT_EQ(v6->port, 8188);
    EXPECT_EQ(v6->host_header(), "[::1]:8188");
}

TEST(UrlParse, RefusesWhatIsNoWebUrl) {
    for (const auto* text :
         {"",
          "example.org",
          "ftp://h/",
          "file:///etc/passwd",
          "http://",
          "http:///x",
          "http://u:p@h/",
          "http://h:0/",
          "http://h:65536/",
          "http://h:x/",
          "http://h:/",
          "http://[::1/",
          "http://[::1]x/",
          "http://h/a b",
          "http://h/\r\nX: y",
          "http://h\\@x/",
          "http://[zz]/"}) {
        const auto url = Url::parse(text);
        ASSERT_FALSE(url) << text;
        EXPECT_EQ(url.error().code, Code::invalid_argument);
    }
}

TEST(Multipart, RoundTrip) {
    const std::vector<FormPart> parts{
        {"image", "a \"b\".png", "image/png", std::string("\x89PNG\r\n--\0x", 10)},
        {"type", std::nullopt, "", "input"},
        {"empty", "", "text/plain", ""},
    };
    const auto made = make_multipart(parts);
    const auto read = parse_multipart(made.content_type, made.body);
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_EQ(read->size(), parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
        EXPECT_EQ((*read)[i].name, parts[i].name);
        EXPECT_EQ((*read)[i].filename, parts[i].filename);
        EXPECT_EQ((*read)[i].content_type, parts[i].content_type);
        EXPECT_EQ((*read)[i].data, parts[i].data);
    }
}

TEST(Multipart, ReadsWhatClientsWrite) {
    const auto read = parse_multipart(
        "multipart/form-data; charset=utf-8; boundary=\"x y\"",
        "preamble\r\n--x y\r\ncontent-disposition: form-data; name=plain; "
        "filename=\"q\\\"q.png\"\r\n\r\n"
        "1\r\n2\r\n--x y\r\nContent-Disposition: form-data; name=\"e\"\r\n\r\n\r\n--x "
        "y--\r\nepilogue"
    );
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_EQ(read->size(), 2U);
    EXPECT_EQ((*read)[0].name, "plain");
    EXPECT_EQ((*read)[0].filename, "q\"q.png");
    EXPECT_EQ((*read)[0].data, "1\r\n2");
    EXPECT_EQ((*read)[1].data, "");
}

TEST(Multipart, RefusesTheMalformed) {
    const std::string type = "multipart/form-data; boundary=b";
    const std::string head = "Content-Disposition: form-data; name=\"n\"\r\n\r\n";
    EXPECT_FALSE(parse_multipart("application/json", "{}"));
    EXPECT_FALSE(parse_multipart("multipart/form-data", "--b--"));
    EXPECT_FALSE(parse_multipart("multipart/form-data; boundary=", "----"));
    for (const std::string& body :
         {std::string(),
          std::string("nothing"),
          std::string("--b"),
          "--b\r\n" + head + "data",
          std::string("--b\r\n\r\ndata\r\n--b--"),
          std::string("--b\r\nno colon\r\n\r\nx\r\n--b--"),
          std::string("--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--"),
          "--bX\r\n" + head + "x\r\n--b--"}) {
        const auto read = parse_multipart(type, body);
        ASSERT_FALSE(read) << body;
        EXPECT_EQ(read.error().code, Code::invalid_argument);
    }
}

TEST(Range, OneRange) {
    const auto check = [](std::string_view header, std::uint64_t first, std::uint64_t length) {
        const auto range = parse_range(header, 100);
        ASSERT_TRUE(range && *range) << header;
        EXPECT_EQ((*range)->first, first) << header;
        EXPECT_EQ((*range)->length, length) << header;
    };
    check("bytes=0-0", 0, 1);
    check("bytes=10-19", 10, 10);
    check("bytes=90-", 90, 10);
    check("bytes=90-1000", 90, 10);
    check("bytes=-5", 95, 5);
    check("bytes=-500", 0, 100);
    check("BYTES=0-", 0, 100);
}

TEST(Range, UnusableCountsAsNone) {
    for (const auto* header :
         {"",
          "items=0-1",
          "bytes=",
          "bytes=-",
          "bytes=5-4",
          "bytes=a-b",
          "bytes=0-1,3-4",
          "bytes=1",
          "bytes=1-x",
          "bytes=99999999999999999999-"}) {
        const auto range = parse_range(header, 100);
        ASSERT_TRUE(range) << header;
        EXPECT_FALSE(*range) << header;
    }
}

TEST(Range, OutsideIsNotSatisfiable) {
    for (const auto* header : {"bytes=100-", "bytes=200-300", "bytes=-0"}) {
        const auto range = parse_range(header, 100);
        ASSERT_FALSE(range) << header;
        EXPECT_EQ(range.error().code, Code::range_not_satisfiable);
    }
    EXPECT_FALSE(parse_range("bytes=0-", 0));
    EXPECT_FALSE(parse_range("bytes=-1", 0));
}

TEST(ContentType, ByExtension) {
    EXPECT_EQ(content_type_of("a/b.PNG"), "image/png");
    EXPECT_EQ(content_type_of("clip.mp4"), "video/mp4");
    EXPECT_EQ(content_type_of("noextension"), "application/octet-stream");
    EXPECT_EQ(content_type_of("x.unknown"), "application/octet-stream");
}

TEST(Gzip, HeaderDecides) {
    EXPECT_TRUE(accepts_gzip("gzip"));
    EXPECT_TRUE(accepts_gzip("deflate, GZIP;q=0.5, br"));
    EXPECT_TRUE(accepts_gzip("*"));
    EXPECT_FALSE(accepts_gzip(""));
    EXPECT_FALSE(accepts_gzip("identity"));
    EXPECT_FALSE(accepts_gzip("gzip;q=0"));
    EXPECT_FALSE(accepts_gzip("gzip; q=0.000, *"));
    EXPECT_FALSE(accepts_gzip("*;q=0"));
    EXPECT_TRUE(is_compressible("text/html; charset=utf-8"));
    EXPECT_TRUE(is_compressible("application/json"));
    EXPECT_FALSE(is_compressible("text/event-stream"));
    EXPECT_FALSE(is_compressible("image/png"));
    EXPECT_FALSE(is_compressible(""));
}

TEST(Gzip, CanBeReadBackTwice) {
    for (const std::string& data : {std::string(5000, 'x'), std::string("short")}) {
        const std::string packed = gzip(data);
        z_stream stream{};
        ASSERT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
        std::string out(data.size() + 1, '\0');
        stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
        stream.avail_in = static_cast<uInt>(packed.size());
        stream.next_out = reinterpret_cast<Bytef*>(out.data());
        stream.avail_out = static_cast<uInt>(out.size());
        EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
        out.resize(stream.total_out);
        inflateEnd(&stream);
        EXPECT_EQ(out, data);
    }
}

}  // namespace
}  // namespace comfyd::net
