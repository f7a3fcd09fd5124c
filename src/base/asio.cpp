// The one translation unit that compiles Boost.Asio's non-template code.
#include <boost/asio/impl/src.hpp>
