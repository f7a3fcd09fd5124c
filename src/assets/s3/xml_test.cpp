#include "assets/s3/xml.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace comfyd::assets::s3 {
namespace {

using testing::ElementsAre;

TEST(S3Xml, FindsTextAtAnyDepth) {
    constexpr std::string_view kAnswer =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<Error><Code>NoSuchKey</Code><Message>a &lt;b&gt; &amp;amp; &#233;&#x1F600;</Message>"
        "<Key/></Error>";
    EXPECT_EQ(find_text(kAnswer, "Code"), "NoSuchKey");
    EXPECT_EQ(find_text(kAnswer, "Message"), "a <b> &amp; \xC3\xA9\xF0\x9F\x98\x80");
    EXPECT_EQ(find_text(kAnswer, "Key"), "");
    EXPECT_TRUE(find_element(kAnswer, "Key"));
    EXPECT_FALSE(find_element(kAnswer, "Region"));
}

TEST(S3Xml, ReadsListsInOrder) {
    constexpr std::string_view kList =
        "<s3:List xmlns:s3=\"a>b\"><s3:Contents><Key>a</Key></s3:Contents><!-- <Contents> -->"
        "<Contents ><Key> b\n</Key></Contents><Contents><Key><![CDATA[<c>]]></Key></Contents>"
        "<Contents/></s3:List>";
    std::vector<std::string> keys;
    for (const auto entry : find_elements(kList, "Contents", 100)) {
        keys.push_back(find_text(entry, "Key"));
    }
    EXPECT_THAT(keys, ElementsAre("a", "b", "<c>", ""));
    EXPECT_EQ(find_elements(kList, "Contents", 2).size(), 2u);
}

TEST(S3Xml, OfOneNameInAnotherOfItTheOuterCounts) {
    EXPECT_EQ(find_element("<a><a>1</a>2</a>", "a"), "<a>1</a>2");
}

TEST(S3Xml, WhatIsNoXmlHasNoElements) {
    for (const std::string_view text :
         {"", "<", "<a", "<a>", "<a></b>", "</a>", "<!--<a></a>", "<a x='>'", "plain", "<a><a></a>"
         }) {
        EXPECT_FALSE(find_element(text, "a")) << text;
    }
    EXPECT_EQ(find_text("<a>&bogus; &#xD800; &#0; &</a>", "a"), "&bogus; &#xD800; &#0; &");
}

TEST(S3Xml, EscapesWhatItWrites) {
    EXPECT_EQ(escape_xml("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
}

}  // namespace
}  // namespace comfyd::assets::s3
