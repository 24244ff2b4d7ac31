//! Values to and from bytes; predicates on encoded data; the dictionary.
