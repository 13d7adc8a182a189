package example;

import dev.kullback.KlEngine;
import dev.kullback.KlIndex;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.FunctionTimer;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;
import java.util.function.ToLongFunction;

/**
 * Gauges, counters and timers of an engine or an index, for any registry of Micrometer's; tags tell several apart. To be closed before the
 * index is, as a closed one has no figures and would spoil the registry's next report.
 */
final class KullbackMetrics implements MeterBinder, AutoCloseable {
  private final MeterBinder binder;
  private final Tags tags;
  private final List<Meter> meters = new ArrayList<>();
  private MeterRegistry registry;

  KullbackMetrics(KlEngine engine, Tags tags) {
    this.tags = tags;
    binder =
        registry -> {
          timer("kullback.engine.calls", engine, e -> e.stats().calls(), e -> e.stats().time());
          counter("kullback.engine.cold", engine, e -> e.stats().coldCalls());
          counter("kullback.engine.entries", engine, e -> e.stats().entries());
        };
  }

  KullbackMetrics(KlIndex index, Tags tags) {
    this.tags = tags;
    binder =
        registry -> {
          timer(
              "kullback.index.queries",
              index,
              i -> i.stats().queries(),
              i -> i.stats().searchTime());
          timer(
              "kullback.index.commits",
              index,
              i -> i.stats().commits(),
              i -> i.stats().commitTime());
          timer(
              "kullback.index.merges", index, i -> i.stats().merges(), i -> i.stats().mergeTime());
          counter("kullback.index.merges.failed", index, i -> i.stats().failedMerges());
          counter("kullback.index.survivors", index, i -> i.stats().survivors());
          gauge("kullback.index.ready", index, i -> i.isReady() ? 1 : 0);
          gauge("kullback.index.size", index, KlIndex::size);
          gauge("kullback.index.segments", index, i -> i.stats().segments());
          gauge("kullback.index.uncommitted", index, i -> i.stats().uncommitted());
          gauge("kullback.index.native.bytes", index, i -> i.stats().nativeBytes());
          gauge("kullback.index.mapped.bytes", index, i -> i.stats().mappedBytes());
        };
  }

  @Override
  public void bindTo(MeterRegistry registry) {
    this.registry = registry;
    binder.bindTo(registry);
  }

  @Override
  public void close() {
    meters.forEach(registry::remove);
  }

  private <T> void timer(
      String name, T of, ToLongFunction<T> count, Function<T, Duration> time) {
    meters.add(
        FunctionTimer.builder(name, of, count, t -> time.apply(t).toNanos(), TimeUnit.NANOSECONDS)
            .tags(tags)
            .register(registry));
  }

  private <T> void counter(String name, T of, ToDoubleFunction<T> count) {
    meters.add(FunctionCounter.builder(name, of, count).tags(tags).register(registry));
  }

  private <T> void gauge(String name, T of, ToDoubleFunction<T> value) {
    meters.add(Gauge.builder(name, of, value).tags(tags).register(registry));
  }
}
