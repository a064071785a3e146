#include "files/inflate.hpp"

#include <algorithm>

namespace tapehead::detail {

namespace {

// The stream as bits, the lowest of each byte first.
class Bits {
 public:
  explicit Bits(const Span& stream) : stream_(stream) {}
  [[noreturn]] void damaged() const { stream_.source().fail("compressed data is damaged"); }

  std::uint32_t take(int count) {
    while (held_ < count) {
      hold_ |= static_cast<std::uint32_t>(next_byte()) << held_;
      held_ += 8;
    }
    const std::uint32_t bits = hold_ & ((1u << count) - 1);
    hold_ >>= count;
    held_ -= count;
    return bits;
  }
  void skip_to_byte() { hold_ = 0, held_ = 0; }  // never more than 7 bits are held between calls
  Byte next_byte() {
    if (at_ == stream_.size()) stream_.source().fail("compressed data is cut short");
    return stream_.bytes()[at_++];
  }

 private:
  const Span& stream_;
  std::size_t at_ = 0;
  std::uint32_t hold_ = 0;
  int held_ = 0;
};

// A canonical Huffman code, which the lengths of its words determine: words of one length are consecutive
// numbers, in the order of their symbols, and follow on from the shorter ones.
class Code {
 public:
  Code(const Bits& bits, const std::uint8_t* lengths, int symbols) {
    for (int s = 0; s < symbols; ++s) ++count_[lengths[s]];
    count_[0] = 0;
    int room = 1, start[16] = {};
    for (int length = 1; length < 16; ++length) {
      room = 2 * room - count_[length];
      if (room < 0) bits.damaged();  // more words than their lengths allow
      if (length < 15) start[length + 1] = start[length] + count_[length];
    }
    for (int s = 0; s < symbols; ++s)
      if (lengths[s] != 0) symbol_[start[lengths[s]]++] = static_cast<std::uint16_t>(s);
  }
  int next(Bits& bits) const {
    int word = 0, first = 0,
        shorter = 0;  // the first word of this length; how many symbols have shorter ones
    for (int length = 1; length < 16; ++length) {
      word |= static_cast<int>(bits.take(1));
      if (word - first < count_[length]) return symbol_[shorter + word - first];
      shorter += count_[length];
      first = 2 * (first + count_[length]);
      word *= 2;
    }
    bits.damaged();
  }

 private:
  int count_[16] = {};
  std::uint16_t symbol_[288] = {};
};

struct Codes {
  Code literals, distances;
};

Codes fixed_codes(const Bits& bits) {
  std::uint8_t lengths[288], distances[30];
  for (int s = 0; s < 288; ++s) lengths[s] = s < 144 ? 8 : s < 256 ? 9 : s < 280 ? 7 : 8;
  std::fill_n(distances, 30, std::uint8_t{5});
  return {Code(bits, lengths, 288), Code(bits, distances, 30)};
}

// The codes of a block, themselves coded: lengths of words, with runs of a repeated one (16) and of zeros
// (17, 18).
Codes coded_codes(Bits& bits) {
  const int literals = static_cast<int>(bits.take(5)) + 257, distances = static_cast<int>(bits.take(5)) + 1;
  const int coded = static_cast<int>(bits.take(4)) + 4;
  if (literals > 286 || distances > 30) bits.damaged();
  static constexpr std::uint8_t order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                             11, 4,  12, 3, 13, 2, 14, 1, 15};
  std::uint8_t lengths[286 + 30] = {}, own[19] = {};
  for (int i = 0; i < coded; ++i) own[order[i]] = static_cast<std::uint8_t>(bits.take(3));
  const Code code(bits, own, 19);
  for (int i = 0; i < literals + distances;) {
    const int symbol = code.next(bits);
    int times = 1, length = symbol < 16 ? symbol : 0;
    if (symbol == 16) {
      if (i == 0) bits.damaged();
      length = lengths[i - 1], times = 3 + static_cast<int>(bits.take(2));
    } else if (symbol > 16) {
      times = symbol == 17 ? 3 + static_cast<int>(bits.take(3)) : 11 + static_cast<int>(bits.take(7));
    }
    if (times > literals + distances - i) bits.damaged();
    std::fill_n(lengths + i, times, static_cast<std::uint8_t>(length));
    i += times;
  }
  return {Code(bits, lengths, literals), Code(bits, lengths + literals, distances)};
}

void stored_block(Bits& bits, Bytes& out, std::uint64_t limit) {
  bits.skip_to_byte();
  const std::uint32_t length = bits.take(16), check = bits.take(16);
  if (length != (check ^ 0xffff)) bits.damaged();
  for (std::uint32_t i = 0; i < length && out.size() < limit; ++i) out.push_back(bits.next_byte());
}

void coded_block(Bits& bits, const Codes& codes, Bytes& out, std::uint64_t limit) {
  static constexpr int length_start[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                           31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
  static constexpr int length_bits[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                          2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
  while (out.size() < limit) {
    const int symbol = codes.literals.next(bits);
    if (symbol == 256) return;
    if (symbol < 256) {
      out.push_back(static_cast<Byte>(symbol));
      continue;
    }
    if (symbol > 285) bits.damaged();
    const int length = length_start[symbol - 257] + static_cast<int>(bits.take(length_bits[symbol - 257]));
    const int code = codes.distances.next(bits);
    const int extra =
        code < 4 ? 0 : code / 2 - 1;  // distances 1 2 3 4, then two codes for each number of extra bits
    const int start = code < 4 ? code + 1 : ((2 + code % 2) << extra) + 1;
    const auto distance = static_cast<std::size_t>(start) + bits.take(extra);
    if (distance > out.size()) bits.damaged();
    for (int i = 0; i < length; ++i) out.push_back(out[out.size() - distance]);
  }
}

}  // namespace

Bytes inflate(const Span& stream, std::uint64_t limit) {
  Bits bits(stream);
  Bytes out;
  for (bool last = false; !last && out.size() < limit;) {
    last = bits.take(1) != 0;
    const std::uint32_t kind = bits.take(2);
    if (kind == 0)
      stored_block(bits, out, limit);
    else if (kind == 1)
      coded_block(bits, fixed_codes(bits), out, limit);
    else if (kind == 2)
      coded_block(bits, coded_codes(bits), out, limit);
    else
      bits.damaged();
  }
  return out;
}

}  // namespace tapehead::detail
