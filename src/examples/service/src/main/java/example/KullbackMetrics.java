package example;

import dev.kullback.KlEngine;
import dev.kullback.KlIndex;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.FunctionTimer;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;
import java.util.function.ToLongFunction;

/** Gauges, counters and timers of an engine or an index, for any registry of Micrometer's. */
final class KullbackMetrics {
  private KullbackMetrics() {}

  static MeterBinder of(KlEngine engine) {
    return registry -> {
      timer(
          registry, "kullback.engine.calls", engine, e -> e.stats().calls(), e -> e.stats().time());
      counter(registry, "kullback.engine.cold", engine, e -> e.stats().coldCalls());
      counter(registry, "kullback.engine.entries", engine, e -> e.stats().entries());
    };
  }

  static MeterBinder of(KlIndex index) {
    return registry -> {
      timer(
          registry,
          "kullback.index.queries",
          index,
          i -> i.stats().queries(),
          i -> i.stats().searchTime());
      timer(
          registry,
          "kullback.index.commits",
          index,
          i -> i.stats().commits(),
          i -> i.stats().commitTime());
      timer(
          registry,
          "kullback.index.merges",
          index,
          i -> i.stats().merges(),
          i -> i.stats().mergeTime());
      counter(registry, "kullback.index.merges.failed", index, i -> i.stats().failedMerges());
      counter(registry, "kullback.index.survivors", index, i -> i.stats().survivors());
      gauge(registry, "kullback.index.ready", index, i -> i.isReady() ? 1 : 0);
      gauge(registry, "kullback.index.size", index, KlIndex::size);
      gauge(registry, "kullback.index.segments", index, i -> i.stats().segments());
      gauge(registry, "kullback.index.uncommitted", index, i -> i.stats().uncommitted());
      gauge(registry, "kullback.index.native.bytes", index, i -> i.stats().nativeBytes());
      gauge(registry, "kullback.index.mapped.bytes", index, i -> i.stats().mappedBytes());
    };
  }

  private static <T> void timer(
      MeterRegistry registry,
      String name,
      T of,
      ToLongFunction<T> count,
      Function<T, Duration> time) {
    FunctionTimer.builder(name, of, count, t -> time.apply(t).toNanos(), TimeUnit.NANOSECONDS)
        .register(registry);
  }

  private static <T> void counter(
      MeterRegistry registry, String name, T of, ToDoubleFunction<T> count) {
    FunctionCounter.builder(name, of, count).register(registry);
  }

  private static <T> void gauge(
      MeterRegistry registry, String name, T of, ToDoubleFunction<T> value) {
    Gauge.builder(name, of, value).register(registry);
  }
}
