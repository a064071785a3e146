#pragma once
// How the check compares and shows the types of exercise.hpp: part by part.
namespace exercise {

inline std::string word(bool x) { return x ? "true" : "false"; }
inline std::string word(Weights w) {
  return w == Weights::one_hot ? "one_hot" : w == Weights::even ? "even" : "unchanged";
}
inline Parts parts(const Attention<double>& x) { return {{"weights", x.weights}, {"out", x.out}}; }
inline Parts parts(const Symmetric& x) {
  return {{"scores_of_one_input", {}, word(x.scores_of_one_input)},
          {"scores_of_two_matrices", {}, word(x.scores_of_two_matrices)},
          {"scores_of_shared_matrix", {}, word(x.scores_of_shared_matrix)},
          {"weights_of_one_input", {}, word(x.weights_of_one_input)}};
}
inline Parts parts(const Limits& x) {
  return {{"tau_to_zero", {}, word(x.tau_to_zero)}, {"tau_to_infinity", {}, word(x.tau_to_infinity)}};
}
inline Parts parts(const Backward& x) {
  return {{"dV", x.dV}, {"dA", x.dA}, {"dS", x.dS}, {"dQ", x.dQ}, {"dK", x.dK}};
}
inline Parts parts(const Running& x) { return {{"max", scalar(x.max)}, {"sum", scalar(x.sum)}}; }
inline Parts parts(const std::vector<Block>& blocks) {
  Parts all;
  for (const Block& block : blocks) {
    const std::string name = "[" + std::to_string(all.size() / 2) + "].";
    all.push_back({name + "K", block.K}), all.push_back({name + "V", block.V});
  }
  return all;
}
inline Parts parts(const RowGradients& x) { return {{"dq", x.dq}, {"dK", x.dK}, {"dV", x.dV}}; }
inline Parts parts(const std::vector<std::int64_t>& x) {
  std::string text;
  for (const auto n : x) text += (text.empty() ? "" : ", ") + std::to_string(n);
  return {{"", {}, "{" + text + "}"}};
}

}  // namespace exercise
