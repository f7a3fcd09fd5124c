#include "models/source.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/wish.hpp"

namespace comfyd::models {
namespace {

using testing::HasSubstr;

std::string hugging_face(std::string_view text) {
    const auto source = parse_source(text);
    return source && source->kind == Source::Kind::hugging_face ? hugging_face_url({}, *source)
                                                                : "";
}

TEST(Source, HuggingFaceIsWrittenInManyWays) {
    const std::string wanted =
        "https://huggingface.co/owner/repo/resolve/main/sub/a%20b.safetensors";
    for (const char* text :
         {"hf:owner/repo/sub/a b.safetensors",
          "hf:owner/repo@main/sub/a%20b.safetensors",
          "https://huggingface.co/owner/repo/resolve/main/sub/a%20b.safetensors",
          "https://huggingface.co/owner/repo/blob/main/sub/a%20b.safetensors",
          "https://HuggingFace.co/owner/repo/resolve/main/sub/a%20b.safetensors?download=true"}) {
        EXPECT_EQ(hugging_face(text), wanted) << text;
    }
    EXPECT_EQ(
        hugging_face("hf:o/r@refs%2Fpr%2F1/a.sft"),
        "https://huggingface.co/o/r/resolve/refs%2Fpr%2F1/a.sft"
    );
    // Others' paths are just paths.
    EXPECT_EQ(hugging_face("https://example.com/owner/repo/resolve/main/a.sft"), "");
    EXPECT_EQ(hugging_face("https://huggingface.co/api/models"), "");
}

TEST(Source, WhatIsNoneIsRefused) {
    for (const std::string& text : std::vector<std::string>{
             "",
             "a",
             "hf:",
             "hf:owner",
             "hf:owner/repo",
             "hf:owner/repo/",
             "hf:/repo/a.sft",
             "hf:owner/repo@/a.sft",
             "hf:owner/repo/../../../a.sft",
             "hf:owner/repo/%2e%2e/a.sft",
             "hf:../repo/a.sft",
             "hf:owner/repo/a\nb.sft",
             "civitai:",
             "civitai:12a",
             "civitai:-1",
             "civitai:1234567890123456789",
             "ftp://example.com/a",
             "file:///etc/passwd",
             "/etc/passwd",
             "https://user:password@example.com/a",
             "https://",
             "javascript:alert(1)",
             "https://example.com/" + std::string(5000, 'a'),
         }) {
        const auto source = parse_source(text);
        ASSERT_FALSE(source) << text;
        EXPECT_EQ(source.error().code, Code::invalid_argument);
    }
}

TEST(Source, ASignatureIsNotShown) {
    EXPECT_EQ(
        shown_source("https://bucket.example.com/a.sft?X-Amz-Signature=secret"),
        "https://bucket.example.com/a.sft"
    );
}

TEST(Source, HuggingFaceTellsHashSizeAndCommit) {
    const auto source = parse_source("hf:o/r/a.safetensors");
    net::Headers headers;
    const std::string hash(64, 'a');
    headers.set("X-Linked-Etag", "\"" + hash + "\"");
    headers.set("X-Linked-Size", "12345");
    headers.set("X-Repo-Commit", std::string(40, 'c'));
    headers.set("Location", "https://cdn.example.com/x");
    auto target = read_hugging_face({}, *source, 302, headers);
    ASSERT_TRUE(target);
    EXPECT_EQ(target->sha256, hash);
    EXPECT_EQ(target->bytes, 12345u);
    EXPECT_EQ(
        target->url, "https://huggingface.co/o/r/resolve/" + std::string(40, 'c') + "/a.safetensors"
    );
    // A small file has git's hash, which says nothing of its bytes alone.
    headers.set("X-Linked-Etag", "\"" + std::string(40, 'b') + "\"");
    headers.set("X-Linked-Size", "many");
    headers.set("X-Repo-Commit", "../../x");
    target = read_hugging_face({}, *source, 200, headers);
    ASSERT_TRUE(target);
    EXPECT_EQ(target->sha256, "");
    EXPECT_EQ(target->bytes, std::nullopt);
    EXPECT_EQ(target->url, "https://huggingface.co/o/r/resolve/main/a.safetensors");
    net::Headers refused;
    refused.set("X-Error-Code", "GatedRepo");
    const auto none = read_hugging_face({}, *source, 403, refused);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, Code::forbidden);
    EXPECT_THAT(none.error().message, HasSubstr("GatedRepo"));
    EXPECT_EQ(read_hugging_face({}, *source, 404, {}).error().code, Code::not_found);
    EXPECT_EQ(read_hugging_face({}, *source, 500, {}).error().code, Code::upstream_error);
}

TEST(Source, SomeTheGatewayAloneKnows) {
    const auto object = parse_source("s3://my-bucket/loras/an ink?.safetensors");
    ASSERT_TRUE(object) << object.error().message;
    EXPECT_EQ(object->kind, Source::Kind::bucket);
    EXPECT_EQ(object->bucket, "my-bucket");
    EXPECT_EQ(object->key, "loras/an ink?.safetensors");
    EXPECT_TRUE(object->needs_link());
    const auto upload = parse_source("upload:" + std::string(64, 'a'));
    ASSERT_TRUE(upload);
    EXPECT_EQ(upload->sha256, std::string(64, 'a'));
    EXPECT_TRUE(upload->needs_link());
    EXPECT_FALSE(parse_source("https://example.com/a")->needs_link());
    for (const std::string odd :
         {"s3://",
          "s3://bucket",
          "s3://bucket/",
          "s3:///key",
          "s3://bucket/folder/",
          "s3://bucket/a\nb",
          "upload:",
          "upload:../../etc/passwd",
          "upload:AAAA"}) {
        EXPECT_FALSE(parse_source(odd)) << odd;
    }
}

TEST(Source, CivitaiTellsItsFirstFile) {
    const auto source = parse_source("https://civitai.com/api/download/models/128713");
    ASSERT_TRUE(source);
    EXPECT_EQ(source->kind, Source::Kind::civitai);
    EXPECT_EQ(civitai_url({}, *source), "https://civitai.com/api/v1/model-versions/128713");
    const std::string hash(64, 'A');
    auto target = read_civitai(
        {},
        *source,
        R"({"files":[{"name":"a.pt","hashes":{"SHA256":"1"}},
            {"name":"b.safetensors","primary":true,"sizeKB":1.5,"hashes":{"SHA256":")" +
            hash +
            R"("},"downloadUrl":"https://civitai.com/api/download/models/128713?fileId=7"}]})"
    );
    ASSERT_TRUE(target);
    EXPECT_EQ(target->sha256, std::string(64, 'a'));
    EXPECT_EQ(target->url, "https://civitai.com/api/download/models/128713?fileId=7");
    // Not where somebody else would get the token.
    target = read_civitai(
        {}, *source, R"({"files":[{"downloadUrl":"https://civitai.com.evil.example/a"}]})"
    );
    ASSERT_TRUE(target);
    EXPECT_EQ(target->url, "https://civitai.com/api/download/models/128713");
    EXPECT_EQ(target->sha256, "");
    for (const char* body :
         {"", "null", "{}", R"({"files":{}})", R"({"files":[]})", R"({"files":[1]})", "<html>"}) {
        EXPECT_FALSE(read_civitai({}, *source, body)) << body;
    }
}

TEST(Wishes, AreReadAndWritten) {
    const std::string hash(64, 'b');
    const auto wishes = read_wishes(
        R"([{"folder":"checkpoints","name":"a.safetensors","source":"hf:o/r/a.safetensors"},
            {"folder":"loras","name":"sub/b.safetensors","source":"https://example.com/b","sha256":")" +
        std::string(64, 'B') + R"(","bytes":7,"required":false}])"
    );
    ASSERT_TRUE(wishes) << wishes.error().message;
    ASSERT_EQ(wishes->size(), 2u);
    EXPECT_TRUE(wishes->front().required);
    EXPECT_EQ(wishes->back().sha256, hash);
    EXPECT_EQ(wishes->back().bytes, 7u);
    EXPECT_EQ(wishes->back().path(), "loras/sub/b.safetensors");
    const auto again = read_wish(to_json(wishes->back()));
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, wishes->back());
}

TEST(Wishes, ThoseThatLeadElsewhereAreRefused) {
    const auto refused = [](const std::string& folder, const std::string& name) {
        const auto wish =
            read_wish({{"folder", folder}, {"name", name}, {"source", "https://example.com/a"}});
        return !wish && wish.error().code == Code::invalid_argument;
    };
    EXPECT_FALSE(refused("checkpoints", "a.safetensors"));
    EXPECT_FALSE(refused("LLM", "x/y/z.GGUF"));
    for (const char* folder : {"", ".", "..", "a/b", "/etc", ".git", "a\\b", "ä"}) {
        EXPECT_TRUE(refused(folder, "a.safetensors")) << folder;
    }
    for (const std::string& name : std::vector<std::string>{
             "",
             "/a.safetensors",
             "../a.safetensors",
             "a/../../b.safetensors",
             "a//b.safetensors",
             "a/.b.safetensors",
             ".safetensors",
             "a\\b.safetensors",
             "a\nb.safetensors",
             "a.py",
             "a.safetensors.sh",
             "safetensors",
             std::string(300, 'a') + ".safetensors",
         }) {
        EXPECT_TRUE(refused("checkpoints", name)) << name;
    }
    for (const char* text :
         {"",
          "{}",
          "[1]",
          R"([{"folder":"a","name":"b.sft","source":"c"}])",
          R"([{"folder":"a","name":"b.sft","source":"https://e.com/c","sha256":"12"}])",
          R"([{"folder":"a","name":"b.sft","source":"https://e.com/c","bytes":0}])",
          R"([{"folder":"a","name":"b.sft","source":"https://e.com/c","size":1}])",
          R"([{"folder":"a","name":"b.sft","source":"https://e.com/c","required":"yes"}])",
          R"([{"folder":"a","name":"b.sft","source":"https://e.com/c"},)"
          R"({"folder":"a","name":"b.sft","source":"https://e.com/d"}])"}) {
        EXPECT_FALSE(read_wishes(text)) << text;
    }
    EXPECT_TRUE(is_pickle("a.CKPT"));
    EXPECT_TRUE(is_pickle("sub/a.pt"));
    EXPECT_FALSE(is_pickle("a.ckpt.safetensors"));
}

}  // namespace
}  // namespace comfyd::models
