// The kinds of error, and the one-line checks that throw them.
#include "tapehead/kernels/error.hpp"

#include <stdexcept>
#include <type_traits>

#include "kernels/require.hpp"
#include "tapehead/tensor/shape.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::message;

namespace {

// Whether a thrown Thrown is caught as a Wanted.
template <class Wanted, class Thrown> bool caught_as() {
  try {
    throw Thrown("why");
  } catch (const Wanted& e) {
    return e.what() == "why"sv;
  } catch (...) {
    return false;
  }
}

// An argument that counts how often its text is asked for.
struct Counted {
  std::string str() const { return ++asked, "counted"; }
  mutable int asked = 0;
};

}  // namespace

TEST_CASE_TEMPLATE("error: each kind is an Error, and none is another", E, ShapeError, IndexError, ValueError,
                   GradientError, FileError) {
  CHECK(caught_as<E, E>());
  CHECK(caught_as<Error, E>());
  CHECK(caught_as<std::runtime_error, E>());
  CHECK_FALSE(caught_as<E, Error>());
  const int kinds = caught_as<ShapeError, E>() + caught_as<IndexError, E>() + caught_as<ValueError, E>() +
                    caught_as<GradientError, E>() + caught_as<FileError, E>();
  CHECK(kinds == 1);
}

TEST_CASE("error: raise throws the kind that it is asked for, with the arguments in the text") {
  CHECK(message<ValueError>([] { raise<ValueError>("linear: {} features of {:.1f}", 3, 0.25); }) ==
        "linear: 3 features of 0.2"sv);
  CHECK(message<FileError>([] { raise<FileError>("no arguments, {{}} braces"); }) == "no arguments, {} braces"sv);
}

TEST_CASE("error: shapes are written as NumPy writes them, of every rank and as strides") {
  const Shape matrix{2, 3};
  CHECK(message<ShapeError>([&] {
          raise<ShapeError>("{} {} {} {}", matrix, Shape{5}, Shape{}, Strides{-3, 0});
        }) == "(2, 3) (5,) () (-3, 0)"sv);
  CHECK(message<ShapeError>([&] { require<ShapeError>(false, "{:>8}|", matrix); }) == "  (2, 3)|"sv);
}

TEST_CASE("error: require throws where the condition does not hold, and formats nothing where it does") {
  const Counted argument;
  require<IndexError>(true, "at: {}", argument);
  CHECK(argument.asked == 0);
  CHECK(message<IndexError>([&] { require<IndexError>(false, "at: {}", argument); }) == "at: counted"sv);
  CHECK(argument.asked == 1);
}
