// What most files of this room include, parsed once (base/precompiled.hpp says more).
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>

#include "base/precompiled.hpp"
#include "net/http.hpp"
