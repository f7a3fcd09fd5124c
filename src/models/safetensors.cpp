#include "models/safetensors.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <boost/json/basic_parser_impl.hpp>

#include "base/disk.hpp"
#include "base/text.hpp"
#include "net/descriptor.hpp"

namespace comfyd::models {
namespace {

using boost::json::string_view;
using ErrorCode = boost::system::error_code;

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kNameBytesMax = 4'096;
constexpr std::size_t kDimensionsMax = 64;
constexpr std::size_t kTypeBytesMax = 16;

tl::unexpected<Error> wrong(const std::string& why) {
    return fail(Code::invalid_argument, "this is no whole safetensors file: " + why);
}

// Of one number, in bits; 0: a type that is not known here, of which no size is asked.
std::uint64_t bits_of(std::string_view type) {
    if (type == "BOOL" || type == "U8" || type == "I8" || type.starts_with("F8")) {
        return 8;
    }
    if (type.starts_with("F4")) {
        return 4;
    }
    if (type.starts_with("F6")) {
        return 6;
    }
    if (type == "C64") {
        return 64;
    }
    return type.ends_with("16") ? 16 : type.ends_with("32") ? 32 : type.ends_with("64") ? 64 : 0;
}

struct Tensor {
    std::string type{};
    std::vector<std::uint64_t> shape{};
    std::vector<std::uint64_t> offsets{};
    bool has_shape = false;
};

// nullopt: larger than any file.
std::optional<std::uint64_t> bytes_of(const Tensor& tensor) {
    std::uint64_t bits = bits_of(tensor.type);
    for (const std::uint64_t width : tensor.shape) {
        if (__builtin_mul_overflow(bits, width, &bits)) {
            return std::nullopt;
        }
    }
    return bits % 8 == 0 ? std::optional(bits / 8) : std::nullopt;
}

// Called by the parser in the order of the text.
struct Handler {
    static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
    static constexpr std::size_t max_array_size = std::numeric_limits<std::size_t>::max();
    static constexpr std::size_t max_key_size = kNameBytesMax;
    static constexpr std::size_t max_string_size = kSafetensorsHeadMax;

    struct Span {
        std::uint64_t begin;
        std::uint64_t end;
        auto operator<=>(const Span&) const = default;
    };

    bool on_document_begin(ErrorCode&) { return true; }
    bool on_document_end(ErrorCode&) { return true; }
    bool on_object_begin(ErrorCode& error) {
        ++depth;
        if (depth == 2) {
            name = std::exchange(key, std::string());
            is_metadata = name == "__metadata__";
            tensor = Tensor();
        }
        return depth == 1 || !in_list() || refuse("a list holds an object", error);
    }
    bool on_object_end(std::size_t, ErrorCode& error) {
        const bool is_tensor = depth == 2 && !is_metadata;
        --depth;
        return !is_tensor || keep(error);
    }
    bool on_array_begin(ErrorCode& error) {
        ++depth;
        if (depth == 2 || depth == 1) {
            return refuse("a tensor is not described by an object", error);
        }
        if (depth == 3) {
            tensor.has_shape = tensor.has_shape || key == "shape";
        }
        return true;
    }
    bool on_array_end(std::size_t, ErrorCode&) {
        --depth;
        return true;
    }
    bool on_key_part(string_view part, std::size_t count, ErrorCode&) {
        take_key(part, count);
        return true;
    }
    bool on_key(string_view part, std::size_t count, ErrorCode& error) {
        take_key(part, count);
        return depth != 1 || see_name(error);
    }
    bool on_string_part(string_view part, std::size_t count, ErrorCode& error) {
        return take_text(part, count, error);
    }
    bool on_string(string_view part, std::size_t count, ErrorCode& error) {
        return take_text(part, count, error);
    }
    bool on_number_part(string_view, ErrorCode&) { return true; }
    bool on_int64(std::int64_t number, string_view, ErrorCode& error) {
        return number >= 0 ? take_number(static_cast<std::uint64_t>(number), error)
                           : refuse("a number is negative", error);
    }
    bool on_uint64(std::uint64_t number, string_view, ErrorCode& error) {
        return take_number(number, error);
    }
    bool on_double(double, string_view, ErrorCode& error) {
        return !in_list() || refuse("a size is no whole number", error);
    }
    bool on_bool(bool, ErrorCode& error) { return check_scalar(error); }
    bool on_null(ErrorCode& error) { return check_scalar(error); }
    bool on_comment_part(string_view, ErrorCode&) { return true; }
    bool on_comment(string_view, ErrorCode&) { return true; }

    bool in_list() const { return depth == 3 && !is_metadata; }

    bool refuse(const char* reason, ErrorCode& error) {
        why = reason;
        error = boost::json::error::syntax;
        return false;
    }
    bool check_scalar(ErrorCode& error) {
        return depth > 1 || refuse("a tensor is not described by an object", error);
    }
    // `count`: of the key so far, this part with it.
    void take_key(string_view part, std::size_t count) {
        if (depth > 2) {
            return;
        }
        if (count == part.size()) {
            key.clear();
        }
        key.append(part.data(), part.size());
    }
    bool see_name(ErrorCode& error) {
        if (key.empty()) {
            return refuse("a tensor has no name", error);
        }
        names.push_back(std::hash<std::string>()(key));
        return true;
    }
    bool take_text(string_view part, std::size_t count, ErrorCode& error) {
        if (depth == 2 && !is_metadata && key == "dtype") {
            if (count > kTypeBytesMax) {
                return refuse("a type has a name that is too long", error);
            }
            if (count == part.size()) {
                tensor.type.clear();
            }
            tensor.type.append(part.data(), part.size());
            return true;
        }
        return check_scalar(error);
    }
    bool take_number(std::uint64_t number, ErrorCode& error) {
        if (!in_list()) {
            return check_scalar(error);
        }
        if (key != "shape" && key != "data_offsets") {
            return true;
        }
        auto& into = key == "shape" ? tensor.shape : tensor.offsets;
        if (into.size() == kDimensionsMax) {
            return refuse("a tensor has too many dimensions", error);
        }
        into.push_back(number);
        return true;
    }
    // The tensor is complete.
    bool keep(ErrorCode& error) {
        if (tensor.type.empty() || !tensor.has_shape || tensor.offsets.size() != 2) {
            return refuse("a tensor lacks its type, shape or place", error);
        }
        const Span span{tensor.offsets[0], tensor.offsets[1]};
        const auto bytes = bytes_of(tensor);
        const bool is_known = bits_of(tensor.type) != 0;
        if (span.end < span.begin || (is_known && bytes != span.end - span.begin)) {
            return refuse("a tensor does not fill its place", error);
        }
        spans.push_back(span);
        types[tensor.type] += span.end - span.begin;
        signs.see(name, tensor.shape);
        return true;
    }

    int depth = 0;
    std::string key{};   // the latest at depth 1 or 2
    std::string name{};  // of the tensor that is read
    bool is_metadata = false;
    Tensor tensor{};
    std::vector<Span> spans{};
    std::vector<std::size_t> names{};  // their hashes
    std::map<std::string, std::uint64_t> types{};
    FamilySigns signs{};
    const char* why = "its head is not the JSON that it should be";
};

}  // namespace

struct SafetensorsReader::State {
    explicit State(std::uint64_t bytes) : file_bytes(bytes) {
        boost::json::parse_options options;
        constexpr std::size_t kDepth = 8;
        options.max_depth = kDepth;
        parser.emplace(options);
    }

    Result<> take_length(std::string_view& bytes) {
        while (length_bytes < kLengthBytes && !bytes.empty()) {
            head_bytes |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes.front()))
                          << (8 * length_bytes++);
            bytes.remove_prefix(1);
        }
        if (length_bytes < kLengthBytes) {
            return {};
        }
        if (head_bytes < 2 || head_bytes > kSafetensorsHeadMax ||
            head_bytes > file_bytes - kLengthBytes) {
            return wrong("its first eight bytes are not the length of a head");
        }
        return {};
    }

    Result<> take_head(std::string_view bytes) {
        if (read == 0 && bytes.front() != '{') {
            return wrong("its head does not begin with {");
        }
        read += bytes.size();
        const bool is_last = read == head_bytes;
        std::size_t used = 0;
        ErrorCode error;
        if (!parser->done()) {
            used = parser->write_some(!is_last, bytes.data(), bytes.size(), error);
        }
        if (error) {
            return wrong(parser->handler().why);
        }
        if (bytes.find_first_not_of(' ', used) != std::string_view::npos) {
            return wrong("something else is behind the JSON of its head");
        }
        return is_last ? finish() : Result<>();
    }

    Result<> finish() {
        Handler& found = parser->handler();
        std::ranges::sort(found.names);
        if (std::ranges::adjacent_find(found.names) != found.names.end()) {
            return wrong("two tensors have one name");
        }
        std::ranges::sort(found.spans);
        std::uint64_t covered = 0;
        for (const Handler::Span& span : found.spans) {
            if (span.begin != covered) {
                return wrong("its tensors overlap or leave holes");
            }
            covered = span.end;
        }
        const std::uint64_t expected = kLengthBytes + head_bytes;
        if (covered > file_bytes - expected || covered + expected != file_bytes) {
            return wrong(
                "its tensors end at byte " + std::to_string(covered) + " of " +
                std::to_string(file_bytes - expected)
            );
        }
        SafetensorsInfo made;
        made.bytes = file_bytes;
        made.tensors = found.spans.size();
        std::uint64_t most = 0;
        for (const auto& [type, bytes] : found.types) {
            if (made.dtype.empty() || bytes > most) {
                made.dtype = type;
                most = bytes;
            }
        }
        made.family = found.signs.judge();
        info = std::move(made);
        parser.reset();  // what it holds is needed no more
        return {};
    }

    const std::uint64_t file_bytes;
    std::size_t length_bytes = 0;  // of the length, that have come
    std::uint64_t head_bytes = 0;
    std::uint64_t read = 0;  // of the head
    std::optional<boost::json::basic_parser<Handler>> parser{};
    std::optional<SafetensorsInfo> info{};
};

SafetensorsReader::SafetensorsReader(std::uint64_t file_bytes)
    : state_(std::make_unique<State>(file_bytes)) {}
SafetensorsReader::~SafetensorsReader() = default;
SafetensorsReader::SafetensorsReader(SafetensorsReader&&) noexcept = default;
SafetensorsReader& SafetensorsReader::operator=(SafetensorsReader&&) noexcept = default;

Result<> SafetensorsReader::put(std::string_view bytes) {
    if (state_->file_bytes < kLengthBytes) {
        return wrong("it is shorter than the length of its head");
    }
    if (state_->length_bytes < kLengthBytes) {
        if (auto taken = state_->take_length(bytes); !taken) {
            return taken;
        }
    }
    if (bytes.empty() || is_done() || state_->length_bytes < kLengthBytes) {
        return {};
    }
    const std::uint64_t left = state_->head_bytes - state_->read;
    return state_->take_head(bytes.substr(0, std::min<std::uint64_t>(left, bytes.size())));
}

bool SafetensorsReader::is_done() const {
    return state_->info.has_value();
}

Result<SafetensorsInfo> SafetensorsReader::info() const {
    if (!state_->info) {
        return wrong("its head is cut off");
    }
    return *state_->info;
}

Result<SafetensorsInfo> read_safetensors(const std::filesystem::path& path) {
    const net::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat about{};
    if (!file || ::fstat(file.number(), &about) != 0 || !S_ISREG(about.st_mode)) {
        return fail(Code::not_found, "there is no such file");
    }
    SafetensorsReader reader(static_cast<std::uint64_t>(about.st_size));
    constexpr std::size_t kReadBytes = 256 * 1024;
    std::string room(kReadBytes, '\0');
    while (!reader.is_done()) {
        const ssize_t count = ::read(file.number(), room.data(), room.size());
        if (count < 0) {
            return disk_error(path, errno);
        }
        if (count == 0) {
            break;
        }
        if (auto put = reader.put({room.data(), static_cast<std::size_t>(count)}); !put) {
            return fail(std::move(put.error()));
        }
    }
    return reader.info();
}

}  // namespace comfyd::models
