// For the tests of the audit log: a folder of its own, and logs in it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "audit/journal.hpp"

namespace comfyd::audit::test {

namespace fs = std::filesystem;

class LogTest : public testing::Test {
protected:
    LogTest() {
        std::string name = fs::temp_directory_path() / "comfyd-audit-XXXXXX";
        folder_ = ::mkdtemp(name.data());
        options_.folder = folder_ / "log";
        options_.node = "node-a";
        options_.deliver = [this](const std::string& line) { delivered_.push_back(line); };
    }
    ~LogTest() override { fs::remove_all(folder_); }

    static Signer signer(char of = 'k') { return *Signer::make(std::string(32, of)); }

    std::unique_ptr<Journal> open() {
        auto journal = Journal::open(options_, signer(), clock_);
        EXPECT_TRUE(journal) << journal.error().message;
        return journal ? std::move(*journal) : nullptr;
    }
    // So many events, in a process of its own.
    void write(int count) {
        const auto journal = open();
        for (int i = 0; i < count; ++i) {
            journal->record(event("job.create", 201, std::to_string(i)));
        }
        journal->stop();
    }
    Event event(std::string action, int status, std::string object = {}) const {
        Event made;
        made.at = clock_.now();
        made.action = std::move(action);
        made.status = status;
        made.tenant = "acme";
        made.from = "192.0.2.7";
        made.object = std::move(object);
        return made;
    }

    fs::path file() const { return files_in(options_.folder).back(); }
    static std::string read(const fs::path& path) {
        std::ifstream in(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    static std::vector<std::string> lines(const fs::path& path) {
        std::ifstream in(path);
        std::vector<std::string> found;
        for (std::string line; std::getline(in, line);) {
            found.push_back(line);
        }
        return found;
    }
    static void replace(const fs::path& path, const std::vector<std::string>& all) {
        std::ofstream out(path, std::ios::trunc);
        for (const std::string& line : all) {
            out << line << '\n';
        }
    }

    fs::path folder_;
    ManualClock clock_;
    JournalOptions options_;
    std::vector<std::string> delivered_;
};

}  // namespace comfyd::audit::test
