package example;

import dev.kullback.IndexStats;
import dev.kullback.KlIndex;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.function.ToLongFunction;

/** Tells Micrometer what an index says of itself. */
record IndexMetrics(KlIndex index) implements MeterBinder {
  @Override
  public void bindTo(MeterRegistry registry) {
    Gauge.builder("kullback.index.size", index, KlIndex::size).register(registry);
    Gauge.builder("kullback.index.ready", index, i -> i.isReady() ? 1 : 0).register(registry);
    gauge(registry, "segments", IndexStats::segments);
    gauge(registry, "deleted", IndexStats::deleted);
    gauge(registry, "uncommitted", IndexStats::uncommitted);
    gauge(registry, "heap.bytes", IndexStats::heapBytes);
    gauge(registry, "native.bytes", IndexStats::nativeBytes);
    gauge(registry, "mapped.bytes", IndexStats::mappedBytes);
    counter(registry, "queries", IndexStats::queries);
    counter(registry, "survivors", IndexStats::survivors);
    counter(registry, "read.bytes", IndexStats::bytesRead);
    counter(registry, "failed.merges", IndexStats::failedMerges);
  }

  private void gauge(MeterRegistry registry, String name, ToLongFunction<IndexStats> figure) {
    Gauge.builder("kullback.index." + name, index, i -> figure.applyAsLong(i.stats()))
        .register(registry);
  }

  private void counter(MeterRegistry registry, String name, ToLongFunction<IndexStats> figure) {
    FunctionCounter.builder("kullback.index." + name, index, i -> figure.applyAsLong(i.stats()))
        .register(registry);
  }
}
