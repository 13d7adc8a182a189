package dev.kullback.spark;

import java.io.Serializable;
import java.util.List;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.AbstractDataType;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.UserDefinedType;
import org.jspecify.annotations.Nullable;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/**
 * The elements of a vector or a matrix as one array, a matrix's row by row: an expression of Catalyst. What is no square matrix comes out
 * empty, as its elements might make one of another shape.
 *
 * <p>Vectors and matrices are those of Spark ML, and of Spark's older module, whose structs are the same. Their types are told by their
 * names, and their values read as the structs, so that the modules need not be there.
 */
@SuppressWarnings("serial") // goes to executors that run the same classes
final class Elements extends Expression implements Serializable {
  private static final String ML = "org.apache.spark.ml.linalg.";
  private static final String OLD = "org.apache.spark.mllib.linalg.";
  private static final String VECTOR = "VectorUDT";
  private static final String MATRIX = "MatrixUDT";

  /** Vectors, as a type that a function of SQL takes. */
  static final AbstractDataType VECTORS = new Named("vector", VECTOR);

  /** Matrices, likewise. */
  static final AbstractDataType MATRICES = new Named("matrix", MATRIX);

  private final Expression child;
  private final Form form;

  private Elements(Expression child, Form form) {
    this.child = child;
    this.form = form;
  }

  /** Returns the expression if it is an array already, and that of its elements if it is a vector, a matrix or an array of rows. */
  static Expression of(Expression values) {
    return of(values, values.dataType());
  }

  /**
   * Likewise of an expression that is not resolved yet.
   *
   * @param type its type
   */
  static Expression of(Expression values, DataType type) {
    if (isVector(type)) {
      return new Elements(values, Form.VECTOR);
    }
    if (isMatrix(type)) {
      return new Elements(values, Form.MATRIX);
    }
    if (type instanceof ArrayType outer && outer.elementType() instanceof ArrayType inner) {
      return new Elements(
          values,
          inner.elementType().equals(DataTypes.FloatType) ? Form.FLOAT_ROWS : Form.DOUBLE_ROWS);
    }
    return values;
  }

  static boolean isVector(DataType type) {
    return isOf(type, VECTOR);
  }

  static boolean isMatrix(DataType type) {
    return isOf(type, MATRIX);
  }

  private static boolean isOf(DataType type, String className) {
    String name = name(type);
    return name.equals(ML + className) || name.equals(OLD + className);
  }

  /** Whether values are arrays of the rows of a matrix. */
  static boolean isRows(DataType type) {
    return type instanceof ArrayType outer
        && outer.elementType() instanceof ArrayType inner
        && inner.elementType() instanceof NumericType;
  }

  /** Returns a type's name in SQL, or that of its class if it has one of its own. */
  static String name(DataType type) {
    return type instanceof UserDefinedType<?> ? type.getClass().getName() : type.catalogString();
  }

  /**
   * Whether a mean or scales are a vector of Spark's older module, which is refused except as the mean beside a matrix: what
   * {@code gaussiansDF} of Spark ML's own mixtures gives.
   *
   * @param scales type of the scales beside a mean, or of the scales themselves
   */
  static boolean isOld(DataType type, DataType scales) {
    return name(type).equals(OLD + VECTOR) && !isMatrix(scales);
  }

  /**
   * Returns how to convert a vector of Spark's older module.
   *
   * @param column its name
   */
  static String conversion(String column) {
    return "convert it to Spark ML's, by org.apache.spark.mllib.util.MLUtils.convertVectorColumnsToML(data, \"%s\")"
        .formatted(column);
  }

  /** A type of either module, for messages and for what a function takes. */
  private static final class Named extends AbstractDataType {
    private final String name;
    private final String className;

    Named(String name, String className) {
      this.name = name;
      this.className = className;
    }

    @Override
    public DataType defaultConcreteType() {
      return DataTypes.createArrayType(DataTypes.DoubleType);
    }

    @Override
    public boolean acceptsType(DataType other) {
      return isOf(other, className);
    }

    @Override
    public String simpleString() {
      return name;
    }
  }

  /** Reads values; a function that generated code can call. */
  private enum Form implements Function<Object, ArrayData> {
    /** Of the fields type, size, indices and values. */
    VECTOR {
      @Override
      public ArrayData apply(Object value) {
        InternalRow vector = (InternalRow) value;
        ArrayData values = vector.getArray(3);
        if (isDense(vector)) {
          return values;
        }
        int[] indices = vector.getArray(2).toIntArray();
        double[] all = new double[vector.getInt(1)];
        for (int k = 0; k < indices.length; k++) {
          all[indices[k]] = values.getDouble(k);
        }
        return UnsafeArrayData.fromPrimitiveArray(all);
      }
    },

    /** Of the fields type, numRows, numCols, colPtrs, rowIndices, values and isTransposed, which is by rows. */
    MATRIX {
      @Override
      public ArrayData apply(Object value) {
        InternalRow matrix = (InternalRow) value;
        int n = matrix.getInt(1);
        ArrayData values = matrix.getArray(5);
        boolean byRows = matrix.getBoolean(6);
        if (n != matrix.getInt(2)) {
          return none();
        }
        if (isDense(matrix)) {
          return (long) n * n != values.numElements() ? none() : byRows ? values : dense(values, n);
        }
        return sparse(
            matrix.getArray(3).toIntArray(),
            matrix.getArray(4).toIntArray(),
            values,
            new double[Math.multiplyExact(n, n)],
            byRows);
      }

      private ArrayData dense(ArrayData byColumns, int n) {
        double[] all = new double[n * n];
        for (int row = 0; row < n; row++) {
          for (int column = 0; column < n; column++) {
            all[row * n + column] = byColumns.getDouble(column * n + row);
          }
        }
        return UnsafeArrayData.fromPrimitiveArray(all);
      }

      // starts: of the columns, or rows, among their elements; indices: of the elements' rows, or
      // columns; all: zeros
      private ArrayData sparse(
          int[] starts, int[] indices, ArrayData values, double[] all, boolean byRows) {
        int n = starts.length - 1;
        for (int i = 0; i < n; i++) {
          for (int k = starts[i]; k < starts[i + 1]; k++) {
            all[byRows ? i * n + indices[k] : indices[k] * n + i] = values.getDouble(k);
          }
        }
        return UnsafeArrayData.fromPrimitiveArray(all);
      }
    },

    /** Of as many arrays of as many floats. */
    FLOAT_ROWS {
      @Override
      public ArrayData apply(Object value) {
        ArrayData rows = (ArrayData) value;
        int n = size(rows);
        float[] all = new float[n * n];
        for (int i = 0; i < n; i++) {
          ArrayReader.copyFloats(rows.getArray(i), all, i * n);
        }
        return withNulls(UnsafeArrayData.fromPrimitiveArray(all), rows, n);
      }
    },

    /** Of as many arrays of as many doubles. */
    DOUBLE_ROWS {
      @Override
      public ArrayData apply(Object value) {
        ArrayData rows = (ArrayData) value;
        int n = size(rows);
        double[] all = new double[n * n];
        for (int i = 0; i < n; i++) {
          ArrayReader.copyDoubles(rows.getArray(i), false, all, i * n);
        }
        return withNulls(UnsafeArrayData.fromPrimitiveArray(all), rows, n);
      }
    };

    private static ArrayData none() {
      return UnsafeArrayData.fromPrimitiveArray(new double[0]);
    }

    private static boolean isDense(InternalRow vectorOrMatrix) {
      return vectorOrMatrix.getByte(0) == 1;
    }

    /** Returns the dimension of a matrix by rows, or 0 if it is not square. */
    private static int size(ArrayData rows) {
      int n = rows.numElements();
      for (int i = 0; i < n; i++) {
        if (rows.isNullAt(i) || rows.getArray(i).numElements() != n) {
          return 0;
        }
      }
      return n;
    }

    private static ArrayData withNulls(UnsafeArrayData all, ArrayData rows, int n) {
      for (int i = 0; i < n; i++) {
        int null0 = ArrayReader.firstNull(rows.getArray(i));
        if (null0 >= 0) {
          all.setNullAt(i * n + null0);
        }
      }
      return all;
    }
  }

  @Override
  public @Nullable Object eval(@Nullable InternalRow row) {
    Object value = child.eval(row);
    return value == null ? null : form.apply(value);
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    String read = context.addReferenceObj("elements", form, Function.class.getName());
    String type = ArrayData.class.getName();
    ExprCode value = child.genCode(context);
    return code.copy(
        KlDivergence.block(
            "{}\nboolean {} = {};\nARRAY {} = null;\nif (!{}) {\n{} = (ARRAY) READ.apply({});\n}\n"
                .replace("ARRAY", type)
                .replace("READ", read),
            value.code(),
            code.isNull(),
            value.isNull(),
            code.value(),
            code.isNull(),
            code.value(),
            value.value()),
        code.isNull(),
        code.value());
  }

  @Override
  public boolean nullable() {
    return child.nullable();
  }

  @Override
  public boolean foldable() {
    return child.foldable();
  }

  @Override
  public DataType dataType() {
    return DataTypes.createArrayType(
        form == Form.FLOAT_ROWS ? DataTypes.FloatType : DataTypes.DoubleType);
  }

  /** The argument's own text, of which columns of results are named. */
  @Override
  public String sql() {
    return child.sql();
  }

  @Override
  public Seq<Expression> children() {
    return KlDivergence.seq(List.of(child));
  }

  @Override
  public Expression withNewChildrenInternal(IndexedSeq<Expression> children) {
    return new Elements(children.apply(0), form);
  }

  @Override
  public int productArity() {
    return 2;
  }

  @Override
  public Object productElement(int n) {
    return List.of(child, form).get(n);
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof Elements;
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof Elements same && form == same.form && child.equals(same.child);
  }

  @Override
  public int hashCode() {
    return child.hashCode();
  }
}
