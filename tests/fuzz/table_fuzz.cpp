// Tables of parameter sets: the same file in one piece and byte by byte must give the same rows, or
// be refused both times.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "bulk/rows.hpp"

namespace {

using namespace comfyd;

std::string read(bulk::RowFormat format, std::string_view file, std::size_t piece) {
    const auto reader = bulk::make_row_reader(format);
    bulk::Rows rows;
    for (std::size_t at = 0; at < file.size(); at += piece) {
        if (auto fed = reader->feed(file.substr(at, piece), rows); !fed) {
            return "! " + fed.error().message;
        }
    }
    if (auto finished = reader->finish(rows); !finished) {
        return "! " + finished.error().message;
    }
    std::string all;
    for (const bulk::Row& row : rows) {
        all += std::to_string(row.record) + "/" + std::to_string(row.line) +
               json::serialize(row.values) + "\n";
    }
    return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view file(reinterpret_cast<const char*>(data), size);
    for (const auto format :
         {bulk::RowFormat::csv, bulk::RowFormat::jsonl, bulk::RowFormat::json}) {
        if (read(format, file, size + 1) != read(format, file, 1)) {
            std::abort();
        }
    }
    return 0;
}
