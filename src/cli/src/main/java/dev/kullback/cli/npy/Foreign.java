package dev.kullback.cli.npy;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;

/**
 * A format that is not read, to be told by its first bytes or, where those are no others', by the suffix.
 *
 * @param magics what files begin with, each character a byte
 * @param advice what to type; FILE is the file's name, NAME that without the suffix
 */
record Foreign(String what, List<String> magics, Set<String> suffixes, String advice) {
  private static final String SAVE = "np.save('NAME.npy', ";

  private static final Foreign TORCH =
      new Foreign(
          "a PyTorch file",
          List.of(),
          Set.of("pt", "pth", "ckpt", "bin"),
          SAVE
              + "torch.load('FILE').float().numpy()) saves a tensor of it, with ['KEY'] after load(…) one of a dict");

  /** Those that begin as another's container does come first. */
  private static final List<Foreign> ALL =
      List.of(
          new Foreign(
              "text of Git LFS in the place of a file",
              List.of("version https://git-lfs"),
              Set.of(),
              "git lfs pull fetches the file"),
          new Foreign(
              "a MATLAB file of version 7.3",
              List.of("MATLAB 7.3"),
              Set.of(),
              SAVE + "h5py.File('FILE')['VARIABLE'][:].T) saves a variable of it"),
          new Foreign(
              "a MATLAB file",
              List.of("MATLAB 5.0"),
              Set.of("mat"),
              SAVE + "scipy.io.loadmat('FILE')['VARIABLE']) saves a variable of it"),
          new Foreign(
              "an HDF5 file",
              List.of("\u0089HDF\r\n"),
              Set.of("h5", "hdf5", "hdf", "keras"),
              SAVE + "h5py.File('FILE')['DATASET'][:]) saves a dataset of it"),
          new Foreign(
              "compressed by gzip", List.of("\u001f\u008b"), Set.of("gz", "tgz"), "gunzip -k FILE"),
          new Foreign("compressed by bzip2", List.of("BZh"), Set.of("bz2"), "bunzip2 -k FILE"),
          new Foreign("compressed by xz", List.of("\u00fd7zXZ"), Set.of("xz"), "unxz -k FILE"),
          new Foreign(
              "compressed by Zstandard", List.of("(\u00b5/\u00fd"), Set.of("zst"), "unzstd FILE"),
          new Foreign(
              "an Arrow or Feather file",
              List.of("ARROW1", "FEA1", "\u00ff\u00ff\u00ff\u00ff"),
              Set.of("arrow", "feather", "ipc"),
              SAVE + "pandas.read_feather('FILE').to_numpy()) saves its table"),
          new Foreign(
              "a Parquet file",
              List.of("PAR1"),
              Set.of("parquet", "pq"),
              SAVE
                  + "np.stack(pandas.read_parquet('FILE')['COLUMN'])) saves a column of lists, pandas.read_parquet('FILE')[['A', 'B']].to_numpy() is one of several columns"),
          new Foreign(
              "a pickle of Python",
              List.of("\u0080\u0002", "\u0080\u0003", "\u0080\u0004", "\u0080\u0005"),
              Set.of("pkl", "pickle", "joblib"),
              SAVE
                  + "np.load('FILE', allow_pickle=True)) saves an array of it; only do that with a file that you trust"),
          new Foreign(
              "text of UTF-16",
              List.of("\u00ff\u00fe", "\u00fe\u00ff"),
              Set.of(),
              "iconv -f UTF-16 -t UTF-8 FILE writes it as UTF-8"),
          new Foreign("an Excel file", List.of(), Set.of("xlsx", "xls"), "save the sheet as CSV"),
          new Foreign(
              "an archive of zip",
              List.of("PK\u0003\u0004", "PK\u0005\u0006"),
              Set.of("zip"),
              "if it has .npy files, call it NAME.npz; otherwise unzip it"),
          new Foreign(
              "a picture",
              List.of("\u0089PNG", "\u00ff\u00d8\u00ff", "GIF8", "II*\0", "MM\0*", "RIFF"),
              Set.of("png", "jpg", "jpeg", "gif", "tif", "tiff", "webp", "bmp"),
              SAVE + "np.asarray(PIL.Image.open('FILE'), 'float32')) saves its pixels"),
          new Foreign("an ONNX model", List.of(), Set.of("onnx"), "save the array by np.save"),
          new Foreign("a GGUF model", List.of("GGUF"), Set.of("gguf"), "save the array by np.save"),
          new Foreign(
              "JSON",
              List.of(),
              Set.of("json", "jsonl"),
              SAVE + "json.load(open('FILE'))) saves a list of lists"),
          new Foreign(
              "numbers without a shape",
              List.of(),
              Set.of("raw", "dat", "f32", "f64", "bin"),
              SAVE + "np.fromfile('FILE', 'float32').reshape(-1, D)) saves rows of D float32"));

  /** Whether a file begins as none of text does; a word may be the name of a column. */
  static boolean isNoText(byte[] start) {
    String text = new String(start, StandardCharsets.ISO_8859_1);
    return ALL.stream()
        .flatMap(format -> format.magics.stream())
        .anyMatch(magic -> !magic.matches("\\w+") && text.startsWith(magic));
  }

  /** Returns what a file is and what to do, as the rest of a sentence that begins with its name. */
  static String refusal(byte[] start, Path file, String suffix) {
    String text = new String(start, StandardCharsets.ISO_8859_1);
    if (text.isEmpty()) {
      return "is empty";
    }
    boolean isContainer = text.startsWith("PK") || text.startsWith("\u0080");
    if (isContainer && TORCH.suffixes.contains(suffix)) {
      return TORCH.refusal(file, suffix);
    }
    for (Foreign format : ALL) {
      if (format.magics.stream().anyMatch(text::startsWith)) {
        return format.refusal(file, suffix);
      }
    }
    for (Foreign format : ALL) {
      if (format.suffixes.contains(suffix)) {
        return format.refusal(file, suffix);
      }
    }
    return "is not a .npy file: it does not begin with \\x93NUMPY";
  }

  private String refusal(Path file, String suffix) {
    String name = String.valueOf(file.getFileName());
    String stem = suffix.isEmpty() ? name : name.substring(0, name.length() - suffix.length() - 1);
    return "is %s, which is not read: %s"
        .formatted(what, advice.replace("FILE", name).replace("NAME", stem));
  }
}
