package dev.kullback.spark;

import dev.kullback.Gaussians;
import java.io.Serializable;

/**
 * Gaussians by ascending id, so that the order of indices is that of ids.
 *
 * @param ids N of them
 * @param mean float[] or double[], row-major {@code [N, D]}
 * @param scale likewise, with as many elements to a row as its kind has
 */
@SuppressWarnings("ArrayRecordComponent") // a carrier of arrays, never compared
record Block(Input input, int index, long[] ids, Object mean, Object scale)
    implements Serializable {
  int size() {
    return ids.length;
  }

  /** A batch of them, of at least one. */
  Gaussians batch() {
    try {
      return input.batch(mean, scale);
    } catch (IllegalArgumentException e) {
      throw input.culprit(this, e);
    }
  }
}
