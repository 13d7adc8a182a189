package dev.kullback.bench;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.pytorch.engine.PtNDManager;
import ai.djl.pytorch.engine.PtSymbolBlock;
import ai.djl.pytorch.jni.IValue;
import ai.djl.pytorch.jni.JniUtils;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;

/**
 * A function of tensors, in libtorch's own language: DJL offers a method for some operators only, its loader of modules all of
 * them. What {@code torch.jit.save} would write for a module without parameters is put together here.
 */
final class TorchScript implements AutoCloseable {
  /** {@code Function()} with {@code training = True}, in pickle's protocol 2. */
  private static final String OBJECT =
      "\u0080\u0002c__torch__\nFunction\n)\u0081}(X\b\0\0\0training\u0088ub.";

  /** An empty tuple. */
  private static final String CONSTANTS = "\u0080\u0002).";

  private final PtNDManager manager;
  private final PtSymbolBlock module;
  private final IValue[] arguments;

  /**
   * @param forward the method {@code forward(self: __torch__.Function, …) -> Tensor}, indented by two spaces
   */
  TorchScript(NDManager manager, String forward, NDArray... arguments) {
    this.manager = (PtNDManager) manager;
    String code =
        """
        class Function(Module):
          __parameters__ = []
          __buffers__ = []
          training : bool
        """
            + forward;
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try {
      try (ZipOutputStream zip = new ZipOutputStream(bytes)) {
        put(zip, "data.pkl", OBJECT.getBytes(StandardCharsets.ISO_8859_1));
        put(zip, "code/__torch__.py", code.getBytes(StandardCharsets.UTF_8));
        put(zip, "constants.pkl", CONSTANTS.getBytes(StandardCharsets.ISO_8859_1));
        // Of the operators' semantics: the newest that libtorch 2.7 knows.
        put(zip, "version", "10\n".getBytes(StandardCharsets.UTF_8));
      }
      ByteArrayInputStream archive = new ByteArrayInputStream(bytes.toByteArray());
      module = JniUtils.loadModule(this.manager, archive, false, false);
    } catch (IOException e) {
      throw new AssertionError("streams in memory do not fail", e);
    }
    this.arguments =
        Stream.of(arguments).map(a -> IValue.from((PtNDArray) a)).toArray(IValue[]::new);
  }

  private static void put(ZipOutputStream zip, String name, byte[] content) throws IOException {
    zip.putNextEntry(new ZipEntry("function/" + name));
    zip.write(content);
    zip.closeEntry();
  }

  NDArray call() {
    try (IValue result = module.forward(arguments)) {
      return result.toTensor(manager);
    }
  }

  @Override
  public void close() {
    for (IValue argument : arguments) {
      argument.close();
    }
    module.close();
  }
}
