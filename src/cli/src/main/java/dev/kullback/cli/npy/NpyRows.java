package dev.kullback.cli.npy;

import java.io.Closeable;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.List;

/** Reads a matrix in a file in C order, some rows at a time. */
public final class NpyRows implements Closeable {
  private final Input in;
  private final NpyHeader header;
  private final ValueLayout element;
  private final Npy.Claim claim;
  private long read;

  /** Opens a file of one of the types, which an error calls {@code wanted}. */
  public static NpyRows open(Path file, List<String> types, String wanted) throws IOException {
    Input in = Input.open(file);
    try {
      return new NpyRows(in, types, wanted);
    } catch (IOException e) {
      in.close();
      throw e;
    }
  }

  private NpyRows(Input in, List<String> types, String wanted) throws IOException {
    this.in = in;
    header = Npy.readHeader(in);
    element = Npy.element(header.descr(), types, wanted);
    claim = Npy.Claim.of(header, element);
    claim.requireFit(in.remaining());
    if (header.shape().length != 2 || columns() == 0) {
      throw new NpyException("has shape " + shapeText() + ": it must be [N,K]");
    }
    if (Npy.isTransposed(header)) {
      throw new NpyException(
          "is in Fortran order: save it in C order, as numpy.ascontiguousarray does");
    }
  }

  public long rows() {
    return header.shape()[0];
  }

  public long columns() {
    return header.shape()[1];
  }

  public String shapeText() {
    return header.shapeText();
  }

  public ValueLayout element() {
    return element;
  }

  /** Reads the next rows to the begin of a segment; after the last one the file must end. */
  public void read(int rows, MemorySegment to) throws IOException {
    long bytes = rows * columns() * element.byteSize();
    int came = in.fill(to.asSlice(0, bytes).asByteBuffer());
    read += came;
    if (came < bytes) {
      throw claim.missed(read);
    }
    if (read == claim.bytes() && !in.isAtEnd()) {
      throw claim.exceeded("more");
    }
  }

  @Override
  public void close() throws IOException {
    in.close();
  }
}
