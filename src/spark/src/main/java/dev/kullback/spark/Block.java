package dev.kullback.spark;

import dev.kullback.Gaussians;

/**
 * Gaussians by ascending id, so that the order of indices is that of ids.
 *
 * @param ids N of them
 * @param mean float[] or double[], row-major {@code [N, D]}
 * @param scale likewise, with as many elements to a row as its kind has
 */
record Block(Input input, int index, long[] ids, Object mean, Object scale) {
  /** Makes a block of its {@link #arrays}. */
  static Block of(Input input, Object[] arrays) {
    return new Block(input, 0, (long[]) arrays[0], arrays[1], arrays[2]);
  }

  /** Returns the arrays alone, which all of Spark's serializers move; its Kryo does not read records. */
  Object[] arrays() {
    return new Object[] {ids, mean, scale};
  }

  int size() {
    return ids.length;
  }

  /** Makes a batch of the Gaussians, of which there is at least one. */
  Gaussians batch() {
    return input.batch(mean, scale, i -> Input.label(ids[i]));
  }
}
