// 17  A score function and its derivative                                   (The softmax Jacobian)
//
// Some models change each score before softmax so that none can become too large: with a cap c >
// 0, softcap(s) = c tanh(s / c) is close to s for small scores and never beyond ±c. A fused
// kernel calls such a function for every score. Its backward pass needs the derivative, because
// dS is multiplied by it.
//
// (a) softcap: c tanh(s / c).
// (b) softcap_slope: how fast it changes with s, ∂softcap/∂s.
// (c) softcap_slope_by_cap: how fast it changes with c, ∂softcap/∂c, which is needed to train
//     the cap itself.
#include "exercise.hpp"

double softcap(double s, double c) {
  todo();  // std::tanh
}

double softcap_slope(double s, double c) {
  todo();  // write your code in place of this line
}

double softcap_slope_by_cap(double s, double c) {
  todo();  // write your code in place of this line
}
