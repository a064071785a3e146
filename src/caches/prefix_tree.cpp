#include "tapehead/caches/prefix_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "tapehead/kernels/error.hpp"

namespace tapehead {

namespace {

using Tokens = std::vector<std::int64_t>;

// How many of the tokens from `a_at` and `b_at` on agree.
std::int64_t agreeing(const Tokens& a, std::int64_t a_at, const Tokens& b, std::int64_t b_at) {
  const auto first = a.begin() + a_at;
  return std::mismatch(first, a.end(), b.begin() + b_at, b.end()).first - first;
}

Tokens part(const Tokens& tokens, std::int64_t begin, std::int64_t end) {
  return {tokens.begin() + begin, tokens.begin() + end};
}

}  // namespace

// A stack of nodes instead of recursion: a long dialogue makes a deep tree.
template <std::floating_point T>
template <class F>
void PrefixTree<T>::each_node(const F& f) const {
  std::vector<const Node*> open{&root_};
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (const auto& child : node->children) open.push_back(child.second.get());
    f(*node);
  }
}

template <std::floating_point T>
PrefixTree<T>::~PrefixTree() {
  for (std::int64_t block : blocks()) cache_.release(block);
  std::vector<std::unique_ptr<Node>> open;
  const auto take_children = [&open](Node& node) {
    for (auto& child : node.children) open.push_back(std::move(child.second));
  };
  take_children(root_);
  while (!open.empty()) {
    const std::unique_ptr<Node> node = std::move(open.back());
    open.pop_back();
    take_children(*node);
  }
}

template <std::floating_point T>
std::vector<std::int64_t> PrefixTree<T>::blocks() const {
  std::vector<std::int64_t> all;
  each_node([&all](const Node& node) { all.insert(all.end(), node.blocks.begin(), node.blocks.end()); });
  return all;
}

// Down as far as whole blocks agree.
template <std::floating_point T>
typename PrefixTree<T>::Place PrefixTree<T>::walk(const Tokens& tokens) {
  const std::int64_t B = cache_.size().block_size, all = static_cast<std::int64_t>(tokens.size());
  ++clock_;
  Place at{&root_, 0, 0};
  while (at.length + B <= all) {
    const auto child = at.node->children.find(part(tokens, at.length, at.length + B));
    if (child == at.node->children.end()) break;
    at.node = child->second.get();
    at.node->used = clock_;
    at.blocks = agreeing(at.node->tokens, 0, tokens, at.length) / B;
    at.length += at.blocks * B;
    if (at.blocks < static_cast<std::int64_t>(at.node->blocks.size())) break;
  }
  return at;
}

template <std::floating_point T>
typename PrefixTree<T>::Match PrefixTree<T>::match(const Tokens& tokens) {
  const std::int64_t B = cache_.size().block_size;
  const Place at = walk(tokens);

  // The next block may agree in part: the rest of this node's run, or of the children the one that agrees
  // longest, which in the order of the map is a neighbour of what is asked for.
  std::int64_t extra = 0, extra_block = -1;
  const auto consider = [&](const Node& node, std::int64_t block) {
    const std::int64_t n = std::min(B, agreeing(node.tokens, block * B, tokens, at.length));
    if (n > extra) extra = n, extra_block = node.blocks[static_cast<std::size_t>(block)];
  };
  if (at.blocks < static_cast<std::int64_t>(at.node->blocks.size())) {
    consider(*at.node, at.blocks);
  } else {
    const auto& children = at.node->children;
    const auto next = children.lower_bound(part(tokens, at.length, static_cast<std::int64_t>(tokens.size())));
    if (next != children.end()) consider(*next->second, 0);
    if (next != children.begin()) consider(*std::prev(next)->second, 0);
  }

  std::vector<std::int64_t> shared;
  for (const Node *node = at.node, *below = nullptr; node != &root_; below = node, node = node->parent) {
    const auto end = below == nullptr ? node->blocks.begin() + at.blocks : node->blocks.end();
    shared.insert(shared.begin(), node->blocks.begin(), end);
  }
  if (extra > 0) shared.push_back(extra_block);
  return {cache_.adopt(shared, at.length + extra), at.length + extra};
}

template <std::floating_point T>
std::int64_t PrefixTree<T>::insert(const Tokens& tokens, std::int64_t sequence) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  if (count > cache_.length(sequence))
    throw ValueError(
        fmt::format("PrefixTree.insert: {} tokens, and sequence {} holds {}; append the keys and values of "
                    "them all first",
                    count, sequence, cache_.length(sequence)));
  const std::int64_t B = cache_.size().block_size, whole = count / B;
  const Place at = walk(tokens);
  const std::int64_t added = whole - at.length / B;
  if (added == 0) return 0;

  const auto& blocks = cache_.blocks(sequence);
  const std::vector<std::int64_t> new_blocks(blocks.begin() + at.length / B, blocks.begin() + whole);
  const Tokens new_tokens = part(tokens, at.length, whole * B);
  Node* above = at.node == &root_ || at.blocks == static_cast<std::int64_t>(at.node->blocks.size())
                    ? at.node
                    : split(at.node, at.blocks);
  if (above != &root_ && above->children.empty()) {  // nothing parts here: the run grows
    above->tokens.insert(above->tokens.end(), new_tokens.begin(), new_tokens.end());
    above->blocks.insert(above->blocks.end(), new_blocks.begin(), new_blocks.end());
  } else {
    auto leaf = std::make_unique<Node>();
    leaf->tokens = new_tokens, leaf->blocks = new_blocks, leaf->parent = above, leaf->used = clock_;
    above->children.emplace(part(new_tokens, 0, B), std::move(leaf));
  }
  for (std::int64_t block : new_blocks) cache_.retain(block);
  return added;
}

// The node keeps its first blocks; the rest, with all below it, becomes its only child.
template <std::floating_point T>
typename PrefixTree<T>::Node* PrefixTree<T>::split(Node* node, std::int64_t blocks) {
  const std::int64_t B = cache_.size().block_size;
  auto rest = std::make_unique<Node>();
  rest->tokens = part(node->tokens, blocks * B, static_cast<std::int64_t>(node->tokens.size()));
  rest->blocks.assign(node->blocks.begin() + blocks, node->blocks.end());
  rest->parent = node, rest->used = node->used;
  rest->children = std::move(node->children);
  for (auto& child : rest->children) child.second->parent = rest.get();
  node->tokens.resize(static_cast<std::size_t>(blocks * B));
  node->blocks.resize(static_cast<std::size_t>(blocks));
  node->children.clear();
  Tokens key = part(rest->tokens, 0, B);
  node->children.emplace(std::move(key), std::move(rest));
  return node;
}

template <std::floating_point T>
typename PrefixTree<T>::Node* PrefixTree<T>::least_recent_unused() {
  const Node* found = nullptr;
  each_node([&](const Node& node) {
    if (&node == &root_ || !node.children.empty() || cache_.holders(node.blocks.back()) > 1) return;
    if (found == nullptr || node.used < found->used) found = &node;
  });
  return const_cast<Node*>(found);
}

template <std::floating_point T>
void PrefixTree<T>::remove(Node* leaf) {
  leaf->parent->children.erase(part(leaf->tokens, 0, cache_.size().block_size));
}

template <std::floating_point T>
std::int64_t PrefixTree<T>::evict(std::int64_t count) {
  const auto B = static_cast<std::size_t>(cache_.size().block_size);
  std::int64_t freed = 0;
  while (freed < count) {
    Node* leaf = least_recent_unused();
    if (leaf == nullptr) break;
    for (; freed < count && !leaf->blocks.empty() && cache_.holders(leaf->blocks.back()) == 1; ++freed) {
      cache_.release(leaf->blocks.back());
      leaf->blocks.pop_back();
      if (!leaf->blocks.empty()) leaf->tokens.resize(leaf->blocks.size() * B);
    }
    if (leaf->blocks.empty()) remove(leaf);
  }
  return freed;
}

template class PrefixTree<float>;
template class PrefixTree<double>;

}  // namespace tapehead
