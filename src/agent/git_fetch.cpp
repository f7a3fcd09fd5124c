#include "agent/git_fetch.hpp"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "base/filter_process.hpp"
#include "base/find_program.hpp"
#include "base/text.hpp"

namespace comfyd::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMessageBytesMax = 1'000;

// Nothing of the user's or the system's configuration, and nobody is asked for a password.
std::vector<std::string> git_environment(const fs::path& home) {
    std::vector<std::string> environment{
        "HOME=" + home.string(),
        "LC_ALL=C",
        "GIT_CONFIG_NOSYSTEM=1",
        "GIT_CONFIG_GLOBAL=/dev/null",
        "GIT_TERMINAL_PROMPT=0",
        "GIT_ASKPASS=/bin/false",
        "GIT_NO_REPLACE_OBJECTS=1",
    };
    for (const char* name :
         {"PATH", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "SSL_CERT_FILE"}) {
        if (const char* value = std::getenv(name)) {
            environment.push_back(std::string(name) + "=" + value);
        }
    }
    return environment;
}

class Git {
public:
    Git(std::string program, fs::path repository, const PackRules& rules)
        : program_(std::move(program)),
          repository_(std::move(repository)),
          rules_(rules),
          deadline_(Deadline::in(rules.time_max)) {}

    // What it printed.
    Result<std::string> run(std::vector<std::string> words, std::size_t output_bytes_max = 65'536) {
        // Each file that it writes has a limit, what it fetches among them. Its complaints are
        // part of the answer, and how it ended is the last line.
        const std::string blocks = std::to_string(rules_.bytes_max / 512 + 1);
        std::vector<std::string> arguments{
            "-c",
            R"(ulimit -f "$0" && "$@" 2>&1; echo "ended $?")",
            blocks,
            program_,
            "-C",
            repository_,
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "core.symlinks=false",
            "-c",
            "protocol.allow=never",
            "-c",
            "protocol.https.allow=always",
            "-c",
            "http.followRedirects=false",
        };
        if (rules_.allows_paths) {
            arguments.insert(arguments.end(), {"-c", "protocol.file.allow=always"});
        }
        arguments.insert(arguments.end(), words.begin(), words.end());
        auto said = run_filter(
            {"git", "/bin/sh", std::move(arguments), git_environment(repository_)},
            "",
            {deadline_.left(), output_bytes_max, rules_.stop}
        );
        if (!said) {
            return said;
        }
        const auto end = said->rfind("ended ");
        const std::string how = end == std::string::npos ? "" : said->substr(end);
        said->resize(end == std::string::npos ? said->size() : end);
        if (how != "ended 0\n") {
            return fail(
                Code::upstream_error,
                "git " + words.front() + ": " +
                    std::string(trim(*said, " \t\r\n").substr(0, kMessageBytesMax))
            );
        }
        return said;
    }

private:
    std::string program_;
    fs::path repository_;
    const PackRules& rules_;
    Deadline deadline_;
};

// Of the lines "mode kind id size<TAB>name": what a checkout would write.
Result<> check_size(std::string_view lines, const PackRules& rules) {
    std::uint64_t bytes = 0;
    std::size_t files = 0;
    while (!lines.empty()) {
        const auto line_end = lines.find('\0');
        const std::string_view line = lines.substr(0, line_end);
        lines.remove_prefix(line_end == std::string_view::npos ? lines.size() : line_end + 1);
        const std::string_view facts = line.substr(0, line.find('\t'));
        const std::string_view size = facts.substr(facts.rfind(' ') + 1);
        std::uint64_t number = 0;
        std::from_chars(size.data(), size.data() + size.size(), number);  // "-": a submodule
        bytes += std::min(number, rules.bytes_max + 1);
        ++files;
        if (bytes > rules.bytes_max || files > rules.files_max) {
            return fail(
                Code::payload_too_large,
                "it has more than " + std::to_string(rules.bytes_max / 1'000'000) + " MB or " +
                    std::to_string(rules.files_max) + " files"
            );
        }
    }
    return {};
}

}  // namespace

Result<> fetch_commit(const NodePack& pack, const PackRules& rules, const fs::path& into) {
    const std::string program = find_program(rules.git);
    if (program.empty()) {
        return fail(
            Code::not_found,
            "there is no program " + rules.git +
                ": install git, or lay the pack "
                "out as a folder"
        );
    }
    std::error_code error;
    fs::create_directories(into, error);
    if (error) {
        return fail(Code::storage_unavailable, into.string() + ": " + error.message());
    }
    Git git(program, into, rules);
    // Without a template there are no hooks.
    if (auto made = git.run({"init", "-q", "--template="}); !made) {
        return fail(std::move(made.error()));
    }
    if (auto fetched = git.run(
            {"fetch",
             "-q",
             "--no-tags",
             "--no-recurse-submodules",
             "--depth",
             "1",
             "--",
             pack.url,
             pack.commit}
        );
        !fetched) {
        return fail(std::move(fetched.error()));
    }
    const auto came = git.run({"rev-parse", "--verify", "FETCH_HEAD^{commit}"});
    if (!came) {
        return fail(came.error());
    }
    if (trim(*came, " \r\n") != lower(pack.commit)) {
        return fail(Code::hash_mismatch, "another commit came than " + pack.commit);
    }
    constexpr std::size_t kListBytesMax = 64'000'000;
    const auto listed =
        git.run({"ls-tree", "-r", "-l", "-z", "--full-tree", "FETCH_HEAD"}, kListBytesMax);
    if (!listed) {
        return fail(listed.error());
    }
    if (auto small = check_size(*listed, rules); !small) {
        return small;
    }
    if (auto out = git.run({"checkout", "-q", "--detach", "FETCH_HEAD"}); !out) {
        return fail(std::move(out.error()));
    }
    fs::remove_all(into / ".git", error);
    return {};
}

}  // namespace comfyd::agent
