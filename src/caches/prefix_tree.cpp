#include "tapehead/caches/prefix_tree.hpp"

#include <algorithm>
#include <iterator>

#include "kernels/require.hpp"

namespace tapehead {

namespace {

using Tokens = std::vector<std::int64_t>;

// Block i of the tokens; what there is of it at their end.
Tokens block_of(const Tokens& tokens, std::int64_t i, std::int64_t block_size) {
  const auto size = static_cast<std::int64_t>(tokens.size());
  return {tokens.begin() + i * block_size, tokens.begin() + std::min((i + 1) * block_size, size)};
}

}  // namespace

template <Floating T> PrefixTree<T>::~PrefixTree() {
  for (std::int64_t block : blocks()) cache_.release(block);
}

template <Floating T> std::vector<std::int64_t> PrefixTree<T>::blocks() const {
  std::vector<std::int64_t> all;
  for (const auto& [key, node] : nodes_) all.push_back(node.block);
  return all;
}

// Down as far as whole blocks agree.
template <Floating T> typename PrefixTree<T>::Path PrefixTree<T>::walk(const Tokens& tokens) {
  const std::int64_t B = cache_.size().block_size, whole = static_cast<std::int64_t>(tokens.size()) / B;
  ++clock_;
  Path path;
  for (std::int64_t i = 0; i < whole; ++i) {
    const auto child = nodes_.find({path.end, block_of(tokens, i, B)});
    if (child == nodes_.end()) break;
    child->second.used = clock_;
    path.end = child->second.number;
    path.blocks.push_back(child->second.block);
  }
  return path;
}

template <Floating T> typename PrefixTree<T>::Match PrefixTree<T>::match(const Tokens& tokens) {
  const std::int64_t B = cache_.size().block_size;
  Path path = walk(tokens);
  std::int64_t length = static_cast<std::int64_t>(path.blocks.size()) * B;

  // Part of the next block may agree too. The child that agrees longest is, in the order of the map, a neighbour
  // of the tokens asked for.
  const Tokens rest = block_of(tokens, static_cast<std::int64_t>(path.blocks.size()), B);
  const auto next = nodes_.lower_bound({path.end, rest});
  Node* longest = nullptr;
  std::int64_t extra = 0;
  const auto consider = [&](auto child) {
    const Tokens& held = child->first.second;
    const auto n = std::mismatch(held.begin(), held.end(), rest.begin(), rest.end()).first - held.begin();
    if (child->first.first == path.end && n > extra) extra = n, longest = &child->second;
  };
  if (next != nodes_.end()) consider(next);
  if (next != nodes_.begin()) consider(std::prev(next));
  if (longest != nullptr) {
    longest->used = clock_, length += extra;
    path.blocks.push_back(longest->block);
  }
  return {cache_.adopt(path.blocks, length), length};
}

template <Floating T> std::int64_t PrefixTree<T>::insert(const Tokens& tokens, std::int64_t sequence) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  require<ValueError>(
      count <= cache_.length(sequence),
      "PrefixTree.insert: {} tokens, and sequence {} holds {}; append the keys and values of them all first", count,
      sequence, cache_.length(sequence));
  const std::int64_t B = cache_.size().block_size, whole = count / B;
  const std::vector<std::int64_t> blocks = cache_.blocks(sequence);
  Path path = walk(tokens);
  const auto first = static_cast<std::int64_t>(path.blocks.size());
  for (std::int64_t i = first; i < whole; ++i) {
    const std::int64_t block = blocks[static_cast<std::size_t>(i)];
    nodes_.emplace(Key{path.end, block_of(tokens, i, B)}, Node{last_number_ + 1, block, clock_});
    cache_.retain(block);
    path.end = ++last_number_;
  }
  return whole - first;
}

template <Floating T> bool PrefixTree<T>::is_leaf(const Node& node) const {
  const auto child = nodes_.lower_bound({node.number, {}});
  return child == nodes_.end() || child->first.first != node.number;
}

template <Floating T> std::int64_t PrefixTree<T>::evict(std::int64_t count) {
  require<ValueError>(count >= 0, "PrefixTree.evict: {} blocks; it must be 0 or more", count);
  for (std::int64_t freed = 0; freed < count; ++freed) {
    auto oldest = nodes_.end();
    for (auto at = nodes_.begin(); at != nodes_.end(); ++at)
      if ((oldest == nodes_.end() || at->second.used < oldest->second.used) && cache_.holders(at->second.block) == 1 &&
          is_leaf(at->second))
        oldest = at;
    if (oldest == nodes_.end()) return freed;
    cache_.release(oldest->second.block);
    nodes_.erase(oldest);
  }
  return count;
}

template class PrefixTree<float>;
template class PrefixTree<double>;

}  // namespace tapehead
