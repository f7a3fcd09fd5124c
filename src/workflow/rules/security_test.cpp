#include "workflow/rules/security.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workflow/rules/stages_test_support.hpp"

namespace comfyd::workflow {
namespace {

using test::input;
using test::parsed;
using test::recorded_catalogue;
using test::text_to_image;

std::vector<std::string> codes(const json::object& workflow, const SecurityPolicy& policy = {}) {
    std::vector<std::string> found;
    for (const Issue& issue : find_security_issues(Graph(workflow), policy, recorded_catalogue())) {
        found.emplace_back(issue.code);
        EXPECT_EQ(issue.stage, Stage::security);
        EXPECT_EQ(issue.severity, Severity::error);
    }
    return found;
}

json::object one_node(const char* class_type, const char* name, const std::string& value) {
    json::object inputs;
    inputs[name] = value;
    return {{"1", json::object{{"class_type", class_type}, {"inputs", std::move(inputs)}}}};
}

TEST(Security, OrdinaryWorkflowsPass) {
    EXPECT_TRUE(codes(text_to_image()).empty());
    EXPECT_TRUE(codes(test::flux()).empty());
}

TEST(Security, DangerousClassesAreDeniedByDefault) {
    for (const char* name :
         {"ExecuteSystemCommand", "FileSystemAccess", "NetworkRequest", "ScriptExecution"}) {
        EXPECT_EQ(codes(one_node(name, "x", "y")), std::vector<std::string>{"DANGEROUS_NODE"});
    }
}

TEST(Security, PatternsDenyAndAllow) {
    SecurityPolicy policy;
    policy.denied_nodes = {"*Shell*", "Save?mage"};
    EXPECT_EQ(
        codes(one_node("MyShellNode", "x", "y"), policy), std::vector<std::string>{"DANGEROUS_NODE"}
    );
    EXPECT_TRUE(codes(text_to_image(), policy).empty());
    policy.allowed_nodes = {"KSampler*", "CLIP*", "VAE*", "SaveImage", "*Loader*"};
    EXPECT_EQ(codes(text_to_image(), policy), std::vector<std::string>{"NODE_NOT_ALLOWED"});
    EXPECT_TRUE(matches_pattern("a*b*c", "aXXbYYc"));
    EXPECT_TRUE(matches_pattern("*", ""));
    EXPECT_FALSE(matches_pattern("a*b", "abX"));
    EXPECT_FALSE(matches_pattern("", "a"));
    // Would take for ever by trying every way.
    EXPECT_FALSE(matches_pattern("*a*a*a*a*a*a*a*a*b", std::string(10'000, 'a')));
}

TEST(Security, SizeAndDepthHaveLimits) {
    SecurityPolicy policy;
    policy.nodes_max = 6;
    EXPECT_EQ(codes(text_to_image(), policy), std::vector<std::string>{"TOO_MANY_NODES"});
    policy.nodes_max = 7;
    policy.depth_max = 4;
    EXPECT_EQ(codes(text_to_image(), policy), std::vector<std::string>{"TOO_DEEP"});
    policy.depth_max = 5;
    EXPECT_TRUE(codes(text_to_image(), policy).empty());
}

TEST(Security, WordsInTextsAreNobodysBusiness) {
    json::object workflow = text_to_image();
    for (const char* words :
         {"a page of a film script",
          "<script>alert(1)</script>",
          "eval(x) ../../etc/passwd",
          "https://169.254.169.254/ is an address",
          "/etc/passwd",
          "__import__('os')"}) {
        input(workflow, "6", "text") = words;
        EXPECT_TRUE(codes(workflow).empty()) << words;
    }
}

TEST(Security, FilesStayInTheirFolders) {
    for (const char* name :
         {"../secret.png",
          "a/../../b.png",
          "/etc/passwd",
          "C:\\x.png",
          "c:x.png",
          "\\\\host\\x",
          "~/x.png",
          "..",
          "a\\..\\b.png",
          ".. [input]"}) {
        EXPECT_EQ(
            codes(one_node("LoadImage", "image", name)), std::vector<std::string>{"PATH_TRAVERSAL"}
        ) << name;
        EXPECT_EQ(
            codes(one_node("Unknown", "lora_name", name)),
            std::vector<std::string>{"PATH_TRAVERSAL"}
        ) << name;
    }
    for (const char* name :
         {"a.png", "sub/a.png", "a..b.png", "...", "a.png [output]", "x/.hidden"}) {
        EXPECT_TRUE(codes(one_node("LoadImage", "image", name)).empty()) << name;
    }
    EXPECT_EQ(
        codes(one_node("SaveImage", "filename_prefix", "../../x")),
        std::vector<std::string>{"PATH_TRAVERSAL"}
    );
    EXPECT_TRUE(codes(one_node("SaveImage", "filename_prefix", "%date:yyyy%/x")).empty());
    EXPECT_EQ(
        codes(one_node("LoadImage", "image", std::string("a\0b", 3))),
        std::vector<std::string>{"PATH_TRAVERSAL"}
    );
    // What ComfyUI unwraps is looked at unwrapped.
    EXPECT_EQ(
        codes(parsed(
            R"({"1": {"class_type": "LoadImage", "inputs": {"image": {"__value__": "../x"}}}})"
        )),
        std::vector<std::string>{"PATH_TRAVERSAL"}
    );
}

TEST(Security, AddressesByDomain) {
    const auto of = [](const std::string& url, const SecurityPolicy& policy = {}) {
        return codes(one_node("LoadImageFromUrl", "url", url), policy);
    };
    const std::vector<std::string> refused{"UNAUTHORIZED_DOMAIN"};
    EXPECT_TRUE(of("https://pictures.example.com/a.png").empty());
    for (const char* url :
         {"http://localhost/x",
          "http://127.0.0.1:8188/x",
          "http://2130706433/",
          "http://0x7f.1/",
          "http://10.1.2.3/",
          "http://[::1]/",
          "http://[::ffff:10.0.0.1]/",
          "http://[fe80::1]/",
          "HTTP://LOCALHOST./",
          "http://user@192.168.0.1/",
          "http://metadata.google.internal/",
          "file:///etc/passwd",
          "ftp://example.com/x",
          " http://127.0.0.1/"}) {
        EXPECT_EQ(of(url), refused) << url;
    }
    SecurityPolicy policy;
    policy.allowed_domains = {"example.com", "*.Example.org", "127.0.0.1"};
    EXPECT_TRUE(of("https://example.com/a.png", policy).empty());
    EXPECT_TRUE(of("https://a.b.example.org", policy).empty());
    EXPECT_TRUE(of("http://127.0.0.1/x", policy).empty());
    EXPECT_EQ(of("https://example.com.evil.net/", policy), refused);
    EXPECT_EQ(of("https://example.com@evil.net/", policy), refused);
    EXPECT_EQ(of("https://evil.net\\example.com/", policy), refused);
}

TEST(Security, PrivateHostsMayBeAllowedForFilesOnly) {
    SecurityPolicy policy;
    policy.allow_private_hosts = true;
    EXPECT_TRUE(codes(one_node("LoadImage", "image", "http://10.0.0.1/a.png"), policy).empty());
    EXPECT_EQ(
        codes(one_node("SomeDownloader", "url", "http://10.0.0.1/a.png"), policy),
        std::vector<std::string>{"UNAUTHORIZED_DOMAIN"}
    );
    EXPECT_TRUE(is_allowed_host(policy, "localhost"));
    policy.allowed_domains = {"*.example.com"};
    EXPECT_FALSE(is_allowed_host(policy, "localhost"));
    EXPECT_TRUE(is_allowed_host(policy, "a.example.com"));
}

TEST(Security, TheGateTellsAllFindings) {
    json::object workflow = one_node("ScriptExecution", "image", "../x");
    const auto checked = check_security(workflow, {}, recorded_catalogue());
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code, Code::invalid_workflow);
    EXPECT_EQ(checked.error().details.at("findings").as_array().size(), 2U);
    EXPECT_EQ(checked.error().details.at("node_errors").at("1").as_array().size(), 2U);
    EXPECT_TRUE(check_security(text_to_image(), {}, recorded_catalogue()));
}

TEST(Security, NoWorkflowMakesALongAnswer) {
    json::object workflow;
    for (int i = 0; i < 5'000; ++i) {
        workflow[std::to_string(i)] =
            json::object{{"class_type", "ScriptExecution"}, {"inputs", json::object()}};
    }
    EXPECT_LE(codes(workflow).size(), kIssuesMax + 1);
}

}  // namespace
}  // namespace comfyd::workflow
