package example;

import dev.kullback.DiagonalGaussians;
import dev.kullback.IndexNeighbors;
import dev.kullback.KlIndex;
import dev.kullback.Query;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Random;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.KnnFloatVectorField;
import org.apache.lucene.document.NumericDocValuesField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.MultiDocValues;
import org.apache.lucene.index.NumericDocValues;
import org.apache.lucene.index.VectorSimilarityFunction;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.KnnFloatVectorQuery;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.store.Directory;
import org.apache.lucene.store.MMapDirectory;

/**
 * The nearest by KL in two stages: Lucene's graph proposes candidates by the greatest inner products, and an index ranks them exactly. Says
 * how long that takes beside the index's exact search, and how many of its results it finds.
 *
 * <p>The graph joins references whose vectors have a great inner product with each other. Of the vectors as they are, these are the longest,
 * near a query or not. So the mean of all is subtracted, and each element divided by its standard deviation, by which that of queries is
 * multiplied: neither changes the order of a query's inner products.
 */
public final class Candidates {
  private static final int[] CANDIDATES = {200, 1000};
  private static final int NEAREST = 10;
  private static final int CENTERS = 1000;

  private static final double LAST = 3;

  /** How far Gaussians are from their center, which are at distances around 1. */
  private static final double SPREAD = 0.5;

  private Candidates() {}

  /** Takes the number of references, their dimension, and the number of queries. */
  public static void main(String[] args) throws IOException {
    int n = args.length > 0 ? Integer.parseInt(args[0]) : 2000;
    int d = args.length > 1 ? Integer.parseInt(args[1]) : 16;
    int q = args.length > 2 ? Integer.parseInt(args[2]) : 100;
    DiagonalGaussians all = gaussians(n + q, d, new Random(1));
    DiagonalGaussians references = (DiagonalGaussians) all.slice(0, n);
    long[] ids = new long[n];
    Arrays.setAll(ids, i -> i);
    Path folder = Files.createTempDirectory("lucene");
    try (Directory directory = new MMapDirectory(folder);
        KlIndex index = KlIndex.builder(d).build()) {
      double begin = seconds();
      index.add(ids, references);
      double added = seconds();
      float[] vectors = references.toInnerProducts();
      int length = vectors.length / n;
      float[] scales = standardize(vectors, length);
      fill(directory, vectors, ids);
      System.out.printf(
          "%d x %d: added to the index in %.2f s, to Lucene's graph in %.1f s%n",
          n, d, added - begin, seconds() - added);
      index.warmUp();
      try (DirectoryReader reader = DirectoryReader.open(directory)) {
        IndexSearcher searcher = new IndexSearcher(reader);
        DiagonalGaussians[] queries = new DiagonalGaussians[q];
        Arrays.setAll(queries, i -> (DiagonalGaussians) all.slice(n + i, n + i + 1));
        for (int round = 0; round < 3; round++) { // the last is of compiled code
          for (int candidates : CANDIDATES) {
            System.out.println(compare(searcher, scales, index, queries, candidates));
          }
        }
      }
    } finally {
      try (Stream<Path> files = Files.list(folder)) {
        for (Path file : files.toList()) {
          Files.delete(file);
        }
      }
      Files.delete(folder);
    }
  }

  /** Returns what a number of candidates gives, and how long each way takes. */
  private static String compare(
      IndexSearcher searcher,
      float[] scales,
      KlIndex index,
      DiagonalGaussians[] queries,
      int candidates)
      throws IOException {
    Query few = // computes as many divergences, and proves which of its results are right
        Query.nearest(NEAREST).approximate(Math.min(1, (double) candidates / index.size()));
    double proposing = 0;
    double ranking = 0;
    double searching = 0;
    double fewer = 0;
    int proved = 0;
    int found = 0;
    int complete = 0;
    int count = 0;
    for (DiagonalGaussians query : queries) {
      double start = seconds();
      long[] proposed = propose(searcher, query, scales, candidates);
      double begin = seconds();
      IndexNeighbors ranked = index.rank(query, new long[][] {proposed}, NEAREST);
      double done = seconds();
      IndexNeighbors exact = index.nearest(query, NEAREST);
      double searched = seconds();
      IndexNeighbors bounded = index.search(query, few);
      fewer += seconds() - searched;
      proved += proved(ranked, bounded);
      searching += searched - done;
      proposing += begin - start;
      ranking += done - begin;
      int same = same(ranked, exact);
      found += same;
      complete += same == exact.count(0) ? 1 : 0;
      count += exact.count(0);
    }
    int q = queries.length;
    return String.format(
        "a query: %d candidates %.3f ms, rank %.3f ms; exact search %.3f ms, one of as many divergences %.3f ms;"
            + " recall of %d: %.4f, proved by the latter: %.4f, queries with all: %.3f",
        candidates,
        1e3 * proposing / q,
        1e3 * ranking / q,
        1e3 * searching / q,
        1e3 * fewer / q,
        NEAREST,
        (double) found / count,
        (double) proved / count,
        (double) complete / q);
  }

  /** Subtracts the mean of all vectors and divides each element by its scale, which it returns. */
  private static float[] standardize(float[] vectors, int length) {
    int n = vectors.length / length;
    float[] scales = new float[length];
    for (int h = 0; h < length; h++) {
      double sum = 0;
      double squares = 0;
      for (int k = h; k < vectors.length; k += length) {
        sum += vectors[k];
        squares += (double) vectors[k] * vectors[k];
      }
      double mean = sum / n;
      double std = Math.sqrt(Math.max(0, squares / n - mean * mean));
      // the last element sums up all dimensions, and counts for some of them
      scales[h] = (float) (std > 0 ? h == length - 1 ? std / LAST : std : 1);
      for (int k = h; k < vectors.length; k += length) {
        vectors[k] = (float) ((vectors[k] - mean) / scales[h]);
      }
    }
    return scales;
  }

  private static void fill(Directory directory, float[] vectors, long[] ids) throws IOException {
    int length = vectors.length / ids.length;
    IndexWriterConfig config = new IndexWriterConfig().setRAMBufferSizeMB(2000);
    try (IndexWriter writer = new IndexWriter(directory, config)) {
      for (int i = 0; i < ids.length; i++) {
        Document document = new Document();
        document.add(new NumericDocValuesField("id", ids[i]));
        document.add(
            new KnnFloatVectorField(
                "b",
                Arrays.copyOfRange(vectors, i * length, (i + 1) * length),
                VectorSimilarityFunction.MAXIMUM_INNER_PRODUCT));
        writer.addDocument(document);
      }
    }
  }

  /** Returns the ids of references whose inner products with a query are about the greatest. */
  private static long[] propose(
      IndexSearcher searcher, DiagonalGaussians query, float[] scales, int candidates)
      throws IOException {
    float[] a = query.toInnerProductQueries();
    for (int h = 0; h < a.length; h++) {
      a[h] *= scales[h];
    }
    ScoreDoc[] hits =
        searcher.search(new KnnFloatVectorQuery("b", a, candidates), candidates).scoreDocs;
    int[] documents = Arrays.stream(hits).mapToInt(hit -> hit.doc).sorted().toArray();
    NumericDocValues ids = MultiDocValues.getNumericValues(searcher.getIndexReader(), "id");
    long[] found = new long[documents.length];
    for (int i = 0; i < documents.length; i++) {
      ids.advanceExact(documents[i]);
      found[i] = ids.longValue();
    }
    return found;
  }

  /** Returns how many of the nearest are among those that were ranked. */
  private static int same(IndexNeighbors ranked, IndexNeighbors exact) {
    Set<Long> ids = new HashSet<>();
    for (int r = 0; r < ranked.count(0); r++) {
      ids.add(ranked.id(0, r));
    }
    int same = 0;
    for (int r = 0; r < exact.count(0); r++) {
      same += ids.contains(exact.id(0, r)) ? 1 : 0;
    }
    return same;
  }

  /** Returns how many of those that were ranked are proved to be the nearest, in their places, by a search that computed few divergences. */
  private static int proved(IndexNeighbors ranked, IndexNeighbors few) {
    int r = 0;
    while (r < Math.min(ranked.count(0), few.count(0))
        && ranked.id(0, r) == few.id(0, r)
        && ranked.value(0, r) < few.provenUpTo(0)) {
      r++;
    }
    return r;
  }

  /** Returns Gaussians around some centers. */
  private static DiagonalGaussians gaussians(int n, int d, Random random) {
    float[] centers = new float[CENTERS * d];
    for (int k = 0; k < centers.length; k++) {
      centers[k] = (float) random.nextGaussian();
    }
    float[] mean = new float[n * d];
    float[] std = new float[n * d];
    for (int i = 0; i < n; i++) {
      int center = random.nextInt(CENTERS);
      for (int h = 0; h < d; h++) {
        mean[i * d + h] = (float) (centers[center * d + h] + SPREAD * random.nextGaussian());
        std[i * d + h] = (float) Math.exp(0.3 * random.nextGaussian());
      }
    }
    return DiagonalGaussians.ofStd(mean, std, d);
  }

  private static double seconds() {
    return 1e-9 * System.nanoTime();
  }
}
