#pragma once
#include "files/file_bytes.hpp"

namespace tapehead::detail {

/// What a deflate stream (RFC 1951) holds, but no more than about `limit` bytes of it: memory grows with what
/// has really come out. Fails where the stream is damaged or cut short.
Bytes inflate(const Span& stream, std::uint64_t limit);

}  // namespace tapehead::detail
