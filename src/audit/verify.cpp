#include "audit/verify.hpp"

#include <fstream>
#include <functional>
#include <optional>
#include <utility>

#include "audit/signing.hpp"

namespace comfyd::audit {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFindingsMax = 50;

class Reader {
public:
    explicit Reader(const VerifyOptions& options) : options_(options) {}

    Result<Verdict> read() {
        for (const fs::path& file : options_.files) {
            if (auto done = read_lines(file, [&](auto text, bool ends) { look_at(text, ends); });
                !done) {
                return fail(std::move(done.error()));
            }
        }
        if (!options_.checkpoints.empty()) {
            auto compared =
                read_lines(options_.checkpoints, [&](auto text, bool) { compare(text); });
            if (!compared) {
                return fail(std::move(compared.error()));
            }
        }
        return std::move(verdict_);
    }

private:
    // `take`: a line, and whether its end is there.
    Result<> read_lines(
        const fs::path& file, const std::function<void(const std::string&, bool)>& take
    ) {
        std::ifstream in(file, std::ios::binary);
        if (!in) {
            return fail(Code::not_found, "cannot read '" + file.string() + "'");
        }
        std::string text;
        for (where_line_ = 1; std::getline(in, text); ++where_line_) {
            where_ = file.string() + ":" + std::to_string(where_line_);
            take(text, !in.eof());
        }
        return {};
    }

    void find(const std::string& what) {
        ++verdict_.findings_count;
        if (verdict_.findings.size() < kFindingsMax) {
            verdict_.findings.push_back(where_ + ": " + what);
        }
    }

    void look_at(const std::string& text, bool ends) {
        const auto line = read_line(text);
        if (!line || !ends) {
            if (!ends) {
                verdict_.remarks.push_back(
                    where_ + ": the last line is torn: comfyd was ended while it wrote it, or " +
                    "writes it now"
                );
            } else {
                find("this is no line of an audit log");
            }
            return;
        }
        ++verdict_.lines;
        if (!line->is_whole) {
            find("line " + std::to_string(line->seq) + " was changed: its hash is another");
        }
        look_at_place(*line);
        last_ = Link{line->seq, line->hash};
        hashes_[line->seq] = line->hash;
        verdict_.first_seq = verdict_.lines == 1 ? line->seq : verdict_.first_seq;
        verdict_.last_seq = line->seq;
        verdict_.last_time = text_of(*line, "time");
        verdict_.first_time = verdict_.lines == 1 ? verdict_.last_time : verdict_.first_time;
        const std::string action = text_of(*line, "action");
        if (action == kCheckpoint) {
            look_at_checkpoint(*line);
        } else if (action == "audit.lost" || action == "audit.torn") {
            verdict_.remarks.push_back(where_ + ": " + action + " " + text);
        }
    }

    void look_at_place(const Line& line) {
        const std::string seq = std::to_string(line.seq);
        if (!last_) {
            if (line.seq == 1 && line.prev != Link().hash) {
                find("line 1 is not the first of its chain");
            }
            return;
        }
        if (line.seq == 1 && line.prev == Link().hash) {
            find("a new chain begins: nothing ties it to line " + std::to_string(last_->seq));
        } else if (line.seq > last_->seq + 1) {
            const std::string first = std::to_string(last_->seq + 1);
            const std::string end = std::to_string(line.seq - 1);
            find(
                first == end ? "line " + first + " is missing"
                             : "lines " + first + " to " + end + " are missing"
            );
        } else if (line.seq <= last_->seq) {
            find(
                "line " + seq + " comes after line " + std::to_string(last_->seq) +
                ": it was inserted or moved"
            );
        } else if (line.prev != last_->hash) {
            find("line " + seq + " follows another line than the one before it");
        }
    }

    void look_at_checkpoint(const Line& line) {
        const std::string key = text_of(line, "public_key");
        const std::string text =
            sealed_text(text_of(line, "time"), text_of(line, "node"), {line.seq - 1, line.prev});
        if (!is_signed_by(key, text, text_of(line, "signature"))) {
            find("the signature of checkpoint " + std::to_string(line.seq) + " is not good");
            return;
        }
        if (!options_.public_key.empty() && key != options_.public_key) {
            find("checkpoint " + std::to_string(line.seq) + " was signed with another key, " + key);
            return;
        }
        ++verdict_.checkpoints;
        verdict_.sealed_seq = line.seq;
        verdict_.keys.insert(key);
    }

    // A checkpoint that was kept elsewhere, with the log.
    void compare(const std::string& text) {
        const auto line = read_line(text);
        if (!line || text_of(*line, "action") != kCheckpoint) {
            if (!text.empty()) {
                find("this is no checkpoint");
            }
            return;
        }
        ++verdict_.kept_elsewhere;
        const std::string seq = std::to_string(line->seq);
        const auto here = hashes_.find(line->seq);
        if (line->seq < verdict_.first_seq) {
            return;  // of a file that is not looked at
        }
        if (here == hashes_.end()) {
            find(
                "checkpoint " + seq + " of " + text_of(*line, "time") +
                " is not in the log: its end was cut off, or it is of another log"
            );
        } else if (here->second != line->hash) {
            find("the log has another line in place of checkpoint " + seq + ": it was rewritten");
        }
    }

    const VerifyOptions& options_;
    Verdict verdict_;
    std::optional<Link> last_;
    std::map<std::uint64_t, std::string> hashes_;
    std::string where_;
    std::uint64_t where_line_ = 0;
};

}  // namespace

Result<Verdict> verify(const VerifyOptions& options) {
    return Reader(options).read();
}

}  // namespace comfyd::audit
