package dev.kullback.bench;

import dev.kullback.Backend;
import dev.kullback.Gaussians;
import dev.kullback.KlEngine;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/**
 * Hashes of every bit of the results of every operation, and the texts of errors: two versions of the library that print the same
 * compute the same. A line is an operation on a pair of batches, with a hash for each engine; by the public API alone, so that it
 * runs with the jar of any version.
 */
final class Bits {
  /**
   * Two batches that are compared.
   *
   * @param make makes them anew, for each engine: unused, they are without what earlier calls prepared
   * @param extent what is done with them
   */
  record Case(String name, Supplier<Pair> make, Extent extent) {}

  /** Which operations are hashed: a part where all would take too long. */
  enum Extent {
    ALL,

    /** All operations, without the plain backend. */
    VECTOR,

    /** The operations of {@link BitsOperations#brief} alone, with the vector backend. */
    BRIEF
  }

  record Pair(Gaussians q, Gaussians p) {}

  /** 64 bits that depend on all added, and on their order. */
  static final class Hash {
    private long bits = 0x6b75_6c6c_6261_636bL;

    void add(long x) {
      bits = mix(bits ^ x);
    }

    void add(double x) {
      add(Double.doubleToRawLongBits(x));
    }

    void add(float... values) {
      for (float x : values) {
        add((long) Float.floatToRawIntBits(x));
      }
    }

    void add(double... values) {
      for (double x : values) {
        add(x);
      }
    }

    void add(int... values) {
      for (int x : values) {
        add((long) x);
      }
    }

    void add(String text) {
      text.chars().forEach(c -> add((long) c));
    }

    long value() {
      return bits;
    }

    /** A bijection that spreads each bit over all. */
    static long mix(long x) {
      long a = (x ^ (x >>> 32)) * 0xd6e8_feb8_6659_fd93L;
      long b = (a ^ (a >>> 32)) * 0xd6e8_feb8_6659_fd93L;
      return b ^ (b >>> 32);
    }
  }

  private final Hash total = new Hash();

  private Bits() {}

  /** Takes the folder of the sample data, which holds digits_mean.npy and others. */
  public static void main(String[] args) {
    if (args.length != 1 || args[0].startsWith("-")) {
      System.err.println("usage: bench/run bits [FOLDER], that of the sample data");
      System.exit(2);
    }
    try {
      new Bits().print(Path.of(args[0]));
    } catch (IOException | UncheckedIOException | IllegalStateException e) {
      System.err.println("bits: " + e);
      System.exit(1);
    }
  }

  private void print(Path data) throws IOException {
    List<Case> cases = new ArrayList<>(BitsCases.digits(data));
    cases.addAll(BitsCases.diagonal());
    cases.addAll(BitsCases.full());
    cases.addAll(BitsCases.mixed());
    System.out.println(
        "# batches, operation: vector 1 thread, 2 threads, scalar 1 thread, 2 threads");
    try (KlEngine vector = engine(Backend.VECTOR, 1);
        KlEngine vectors = engine(Backend.VECTOR, 2);
        KlEngine scalar = engine(Backend.SCALAR, 1);
        KlEngine scalars = engine(Backend.SCALAR, 2)) {
      for (Case c : cases) {
        print(
            c,
            c.extent == Extent.ALL
                ? List.of(vector, vectors, scalar, scalars)
                : List.of(vector, vectors));
      }
      for (KlEngine engine : List.of(vector, scalar)) {
        String backend = engine == vector ? "vector" : "scalar";
        BitsErrors.of(engine).forEach((name, text) -> line(backend + ", " + name + ": " + text));
      }
    }
    System.out.printf("total %016x%n", total.value());
  }

  private static KlEngine engine(Backend backend, int threads) {
    return KlEngine.builder().backend(backend).threads(threads).build();
  }

  private void print(Case c, List<KlEngine> engines) {
    Map<String, StringBuilder> lines = new LinkedHashMap<>();
    for (int e = 0; e < engines.size(); e++) {
      Pair pair = c.make.get();
      if (e % 2 == 1) { // those of two threads; the others see what first uses do
        pair.q.prepare();
        pair.p.prepare();
      }
      KlEngine engine = engines.get(e);
      Map<String, BitsOperations.Operation> operations =
          c.extent == Extent.BRIEF ? BitsOperations.brief() : BitsOperations.of(pair.q, pair.p);
      operations.forEach((name, operation) ->
          lines
              .computeIfAbsent(name, n -> new StringBuilder(c.name + ", " + n + ":"))
              .append(" %016x".formatted(hash(operation, engine, pair))));
    }
    lines.values().forEach(l -> line(l.toString()));
  }

  private static long hash(BitsOperations.Operation operation, KlEngine engine, Pair pair) {
    Hash hash = new Hash();
    try {
      operation.run(engine, pair.q, pair.p, hash);
    } catch (IllegalArgumentException e) { // some batches cannot be p, or of some kinds
      hash.add(e.toString());
    }
    return hash.value();
  }

  private void line(String text) {
    total.add(text);
    System.out.println(text);
  }
}
