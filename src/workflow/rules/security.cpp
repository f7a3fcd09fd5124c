#include "workflow/rules/security.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/text.hpp"
#include "workflow/catalogue/models.hpp"
#include "workflow/files/file_inputs.hpp"

namespace comfyd::workflow {
namespace {

bool is_private_ipv4(std::uint32_t address) {
    const auto in = [address](std::uint32_t network, int bits) {
        return (address >> (32 - bits)) == (network >> (32 - bits));
    };
    return in(0x00000000, 8) || in(0x0A000000, 8) || in(0x64400000, 10) || in(0x7F000000, 8) ||
           in(0xA9FE0000, 16) || in(0xAC100000, 12) || in(0xC0A80000, 16) || in(0xE0000000, 3);
}

// Only what the name itself says; what a name resolves to is for those who connect.
bool is_plainly_private(const std::string& host) {
    if (host == "localhost" || host.ends_with(".localhost") || host.ends_with(".internal") ||
        host.ends_with(".local")) {
        return true;
    }
    in_addr ipv4{};
    // inet_aton also takes the short, octal and hexadecimal forms that libraries connect to.
    if (inet_aton(host.c_str(), &ipv4) != 0) {
        return is_private_ipv4(ntohl(ipv4.s_addr));
    }
    in6_addr ipv6{};
    if (inet_pton(AF_INET6, host.c_str(), &ipv6) != 1) {
        return false;
    }
    const auto* bytes = ipv6.s6_addr;
    const bool is_small =
        std::all_of(bytes, bytes + 10, [](unsigned char byte) { return byte == 0; });
    if (is_small) {  // ::, ::1 and the forms that hold an IPv4 address
        std::uint32_t inner = 0;
        std::memcpy(&inner, bytes + 12, sizeof inner);
        return ntohl(inner) <= 1 || is_private_ipv4(ntohl(inner));
    }
    return (bytes[0] & 0xFE) == 0xFC || bytes[0] == 0xFF ||
           (bytes[0] == 0xFE && (bytes[1] & 0xC0) == 0x80);
}

bool may_name(const SecurityPolicy& policy, const std::string& host, bool private_too) {
    if (policy.allowed_domains.empty()) {
        return private_too || !is_plainly_private(host);
    }
    return std::ranges::any_of(policy.allowed_domains, [&](const std::string& pattern) {
        return matches_pattern(lower(pattern), host);
    });
}

enum class PathFault { none, absolute, upwards, broken };

PathFault fault_of(std::string_view path) {
    if (path.find('\0') != std::string_view::npos) {
        return PathFault::broken;
    }
    const bool has_drive =
        path.size() >= 2 && path[1] == ':' && lower(path[0]) >= 'a' && lower(path[0]) <= 'z';
    if (path.starts_with('/') || path.starts_with('\\') || path == "~" || path.starts_with("~/") ||
        path.starts_with("~\\") || has_drive) {
        return PathFault::absolute;
    }
    while (!path.empty()) {
        const auto end = path.find_first_of("/\\");
        std::string_view part = path.substr(0, end);
        // "name [input]" says in which folder to look.
        if (const auto mark = part.find(" ["); mark != std::string_view::npos) {
            part = part.substr(0, mark);
        }
        if (part == "..") {
            return PathFault::upwards;
        }
        path.remove_prefix(end == std::string_view::npos ? path.size() : end + 1);
    }
    return PathFault::none;
}

// Inputs that name a file or folder, by what such inputs are called.
bool is_path_name(std::string_view input) {
    static constexpr std::array<std::string_view, 18> kNames{
        "image",
        "audio",
        "video",
        "file",
        "filename",
        "filename_prefix",
        "mask",
        "latent",
        "path",
        "directory",
        "folder",
        "dir",
        "subfolder",
        "file_path",
        "folder_path",
        "filepath",
        "model_file",
        "file_name"
    };
    static constexpr std::array<std::string_view, 7> kEndings{
        "_path", "_file", "_filename", "_dir", "_directory", "_folder", "_prefix"
    };
    return std::ranges::find(kNames, input) != kNames.end() ||
           std::ranges::any_of(
               kEndings, [&](std::string_view end) { return input.ends_with(end); }
           ) ||
           is_model_input(input);
}

bool is_multiline(const InputDefinition* input) {
    const json::value* multiline = input != nullptr && input->options != nullptr
                                       ? json::find(*input->options, "multiline")
                                       : nullptr;
    return multiline != nullptr && multiline->is_bool() && multiline->get_bool();
}

// Collects the findings about one workflow.
class Scanner {
public:
    Scanner(const Graph& graph, const SecurityPolicy& policy, const PromptClasses& classes)
        : graph_(graph), policy_(policy), classes_(classes) {}

    std::vector<Issue> run() {
        check_size();
        for (const Graph::Node& node : graph_.nodes()) {
            if (issues_.size() >= kIssuesMax) {
                break;
            }
            check_class(node);
            check_inputs(node);
        }
        return std::move(issues_);
    }

private:
    Issue& add(std::string_view code, std::string message) {
        Issue issue;
        issue.stage = Stage::security;
        issue.code = code;
        issue.message = std::move(message);
        issues_.push_back(std::move(issue));
        return issues_.back();
    }
    Issue& add(
        std::string_view code, const Graph::Node& node, std::string_view input, std::string message
    ) {
        const std::string where = "node " + std::string(node.id) + " (" +
                                  std::string(node.class_type) + ")" +
                                  (input.empty() ? "" : ", input '" + std::string(input) + "'");
        Issue& issue = add(code, where + ": " + message);
        issue.node_id = node.id;
        issue.class_type = node.class_type;
        issue.input = input;
        return issue;
    }

    void check_size() {
        if (graph_.size() > policy_.nodes_max) {
            Issue& issue =
                add("TOO_MANY_NODES",
                    "the workflow has " + std::to_string(graph_.size()) + " nodes; at most " +
                        std::to_string(policy_.nodes_max) + " are allowed (security.nodes_max)");
            issue.expected = policy_.nodes_max;
            issue.got = graph_.size();
        }
        if (const std::size_t depth = graph_.depth(); depth > policy_.depth_max) {
            Issue& issue =
                add("TOO_DEEP",
                    "the longest chain of the workflow has " + std::to_string(depth) +
                        " nodes; at most " + std::to_string(policy_.depth_max) +
                        " are allowed (security.depth_max)");
            issue.expected = policy_.depth_max;
            issue.got = depth;
        }
    }

    void check_class(const Graph::Node& node) {
        const auto matches = [&](const std::string& pattern) {
            return matches_pattern(pattern, node.class_type);
        };
        if (node.class_type.empty()) {
            return;
        }
        if (std::ranges::any_of(policy_.denied_nodes, matches)) {
            add("DANGEROUS_NODE", node, "", "this node class is denied here (security.denied_nodes)"
            );
        } else if (!policy_.allowed_nodes.empty() &&
                   std::ranges::none_of(policy_.allowed_nodes, matches)) {
            add("NODE_NOT_ALLOWED",
                node,
                "",
                "this node class is not among those that are allowed here "
                "(security.allowed_nodes)");
        }
    }

    void check_inputs(const Graph::Node& node) {
        const NodeDefinition* definition = classes_.find(node.class_type);
        for (const auto& input : *node.inputs) {
            const json::value* value = &input.value();
            if (const json::object* wrapper = value->if_object()) {
                // ComfyUI unwraps this before anything else.
                const json::value* inner = wrapper->if_contains("__value__");
                value = inner != nullptr ? inner : value;
            }
            const std::string_view name = view(input.key());
            const InputDefinition* known =
                definition != nullptr ? definition->find_input(name, *node.inputs) : nullptr;
            check_value(node, known, name, *value);
            if (const json::array* list = value->if_array(); list != nullptr && !is_link(*list)) {
                for (const json::value& item : *list) {
                    check_value(node, known, name, item);
                }
            }
        }
    }

    static bool is_link(const json::array& list) {
        return list.size() == 2 && list[0].is_string() && list[1].is_number();
    }

    void check_value(
        const Graph::Node& node,
        const InputDefinition* known,
        std::string_view name,
        const json::value& value
    ) {
        if (value.is_string() && !value.get_string().empty()) {
            check_text(node, known, name, value);
        }
    }

    void check_text(
        const Graph::Node& node,
        const InputDefinition* known,
        std::string_view name,
        const json::value& value
    ) {
        const std::string_view text = view(value.get_string());
        if (is_prose(known, name)) {
            return;
        }
        if (InputUrl url; read_input_url(text, url)) {
            check_url(node, name, value, url);
            return;
        }
        const bool names_a_file = is_path_name(name) || (known != nullptr && known->takes_upload());
        if (!names_a_file) {
            return;
        }
        const PathFault fault = fault_of(text);
        // What the server itself offers is inside its folders.
        if (fault == PathFault::none || (known != nullptr && known->offers(value))) {
            return;
        }
        Issue& issue =
            add("PATH_TRAVERSAL",
                node,
                name,
                fault == PathFault::absolute  ? "the name of a file must not be an absolute path"
                : fault == PathFault::upwards ? "the name of a file must not lead out of its folder"
                                              : "the name of a file must not contain a zero byte");
        issue.expected = "a name below its own folder, without ..";
        issue.got = shortened(value);
    }

    void check_url(
        const Graph::Node& node,
        std::string_view name,
        const json::value& value,
        const InputUrl& url
    ) {
        const bool is_web = url.scheme == "http" || url.scheme == "https";
        // What a worker asks for is in the worker's network.
        const bool private_too = policy_.allow_private_hosts &&
                                 chooses_file(node.class_type, name, *node.inputs, classes_);
        if (is_web && may_name(policy_, url.host, private_too)) {
            return;
        }
        Issue& issue =
            add("UNAUTHORIZED_DOMAIN",
                node,
                name,
                !is_web
                    ? "addresses with '" + url.scheme + ":' are not allowed; use https:"
                    : "the domain '" + url.host + "' is not allowed (security.allowed_domains)");
        issue.got = shortened(value);
        issue.details["domain"] = url.host;
        issue.details["allowed_domains"] =
            json::array(policy_.allowed_domains.begin(), policy_.allowed_domains.end());
    }

    const Graph& graph_;
    const SecurityPolicy& policy_;
    const PromptClasses& classes_;
    std::vector<Issue> issues_;
};

}  // namespace

bool matches_pattern(std::string_view pattern, std::string_view name) {
    std::size_t p = 0;
    std::size_t n = 0;
    std::size_t star = std::string_view::npos;  // the last * and how much it has taken
    std::size_t taken = 0;
    while (n < name.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            taken = n;
        } else if (p < pattern.size() && pattern[p] == name[n]) {
            ++p;
            ++n;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            n = ++taken;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') {
        ++p;
    }
    return p == pattern.size();
}

bool is_prose(const InputDefinition* input, std::string_view name) {
    return is_multiline(input) || (input == nullptr && (name == "text" || name == "prompt"));
}

bool is_allowed_host(const SecurityPolicy& policy, const std::string& host) {
    return may_name(policy, host, policy.allow_private_hosts);
}

bool read_input_url(std::string_view text, InputUrl& into) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t' || text.front() == '\n' ||
                             text.front() == '\r')) {
        text.remove_prefix(1);
    }
    const auto colon = text.find("://");
    if (colon == std::string_view::npos || colon == 0 || colon > 16) {
        return false;
    }
    into.scheme = lower(text.substr(0, colon));
    if (!std::ranges::all_of(into.scheme, [](char c) {
            return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-' ||
                   c == '.';
        })) {
        return false;
    }
    std::string_view rest = text.substr(colon + 3);
    // Some clients take a backslash for a slash.
    rest = rest.substr(0, rest.find_first_of("/\\?#"));
    if (const auto at = rest.rfind('@'); at != std::string_view::npos) {
        rest.remove_prefix(at + 1);
    }
    if (rest.starts_with('[')) {
        rest = rest.substr(1, rest.find(']') - 1);
    } else {
        rest = rest.substr(0, rest.find(':'));
    }
    while (rest.ends_with('.')) {
        rest.remove_suffix(1);
    }
    into.host = lower(rest.substr(0, 255));
    return true;
}

std::vector<Issue> find_security_issues(
    const Graph& graph, const SecurityPolicy& policy, const PromptClasses& classes
) {
    return Scanner(graph, policy, classes).run();
}

Result<> check_security(
    const json::object& workflow, const SecurityPolicy& policy, const PromptClasses& classes
) {
    const Graph graph(workflow);
    const std::vector<Issue> issues = find_security_issues(graph, policy, classes);
    if (!issues.empty()) {
        return fail(issues_error(issues));
    }
    return {};
}

std::vector<UrlInput> url_inputs(const Graph& graph, const PromptClasses& classes) {
    std::vector<UrlInput> found;
    for (const Graph::Node& node : graph.nodes()) {
        const NodeDefinition* definition = classes.find(node.class_type);
        for (const auto& input : *node.inputs) {
            const auto* text = input.value().if_string();
            InputUrl url;
            if (text == nullptr || !read_input_url(view(*text), url) ||
                found.size() == kIssuesMax) {
                continue;
            }
            const std::string_view name = view(input.key());
            const InputDefinition* known =
                definition != nullptr ? definition->find_input(name, *node.inputs) : nullptr;
            if (!is_prose(known, name)) {
                found.push_back(
                    {std::string(node.id),
                     std::string(node.class_type),
                     std::string(name),
                     std::string(view(*text))}
                );
            }
        }
    }
    return found;
}

}  // namespace comfyd::workflow
