package dev.kullback.spark;

import org.apache.spark.api.java.JavaSparkContext;
import org.jspecify.annotations.Nullable;

/** What this thread's jobs and stages are called, in Spark's user interface and its events, until it is closed. */
final class Described implements AutoCloseable {
  private static final String DESCRIPTION = "spark.job.description";
  private static final String[] PROPERTIES = {DESCRIPTION, "callSite.short", "callSite.long"};

  private final JavaSparkContext spark;
  private final @Nullable String[] before = new String[PROPERTIES.length];

  Described(JavaSparkContext spark, String text) {
    this.spark = spark;
    for (int i = 0; i < before.length; i++) {
      before[i] = spark.getLocalProperty(PROPERTIES[i]);
      spark.setLocalProperty(PROPERTIES[i], text);
    }
  }

  @Override
  public void close() {
    for (int i = 0; i < before.length; i++) {
      spark.setLocalProperty(PROPERTIES[i], before[i]);
    }
  }
}
