package dev.kullback.spark;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.Platform;
import org.jspecify.annotations.Nullable;
import scala.Function2;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;

/**
 * All rows of an input as bytes on the driver, if they are few. Each partition has its number and that of its rows, and each row its
 * length before it.
 */
final class Gathered {
  /** Partitions of the first job; the next ones take as many as seem to fit, and at most this many times as many. */
  private static final int FIRST = 4;

  private final byte[] bytes;
  private final int rows;

  private Gathered(byte[] bytes, int rows) {
    this.bytes = bytes;
    this.rows = rows;
  }

  /** What a bound of bytes and rows leaves. */
  private record Limit(long bytes, long rows) implements Serializable {}

  /**
   * Gathers the rows of an input, or gives up once there are too many: what was read by then is at most some partitions' worth of the bounds.
   *
   * @param most most bytes
   * @param mostRows most rows
   */
  static @Nullable Gathered of(
      RDD<InternalRow> input, DataType[] types, long most, long mostRows, SparkContext spark) {
    List<byte[]> parts = new ArrayList<>();
    long bytes = 0;
    long rows = 0;
    int partitions = input.getNumPartitions();
    int width = Math.max(FIRST, spark.defaultParallelism());
    for (int from = 0; from < partitions; ) {
      int to = (int) Math.min(partitions, from + (long) width);
      byte[][] found = job(input, types, new Limit(most - bytes, mostRows - rows), from, to, spark);
      for (byte[] part : found) {
        if (part.length == 0) {
          return null;
        }
        parts.add(part);
        bytes += part.length;
        rows += count(part, 0);
      }
      if (bytes > most || rows > mostRows) {
        return null;
      }
      from = to;
      long fitting = (long) ((most - bytes) / (bytes / (double) from));
      width = (int) Math.clamp(fitting, FIRST, (long) FIRST * width);
    }
    byte[] all = new byte[Math.toIntExact(bytes)];
    int at = 0;
    for (byte[] part : parts) {
      System.arraycopy(part, 0, all, at, part.length);
      at += part.length;
    }
    return new Gathered(all, (int) rows);
  }

  private static byte[][] job(
      RDD<InternalRow> input, DataType[] types, Limit limit, int from, int to, SparkContext spark) {
    Function2<TaskContext, Iterator<InternalRow>, byte[]> task =
        (Function2<TaskContext, Iterator<InternalRow>, byte[]> & Serializable)
            (context, rows) -> read(context.partitionId(), rows, types, limit);
    List<Object> numbers = IntStream.range(from, to).<Object>mapToObj(i -> i).toList();
    return (byte[][])
        spark.runJob(
            input,
            task,
            CollectionConverters.asScala(numbers).toSeq(),
            ClassTag$.MODULE$.<byte[]>apply(byte[].class));
  }

  /** Returns a partition's rows, or nothing where they are too many. */
  private static byte[] read(
      int partition, Iterator<InternalRow> rows, DataType[] types, Limit limit) {
    byte[] part = new byte[1 << 12];
    int at = Long.BYTES;
    int count = 0;
    java.util.Iterator<UnsafeRow> unsafe = unsafe(CollectionConverters.asJava(rows), types);
    while (unsafe.hasNext()) {
      UnsafeRow row = unsafe.next();
      int size = row.getSizeInBytes();
      long end = (long) at + Long.BYTES + size;
      if (end > limit.bytes || count == limit.rows) {
        return new byte[0];
      }
      if (end > part.length) {
        part = Arrays.copyOf(part, (int) Math.min(limit.bytes, Math.max(end, 2L * part.length)));
      }
      Platform.putLong(part, Platform.BYTE_ARRAY_OFFSET + (long) at, size);
      row.writeToMemory(part, Platform.BYTE_ARRAY_OFFSET + (long) at + Long.BYTES);
      at = (int) end;
      count++;
    }
    Platform.putInt(part, Platform.BYTE_ARRAY_OFFSET, partition);
    Platform.putInt(part, Platform.BYTE_ARRAY_OFFSET + (long) Integer.BYTES, count);
    return Arrays.copyOf(part, at);
  }

  /** Rows in Spark's own format, which plans mostly give. */
  static java.util.Iterator<UnsafeRow> unsafe(
      java.util.Iterator<InternalRow> rows, DataType[] types) {
    return new java.util.Iterator<>() {
      private @Nullable UnsafeProjection projection;

      @Override
      public boolean hasNext() {
        return rows.hasNext();
      }

      @Override
      public UnsafeRow next() {
        InternalRow row = rows.next();
        if (row instanceof UnsafeRow unsafe) {
          return unsafe;
        }
        if (projection == null) {
          projection = UnsafeProjection$.MODULE$.create(types);
        }
        return projection.apply(row);
      }
    };
  }

  private static int count(byte[] bytes, int at) {
    return Platform.getInt(bytes, Platform.BYTE_ARRAY_OFFSET + (long) at + Integer.BYTES);
  }

  byte[] bytes() {
    return bytes;
  }

  int rows() {
    return rows;
  }

  /** Adds all rows to a buffer, with the numbers of {@code monotonically_increasing_id()}. */
  static void addTo(RowBuffer buffer, byte[] bytes, int columns) {
    UnsafeRow row = new UnsafeRow(columns);
    for (int at = 0; at < bytes.length; ) {
      int partition = Platform.getInt(bytes, Platform.BYTE_ARRAY_OFFSET + (long) at);
      int count = count(bytes, at);
      at += Long.BYTES;
      for (int i = 0; i < count; i++) {
        int size = (int) Platform.getLong(bytes, Platform.BYTE_ARRAY_OFFSET + (long) at);
        at += Long.BYTES;
        row.pointTo(bytes, Platform.BYTE_ARRAY_OFFSET + (long) at, size);
        buffer.add(row, NumberedRows.number(partition, i));
        at += size;
      }
    }
  }
}
