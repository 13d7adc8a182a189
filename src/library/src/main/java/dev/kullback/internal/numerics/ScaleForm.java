package dev.kullback.internal.numerics;

/** What an array states of a batch's covariances, beside its means. */
public sealed interface ScaleForm permits Scale, MatrixForm {
  /** The argument's name in the public factories, used in messages. */
  String argument();
}
