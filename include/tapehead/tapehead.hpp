#pragma once

// The whole library. Each header stands alone too; from the ground up:
#include "tapehead/error.hpp"
#include "tapehead/shape.hpp"
#include "tapehead/memory.hpp"
#include "tapehead/tensor.hpp"
#include "tapehead/tape.hpp"
// operations
#include "tapehead/arithmetic.hpp"
#include "tapehead/dropout.hpp"
#include "tapehead/einsum.hpp"
#include "tapehead/indexing.hpp"
#include "tapehead/join.hpp"
#include "tapehead/loss.hpp"
#include "tapehead/math.hpp"
#include "tapehead/matmul.hpp"
#include "tapehead/norm.hpp"
#include "tapehead/reduce.hpp"
#include "tapehead/rope.hpp"
#include "tapehead/select.hpp"
#include "tapehead/softmax.hpp"
#include "tapehead/views.hpp"
// checking
#include "tapehead/gradcheck.hpp"
// randomness and masks
#include "tapehead/masks.hpp"
#include "tapehead/random.hpp"
// attention, rung by rung
#include "tapehead/attention.hpp"
#include "tapehead/composed.hpp"
#include "tapehead/flash.hpp"
#include "tapehead/flex.hpp"
#include "tapehead/flex_mods.hpp"
#include "tapehead/sdpa.hpp"
#include "tapehead/varlen.hpp"
#include "tapehead/cache.hpp"
#include "tapehead/paged_cache.hpp"
#include "tapehead/prefix_tree.hpp"
#include "tapehead/nn.hpp"
#include "tapehead/optim.hpp"
// looking at it
#include "tapehead/plot.hpp"
#include "tapehead/print.hpp"
#include "tapehead/trace.hpp"
// files
#include "tapehead/arrays.hpp"
#include "tapehead/npy.hpp"
#include "tapehead/safetensors.hpp"
