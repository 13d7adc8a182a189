package dev.kullback.cli.npy;

import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.Set;

/**
 * An array of a file of some format, before its data are read.
 *
 * @param in has the data and then ends, or has what ought not to be there
 * @param header tells the shape, and the type in the format's words
 * @param isBfloat16 whether its name says so
 * @param advice tells how to make an array of another type
 */
record Opened(
    Input in, NpyHeader header, Type type, ByteOrder order, boolean isBfloat16, Advice advice) {
  /** What to type where a type is not taken. */
  interface Advice {
    String convert(Type type, String to);
  }

  /** Opens what a name on the command line stands for, by the first bytes of its file or by the suffix; text has a type that is wanted. */
  static Opened of(Path given, Set<Type> wanted) throws IOException {
    if (given.equals(Input.STDIN)) {
      return NpyFormat.open(Input.stdin(), Name.of(given));
    }
    Name name = Name.of(given);
    String suffix = Input.suffix(name.file());
    if (suffix.equals("npz")) {
      return Archive.open(name);
    }
    Input in = Input.ofFile(name.file());
    try {
      byte[] start = in.start();
      if (NpyFormat.isMagic(start)) {
        return NpyFormat.open(in, name);
      }
      if (suffix.equals("safetensors")) {
        return Safetensors.open(in, name);
      }
      if (TextTable.SUFFIXES.contains(suffix) && start.length > 0 && !Foreign.isNoText(start)) {
        Opened opened = TextTable.open(name, wanted);
        in.close();
        return opened;
      }
      throw new NpyException(Foreign.refusal(start, name.file(), suffix));
    } catch (IOException | RuntimeException e) {
      in.close();
      throw e;
    }
  }
}
