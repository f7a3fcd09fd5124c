// RegexMatch, RegexExtract and RegexReplace.
#include <string>
#include <utility>

#include "engine/nodes/call.hpp"
#include "engine/nodes/text/python_regex.hpp"
#include "engine/nodes/text/python_value.hpp"
#include "engine/nodes/text/text.hpp"

namespace comfyd::engine::nodes {
namespace {

RegexFlags flags_of(const Call& call) {
    const auto flag = [&call](const char* name, bool otherwise) {
        return call.has(name) ? call.flag(name) : otherwise;
    };
    return {
        .ignore_case = flag("case_insensitive", true),
        .multiline = flag("multiline", false),
        .dot_all = flag("dotall", false),
    };
}

// What a replacement takes for each byte that it is written with.
constexpr std::uint64_t kTemplateBytesPerByte = 40;

// A text that is put together piece by piece, each only when there is room for it.
struct GrowingText {
    explicit GrowingText(const Call& of) : call(of) {}

    // False: there is a failure.
    bool make_room(std::uint64_t bytes) {
        const std::uint64_t wanted = text.size() + bytes;
        if (wanted > charged) {
            // Twice as much as is needed now, as the text itself does it.
            const std::uint64_t more = std::min<std::uint64_t>(2 * wanted, 2 * kTextBytesMax);
            auto room = wanted > kTextBytesMax ? text_too_long() : call.charge(more - charged);
            if (!room) {
                failure = std::move(room.error());
                return false;
            }
            charge.join(std::move(*room));
            charged = more;
        }
        return true;
    }

    const Call& call;
    std::string text{};
    Charge charge{};
    std::uint64_t charged = 0;
    std::optional<Error> failure{};
};

NodeResult one(Value value) {
    return NodeResult{.outputs = {std::move(value)}};
}

tl::unexpected<Error> refused(const RegexProblem& problem) {
    return node_error(problem.exception_type, problem.text);
}

// ComfyUI takes a bad pattern for one that matches nothing, and stops at other exceptions.
bool is_bad_pattern(const RegexProblem& problem) {
    return problem.exception_type == "re.PatternError";
}

Result<NodeResult> execute_match(Call& call) {
    const auto regex = PythonRegex::compile(call.text("regex_pattern"), flags_of(call));
    if (!regex) {
        return is_bad_pattern(regex.error()) ? Result<NodeResult>(one(false))
                                             : Result<NodeResult>(refused(regex.error()));
    }
    const auto groups = regex->search(call, call.text("string"), 0, false);
    if (!groups) {
        return fail(groups.error());
    }
    return one(!groups->empty());
}

// What findall() gives for one match, of which ComfyUI takes the first group where there are some.
std::string_view found_text(std::string_view text, const std::vector<RegexSpan>& groups) {
    return groups[groups.size() > 1 ? 1 : 0].of(text);
}

Result<NodeResult> extract_all(const Call& call, const PythonRegex& regex, std::size_t group) {
    const std::string& text = call.text("string");
    const bool whole = call.text("mode") == "All Matches";
    GrowingText joined(call);
    std::size_t count = 0;
    std::optional<std::size_t> missing;  // the first match without that group
    auto done = regex.for_each_match(call, text, [&](const std::vector<RegexSpan>& groups) {
        if (!whole && !groups[group].matched) {
            missing = count;
            return false;
        }
        const std::string_view part = whole ? found_text(text, groups) : groups[group].of(text);
        if (!joined.make_room(part.size() + 1)) {
            return false;
        }
        joined.text += count++ == 0 ? "" : "\n";
        joined.text += part;
        return true;
    });
    if (!done) {
        return fail(std::move(done.error()));
    }
    if (missing) {
        return node_error(
            "TypeError",
            "sequence item " + std::to_string(*missing) + ": expected str instance, NoneType found"
        );
    }
    if (joined.failure) {
        return fail(std::move(*joined.failure));
    }
    return one(std::move(joined.text));
}

Result<NodeResult> execute_extract(Call& call) {
    const auto regex = PythonRegex::compile(call.text("regex_pattern"), flags_of(call));
    if (!regex) {
        return is_bad_pattern(regex.error()) ? Result<NodeResult>(one(std::string()))
                                             : Result<NodeResult>(refused(regex.error()));
    }
    const std::string& mode = call.text("mode");
    const std::string& text = call.text("string");
    const std::int64_t index = call.place("group_index");
    const auto group = static_cast<std::size_t>(std::max<std::int64_t>(0, index));
    if (mode == "All Matches") {
        return extract_all(call, *regex, 0);
    }
    const bool all_groups = mode == "All Groups";
    if (all_groups &&
        (regex->groups() == 0 || index > static_cast<std::int64_t>(regex->groups()))) {
        return one(std::string());
    }
    if (all_groups && index >= 0) {
        return extract_all(call, *regex, group);
    }
    const auto groups = regex->search(call, text, 0, false);
    if (!groups) {
        return fail(groups.error());
    }
    if (!groups->empty() && index < 0 && mode != "First Match") {
        return node_error("IndexError", "no such group");
    }
    const std::size_t wanted = mode == "First Match" ? 0 : group;
    if (groups->empty() || wanted >= groups->size()) {
        return one(std::string());
    }
    const RegexSpan& span = (*groups)[wanted];
    return span.matched ? one(std::string(span.of(text))) : one(None{});
}

Result<NodeResult> execute_replace(Call& call) {
    const auto regex = PythonRegex::compile(call.text("regex_pattern"), flags_of(call));
    if (!regex) {
        return refused(regex.error());
    }
    const auto parts = call.charge(call.text("replace").size() * kTemplateBytesPerByte);
    if (!parts) {
        return fail(parts.error());
    }
    const auto with = RegexTemplate::parse(call.text("replace"), *regex);
    if (!with) {
        return refused(with.error());
    }
    const std::string& text = call.text("string");
    std::int64_t left = call.has("count") ? call.place("count") : 0;
    GrowingText out(call);
    std::size_t copied = 0;
    auto done = regex->for_each_match(call, text, [&](const std::vector<RegexSpan>& groups) {
        if (!out.make_room(groups[0].begin - copied + with->size(groups))) {
            return false;
        }
        out.text.append(text, copied, groups[0].begin - copied);
        with->append(out.text, text, groups);
        copied = groups[0].end;
        return --left != 0;
    });
    if (!done) {
        return fail(std::move(done.error()));
    }
    if (out.failure || !out.make_room(text.size() - copied)) {
        return fail(std::move(*out.failure));
    }
    out.text.append(text, copied);
    return one(std::move(out.text));
}

}  // namespace

NodeClass regex_match() {
    return {
        .name = "RegexMatch",
        .description = "Whether a regular expression matches anywhere in a text.",
        .execute = &execute_match
    };
}

NodeClass regex_extract() {
    return {
        .name = "RegexExtract",
        .description = "Takes what a regular expression, or one of its groups, matches.",
        .execute = &execute_extract
    };
}

NodeClass regex_replace() {
    return {
        .name = "RegexReplace",
        .description =
            "Replaces what a regular expression matches; \\1 and \\g<name> stand for "
            "groups.",
        .execute = &execute_replace
    };
}

}  // namespace comfyd::engine::nodes
