package example;

import com.sun.net.httpserver.HttpServer;
import java.io.BufferedInputStream;
import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Fills a {@link Service}, or asks it at a steady rate and prints a table of how long answers take.
 *
 * <p>A request is due at its time whether or not those before it were answered, and takes from then until its answer is there: so
 * waiting counts. Arguments are {@code fill} or {@code ask}, and then {@code name=value}:
 *
 * <pre>
 * url=http://127.0.0.1:8080
 * references=1000   Gaussians to fill it with, ids from 0 on
 * dimension=64
 * rate=200          requests a second
 * seconds=10
 * k=10
 * replace=0         references to replace each second, in a second round of as many seconds
 * puts=1            requests each second that replace them
 * p99=0             the most ms for the 99th percentile; 0: any
 * ratio=0           the most that it may become by replacements, times what it is without; 0: any
 * </pre>
 *
 * <p>The exit status is 1 if an answer was not 200, or one of the last two is exceeded.
 */
public final class Load {
  private static final int MOST_UNDER_WAY = 100;
  private static final int RECORDS = 1000; // in one PUT
  private static final long LONGEST_IDLE = 10_000_000_000L; // ns; the service closes one after 30 s
  private static final String LENGTH = "Content-Length: ";

  /** Starts a platform thread for each request under way, since the kernel wakes it itself when the answer is there. */
  private static final Executor THREADS =
      Executors.newCachedThreadPool(Thread.ofPlatform().daemon().factory());

  private final Map<String, String> arguments;
  private final Deque<Connection> idle = new ConcurrentLinkedDeque<>();
  private final Random random = new Random(7);
  private final URI url;
  private final int d;

  private Load(Map<String, String> arguments) {
    this.arguments = arguments;
    url = URI.create(arguments.getOrDefault("url", "http://127.0.0.1:8080"));
    d = (int) number("dimension", 64);
    if (!"http".equals(url.getScheme()) || url.getHost() == null || !url.getPath().isEmpty()) {
      throw new IllegalArgumentException("url is " + url + ": give http://HOST:PORT");
    }
  }

  /** Takes arguments as the class says. */
  public static void main(String[] args) throws Exception {
    var load =
        new Load(
            Stream.of(args)
                .skip(1)
                .map(argument -> argument.split("=", 2))
                .collect(Collectors.toMap(parts -> parts[0], parts -> parts[1])));
    switch (args.length == 0 ? "" : args[0]) {
      case "fill" -> load.fill();
      case "ask" -> System.exit(load.ask() ? 0 : 1);
      default -> {
        System.err.println("fill or ask, and name=value");
        System.exit(2);
      }
    }
  }

  private double number(String name, double otherwise) {
    return arguments.containsKey(name) ? Double.parseDouble(arguments.get(name)) : otherwise;
  }

  private void fill() throws IOException {
    int references = (int) number("references", 1000);
    for (int first = 0; first < references; first += RECORDS) {
      put(records(first, Math.min(RECORDS, references - first)));
    }
    send("/commit", "POST", new byte[0]);
  }

  private boolean ask() throws Exception {
    warmUp();
    while (send("/ready", "GET", new byte[0]) != 200) {
      Thread.sleep(10);
    }
    int seconds = (int) number("seconds", 10);
    System.out.println(
        "| | requests | p50 ms | p99 ms | longest ms | at a time | too many (429) | too late (504)"
            + " | failed |");
    System.out.println("|---|---|---|---|---|---|---|---|---|");
    var alone = new Phase(seconds);
    alone.run();
    boolean isRight = alone.print("the first second", 1);
    isRight &= alone.print("%d seconds".formatted(seconds), seconds);
    double p99 = alone.quantile(0.99, seconds);
    isRight &= p99 <= number("p99", 0) || number("p99", 0) == 0;
    int replace = (int) number("replace", 0);
    if (replace > 0) {
      int references = (int) number("references", 1000);
      int puts = Math.max(1, (int) number("puts", 1));
      int some = Math.ceilDiv(replace, puts);
      var records =
          IntStream.rangeClosed(0, seconds * puts)
              .map(i -> (int) ((long) i * some % references))
              .mapToObj(first -> records(first, Math.min(some, references - first)))
              .toList();
      var beside = new Phase(seconds);
      var writer = Thread.ofPlatform().daemon().start(() -> replace(records, puts));
      beside.run();
      writer.interrupt();
      isRight &=
          beside.print("beside %d times %d replacements a second".formatted(puts, some), seconds);
      double ratio = beside.quantile(0.99, seconds) / p99;
      System.out.printf("%np99 beside replacements over p99 without: %.2f%n", ratio);
      isRight &= ratio <= number("ratio", 0) || number("ratio", 0) == 0;
    }
    return isRight;
  }

  /** Has the JVM compile this program, by requests to a server of its own. */
  private void warmUp() throws Exception {
    var server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.createContext(
        "/",
        exchange -> {
          try (exchange) {
            exchange.getRequestBody().readAllBytes();
            exchange.sendResponseHeaders(200, -1);
          }
        });
    server.setExecutor(Executors.newVirtualThreadPerTaskExecutor());
    server.start();
    String own = "http://127.0.0.1:" + server.getAddress().getPort();
    new Load(Map.of("url", own, "dimension", "" + d, "rate", "500")).new Phase(3).run();
    server.stop(0);
  }

  /** Requests at a steady rate for some seconds. */
  private final class Phase {
    private final int rate = (int) number("rate", 200);
    private final String path = "/nearest?k=" + (int) number("k", 10);
    private final int[] status;
    private final long[] nanos;
    private final AtomicInteger underWay = new AtomicInteger();
    private final AtomicInteger mostUnderWay = new AtomicInteger();

    private volatile Exception failure;

    Phase(int seconds) {
      status = new int[rate * seconds];
      nanos = new long[rate * seconds];
    }

    void run() throws InterruptedException {
      var permits = new Semaphore(MOST_UNDER_WAY);
      var answers = new CountDownLatch(status.length);
      long start = System.nanoTime();
      for (int i = 0; i < status.length; i++) {
        int number = i;
        long due = start + i * 1_000_000_000L / rate;
        byte[] body = gaussian(ByteBuffer.allocate(2 * d * Float.BYTES)).array();
        for (long now = System.nanoTime(); now < due; now = System.nanoTime()) {
          LockSupport.parkNanos(due - now);
        }
        permits.acquire();
        THREADS.execute(() -> {
          mostUnderWay.accumulateAndGet(underWay.incrementAndGet(), Math::max);
          try {
            status[number] = send(path, "POST", body);
          } catch (IOException | RuntimeException e) {
            failure = e;
          } finally {
            nanos[number] = System.nanoTime() - due;
            underWay.decrementAndGet();
            permits.release();
            answers.countDown();
          }
        });
      }
      answers.await();
    }

    double quantile(double quantile, int seconds) {
      long[] sorted = Arrays.copyOf(nanos, rate * seconds);
      Arrays.sort(sorted);
      return sorted[(int) Math.ceil(quantile * sorted.length) - 1] / 1e6;
    }

    /** Prints a line of the table, and returns whether all answers were 200. */
    boolean print(String name, int seconds) {
      int[] some = Arrays.copyOf(status, rate * seconds);
      long right = Arrays.stream(some).filter(s -> s == 200).count();
      long busy = Arrays.stream(some).filter(s -> s == 429).count();
      long late = Arrays.stream(some).filter(s -> s == 504).count();
      System.out.printf(
          "| %s | %d | %.2f | %.2f | %.2f | %d | %d | %d | %d |%n",
          name,
          some.length,
          quantile(0.5, seconds),
          quantile(0.99, seconds),
          quantile(1, seconds),
          mostUnderWay.get(),
          busy,
          late,
          some.length - right - busy - late);
      if (failure != null) {
        System.err.println("the last that failed: " + failure);
      }
      return right == some.length;
    }
  }

  /** Sends records that were made before, as that takes a core for some time. */
  private void replace(List<byte[]> records, int aSecond) {
    try {
      for (byte[] some : records) {
        put(some);
        Thread.sleep(Duration.ofSeconds(1).dividedBy(aSecond));
      }
    } catch (IOException e) {
      System.err.println(e);
    } catch (InterruptedException e) { // it is over
    }
  }

  private byte[] records(int first, int count) {
    var body =
        ByteBuffer.allocate(count * (Long.BYTES + 2 * d * Float.BYTES))
            .order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < count; i++) {
      gaussian(body.putLong(first + i));
    }
    return body.array();
  }

  private void put(byte[] records) throws IOException {
    int status = send("/gaussians", "PUT", records);
    if (status != 200) {
      throw new IOException("PUT: " + status);
    }
  }

  private ByteBuffer gaussian(ByteBuffer to) {
    to.order(ByteOrder.LITTLE_ENDIAN);
    for (int k = 0; k < d; k++) {
      to.putFloat((float) random.nextGaussian());
    }
    for (int k = 0; k < d; k++) {
      to.putFloat((float) Math.exp(0.3 * random.nextGaussian()));
    }
    return to;
  }

  private int send(String path, String method, byte[] body) throws IOException {
    var connection = idle.poll();
    while (connection != null && System.nanoTime() - connection.since > LONGEST_IDLE) {
      connection.close();
      connection = idle.poll();
    }
    if (connection == null) {
      connection = new Connection(url);
    }
    int status;
    try {
      status = connection.send(path, method, body);
    } catch (IOException | RuntimeException e) {
      connection.close();
      throw e;
    }
    connection.since = System.nanoTime();
    idle.push(connection);
    return status;
  }

  /**
   * HTTP over a socket, one request at a time. {@link java.net.http.HttpClient} has threads of its own: it added half a millisecond to
   * the median, and two to the 99th percentile, in which the service had no part (two processors, a Xeon, JDK 25.0.3).
   */
  private static final class Connection implements Closeable {
    private final Socket socket;
    private final String host;
    private final BufferedInputStream in;
    private long since; // when it became idle

    Connection(URI url) throws IOException {
      socket = new Socket(url.getHost(), url.getPort() < 0 ? 80 : url.getPort());
      socket.setTcpNoDelay(true);
      host = url.getAuthority();
      in = new BufferedInputStream(socket.getInputStream());
    }

    int send(String path, String method, byte[] body) throws IOException {
      String text = method + " " + path + " HTTP/1.1\r\nHost: " + host + "\r\n";
      byte[] head =
          (text + LENGTH + body.length + "\r\n\r\n").getBytes(StandardCharsets.US_ASCII);
      byte[] request = Arrays.copyOf(head, head.length + body.length);
      System.arraycopy(body, 0, request, head.length, body.length);
      socket.getOutputStream().write(request);
      String status = line();
      if (!status.startsWith("HTTP/1.1 ")) {
        throw new IOException("not a status of HTTP/1.1: " + status);
      }
      long length = -1;
      for (String header = line(); !header.isEmpty(); header = line()) {
        if (header.regionMatches(true, 0, LENGTH, 0, LENGTH.length())) {
          length = Long.parseLong(header.substring(LENGTH.length()).trim());
        }
      }
      if (length < 0) {
        throw new IOException("an answer without Content-Length");
      }
      in.skipNBytes(length);
      return Integer.parseInt(status, 9, 12, 10);
    }

    private String line() throws IOException {
      var line = new StringBuilder();
      for (int c = in.read(); c != '\n'; c = in.read()) {
        if (c < 0) {
          throw new EOFException("the connection was closed before the answer's end");
        }
        line.append((char) c);
      }
      return line.toString().stripTrailing();
    }

    @Override
    public void close() throws IOException {
      socket.close();
    }
  }
}
