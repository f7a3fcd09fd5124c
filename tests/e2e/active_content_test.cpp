// Somebody uploads a page with a script under every type and name that might make a browser run it
// in our origin, by every route that takes files, and asks for it back by every route that sends
// them.
#include <algorithm>

#include "tenants_support.hpp"

namespace comfyd::support {
namespace {

const std::string kPage = "<!doctype html><script>fetch('/api/v2/jobs')</script>";

// What a browser makes of the header: the last one of a list, without its parameters.
std::string seen_by_browser(std::string_view header) {
    std::string type(header.substr(0, header.find(';')));
    type = type.substr(std::min(type.find_last_of(',') + 1, type.size()));
    std::erase(type, ' ');
    std::ranges::transform(type, type.begin(), [](unsigned char c) { return std::tolower(c); });
    return type;
}

class ActiveContent : public TwoTenants {
protected:
    // It is no page and no script there; whatever it is, only its type decides.
    static void expect_harmless(const Reply& reply, const std::string& what) {
        ASSERT_EQ(reply.status, 200) << what << reply.body;
        EXPECT_EQ(reply.headers.get("X-Content-Type-Options"), "nosniff") << what;
        EXPECT_FALSE(reply.headers.contains("Set-Cookie")) << what;
        EXPECT_FALSE(reply.headers.contains("X-Evil")) << what;
        const std::string type = seen_by_browser(reply.headers.get("Content-Type"));
        const bool is_run = type == "text/html" || type.ends_with("xml") ||
                            type.find("script") != std::string::npos || type.find('/') == type.npos;
        const bool is_saved = reply.headers.get("Content-Disposition").starts_with("attachment");
        EXPECT_TRUE(!is_run || is_saved) << what << ": " << reply.headers.get("Content-Type");
        EXPECT_EQ(reply.body, kPage) << what;
    }

    const std::vector<std::string> types_{
        "text/html",
        "text/html; charset=utf-8",
        "TEXT/HTML",
        "image/png,text/html",
        "image/png, text/html",
        "text/html,image/png",
        "text/html ;x",
        " text/html",
        "text/html\t",
        "image/svg+xml",
        "application/xhtml+xml",
        "text/xml",
        "text/javascript",
        "multipart/x-mixed-replace; boundary=x",
        "html",
        "*/*",
        "image/png\"",
        "image/png; a=\"\\\"; text/html",
    };
    const std::vector<std::string> names_{"x", "x.bin", "x.png", "x.html", "x.svg", "x.xhtml"};
};
INSTANTIATE_TEST_SUITE_P(, ActiveContent, testing::Values(WorkerKind::engine), name_of);

TEST_P(ActiveContent, IsNotRunWhereAssetsAreSent) {
    for (const std::string& type : types_) {
        for (const std::string& name : names_) {
            const std::string what = type + " as " + name;
            const Reply made = red_->upload("/api/v2/assets", {{"file", name, type, kPage}});
            // 200: the same bytes are there already.
            ASSERT_TRUE(made.status == 201 || made.status == 200) << what << made.body;
            std::string link(made.json_at("/url").as_string());
            link.erase(0, comfyd_->url().size());
            const std::string id(made.json_at("/id").as_string());
            expect_harmless(red_->get(link), what);
            const Reply shown = red_->get("/api/v2/assets/" + id + "/content");
            expect_harmless(shown, what);
            EXPECT_EQ(shown.headers.get("Content-Security-Policy"), "sandbox; default-src 'none'");
            EXPECT_EQ(blue_->get("/api/v2/assets/" + id + "/content").status, 404);
        }
    }
}

TEST_P(ActiveContent, IsNotRunWhereComfyUisFilesAreShown) {
    for (const std::string& type : types_) {
        for (const std::string& name : names_) {
            const std::string what = type + " as " + name;
            const Reply made = red_->upload("/upload/image", {{"image", name, type, kPage}});
            ASSERT_EQ(made.status, 200) << what << made.body;
            const std::string kept(made.json_at("/name").as_string());
            const std::string path = "/view?type=input&filename=" + net::percent_encode(kept);
            expect_harmless(red_->get(path), what);
            EXPECT_EQ(blue_->get(path).status, 404);
        }
    }
}

TEST_P(ActiveContent, ATypeThatIsSaidToBeOneMustBeOne) {
    for (const char* type : {"image/png,text/html", "html", "text/html\r\nX-Evil: 1", "a/b;c"}) {
        const Reply refused = red_->upload(
            "/api/v2/assets", {{"file", "x", "", kPage}, {"content_type", std::nullopt, "", type}}
        );
        EXPECT_EQ(refused.status, 422) << type << refused.body;
    }
}

}  // namespace
}  // namespace comfyd::support
