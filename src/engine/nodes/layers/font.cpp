#include "engine/nodes/layers/font.hpp"

#include <ft2build.h>
#include FT_FREETYPE_H
#include FT_GLYPH_H
#include FT_STROKER_H

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "engine/nodes/node.hpp"

namespace comfyd::engine::nodes {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFontsSearched = 2000;

std::string find_font() {
    static constexpr std::array<const char*, 5> kPreferred = {
        "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
        "/usr/share/fonts/truetype/liberation/LiberationSans-Regular.ttf",
        "/usr/share/fonts/truetype/roboto/unhinted/RobotoTTF/Roboto-Regular.ttf",
        "/usr/share/fonts/truetype/freefont/FreeSans.ttf",
        "/usr/share/fonts/opentype/noto/NotoSans-Regular.ttf",
    };
    std::error_code error;
    for (const char* path : kPreferred) {
        if (fs::is_regular_file(path, error)) {
            return path;
        }
    }
    std::size_t seen = 0;
    fs::recursive_directory_iterator at("/usr/share/fonts", error);
    for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
        const std::string extension = at->path().extension().string();
        if (++seen > kFontsSearched || extension == ".ttf" || extension == ".otf") {
            return seen > kFontsSearched ? "" : at->path().string();
        }
    }
    return "";
}

// One code point; a byte that is no UTF-8 stands for itself.
std::uint32_t next_code_point(std::string_view& text) {
    const auto lead = static_cast<unsigned char>(text[0]);
    const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    std::uint32_t point = length == 1 ? lead : lead & (0xFFU >> (length + 1));
    std::size_t used = 1;
    for (; used < length && used < text.size(); ++used) {
        point = point << 6 | (static_cast<unsigned char>(text[used]) & 0x3FU);
    }
    text.remove_prefix(used);
    return point;
}

struct FreeGlyph {
    void operator()(FT_Glyph glyph) const { FT_Done_Glyph(glyph); }
};
using Glyph = std::unique_ptr<FT_GlyphRec, FreeGlyph>;

}  // namespace

struct Font::Impl {
    FT_Library library = nullptr;
    FT_Face face = nullptr;

    Impl() = default;
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    ~Impl() {
        if (face != nullptr) {
            FT_Done_Face(face);
        }
        if (library != nullptr) {
            FT_Done_FreeType(library);
        }
    }

    int ascender() const { return static_cast<int>((face->size->metrics.ascender + 63) >> 6); }

    // Calls `visit` with each letter and where its origin is, in 64ths of a pixel.
    void each(std::string_view text, const std::function<void(FT_UInt glyph, FT_Pos at)>& visit)
        const {
        FT_Pos at = 0;
        FT_UInt before = 0;
        while (!text.empty()) {
            const FT_UInt glyph = FT_Get_Char_Index(face, next_code_point(text));
            FT_Vector kerning{};
            if (before != 0 && FT_HAS_KERNING(face)) {
                FT_Get_Kerning(face, before, glyph, FT_KERNING_DEFAULT, &kerning);
            }
            at += kerning.x;
            if (FT_Load_Glyph(face, glyph, FT_LOAD_DEFAULT | FT_LOAD_NO_BITMAP) != 0) {
                continue;
            }
            const FT_Pos advance = face->glyph->metrics.horiAdvance;
            visit(glyph, at);
            at += advance;
            before = glyph;
        }
        visit(0, at);
    }

    // The picture of the letter that was loaded last.
    Glyph rendered(int stroke, FT_Vector origin) const {
        FT_Glyph raw = nullptr;
        if (FT_Get_Glyph(face->glyph, &raw) != 0) {
            return nullptr;
        }
        Glyph glyph(raw);
        if (stroke > 0) {
            FT_Stroker stroker = nullptr;
            if (FT_Stroker_New(library, &stroker) != 0) {
                return nullptr;
            }
            FT_Stroker_Set(
                stroker,
                FT_Fixed{stroke} * 64,
                FT_STROKER_LINECAP_ROUND,
                FT_STROKER_LINEJOIN_ROUND,
                0
            );
            raw = glyph.release();
            const FT_Error error = FT_Glyph_Stroke(&raw, stroker, 1);
            glyph.reset(raw);
            FT_Stroker_Done(stroker);
            if (error != 0) {
                return nullptr;
            }
        }
        raw = glyph.release();
        const FT_Error error = FT_Glyph_To_Bitmap(&raw, FT_RENDER_MODE_NORMAL, &origin, 1);
        glyph.reset(raw);
        return error == 0 ? std::move(glyph) : nullptr;
    }
};

Font::Font(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Font::~Font() = default;
Font::Font(Font&&) noexcept = default;
Font& Font::operator=(Font&&) noexcept = default;

Result<Font> Font::open(int pixels) {
    static const std::string path = find_font();
    auto impl = std::make_unique<Impl>();
    if (path.empty() || FT_Init_FreeType(&impl->library) != 0 ||
        FT_New_Face(impl->library, path.c_str(), 0, &impl->face) != 0 ||
        FT_Set_Pixel_Sizes(impl->face, 0, static_cast<FT_UInt>(std::max(1, pixels))) != 0) {
        return node_error(
            "OSError",
            "This system has no font to draw with: install one, such as fonts-dejavu-core"
        );
    }
    return Font(std::move(impl));
}

double Font::length(std::string_view text) const {
    FT_Pos end = 0;
    impl_->each(text, [&](FT_UInt, FT_Pos at) { end = at; });
    return static_cast<double>(end) / 64.0;
}

Font::Extent Font::extent(std::string_view text, int stroke) const {
    Extent extent{impl_->ascender(), 0};
    draw(text, 0, 0, stroke, [&](int, int y, std::uint8_t) {
        extent.top = std::min(extent.top, y);
        extent.bottom = std::max(extent.bottom, y + 1);
    });
    return extent.bottom == 0 ? Extent{} : extent;
}

void Font::draw(std::string_view text, double x, double y, int stroke, const Paint& paint) const {
    const auto left = static_cast<int>(std::floor(x));
    const auto top = static_cast<int>(std::floor(y));
    const auto fraction = static_cast<FT_Pos>((x - left) * 64.0);
    impl_->each(text, [&](FT_UInt glyph, FT_Pos at) {
        const FT_Pos origin = at + fraction;
        if (glyph == 0) {
            return;
        }
        const Glyph picture = impl_->rendered(stroke, {origin & 63, 0});
        if (!picture) {
            return;
        }
        const auto* bitmap = reinterpret_cast<const FT_BitmapGlyphRec*>(picture.get());
        for (unsigned row = 0; row < bitmap->bitmap.rows; ++row) {
            const unsigned char* from =
                bitmap->bitmap.buffer + std::ptrdiff_t{bitmap->bitmap.pitch} * row;
            for (unsigned column = 0; column < bitmap->bitmap.width; ++column) {
                if (from[column] != 0) {
                    paint(
                        left + static_cast<int>(origin >> 6) + bitmap->left +
                            static_cast<int>(column),
                        top + impl_->ascender() - bitmap->top + static_cast<int>(row),
                        from[column]
                    );
                }
            }
        }
    });
}

}  // namespace comfyd::engine::nodes
