#define PCRE2_CODE_UNIT_WIDTH 8
#include "engine/nodes/text/python_regex.hpp"

#include <pcre2.h>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/nodes/node.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr std::uint32_t kStepsMax = 2'000'000;     // from one position
constexpr std::uint32_t kMemoryMaxKb = 64 * 1024;  // of one search
constexpr std::size_t kPatternBytesMax = 1024 * 1024;

template <auto kFree>
struct Free {
    template <class T>
    void operator()(T* pointer) const {
        kFree(pointer);
    }
};
using Code8 = std::unique_ptr<pcre2_code, Free<&pcre2_code_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Free<&pcre2_match_context_free>>;
using CompileContext = std::unique_ptr<pcre2_compile_context, Free<&pcre2_compile_context_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Free<&pcre2_match_data_free>>;

std::string message_of(int code) {
    std::array<PCRE2_UCHAR, 256> buffer{};
    pcre2_get_error_message(code, buffer.data(), buffer.size());
    return reinterpret_cast<const char*>(buffer.data());
}

// Before each item of the pattern, wherever it is tried.
int look_at_stop(pcre2_callout_block* /*block*/, void* call) {
    return static_cast<const Call*>(call)->stopped() ? PCRE2_ERROR_CALLOUT : 0;
}

std::vector<RegexSpan> groups_of(pcre2_match_data* data, std::size_t count) {
    const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(data);
    std::vector<RegexSpan> groups(count + 1);
    for (std::size_t i = 0; i <= count; ++i) {
        if (offsets[2 * i] != PCRE2_UNSET) {
            groups[i] = {offsets[2 * i], offsets[2 * i + 1], true};
        }
    }
    return groups;
}

}  // namespace

struct PythonRegex::Compiled {
    Code8 code;
    TranslatedRegex source;
};

PythonRegex::PythonRegex(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
PythonRegex::~PythonRegex() = default;
PythonRegex::PythonRegex(PythonRegex&&) noexcept = default;
PythonRegex& PythonRegex::operator=(PythonRegex&&) noexcept = default;

tl::expected<PythonRegex, RegexProblem> PythonRegex::compile(
    std::string_view pattern, RegexFlags flags
) {
    if (pattern.size() > kPatternBytesMax) {
        return tl::unexpected(RegexProblem{
            .exception_type = "MemoryError",
            .text =
                "A regular expression has at most " + std::to_string(kPatternBytesMax) + " bytes"
        });
    }
    auto translated = translate_regex(pattern, flags);
    if (!translated) {
        return tl::unexpected(std::move(translated.error()));
    }
    const CompileContext context(pcre2_compile_context_create(nullptr));
    pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
    std::uint32_t options =
        PCRE2_UTF | PCRE2_UCP | PCRE2_ALT_CIRCUMFLEX | PCRE2_AUTO_CALLOUT | PCRE2_NEVER_BACKSLASH_C;
    options |= translated->flags.ignore_case ? PCRE2_CASELESS : 0U;
    options |= translated->flags.multiline ? PCRE2_MULTILINE : 0U;
    options |= translated->flags.dot_all ? PCRE2_DOTALL : 0U;
    int error = 0;
    PCRE2_SIZE offset = 0;
    Code8 code(pcre2_compile(
        reinterpret_cast<PCRE2_SPTR>(translated->pattern.data()),
        translated->pattern.size(),
        options,
        &error,
        &offset,
        context.get()
    ));
    if (!code) {
        return tl::unexpected(RegexProblem{.text = message_of(error)});
    }
    auto compiled = std::make_unique<Compiled>();
    compiled->code = std::move(code);
    compiled->source = std::move(*translated);
    return PythonRegex(std::move(compiled));
}

std::size_t PythonRegex::groups() const {
    return compiled_->source.groups;
}

std::optional<std::size_t> PythonRegex::find_group(std::string_view name) const {
    const auto found = compiled_->source.names.find(name);
    return found == compiled_->source.names.end() ? std::nullopt : std::optional(found->second);
}

Result<std::vector<RegexSpan>> PythonRegex::search(
    const Call& call, std::string_view text, std::size_t start, bool must_advance
) const {
    const MatchContext context(pcre2_match_context_create(nullptr));
    const MatchData data(pcre2_match_data_create_from_pattern(compiled_->code.get(), nullptr));
    if (!context || !data) {
        return fail(Code::out_of_memory, "No memory for a regular expression.");
    }
    pcre2_set_match_limit(context.get(), kStepsMax);
    pcre2_set_heap_limit(context.get(), kMemoryMaxKb);
    pcre2_set_callout(context.get(), &look_at_stop, const_cast<Call*>(&call));  // only read
    // The search from the beginning has looked whether the text is UTF-8.
    const std::uint32_t options =
        (start == 0 ? 0U : PCRE2_NO_UTF_CHECK) | (must_advance ? PCRE2_NOTEMPTY_ATSTART : 0U);
    const int found = pcre2_match(
        compiled_->code.get(),
        reinterpret_cast<PCRE2_SPTR>(text.data()),
        text.size(),
        start,
        options,
        data.get(),
        context.get()
    );
    if (found >= 0) {
        return groups_of(data.get(), groups());
    }
    if (auto going = call.check_stopped(); !going) {
        return fail(std::move(going.error()));
    }
    if (found != PCRE2_ERROR_NOMATCH) {
        return node_error(
            "RuntimeError", "The regular expression cannot be applied: " + message_of(found)
        );
    }
    return std::vector<RegexSpan>();
}

Result<> PythonRegex::for_each_match(
    const Call& call,
    std::string_view text,
    const std::function<bool(const std::vector<RegexSpan>&)>& found
) const {
    std::size_t start = 0;
    bool must_advance = false;
    while (true) {
        auto groups = search(call, text, start, must_advance);
        if (!groups) {
            return fail(std::move(groups.error()));
        }
        if (groups->empty() || !found(*groups)) {
            return {};
        }
        const RegexSpan& whole = groups->front();
        start = std::max(whole.end, start);
        must_advance = whole.begin == whole.end;
        if (auto stopped = call.check_stopped(); !stopped) {
            return stopped;
        }
    }
}

}  // namespace comfyd::engine::nodes
