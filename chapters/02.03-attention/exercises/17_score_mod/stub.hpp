// 17  A score function and its derivative                                    (The softmax Jacobian)
//
// Some models bend each score before softmax so that none can run away: with a cap c > 0,
// softcap(s) = c tanh(s / c), nearly s for small scores and never beyond ±c. A fused kernel calls
// such a function for every score, and going back it needs its slope, because dS is multiplied by
// it.
//
// (a) softcap: c tanh(s / c).
// (b) softcap_slope: how fast it changes with s: ∂softcap/∂s.
// (c) softcap_slope_by_cap: how fast it changes with c: ∂softcap/∂c, needed where the cap itself is
//     trained.
#include "exercise.hpp"

double softcap(double s, double c) {
  todo();  // std::tanh
}

double softcap_slope(double s, double c) {
  todo();  // your code here, instead of this line
}

double softcap_slope_by_cap(double s, double c) {
  todo();  // your code here, instead of this line
}
