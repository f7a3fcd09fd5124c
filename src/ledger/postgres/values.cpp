#include "ledger/postgres/values.hpp"

#include <cstring>
#include <utility>

namespace comfyd::ledger::postgres {
namespace {

// U+10FFFF, which is no character and which nobody writes.
constexpr std::string_view kMark = "\xF4\x8F\xBF\xBF";
constexpr std::string_view kDigits = "0123456789abcdef";

// How long the UTF-8 sequence at the beginning is; 0: it is none.
std::size_t sequence_length(std::string_view text) {
    const auto byte = [&text](std::size_t i) {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
    };
    const auto goes_on = [&byte](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
    const unsigned first = byte(0);
    if (first < 0x80U) {
        return first == 0 ? 0 : 1;
    }
    if (first >= 0xC2U && first <= 0xDFU) {
        return goes_on(1) ? 2 : 0;
    }
    if (first >= 0xE0U && first <= 0xEFU) {
        const bool is_overlong = first == 0xE0U && byte(1) < 0xA0U;
        const bool is_surrogate = first == 0xEDU && byte(1) >= 0xA0U;
        return goes_on(1) && goes_on(2) && !is_overlong && !is_surrogate ? 3 : 0;
    }
    if (first >= 0xF0U && first <= 0xF4U) {
        const bool is_overlong = first == 0xF0U && byte(1) < 0x90U;
        const bool is_beyond = first == 0xF4U && byte(1) >= 0x90U;
        return goes_on(1) && goes_on(2) && goes_on(3) && !is_overlong && !is_beyond ? 4 : 0;
    }
    return 0;
}

// Eight at a time: most texts are ASCII throughout.
std::size_t ascii_length(std::string_view text) {
    constexpr std::uint64_t kHigh = 0x8080808080808080ULL;
    constexpr std::uint64_t kOnes = 0x0101010101010101ULL;
    std::size_t at = 0;
    for (; at + 8 <= text.size(); at += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, text.data() + at, sizeof word);
        const std::uint64_t zeros = (word - kOnes) & ~word & kHigh;
        if ((word & kHigh) != 0 || zeros != 0) {
            break;
        }
    }
    return at;
}

template <class T>
T read_big_endian(const char* from) {
    std::make_unsigned_t<T> value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
        value =
            static_cast<std::make_unsigned_t<T>>(value << 8U) | static_cast<unsigned char>(from[i]);
    }
    return static_cast<T>(value);
}

}  // namespace

bool is_storable(std::string_view text) {
    if (text.starts_with(kMark)) {
        return false;
    }
    while (!text.empty()) {
        text.remove_prefix(ascii_length(text));
        if (text.empty()) {
            return true;
        }
        const std::size_t length = sequence_length(text);
        if (length == 0) {
            return false;
        }
        text.remove_prefix(length);
    }
    return true;
}

std::string make_storable(std::string_view text) {
    if (is_storable(text)) {
        return std::string(text);
    }
    std::string stored(kMark);
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        stored += kDigits[byte >> 4U];
        stored += kDigits[byte & 0xFU];
    }
    return stored;
}

std::optional<std::string> read_stored(std::string_view stored) {
    if (!stored.starts_with(kMark)) {
        return std::nullopt;
    }
    stored.remove_prefix(kMark.size());
    std::string text;
    for (std::size_t i = 0; i + 1 < stored.size(); i += 2) {
        const auto high = kDigits.find(stored[i]);
        const auto low = kDigits.find(stored[i + 1]);
        text += static_cast<char>(high * 16 + low);
    }
    return text;
}

void append_integer(std::string& to, std::int64_t value) {
    for (int shift = 56; shift >= 0; shift -= 8) {
        to += static_cast<char>(static_cast<std::uint64_t>(value) >> static_cast<unsigned>(shift));
    }
}

void append_length(std::string& to, std::int32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) {
        to += static_cast<char>(static_cast<std::uint32_t>(value) >> static_cast<unsigned>(shift));
    }
}

void Array::add_null() {
    append_length(body_, -1);
    has_null_ = true;
    ++count_;
}

void Array::add_text(std::string_view text) {
    if (element_ == kBytes || is_storable(text)) {
        add_bytes(text);
    } else {
        add_bytes(make_storable(text));
    }
}

void Array::add_value(const Value& value) {
    if (value.bytes) {
        add_bytes(*value.bytes);
    } else {
        add_null();
    }
}

void Array::add_bytes(std::string_view bytes) {
    append_length(body_, static_cast<std::int32_t>(bytes.size()));
    body_ += bytes;
    ++count_;
}

Value Array::value() const {
    const Oid type = element_ == kUuid      ? kUuids
                     : element_ == kText    ? kTexts
                     : element_ == kInteger ? kIntegers
                                            : kBytesArray;
    std::string encoded;
    encoded.reserve(body_.size() + 20);
    append_length(encoded, count_ > 0 ? 1 : 0);  // dimensions
    append_length(encoded, has_null_ ? 1 : 0);
    append_length(encoded, static_cast<std::int32_t>(element_));
    if (count_ > 0) {
        append_length(encoded, count_);
        append_length(encoded, 1);  // the number of the first
    }
    encoded += body_;
    return {type, std::move(encoded)};
}

Rows::Rows(PGresult* result)
    : result_(result, PQclear),
      restored_(std::make_shared<std::vector<std::unique_ptr<std::string>>>()) {}

bool Row::is_null(int column) const {
    return PQgetisnull(rows_->result_.get(), index_, column) != 0;
}

std::string_view Row::bytes(int column) const {
    if (is_null(column)) {
        return {};
    }
    const PGresult* result = rows_->result_.get();
    return {
        PQgetvalue(result, index_, column),
        static_cast<std::size_t>(PQgetlength(result, index_, column))
    };
}

std::int64_t Row::integer(int column) const {
    const std::string_view value = bytes(column);
    switch (value.size()) {
        case 1:
            return value[0];
        case 2:
            return read_big_endian<std::int16_t>(value.data());
        case 4:
            return read_big_endian<std::int32_t>(value.data());
        case 8:
            return read_big_endian<std::int64_t>(value.data());
        default:
            return 0;
    }
}

std::string_view Row::text(int column) const {
    const std::string_view value = bytes(column);
    auto restored = read_stored(value);
    if (!restored) {
        return value;
    }
    auto& kept = *rows_->restored_;
    kept.push_back(std::make_unique<std::string>(std::move(*restored)));
    return *kept.back();
}

std::vector<std::int64_t> Row::integers(int column) const {
    constexpr std::size_t kHead = 20;
    constexpr std::size_t kElement = 12;  // its length and eight bytes
    std::vector<std::int64_t> values;
    const std::string_view value = bytes(column);
    for (std::size_t at = kHead; at + kElement <= value.size(); at += kElement) {
        values.push_back(read_big_endian<std::int64_t>(value.data() + at + 4));
    }
    return values;
}

Uuid Row::uuid(int column) const {
    Uuid uuid;
    const std::string_view value = bytes(column);
    if (value.size() == uuid.bytes.size()) {
        std::memcpy(uuid.bytes.data(), value.data(), value.size());
    }
    return uuid;
}

}  // namespace comfyd::ledger::postgres
