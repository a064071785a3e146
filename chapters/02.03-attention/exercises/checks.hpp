#pragma once
// The check of each exercise, by its name in exercises.txt. It takes the functions that an answer defines.
#include "exercise.hpp"

namespace exercise {

class Checker;
using T = Tensor<double>;
using Mask = Tensor<bool>;

void three_roles(Checker&, T (*scores)(const T&, const T&, const T&), Symmetric (*predict)());
void blend(Checker&, T (*blend)(const T&, const T&), bool (*reachable)(const T&, const T&));
void scale(Checker&, T (*raw_weights)(), T (*scaled_weights)(), T (*softmax_jacobian)(const T&),
           double (*times_larger)());
void minus_infinity(Checker&, T (*a_row_that_breaks)(), T (*masked_weights)(const T&, const Mask&));
void temperature(Checker&,
                 Attention<double> (*tempered_attention)(const T&, const T&, const T&,
                                                         const std::optional<Mask>&, double),
                 Limits (*predict)());
void softmax_by_hand(Checker&, T (*softmax_by_hand)(const T&));
void softmax_pullback(Checker&, T (*softmax_pullback)(const T&, const T&));
void value_path(Checker&, T (*values_gradient)(const T&, const T&),
                T (*weights_gradient)(const T&, const T&));
void d_term(Checker&, T (*d_from_weights)(const T&, const T&), T (*d_from_output)(const T&, const T&));
void backward_by_hand(Checker&, Backward (*backward_by_hand)(const T&, const T&, const T&, const T&));
void causal_and_padding(Checker&, Mask (*visible)(std::int64_t, const std::vector<std::int64_t>&));
void fully_masked_row(Checker&, T (*masked_attention)(const T&, const T&, const T&, const Mask&));
void online_softmax(Checker&, Running (*add_score)(Running, double), Running (*merge)(Running, Running));
void flash_row(Checker&, T (*flash_row)(const T&, const std::vector<Block>&));
void decode(Checker&, T (*decode_step)(Cache&, const T&, const T&, const T&));
void grouped_queries(Checker&, T (*grouped_attention)(const T&, const T&, const T&));
void score_mod(Checker&, double (*softcap)(double, double), double (*softcap_slope)(double, double),
               double (*softcap_slope_by_cap)(double, double));
void flash_backward_row(Checker&, RowGradients (*flash_backward_row)(const T&, const T&, const T&, const T&,
                                                                     double, double));

/// Checks one answer, prints what came of it and returns the program's status: 0 solved, 1 not, 2 nothing
/// there yet. A crash or an answer that takes longer than `seconds` ends the program with a text that says
/// so.
int run(const char* title, void (*check)(Checker&), int seconds = 5);

}  // namespace exercise
