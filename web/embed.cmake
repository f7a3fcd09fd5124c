# Makes one C++ file of the dashboard's page, bundle and icon:
#   cmake -DBUNDLE=FOLDER -DPAGE=FILE -DICON=FILE -DTO=FILE -P embed.cmake
# A file's name has the hash of its content, so browsers may keep it for ever; the page, which has none, names them.
set(arrays "")
set(table "")

macro(embed variable name type hash hex)
  # In lines: compilers are slow with very long ones.
  string(REGEX REPLACE "(................................................................)" "\\1\n" lines "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${lines}")
  string(APPEND arrays "constexpr unsigned char ${variable}[] = {\n${bytes}\n};\n")
  string(APPEND table "    {\"${name}\", \"${type}\", \"${hash}\", text_of(${variable})},\n")
endmacro()

macro(embed_file variable path type)
  file(READ ${path} hex HEX)
  file(SHA256 ${path} hash)
  string(SUBSTRING ${hash} 0 16 hash)
  get_filename_component(stem ${path} NAME_WE)
  get_filename_component(extension ${path} EXT)
  embed(${variable} ${stem}-${hash}${extension} "${type}" ${hash} "${hex}")
  string(REPLACE "{{${variable}}}" "/ui/assets/${stem}-${hash}${extension}" page "${page}")
endmacro()

file(READ ${PAGE} page)
embed_file(script ${BUNDLE}/app.js "text/javascript; charset=utf-8")
embed_file(style ${BUNDLE}/app.css "text/css; charset=utf-8")
embed_file(icon ${ICON} "image/svg+xml")
string(SHA256 hash "${page}")
string(SUBSTRING ${hash} 0 16 hash)
string(HEX "${page}" hex)
embed(page index.html "text/html; charset=utf-8" ${hash} "${hex}")

file(WRITE ${TO} "// Made by web/embed.cmake.
#include \"api/dashboard.hpp\"

namespace comfyd::api {
namespace {

${arrays}
template <std::size_t size>
std::string_view text_of(const unsigned char (&bytes)[size]) {
    return {reinterpret_cast<const char*>(bytes), size};
}

const DashboardFile kFiles[] = {
${table}};

}  // namespace

const std::span<const DashboardFile> kDashboardFiles(kFiles);

}  // namespace comfyd::api
")
