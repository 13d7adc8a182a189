package example;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.kullback.DiagonalGaussians;
import dev.kullback.IndexNeighbors;
import dev.kullback.KlIndex;
import dev.kullback.Query;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.Timer;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.time.DateTimeException;
import java.time.Duration;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The nearest Gaussians over HTTP, by virtual threads over one {@link KlIndex}.
 *
 * <pre>
 * GET    /live, /ready          200, or 503 if it is not (yet, or any more) to get requests
 * POST   /nearest?k=&amp;timeout=   body: D means, D standard deviations; answers lines of id and divergence
 * POST   /gaussians             adds; body: for each an id, D means, D standard deviations
 * PUT    /gaussians             the same, and replaces those whose ids are there
 * DELETE /gaussians?id=&amp;id=     removes
 * POST   /commit                what happens every second anyway
 * GET    /metrics               for Prometheus
 * </pre>
 *
 * <p>Bodies are binary and little-endian: ids of 64 bits, floats of 32. Environment: {@code PORT}, {@code HOST}, {@code FOLDER} of the index,
 * {@code DIMENSION}, {@code SLOTS}, how many searches run at a time, {@code TIMEOUT} of a search (ISO 8601), {@code DRAIN}, how long it
 * goes on after it has said that it is not ready any more.
 */
public final class Service {
  private static final int LARGEST_BODY = 64 << 20;

  private final PrometheusMeterRegistry metrics =
      new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
  private final ScheduledExecutorService commits = Executors.newSingleThreadScheduledExecutor();
  private final ExecutorService requests = Executors.newVirtualThreadPerTaskExecutor();
  private final Duration longest = Duration.parse(setting("TIMEOUT", "PT0.1S"));
  private final Semaphore slots;
  private final int searches; // at a time
  private final KlIndex index;
  private final KullbackMetrics ofIndex;
  private final HttpServer server;
  private volatile boolean isWarm;
  private volatile boolean isStopping;

  private Service() throws IOException {
    searches =
        Integer.parseInt(setting("SLOTS", "" + 4 * Runtime.getRuntime().availableProcessors()));
    slots = new Semaphore(searches);
    index =
        KlIndex.builder(Integer.parseInt(setting("DIMENSION", "64")))
            .commitOnClose(true)
            .open(Path.of(setting("FOLDER", "index")));
    ofIndex = new KullbackMetrics(index, Tags.empty());
    ofIndex.bindTo(metrics);
    Gauge.builder("service.searches", slots, s -> searches - s.availablePermits())
        .register(metrics);
    server =
        HttpServer.create(
            new InetSocketAddress(
                setting("HOST", "127.0.0.1"), Integer.parseInt(setting("PORT", "8080"))),
            0);
    server.setExecutor(requests);
    handle("/live", exchange -> new Answer(200, "live\n"));
    handle(
        "/ready",
        exchange -> isReady() ? new Answer(200, "ready\n") : new Answer(503, "not ready\n"));
    handle("/nearest", this::nearest);
    handle("/gaussians", this::gaussians);
    handle("/commit", this::commit);
    handle("/metrics", exchange -> new Answer(200, metrics.scrape()));
  }

  /** Takes no arguments. */
  public static void main(String[] args) throws Exception {
    System.setProperty(
        "sun.net.httpserver.nodelay", "true"); // an answer is not held back for 40 ms
    System.setProperty("sun.net.httpserver.maxReqTime", "10"); // s for a client to send its request
    System.setProperty("sun.net.httpserver.maxRspTime", "10"); // s to read the answer
    var service = new Service();
    service.start();
    Runtime.getRuntime().addShutdownHook(new Thread(service::stop));
    try {
      service.warmUp();
    } catch (RuntimeException e) {
      if (!service.isStopping) {
        throw e;
      }
    }
  }

  private void start() {
    server.start();
    commits.scheduleWithFixedDelay(
        () -> {
          try {
            index.commit();
          } catch (RuntimeException e) { // a full disk, for one; the next time may be better
            System.err.println("not committed: " + e);
          }
        },
        1,
        1,
        TimeUnit.SECONDS);
    System.out.println("on " + server.getAddress() + ", " + index);
  }

  /** First the searches, then what is around them, by 8000 requests to itself: different ones, as C2 leaves out what none has needed. */
  private void warmUp() {
    long begin = System.nanoTime();
    boolean isVector = index.warmUp();
    var random = new Random(1);
    var address = server.getAddress();
    var nearest =
        URI.create("http://" + address.getHostString() + ":" + address.getPort() + "/nearest?k=10");
    try (var client = HttpClient.newHttpClient()) {
      long end = System.nanoTime() + 30_000_000_000L;
      for (int i = 0; i < 2000 && System.nanoTime() < end; i++) {
        CompletableFuture.allOf(
                Stream.generate(() -> request(nearest, random))
                    .limit(Math.clamp(searches, 1, 4))
                    .map(request -> client.sendAsync(request, BodyHandlers.discarding()))
                    .toArray(CompletableFuture[]::new))
            .join();
      }
    }
    isWarm = true;
    System.out.printf(
        "warm after %.1f s, vectors: %b%n", (System.nanoTime() - begin) / 1e9, isVector);
  }

  private HttpRequest request(URI uri, Random random) {
    int d = index.dimension();
    var body = ByteBuffer.allocate(2 * d * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    for (int k = 0; k < 2 * d; k++) {
      double normal = random.nextGaussian();
      body.putFloat((float) (k < d ? normal : Math.exp(0.3 * normal)));
    }
    return HttpRequest.newBuilder(uri).POST(BodyPublishers.ofByteArray(body.array())).build();
  }

  private boolean isReady() {
    return isWarm && index.isReady() && !isStopping;
  }

  /** Takes no more requests, ends those that are under way, commits. */
  private void stop() {
    isStopping = true;
    try {
      Thread.sleep(Duration.parse(setting("DRAIN", "PT0S"))); // until balancers have seen it
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    server.stop(10);
    requests.close();
    commits.close();
    ofIndex.close();
    long size = index.size();
    index.close();
    System.out.println("stopped with " + size + " Gaussians");
  }

  private Answer nearest(HttpExchange exchange) throws IOException {
    int k = values(exchange, "k").mapToInt(Integer::parseInt).findFirst().orElse(10);
    var timeout = values(exchange, "timeout").map(Duration::parse).findFirst().orElse(longest);
    int d = index.dimension();
    var body = body(exchange, 2 * d * Float.BYTES, 1);
    var gaussian = DiagonalGaussians.ofStd(floats(body, d), floats(body, d), d);
    if (!slots.tryAcquire()) { // nobody waits here: a queue would make all late
      exchange.getResponseHeaders().set("Retry-After", "1");
      return new Answer(429, "too many searches at a time\n");
    }
    try {
      var query = Query.nearest(k).timeout(timeout.compareTo(longest) < 0 ? timeout : longest);
      IndexNeighbors found = index.search(gaussian, query);
      if (!found.isComplete(0)) { // the time was up; a client that can use a part would get it
        return new Answer(504, "the search took longer than " + timeout + "\n");
      }
      return new Answer(
          200,
          found.row(0).stream()
              .map(n -> n.id() + " " + n.value() + "\n")
              .collect(Collectors.joining()));
    } finally {
      slots.release();
    }
  }

  private Answer gaussians(HttpExchange exchange) throws IOException {
    if (exchange.getRequestMethod().equals("DELETE")) {
      return new Answer(
          200, index.remove(values(exchange, "id").mapToLong(Long::parseLong).toArray()) + "\n");
    }
    int d = index.dimension();
    int bytes = Long.BYTES + 2 * d * Float.BYTES;
    var body = body(exchange, bytes, LARGEST_BODY / bytes);
    long[] ids = new long[body.remaining() / bytes];
    float[] mean = new float[ids.length * d];
    float[] std = new float[ids.length * d];
    for (int i = 0; i < ids.length; i++) {
      ids[i] = body.getLong();
      System.arraycopy(floats(body, d), 0, mean, i * d, d);
      System.arraycopy(floats(body, d), 0, std, i * d, d);
    }
    var batch = DiagonalGaussians.ofStd(mean, std, d);
    switch (exchange.getRequestMethod()) {
      case "POST" -> index.add(ids, batch);
      case "PUT" -> index.replace(ids, batch);
      default -> {
        return new Answer(405, "POST, PUT or DELETE\n");
      }
    }
    return new Answer(200, ids.length + "\n");
  }

  private Answer commit(HttpExchange exchange) {
    index.commit();
    return new Answer(200, index.size() + "\n");
  }

  // --- HTTP

  private record Answer(int status, String text) {}

  private interface Handler {
    Answer answer(HttpExchange exchange) throws IOException;
  }

  private void handle(String path, Handler handler) {
    server.createContext(
        path,
        exchange -> {
          var time = Timer.start(metrics);
          try (exchange) {
            Answer answer;
            try {
              answer = handler.answer(exchange);
            } catch (IllegalArgumentException
                | DateTimeException e) { // of the library, too: it says what is wrong
              answer = new Answer(400, e.getMessage() + "\n");
            } catch (RuntimeException e) {
              answer = new Answer(500, e + "\n");
            }
            byte[] bytes = answer.text().getBytes();
            exchange.sendResponseHeaders(answer.status(), bytes.length > 0 ? bytes.length : -1);
            exchange.getResponseBody().write(bytes);
            time.stop(
                metrics.timer("service.requests", "path", path, "status", "" + answer.status()));
          }
        });
  }

  /** The values of a parameter, in their order. */
  private static Stream<String> values(HttpExchange exchange, String name) {
    String query = exchange.getRequestURI().getQuery();
    return Stream.of(query == null ? new String[0] : query.split("&"))
        .filter(pair -> pair.startsWith(name + "="))
        .map(pair -> pair.substring(name.length() + 1));
  }

  /** The body, of so many parts at most. */
  private static ByteBuffer body(HttpExchange exchange, int part, int most) throws IOException {
    byte[] bytes = exchange.getRequestBody().readNBytes(part * most + 1);
    if (bytes.length == 0 || bytes.length % part != 0) {
      throw new IllegalArgumentException(
          "a body of 1 to %d times %d bytes is needed".formatted(most, part));
    }
    return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  private static float[] floats(ByteBuffer body, int count) {
    float[] floats = new float[count];
    body.asFloatBuffer().get(floats);
    body.position(body.position() + count * Float.BYTES);
    return floats;
  }

  private static String setting(String name, String otherwise) {
    return System.getenv().getOrDefault(name, otherwise);
  }
}
