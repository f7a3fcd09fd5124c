#include "net/safe_content.hpp"

#include <gtest/gtest.h>

#include <string>

namespace comfyd::net {
namespace {

TEST(SafeContent, KnowsMediaTypes) {
    for (const char* type :
         {"image/png",
          "TEXT/Plain;charset=utf-8",
          "text/plain ; charset=\"utf-8\"",
          "application/vnd.api+json; a=1;\tb=\"two \\\" ; three\"",
          "model/gltf-binary",
          "x/y"}) {
        EXPECT_TRUE(is_media_type(type)) << type;
        EXPECT_EQ(sent_type(type), type);
    }
}

// Browsers take the last one of a list, cut at spaces, and look at the bytes of what they cannot
// read.
TEST(SafeContent, WhatIsNoneIsSentAsBytes) {
    const std::string long_type = "image/" + std::string(250, 'x');
    for (const std::string& text : std::initializer_list<std::string>{
             "",
             "png",
             "/",
             "image/",
             "/png",
             "image/png,text/html",
             "text/html, image/png",
             "image/png;",
             "image/png; charset",
             "image/png; charset=",
             "image/png; charset=\"utf-8",
             "image/png; charset=\"a\\",
             "image/png; a=\"b\"c",
             "image/png; a=b,text/html",
             "image/png text/html",
             " image/png",
             "image/png ",
             "image /png",
             "text/html\r\nSet-Cookie: a=b",
             "image/png\n",
             "image/png; a=\"\r\n\"",
             std::string("image/png\0", 10),
             "image/p\xC3\xA4ng",
             "<script>/x",
             long_type,
         }) {
        EXPECT_FALSE(is_media_type(text)) << text;
        EXPECT_EQ(sent_type(text), "application/octet-stream") << text;
    }
}

}  // namespace
}  // namespace comfyd::net
