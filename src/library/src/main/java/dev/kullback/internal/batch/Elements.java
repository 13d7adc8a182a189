package dev.kullback.internal.batch;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Numbers that a caller gave, in an array or a segment. For one thread. */
public final class Elements {
  /** Floats that are read at once on their way to doubles. */
  private static final int CHUNK = 1024;

  private final MemorySegment segment;
  private final ValueLayout layout;

  /** The array behind the segment, if there is one: to clone it is faster, as nothing is filled with zeros first. */
  private final @Nullable Object array;

  private boolean owned;
  private float[] chunk = {};

  private Elements(MemorySegment segment, ValueLayout layout, @Nullable Object array) {
    this.segment = segment;
    this.layout = layout;
    this.array = array;
  }

  public static Elements of(float[] array, String name) {
    Objects.requireNonNull(array, name);
    return new Elements(MemorySegment.ofArray(array), ValueLayout.JAVA_FLOAT, array);
  }

  public static Elements of(double[] array, String name) {
    Objects.requireNonNull(array, name);
    return new Elements(MemorySegment.ofArray(array), ValueLayout.JAVA_DOUBLE, array);
  }

  public static Elements of(MemorySegment segment, ValueLayout element, String name) {
    Objects.requireNonNull(segment, name);
    Objects.requireNonNull(element, "element");
    checkAccessible(segment, name);
    if (segment.byteSize() % element.byteSize() != 0) {
      throw new IllegalArgumentException(
          "%s has %d bytes, not a multiple of the element size %d"
              .formatted(name, segment.byteSize(), element.byteSize()));
    }
    ValueLayout layout =
        switch (element) {
          case ValueLayout.OfFloat f -> f.withByteAlignment(1);
          case ValueLayout.OfDouble d -> d.withByteAlignment(1);
          default ->
              throw new IllegalArgumentException(
                  "element layout must be float or double, is " + element);
        };
    return new Elements(segment, layout, null);
  }

  /** Lets the batch keep the array, which the caller gives away. */
  public Elements owned() {
    owned = true;
    return this;
  }

  /** Throws where this thread cannot read or write a segment. */
  public static void checkAccessible(MemorySegment segment, String name) {
    if (!segment.scope().isAlive()) {
      throw new IllegalStateException(name + " belongs to a closed arena");
    }
    if (!segment.isAccessibleBy(Thread.currentThread())) {
      throw new WrongThreadException(
          name + " is confined to another thread; call from that one, or take a shared arena");
    }
  }

  long length() {
    return segment.byteSize() / layout.byteSize();
  }

  boolean isDouble() {
    return layout instanceof ValueLayout.OfDouble;
  }

  /** Copies floats, or returns the array that was given away. */
  float[] floats() {
    if (array instanceof float[] floats) {
      return owned ? floats : floats.clone();
    }
    float[] copy = new float[(int) length()];
    MemorySegment.copy(segment, layout, 0, copy, 0, copy.length);
    return copy;
  }

  /** Returns the caller's own array of doubles, only to be read; null if there is none. */
  double @Nullable [] array64() {
    return array instanceof double[] doubles ? doubles : null;
  }

  /** Copies floats or doubles as doubles, or returns the array of doubles that was given away. */
  double[] doubles() {
    return doubles(length());
  }

  /** The same, again and again up to a count, a multiple of {@link #length}. */
  double[] doubles(long count) {
    double[] given = array64();
    if (given != null && count == length()) {
      return owned ? given : given.clone();
    }
    double[] copy = new double[(int) count];
    int length = (int) Math.min(count, length());
    read(0, copy, length);
    for (int at = length; at < copy.length; at += length) {
      System.arraycopy(copy, 0, copy, at, length);
    }
    return copy;
  }

  /** Reads {@code count} elements from an index on to the start of an array. */
  void read(long from, double[] to, int count) {
    if (isDouble()) {
      MemorySegment.copy(segment, layout, Double.BYTES * from, to, 0, count);
      return;
    }
    if (chunk.length < Math.min(count, CHUNK)) {
      chunk = new float[Math.min(count, CHUNK)];
    }
    for (int at = 0; at < count; at += chunk.length) {
      int length = Math.min(chunk.length, count - at);
      MemorySegment.copy(segment, layout, Float.BYTES * (from + at), chunk, 0, length);
      for (int k = 0; k < length; k++) {
        to[at + k] = chunk[k];
      }
    }
  }

  /** The shortest decimal that denotes an element. */
  String text(double element) {
    return text(element, isDouble());
  }

  static String text(double element, boolean isDouble) {
    return isDouble ? Double.toString(element) : Float.toString((float) element);
  }
}
