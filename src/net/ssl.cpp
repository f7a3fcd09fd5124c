// The one translation unit that compiles Boost.Asio's non-template TLS code.
#include <boost/asio/ssl/impl/src.hpp>
