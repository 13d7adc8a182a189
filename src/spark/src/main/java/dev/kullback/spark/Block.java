package dev.kullback.spark;

import dev.kullback.Gaussians;

/**
 * Gaussians by ascending id, so that the order of indices is that of ids.
 *
 * @param ids N of them
 * @param mean float[] or double[], row-major {@code [N, D]}
 * @param scale likewise, with as many elements to a row as its kind has
 * @param labels texts of ids where these are numbers of others, or none
 */
record Block(Input input, int index, long[] ids, Object mean, Object scale, String[] labels) {
  /** Makes a block of its {@link #arrays}. */
  static Block of(Input input, Object[] arrays) {
    return new Block(input, 0, (long[]) arrays[0], arrays[1], arrays[2], (String[]) arrays[3]);
  }

  /** Returns the arrays alone, which all of Spark's serializers move; its Kryo does not read records. */
  Object[] arrays() {
    return new Object[] {ids, mean, scale, labels};
  }

  int size() {
    return ids.length;
  }

  /** Makes a batch of the Gaussians, of which there is at least one. */
  Gaussians batch() {
    return input.batch(
        mean, scale, i -> Input.label(labels.length == 0 ? (Object) ids[i] : labels[i]));
  }
}
