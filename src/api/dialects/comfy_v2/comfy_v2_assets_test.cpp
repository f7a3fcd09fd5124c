// Assets of the Comfy API v2, over real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/dialects/comfy_v2/comfy_v2_fixture.hpp"
#include "assets/blake3.hpp"

namespace comfyd::api {
namespace {

using test::Arrangement;
using test::error_code;
using test::header;
using test::parse;
using test::TestApi;
using test::text;

const std::string kPicture = "\x89PNG\r\n\x1a\n and so on";

net::FormPart field(std::string name, std::string value) {
    return {std::move(name), std::nullopt, "", std::move(value)};
}

net::FormPart file(std::string data, std::string filename = "cat.png") {
    return {"file", std::move(filename), "image/png", std::move(data)};
}

json::object upload(TestApi& api, const std::vector<net::FormPart>& parts) {
    const auto response = api.upload(parts);
    EXPECT_EQ(response.status, 201) << response.body;
    return parse(response.body);
}

TEST(ComfyV2Assets, UploadReadDownloadAndDelete) {
    TestApi api;
    const json::object asset = upload(
        api,
        {field("content_type", "image/png"),
         field("file_path", "in/cat.png"),
         field("expected_hash", assets::blake3_name(kPicture)),
         field("tags", "input"),
         field("tags", "cat"),
         field("expires_in", "60"),
         file(kPicture)}
    );
    EXPECT_EQ(text(asset, "hash"), assets::blake3_name(kPicture));
    EXPECT_EQ(asset.at("size_bytes"), kPicture.size());
    EXPECT_EQ(asset.at("file_path"), "in/cat.png");
    EXPECT_EQ(asset.at("created_new"), true);
    EXPECT_EQ(asset.at("tags").as_array().size(), 2U);
    EXPECT_EQ(text(asset, "expires_at"), to_rfc3339(api.clock.now() + std::chrono::seconds(60)));
    EXPECT_TRUE(asset.at("job_id").is_null());
    const std::string path = "/api/v2/assets/" + text(asset, "id");
    EXPECT_EQ(parse(api.get(path).body).at("id"), asset.at("id"));
    const auto content = api.get(text(asset, "url"));
    EXPECT_EQ(content.status, 200);
    EXPECT_EQ(content.body, kPicture);
    EXPECT_EQ(content.headers.get("Content-Type"), "image/png");
    EXPECT_EQ(content.headers.get("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(
        content.headers.get("Content-Disposition"),
        "inline; filename=\"cat.png\"; filename*=UTF-8''cat.png"
    );
    EXPECT_EQ(api.send("DELETE", path).status, 204);
    EXPECT_EQ(api.send("DELETE", path).status, 404);
    EXPECT_EQ(api.get(path).status, 404);
}

TEST(ComfyV2Assets, TheFileMayComeFirstAndAlone) {
    TestApi api;
    const json::object asset = upload(api, {file(kPicture, "C:\\pictures\\cat.png")});
    EXPECT_EQ(asset.at("file_path"), "cat.png");
    EXPECT_EQ(asset.at("content_type"), "image/png");
    const json::object second = upload(api, {file("other"), field("file_path", "late.txt")});
    EXPECT_EQ(second.at("file_path"), "late.txt");
}

TEST(ComfyV2Assets, EqualBytesAreStoredOnce) {
    TestApi api;
    const json::object first = upload(api, {file(kPicture)});
    const auto again = api.upload({file(kPicture)});
    EXPECT_EQ(again.status, 200);
    EXPECT_EQ(parse(again.body).at("created_new"), false);
    EXPECT_NE(parse(again.body).at("id"), first.at("id"));
}

TEST(ComfyV2Assets, KnownBytesNeedNoUpload) {
    TestApi api;
    const std::string hash = assets::blake3_name(kPicture);
    const std::string by_hash = "/api/v2/assets/by-hash/" + net::percent_encode(hash);
    EXPECT_EQ(api.send("HEAD", by_hash).status, 404);
    EXPECT_EQ(api.send("HEAD", "/api/v2/assets/by-hash/nonsense").status, 404);
    const std::string request = R"({"hash":")" + hash + R"(","file_path":"b.png","tags":["x"]})";
    const auto missing = api.post("/api/v2/assets/from-hash", request);
    EXPECT_EQ(missing.status, 404);
    EXPECT_EQ(error_code(missing), "blob_not_found");
    upload(api, {file(kPicture)});
    EXPECT_EQ(api.send("HEAD", by_hash).status, 200);
    const auto made = api.post("/api/v2/assets/from-hash", request);
    EXPECT_EQ(made.status, 201);
    EXPECT_EQ(parse(made.body).at("file_path"), "b.png");
    EXPECT_EQ(parse(made.body).at("content_type"), "image/png");
    EXPECT_EQ(api.post("/api/v2/assets/from-hash", R"({"hash":"md5:1"})").status, 422);
}

TEST(ComfyV2Assets, BadUploadsAreRefused) {
    TestApi api;
    const auto wrong_hash =
        api.upload({field("expected_hash", assets::blake3_name("x")), file("y")});
    EXPECT_EQ(wrong_hash.status, 409);
    EXPECT_EQ(error_code(wrong_hash), "hash_mismatch");
    EXPECT_EQ(api.upload({field("file_path", "a")}).status, 422);
    EXPECT_EQ(api.upload({file("a"), file("b")}).status, 422);
    for (const char* path : {"/etc/passwd", "../up", "a/../../b", "a\\b", "a\x01"}) {
        EXPECT_EQ(api.upload({file("a"), field("file_path", path)}).status, 422) << path;
    }
    for (const char* seconds : {"59", "604801", "x", "-1"}) {
        EXPECT_EQ(api.upload({file("a"), field("expires_in", seconds)}).status, 422) << seconds;
    }
    EXPECT_EQ(api.upload({file("a"), field("expected_hash", "md5:0")}).status, 422);
    EXPECT_EQ(api.upload({file("a"), field("other", std::string(20'000, 'x'))}).status, 422);
    const auto json_body = api.post("/api/v2/assets", "{}");
    EXPECT_EQ(json_body.status, 415);
    EXPECT_EQ(api.send("HEAD", "/api/v2/assets/by-hash/" + assets::blake3_name("a")).status, 404);
}

TEST(ComfyV2Assets, LargeUploadsStreamAndHaveALimit) {
    Arrangement arrangement;
    arrangement.options.upload_bytes_max = 4 * 1024 * 1024;
    TestApi api(std::move(arrangement));
    const std::string large(3 * 1024 * 1024 + 11, '\r');
    const json::object asset = upload(api, {file(large)});
    EXPECT_EQ(text(asset, "hash"), assets::blake3_name(large));
    EXPECT_EQ(api.get(text(asset, "url")).body, large);
    const auto refused = api.upload({file(std::string(5 * 1024 * 1024, 'x'))});
    EXPECT_EQ(refused.status, 413);
    EXPECT_EQ(error_code(refused), "payload_too_large");
}

TEST(ComfyV2Assets, RangesAndConditions) {
    TestApi api;
    const json::object asset = upload(api, {file("0123456789", "d.txt")});
    const std::string url = "/api/v2/assets/" + text(asset, "id") + "/content";
    const auto part = api.get(url, header("Range", "bytes=2-4"));
    EXPECT_EQ(part.status, 206);
    EXPECT_EQ(part.body, "234");
    EXPECT_EQ(part.headers.get("Content-Range"), "bytes 2-4/10");
    EXPECT_EQ(api.get(url, header("Range", "bytes=-3")).body, "789");
    const auto beyond = api.get(url, header("Range", "bytes=10-"));
    EXPECT_EQ(beyond.status, 416);
    EXPECT_EQ(beyond.headers.get("Content-Range"), "bytes */10");
    const std::string etag(part.headers.get("ETag"));
    EXPECT_EQ(api.get(url, header("If-None-Match", "\"x\", W/" + etag)).status, 304);
    EXPECT_EQ(api.get(url, header("If-None-Match", "\"x\"")).status, 200);
    net::Headers if_range = header("Range", "bytes=0-0");
    if_range.set("If-Range", etag);
    EXPECT_EQ(api.get(url, if_range).status, 206);
    if_range.set("If-Range", "\"older\"");
    EXPECT_EQ(api.get(url, if_range).status, 200);
    const auto head = api.send("HEAD", url);
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.headers.get("Content-Length"), "10");
}

TEST(ComfyV2Assets, ATypeMustBeOne) {
    TestApi api;
    for (const char* type : {"image/png,text/html", "html", "text/html, x", "a/b\r\nX: y"}) {
        const auto refused = api.upload({field("content_type", type), file("<x>", "x")});
        EXPECT_EQ(refused.status, 422) << type;
        EXPECT_THAT(refused.body, testing::HasSubstr("'content_type' is not a media type"));
    }
}

TEST(ComfyV2Assets, ActiveContentIsOnlyDownloaded) {
    TestApi api;
    for (const char* type :
         {"text/html; charset=utf-8",
          "image/svg+xml",
          "text/javascript",
          "application/xml",
          "text/xsl",
          "Multipart/X-Mixed-Replace; boundary=b"}) {
        const auto asset = parse(api.upload({field("content_type", type), file("<x>", "x")}).body);
        const auto content = api.get(text(asset, "url"));
        EXPECT_TRUE(content.headers.get("Content-Disposition").starts_with("attachment")) << type;
    }
    const json::object picture = upload(api, {file("p", "bild-ü\"%.png")});
    const auto content = api.get(text(picture, "url") + "&download=1");
    EXPECT_EQ(
        content.headers.get("Content-Disposition"),
        "attachment; filename=\"bild-____.png\"; filename*=UTF-8''bild-%C3%BC%22%25.png"
    );
}

TEST(ComfyV2Assets, LinksWorkWithoutAKeyUntilTheyExpire) {
    Arrangement arrangement;
    arrangement.keys = {
        {"a", "acme", auth::hash_key("acme-key")}, {"b", "other", auth::hash_key("other-key")}
    };
    TestApi api(std::move(arrangement));
    const auto created = api.upload({file(kPicture)}, header("Authorization", "Bearer acme-key"));
    ASSERT_EQ(created.status, 201);
    const json::object asset = parse(created.body);
    const std::string link = text(asset, "url");
    const std::string bare = "/v2/assets/" + text(asset, "id") + "/content";
    EXPECT_EQ(api.get("/api" + bare).status, api.get(bare).status);
    EXPECT_EQ(api.get(link).body, kPicture);
    EXPECT_EQ(api.get(bare).status, 401);
    EXPECT_EQ(api.get(bare, header("Authorization", "Bearer acme-key")).body, kPicture);
    EXPECT_EQ(api.get(bare, header("Authorization", "Bearer other-key")).status, 404);
    EXPECT_EQ(api.get(link.substr(0, link.size() - 1) + "0x").status, 403);
    api.clock.advance(std::chrono::hours(25));
    EXPECT_EQ(api.get(link).status, 403);
}

TEST(ComfyV2Assets, WhoAsksForContentThatIsElsewhereIsSentThere) {
    Arrangement arrangement;
    auto bucket = std::make_shared<assets::test::Bucket::Content>();
    arrangement.make_stores = [bucket] {
        assets::BlobStores stores;
        stores.add("far", std::make_unique<assets::test::Bucket>(bucket));
        return stores;
    };
    TestApi api(std::move(arrangement));
    const json::object asset = upload(api, {file(kPicture)});
    using assets::test::wait_for;
    auto record = wait_for(api.records.find(*AssetId::parse(text(asset, "id")))).value().value();
    record.store = "far";
    ASSERT_TRUE(wait_for(api.records.add(record)));
    const std::string link = text(asset, "url");
    EXPECT_EQ(api.get(link).body, kPicture) << "it is here until it is there";
    ASSERT_EQ(wait_for(api.services.assets.upload()).value(), 1);
    const std::string key = bucket->blobs.begin()->first;
    const auto content = api.get(link);
    EXPECT_EQ(content.status, 302);
    EXPECT_EQ(content.headers.get("Location"), "https://bucket.example/" + key);
    EXPECT_EQ(content.headers.get("Cache-Control"), "no-store");
    const auto head = api.send("HEAD", link);
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.headers.get("Content-Type"), "image/png");
    EXPECT_EQ(head.headers.get("Content-Length"), std::to_string(kPicture.size()));

    bucket->is_streamed = true;
    const auto whole = api.get(link);
    EXPECT_EQ(whole.body, kPicture);
    EXPECT_EQ(whole.headers.get("Content-Length"), std::to_string(kPicture.size()));
    EXPECT_EQ(whole.headers.get("Accept-Ranges"), "bytes");
    EXPECT_TRUE(whole.headers.get("Transfer-Encoding").empty());
    EXPECT_EQ(
        api.send("HEAD", link).headers.get("Content-Length"), std::to_string(kPicture.size())
    );
    const auto part = api.get(link, header("Range", "bytes=1-3"));
    EXPECT_EQ(part.status, 206);
    EXPECT_EQ(part.body, kPicture.substr(1, 3));
    EXPECT_EQ(part.headers.get("Content-Length"), "3");
    EXPECT_EQ(part.headers.get("Content-Range"), "bytes 1-3/" + std::to_string(kPicture.size()));
    EXPECT_EQ(part.headers.get("ETag"), whole.headers.get("ETag"));
    net::Headers stale = header("Range", "bytes=1-3");
    stale.set("If-Range", "\"another\"");
    EXPECT_EQ(api.get(link, std::move(stale)).body, kPicture);
    EXPECT_EQ(api.get(link, header("Range", "bytes=100000-")).status, 416);
    const std::string etag(part.headers.get("ETag"));
    EXPECT_EQ(api.get(link, header("If-None-Match", etag)).status, 304);

    bucket->is_restoring = true;
    const auto restoring = api.get(link);
    EXPECT_EQ(restoring.status, 202);
    EXPECT_EQ(text(parse(restoring.body), "status"), "restoring");
    EXPECT_FALSE(restoring.headers.get("Retry-After").empty());
    EXPECT_EQ(api.send("DELETE", "/api/v2/assets/" + text(asset, "id")).status, 204);
    EXPECT_EQ(api.get(link).status, 404);
}

TEST(ComfyV2Assets, WorkflowsMayReferToTheirOwnersAssets) {
    TestApi api;
    const json::object asset = upload(api, {file(kPicture)});
    const auto submit_with = [&api](const std::string& info) {
        return api.post(
            "/api/v2/jobs",
            R"({"workflow":{"4":{"class_type":"LoadImage","inputs":{"image":{"__type":"core/ASSET")" +
                info + "}}}}}"
        );
    };
    EXPECT_EQ(submit_with(R"(,"info":{"id":")" + text(asset, "id") + R"("})").status, 201);
    EXPECT_EQ(submit_with(R"(,"info":{"hash":")" + text(asset, "hash") + R"("})").status, 201);
    const std::string unknown = AssetId::make(api.clock.now()).to_string();
    for (const std::string& info : std::vector<std::string>{
             R"(,"info":{"id":")" + unknown + R"(","hash":")" + text(asset, "hash") + R"("})",
             R"(,"info":{"id":"nonsense"})",
             R"(,"info":{"hash":")" + assets::blake3_name("x") + R"("})",
             R"(,"info":{"file_path":"cat.png"})",
             R"(,"info":7)",
             "",
         }) {
        const auto response = submit_with(info);
        EXPECT_EQ(response.status, 422) << info;
        EXPECT_EQ(error_code(response), "missing_asset") << info;
        const json::object details = parse(response.body).at("error").at("details").as_object();
        EXPECT_EQ(
            details.at("node_errors").at("4").as_array().at(0),
            parse(R"({"field":"image","reason":"missing_asset"})")
        );
    }
}

}  // namespace
}  // namespace comfyd::api
