package dev.kullback.cli.npy;

import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import com.google.gson.stream.MalformedJsonException;
import java.io.EOFException;
import java.io.IOException;
import java.io.StringReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Files of safetensors: the length of a header, the header in JSON, and tensors without a gap, little-endian and in C order. */
final class Safetensors {
  /** Bytes that the format allows. */
  private static final int MAX_HEADER = 100_000_000;

  private static final Map<String, Type> TYPES =
      Map.ofEntries(
          Map.entry("F16", Type.FLOAT16),
          Map.entry("BF16", Type.BFLOAT16),
          Map.entry("F32", Type.FLOAT32),
          Map.entry("F64", Type.FLOAT64),
          Map.entry("I8", Type.INT8),
          Map.entry("I16", Type.INT16),
          Map.entry("I32", Type.INT32),
          Map.entry("I64", Type.INT64),
          Map.entry("U8", Type.UINT8),
          Map.entry("U16", Type.UINT16),
          Map.entry("U32", Type.UINT32),
          Map.entry("U64", Type.UINT64),
          Map.entry("BOOL", Type.BOOL));

  private record Tensor(String name, String dtype, long[] shape, long from, long to) {}

  private Safetensors() {}

  /** Reads the header of a file, and goes to the tensor that is named, or the only one. */
  static Opened open(Input in, Name name) throws IOException {
    ByteBuffer start = ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    if (in.fill(start) < Long.BYTES) {
      throw new NpyException("is no safetensors file: it has fewer than 8 bytes");
    }
    long length = start.getLong(0);
    if (length < 2 || length > Math.min(MAX_HEADER, in.remaining())) {
      throw new NpyException(
          "is no safetensors file, or is truncated: its first 8 bytes claim a header of %s bytes, %d follow"
              .formatted(Long.toUnsignedString(length), in.remaining()));
    }
    ByteBuffer text = ByteBuffer.allocate((int) length);
    in.fill(text);
    List<Tensor> tensors = read(utf8(text.flip()));
    check(tensors, in.remaining());
    Tensor tensor = find(tensors, name);
    in.toPart(tensor.from, tensor.to - tensor.from);
    return new Opened(
        in,
        new NpyHeader(tensor.dtype, false, tensor.shape),
        TYPES.getOrDefault(tensor.dtype, Type.OTHER),
        ByteOrder.LITTLE_ENDIAN,
        name.isBfloat16(),
        (_, to) -> advice(name, to));
  }

  private static String utf8(ByteBuffer text) throws NpyException {
    try {
      return StandardCharsets.UTF_8.newDecoder().decode(text).toString();
    } catch (CharacterCodingException e) {
      throw new NpyException("has a malformed header: it is not UTF-8");
    }
  }

  private static List<Tensor> read(String text) throws IOException {
    List<Tensor> tensors = new ArrayList<>();
    JsonReader json = new JsonReader(new StringReader(text));
    json.setStrictness(Strictness.STRICT);
    try {
      Set<String> names = new HashSet<>();
      json.beginObject();
      while (json.hasNext()) {
        String name = json.nextName();
        if (!names.add(name)) {
          throw malformed(name, "is in the header twice");
        }
        if (name.equals("__metadata__")) {
          json.skipValue();
        } else {
          tensors.add(tensor(name, json));
        }
      }
      json.endObject();
      if (json.peek() == JsonToken.END_DOCUMENT) { // throws where anything else follows
        return tensors;
      }
    } catch (MalformedJsonException | EOFException | IllegalStateException e) {
      // their messages are for programmers
    }
    throw new NpyException(
        "has a malformed header: it is not the JSON of safetensors at "
            + Name.shortened(json.getPath()));
  }

  private static Tensor tensor(String name, JsonReader json) throws IOException {
    @Nullable String dtype = null;
    long @Nullable [] shape = null;
    long @Nullable [] offsets = null;
    json.beginObject();
    while (json.hasNext()) {
      String key = json.nextName();
      if (key.equals("dtype") && dtype == null && json.peek() == JsonToken.STRING) {
        dtype = json.nextString();
      } else if (key.equals("shape") && shape == null) {
        shape = numbers(name, json);
      } else if (key.equals("data_offsets") && offsets == null) {
        offsets = numbers(name, json);
      } else {
        throw malformed(name, "has an unexpected or repeated " + key + " in the header");
      }
    }
    json.endObject();
    if (dtype == null || shape == null || offsets == null || offsets.length != 2) {
      throw malformed(name, "lacks a dtype, a shape or two data_offsets in the header");
    }
    return new Tensor(name, dtype, shape, offsets[0], offsets[1]);
  }

  private static long[] numbers(String name, JsonReader json) throws IOException {
    List<Long> numbers = new ArrayList<>();
    json.beginArray();
    while (json.hasNext()) {
      String number = json.peek() == JsonToken.NUMBER ? json.nextString() : "";
      if (!number.matches("0|[1-9][0-9]{0,17}")) {
        throw malformed(name, "has a shape or data_offsets of other than small integers >= 0");
      }
      numbers.add(Long.valueOf(number));
    }
    json.endArray();
    return numbers.stream().mapToLong(Long::longValue).toArray();
  }

  /** Requires tensors side by side from the first to the last byte, each of the size that its shape has. */
  private static void check(List<Tensor> tensors, long bytes) throws NpyException {
    List<Tensor> sorted = new ArrayList<>(tensors);
    sorted.sort(Comparator.comparingLong(Tensor::from).thenComparingLong(Tensor::to));
    long end = 0;
    for (Tensor tensor : sorted) {
      if (tensor.from != end || tensor.to < end || tensor.to > bytes) {
        throw malformed(
            tensor.name,
            "has the data_offsets [%d, %d], where %d bytes are data, and those before it end at %d"
                .formatted(tensor.from, tensor.to, bytes, end));
      }
      end = tensor.to;
      checkSize(tensor);
    }
    if (end != bytes) {
      throw new NpyException("has %d bytes after its last tensor".formatted(bytes - end));
    }
  }

  private static void checkSize(Tensor tensor) throws NpyException {
    Type type = TYPES.getOrDefault(tensor.dtype, Type.OTHER);
    if (type.bytes() == 0) {
      return; // not read
    }
    long size;
    try {
      size = Arrays.stream(tensor.shape).reduce(type.bytes(), Math::multiplyExact);
    } catch (ArithmeticException e) {
      size = -1;
    }
    if (size != tensor.to - tensor.from) {
      throw malformed(
          tensor.name,
          "has %d bytes of data by its data_offsets, but shape %s of %s"
              .formatted(tensor.to - tensor.from, Arrays.toString(tensor.shape), tensor.dtype));
    }
  }

  private static Tensor find(List<Tensor> tensors, Name name) throws NpyException {
    if (name.array() == null && tensors.size() == 1) {
      return tensors.getFirst();
    }
    return tensors.stream()
        .filter(tensor -> tensor.name.equals(name.array()))
        .findFirst()
        .orElseThrow(() -> name.noneOf(tensors.stream().map(Tensor::name).sorted().toList()));
  }

  private static NpyException malformed(String name, String what) {
    return new NpyException("tensor %s %s".formatted(Name.shortened(name), what));
  }

  private static String advice(Name name, String to) {
    String file = String.valueOf(name.file().getFileName());
    return "convert it in Python, from safetensors.torch import *; save_file({k: t.to(torch.%s) for k, t in load_file('%s').items()}, 'converted.safetensors')"
        .formatted(to, file);
  }
}
