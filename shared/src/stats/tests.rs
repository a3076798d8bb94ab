//! Tests over the whole way from traces to numbers.
