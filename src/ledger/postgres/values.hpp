// Parameters and results in PostgreSQL's binary form.
//
// PostgreSQL keeps neither a zero byte nor what is not UTF-8 as text, and refuses a whole
// transaction for it. A text that has such is written in hexadecimal digits behind a mark, and read
// back as it was: no caller needs to know.
#pragma once

#include <libpq-fe.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/id.hpp"
#include "base/time.hpp"

namespace comfyd::ledger::postgres {

inline constexpr Oid kInteger = 20;
inline constexpr Oid kIntegers = 1016;
inline constexpr Oid kText = 25;
inline constexpr Oid kTexts = 1009;
inline constexpr Oid kBytes = 17;
inline constexpr Oid kBytesArray = 1001;
inline constexpr Oid kUuid = 2950;
inline constexpr Oid kUuids = 2951;

// Texts as they are stored and read; see above.
bool is_storable(std::string_view text);
std::string make_storable(std::string_view text);
std::optional<std::string> read_stored(std::string_view stored);  // nullopt: it is as it was

void append_integer(std::string& to, std::int64_t value);
void append_length(std::string& to, std::int32_t value);

// To be sent as bytea.
struct Bytes {
    std::string_view value;
};

// One parameter.
struct Value {
    Oid type = kText;
    std::optional<std::string> bytes;  // nullopt: NULL

    template <std::integral T>
    Value(T value) : type(kInteger), bytes(std::in_place) {
        append_integer(*bytes, static_cast<std::int64_t>(value));
    }
    Value(Time value) : Value(to_unix_ms(value)) {}
    Value(Millis value) : Value(value.count()) {}
    Value(std::string_view value) : type(kText), bytes(make_storable(value)) {}
    Value(const std::string& value) : Value(std::string_view(value)) {}
    Value(const char* value) : Value(std::string_view(value)) {}
    Value(Bytes value) : type(kBytes), bytes(value.value) {}
    Value(const Uuid& value)
        : type(kUuid), bytes(std::string(value.bytes.begin(), value.bytes.end())) {}
    template <class Tag>
    Value(const Id<Tag>& value) : Value(value.uuid) {}
    template <class T>
    Value(const std::optional<T>& value) : Value(value ? Value(*value) : Value(null_of<T>())) {}
    Value(Oid of, std::optional<std::string> encoded) : type(of), bytes(std::move(encoded)) {}

private:
    template <class T>
    static Value null_of() {
        if constexpr (std::is_convertible_v<T, std::string_view>) {
            return {kText, std::nullopt};
        } else if constexpr (requires(T id) { id.uuid; } || std::is_same_v<T, Uuid>) {
            return {kUuid, std::nullopt};
        } else {
            return {kInteger, std::nullopt};
        }
    }
};

// A parameter that is an array: one column of the rows that a statement takes by unnest().
class Array {
public:
    explicit Array(Oid element) : element_(element) {}

    template <class T>
    void add(const T& value) {
        if constexpr (std::is_same_v<T, std::string> ||
                      std::is_convertible_v<T, std::string_view>) {
            add_text(value);
        } else {
            add_value(Value(value));
        }
    }
    template <class T>
    void add(const std::optional<T>& value) {
        if (value) {
            add(*value);
        } else {
            add_null();
        }
    }
    void add_null();
    int size() const { return count_; }
    Value value() const;

private:
    void add_text(std::string_view text);
    void add_value(const Value& value);
    void add_bytes(std::string_view bytes);

    Oid element_;
    int count_ = 0;
    bool has_null_ = false;
    std::string body_;
};

class Row;

// What a statement returned.
class Rows {
public:
    Rows() = default;
    explicit Rows(PGresult* result);

    int size() const { return result_ ? PQntuples(result_.get()) : 0; }
    bool empty() const { return size() == 0; }
    Row operator[](int index) const;

    // All rows as `read` reads them, behind what is in `into`.
    template <class Read, class Element>
    Result<std::vector<Element>> all(Read read, std::vector<Element> into) const;
    template <class Read>
    auto all(Read read) const;
    template <class Read>
    auto first(Read read) const
        -> Result<std::optional<typename std::invoke_result_t<Read, const Row&>::value_type>>;

private:
    friend class Row;
    std::shared_ptr<PGresult> result_;
    // Texts that were stored otherwise than they are.
    std::shared_ptr<std::vector<std::unique_ptr<std::string>>> restored_;
};

// Its texts live as long as its Rows.
class Row {
public:
    Row(const Rows& rows, int index) : rows_(&rows), index_(index) {}

    bool is_null(int column) const;
    std::int64_t integer(int column) const;   // 0 for NULL; of any width, also a boolean
    std::string_view text(int column) const;  // empty for NULL
    std::string string(int column) const { return std::string(text(column)); }
    std::string_view bytes(int column) const;
    std::vector<std::int64_t> integers(int column) const;
    Uuid uuid(int column) const;
    Time time(int column) const { return from_unix_ms(integer(column)); }
    std::optional<Time> optional_time(int column) const {
        return is_null(column) ? std::nullopt : std::optional(time(column));
    }

private:
    const Rows* rows_;
    int index_;
};

inline Row Rows::operator[](int index) const {
    return Row(*this, index);
}

template <class Read, class Element>
Result<std::vector<Element>> Rows::all(Read read, std::vector<Element> into) const {
    for (int i = 0; i < size(); ++i) {
        auto value = read((*this)[i]);
        if (!value) {
            return fail(std::move(value.error()));
        }
        into.push_back(std::move(*value));
    }
    return into;
}
template <class Read>
auto Rows::all(Read read) const {
    return all(read, std::vector<typename std::invoke_result_t<Read, const Row&>::value_type>());
}
template <class Read>
auto Rows::first(Read read) const
    -> Result<std::optional<typename std::invoke_result_t<Read, const Row&>::value_type>> {
    if (empty()) {
        return std::nullopt;
    }
    auto value = read((*this)[0]);
    if (!value) {
        return fail(std::move(value.error()));
    }
    return std::move(*value);
}

}  // namespace comfyd::ledger::postgres
