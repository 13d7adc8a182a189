package dev.kullback.bench;

/** A batch's shape: {@code size} Gaussians of {@code dimension} dimensions, written {@code 1024x256}. */
record Shape(int size, int dimension) {
  static Shape parse(String text) {
    String[] parts = text.split("x", -1);
    try {
      if (parts.length == 2) {
        Shape shape = new Shape(Integer.parseInt(parts[0]), Integer.parseInt(parts[1]));
        if (shape.size > 0 && shape.dimension > 0) {
          return shape;
        }
      }
    } catch (NumberFormatException e) {
      // reported below, as every other malformed shape
    }
    throw new IllegalArgumentException("shape '" + text + "': write it as 1024x256");
  }

  /** The (i, j, h) triples of the full matrix: what a kernel's rate counts. */
  double terms() {
    return (double) size * size * dimension;
  }

  @Override
  public String toString() {
    return size + "x" + dimension;
  }
}
