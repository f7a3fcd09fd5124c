#include "assets/s3/verdict.hpp"

#include <gtest/gtest.h>

namespace comfyd::assets::s3 {
namespace {

net::ClientResponse answer(int status, const std::string& code, const std::string& more = {}) {
    net::ClientResponse response;
    response.status = status;
    if (!code.empty()) {
        response.body = "<?xml version=\"1.0\"?><Error><Code>" + code +
                        "</Code><Message>why</Message>" + more + "</Error>";
    }
    return response;
}

TEST(S3Verdict, SuccessNeedsNothing) {
    EXPECT_EQ(judge(answer(200, ""), "r").action, Action::none);
    EXPECT_EQ(judge(answer(204, ""), "r").action, Action::none);
    EXPECT_EQ(judge(answer(206, ""), "r").action, Action::none);
}

TEST(S3Verdict, WhatMayFailLateDidSoWhenItsBodySaysSo) {
    const auto verdict = judge(answer(200, "InternalError"), "r", true);
    EXPECT_EQ(verdict.action, Action::again);
    EXPECT_EQ(verdict.reason, "InternalError");
    EXPECT_EQ(judge(answer(200, "NoSuchUpload"), "r", true).action, Action::give_up);
    EXPECT_EQ(judge(answer(200, ""), "r", true).action, Action::none);
    // Somebody's file may say that, too.
    EXPECT_EQ(judge(answer(200, "InternalError"), "r").action, Action::none);
}

TEST(S3Verdict, WhatPassesIsTriedAgain) {
    for (const auto& [status, code] : std::vector<std::pair<int, std::string>>{
             {500, "InternalError"},
             {400, "RequestTimeout"},
             {409, "OperationAborted"},
             {409, "ConditionalRequestConflict"},
             {502, ""},
             {500, "SomethingNew"},
         }) {
        EXPECT_EQ(judge(answer(status, code), "r").action, Action::again) << status << code;
    }
    for (const auto& [status, code] : std::vector<std::pair<int, std::string>>{
             {503, "SlowDown"}, {503, ""}, {429, ""}, {429, "TooManyRequests"}
         }) {
        EXPECT_EQ(judge(answer(status, code), "r").action, Action::slower) << status << code;
    }
}

TEST(S3Verdict, WhatStaysIsNot) {
    for (const auto& [status, code] : std::vector<std::pair<int, std::string>>{
             {403, "SignatureDoesNotMatch"},
             {403, "InvalidAccessKeyId"},
             {403, "AccessDenied"},
             {404, "NoSuchBucket"},
             {400, "InvalidArgument"},
             {501, "NotImplemented"},
             {403, ""},
             {418, "SomethingNew"},
         }) {
        const auto verdict = judge(answer(status, code), "r");
        EXPECT_EQ(verdict.action, Action::give_up) << status << code;
        EXPECT_EQ(verdict.error.code, Code::config_invalid) << status << code;
    }
    EXPECT_EQ(judge(answer(403, "QuotaExceeded"), "r").error.code, Code::storage_full);
}

TEST(S3Verdict, SomeFailuresAreAnswers) {
    EXPECT_EQ(judge(answer(404, "NoSuchKey"), "r").error.code, Code::not_found);
    EXPECT_EQ(judge(answer(404, ""), "r").error.code, Code::not_found);
    EXPECT_EQ(judge(answer(403, "InvalidObjectState"), "r").error.code, Code::output_unavailable);
    EXPECT_EQ(judge(answer(412, "PreconditionFailed"), "r").error.code, Code::conflict);
    EXPECT_EQ(judge(answer(416, "InvalidRange"), "r").error.code, Code::range_not_satisfiable);
}

TEST(S3Verdict, TellsTheServicesTime) {
    auto skewed = answer(403, "RequestTimeTooSkewed");
    EXPECT_EQ(judge(skewed, "r").action, Action::give_up);
    skewed.headers.set("Date", "Fri, 24 May 2013 00:00:00 GMT");
    const auto verdict = judge(skewed, "r");
    EXPECT_EQ(verdict.action, Action::set_clock);
    EXPECT_EQ(verdict.time, parse_rfc3339("2013-05-24T00:00:00Z"));
}

TEST(S3Verdict, TellsWhereTheBucketIs) {
    const auto malformed =
        judge(answer(400, "AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>"), "r");
    EXPECT_EQ(malformed.action, Action::go_elsewhere);
    EXPECT_EQ(malformed.region, "eu-west-1");

    auto moved =
        answer(301, "PermanentRedirect", "<Endpoint>b.s3.eu-west-1.amazonaws.com</Endpoint>");
    moved.headers.set("x-amz-bucket-region", "eu-west-1");
    EXPECT_EQ(judge(moved, "r").host, "b.s3.eu-west-1.amazonaws.com");
    EXPECT_EQ(judge(moved, "r").region, "eu-west-1");

    auto temporary = answer(307, "TemporaryRedirect");
    temporary.headers.set("Location", "https://b.s3-us-west-2.amazonaws.com/key?x=1");
    EXPECT_EQ(judge(temporary, "r").host, "b.s3-us-west-2.amazonaws.com");
    EXPECT_TRUE(judge(temporary, "r").is_for_this_request_only);

    auto head = answer(403, "");
    head.headers.set("x-amz-bucket-region", "eu-west-1");
    EXPECT_EQ(judge(head, "r").action, Action::go_elsewhere);
    EXPECT_EQ(judge(head, "eu-west-1").action, Action::give_up);
    EXPECT_EQ(judge(answer(301, ""), "r").action, Action::give_up);
    EXPECT_EQ(judge(answer(400, "AuthorizationHeaderMalformed"), "r").action, Action::give_up);
}

TEST(S3Verdict, WornOutCredentialsAndDamagedBytes) {
    EXPECT_EQ(judge(answer(400, "ExpiredToken"), "r").action, Action::refresh_credentials);
    EXPECT_EQ(judge(answer(400, "BadDigest"), "r").action, Action::again_once);
}

TEST(S3Verdict, NoAnswerIsTriedAgain) {
    EXPECT_EQ(judge(Error(Code::connection_failed, "x")).action, Action::again);
    EXPECT_EQ(judge(Error(Code::request_timeout, "x")).error.code, Code::storage_unavailable);
    EXPECT_EQ(judge(Error(Code::cancelled, "x")).action, Action::give_up);
    EXPECT_EQ(judge(Error(Code::cancelled, "x")).error.code, Code::cancelled);
    EXPECT_EQ(judge(Error(Code::address_refused, "x")).action, Action::give_up);
}

}  // namespace
}  // namespace comfyd::assets::s3
