// The one translation unit that compiles Boost.Beast's non-template code.
#include <boost/beast/src.hpp>
