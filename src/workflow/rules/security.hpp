// The security stage: which node classes may run, how large a workflow may be, which addresses its
// inputs may name, and that file names stay inside their folders. Looks at structure and at inputs
// that name files or addresses, never at words inside texts: a prompt about a film script is a
// prompt. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "workflow/graph/graph.hpp"
#include "workflow/rules/issue.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::workflow {

// Class names, where * stands for any run of characters: "ShowText*".
struct SecurityPolicy {
    std::vector<std::string> denied_nodes{
        "ExecuteSystemCommand", "FileSystemAccess", "NetworkRequest", "ScriptExecution"
    };
    std::vector<std::string> allowed_nodes{};  // empty: all that are not denied
    // Hosts that inputs may name; "*.example.com" is every host below it. Empty: all but those that
    // are plainly private (loopback, link-local and private addresses, "localhost").
    std::vector<std::string> allowed_domains{};
    bool allow_private_hosts = false;  // of files that this program fetches itself for inputs
    std::size_t nodes_max = 10'000;
    std::size_t depth_max = 1'000;  // nodes in the longest chain of links
};

// All findings, at most kIssuesMax. `classes` may know nothing.
std::vector<Issue> find_security_issues(
    const Graph& graph, const SecurityPolicy& policy, const PromptClasses& classes
);

// The gate that every submission passes, whatever the dialect: Code::invalid_workflow.
Result<> check_security(
    const json::object& workflow, const SecurityPolicy& policy, const PromptClasses& classes
);

// A text that people write, not an address or a file: nothing is looked for in it. nullptr: nothing
// is known of the input.
bool is_prose(const InputDefinition* input, std::string_view name);

bool matches_pattern(std::string_view pattern, std::string_view name);
// For files that are fetched here. `host` as of InputUrl; what it resolves to is for the client.
bool is_allowed_host(const SecurityPolicy& policy, const std::string& host);

// The host of an address that a string input consists of; empty: it is none.
struct InputUrl {
    std::string scheme;  // in lower case
    std::string host;    // likewise; IPv6 without brackets
};
bool read_input_url(std::string_view text, InputUrl& into);

// Each input that is an address, for whoever wants to look whether it can be reached.
struct UrlInput {
    std::string node_id;
    std::string class_type;
    std::string input;
    std::string url;
};
std::vector<UrlInput> url_inputs(const Graph& graph, const PromptClasses& classes);

}  // namespace comfyd::workflow
