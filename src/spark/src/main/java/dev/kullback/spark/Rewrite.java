package dev.kullback.spark;

import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/** A rewriting of nodes of Catalyst's trees, as Scala wants it. */
final class Rewrite<T> extends AbstractPartialFunction<T, T> {
  private final Function<T, @Nullable T> rule;

  private Rewrite(Function<T, @Nullable T> rule) {
    this.rule = rule;
  }

  /**
   * Makes a rewriting.
   *
   * @param rule returns what replaces a node, or null where it stays
   */
  static <T> Rewrite<T> of(Function<T, @Nullable T> rule) {
    return new Rewrite<>(rule);
  }

  @Override
  public boolean isDefinedAt(T node) {
    return rule.apply(node) != null;
  }

  @Override
  @SuppressWarnings("unchecked") // Scala has T as a lower bound of B, Java cannot say so
  public <A extends T, B> B applyOrElse(A node, Function1<A, B> other) {
    T replaced = rule.apply(node);
    return replaced == null ? other.apply(node) : (B) replaced;
  }
}
