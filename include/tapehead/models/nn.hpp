#pragma once

// Modules: layers that hold their parameters. A module is a struct whose parameters are plain tensors; it
// says what it holds once, in members(visit), and gets parameters(), names, train() and eval(), saving and
// loading from that. Weights are drawn as torch.nn draws them, in its order, so that a module made from the
// same seed gives the same outputs; names are PyTorch's, so that weights come and go.
#include "tapehead/models/nn_attention.hpp"
#include "tapehead/models/nn_gpt.hpp"
#include "tapehead/models/nn_layers.hpp"
#include "tapehead/models/nn_module.hpp"
