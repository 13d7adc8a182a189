<#--
  Operations of kernels that the build emits twice, on vectors and, as their scalar twin, on one number: both make the same operations in the
  same order, so they give the same bits. The template of a class Name includes this file and has its text in <@twins "Name">, which is gone
  through for Name and for ScalarName, but where the macro names the twin: FloatScalarKlSums and those of other formulas, from which the
  build derives DoubleScalar…, and FullColdKernel and the other FullCold…. `class` is the name, `twin` what comes before it,
  and `asVectors` tells which it is. A name may be a path from the template to another room.

  Operands are Java: ${fma("x", "y", "a${i}")} becomes x.fma(y, a0), and Math.fma(x, y, a0). The scalar twin has V = 1, so that what lies vector
  by vector, at k·V, lies number by number.
-->
<#macro twins vectors scalars="Scalar${vectors}" of="Double">
<@emit vectors true of><#nested></@emit>
<@emit scalars false of><#nested></@emit>
</#macro>
<#macro emit name isVector of>
<#global class = name?split("/")?last, asVectors = isVector, twin = isVector?then("", "Scalar"), lane = of, vector = type(of)>
<#if pp.outputFileName == "${class}.java">
<#nested>
<#else>
<@pp.nestOutputFile name="${name}.java">
<#nested>
</@pp.nestOutputFile>
</#if>
</#macro>
<#macro imports>
<#if asVectors>
import dev.kullback.internal.vector.Species;
import jdk.incubator.vector.${lane}Vector;
import jdk.incubator.vector.VectorSpecies;
<#nested>
</#if>
</#macro>
<#-- Declares the species S and its number of lanes V. Nested text is for vectors alone; so is that of <@imports>. -->
<#macro species>
<#if asVectors>
  private static final VectorSpecies<${lane}> S = Species.${lane?upper_case};
  private static final int V = S.length();
<#nested>
<#else>
  private static final int V = 1;
</#if>
</#macro>
<#-- The type of variables; `vector` is that of the lanes. Species of other lanes have their first letter: L for longs. -->
<#function type of><#return asVectors?then("${of}Vector", of?lower_case)></#function>
<#function speciesOf of><#return (of == lane)?then("S", of[0])></#function>
<#function load array at of=lane><#return asVectors?then("${of}Vector.fromArray(${speciesOf(of)}, ${array}, ${at})", "${array}[${at}]")></#function>
<#function store x array at><#return asVectors?then("${x}.intoArray(${array}, ${at})", "${array}[${at}] = ${x}")></#function>
<#function zero of=lane><#return asVectors?then("${of}Vector.zero(${speciesOf(of)})", "0")></#function>
<#-- The same number in each lane. -->
<#function broadcast x of=lane><#return asVectors?then("${of}Vector.broadcast(${speciesOf(of)}, ${x})", x)></#function>
<#-- An operand of a scalar operator, in parentheses if it has an operator outside of calls and indices: x * (2 * y) is not x * 2 * y. -->
<#function operand x>
<#local outside = x>
<#list 1..9 as depth><#local outside = outside?replace(r"[(\[][^()\[\]]*[)\]]", "", "r")></#list>
<#return outside?contains(" ")?then("(${x})", x)>
</#function>
<#function add x y><#return asVectors?then("${x}.add(${y})", "(${x} + ${operand(y)})")></#function>
<#function sub x y><#return asVectors?then("${x}.sub(${y})", "(${x} - ${operand(y)})")></#function>
<#function mul x y><#return asVectors?then("${x}.mul(${y})", "(${x} * ${operand(y)})")></#function>
<#function div x y><#return asVectors?then("${x}.div(${y})", "(${x} / ${operand(y)})")></#function>
<#function fma x y z><#return asVectors?then("${x}.fma(${y}, ${z})", "Math.fma(${x}, ${y}, ${z})")></#function>
<#-- Of one number the product is rounded, as there may be no fma where there are no vectors: for sums whose last digits are of no account. -->
<#function mulAdd x y z><#return asVectors?then(fma(x, y, z), add(z, mul(x, y)))></#function>
<#function neg x><#return asVectors?then("${x}.neg()", "-${x}")></#function>
<#function abs x><#return asVectors?then("${x}.abs()", "Math.abs(${x})")></#function>
<#function sqrt x><#return asVectors?then("${x}.sqrt()", (lane == "Float")?then("(float) ", "") + "Math.sqrt(${x})")></#function>
<#function min x y><#return asVectors?then("${x}.min(${y})", "Math.min(${x}, ${y})")></#function>
<#function max x y><#return asVectors?then("${x}.max(${y})", "Math.max(${x}, ${y})")></#function>
<#-- The bits of numbers as integers and back, and operations on bits; `add` and `sub` are two of them. The mark has the build make longs of integers. -->
<#function bits x>
<#if lane == "Float"><#return asVectors?then("((IntVector /*bits*/) ${x}.reinterpretShape(BITS, 0))", "Float.floatToRawIntBits(${x})")></#if>
<#return asVectors?then("((LongVector) ${x}.reinterpretShape(L, 0))", "Double.doubleToRawLongBits(${x})")>
</#function>
<#function ofBits x>
<#if lane == "Float"><#return asVectors?then("((FloatVector) ${x}.reinterpretShape(S, 0))", "Float.intBitsToFloat(${x})")></#if>
<#return asVectors?then("((DoubleVector) ${x}.reinterpretShape(S, 0))", "Double.longBitsToDouble(${x})")>
</#function>
<#function shiftLeft x n><#return asVectors?then("${x}.lanewise(VectorOperators.LSHL, ${n})", "(${x} << ${n})")></#function>
<#function shiftRight x n><#return asVectors?then("${x}.lanewise(VectorOperators.LSHR, ${n})", "(${x} >>> ${n})")></#function>
<#function and x y><#return asVectors?then("${x}.and(${y})", "(${x} & ${operand(y)})")></#function>
<#function xor x y><#return asVectors?then("${x}.lanewise(VectorOperators.XOR, ${y})", "(${x} ^ ${operand(y)})")></#function>
<#function or x y><#return asVectors?then("${x}.or(${y})", "(${x} | ${y})")></#function>
<#function isEachGreater x y><#return asVectors?then("${x}.compare(VectorOperators.GT, ${y}).allTrue()", "(${x} > ${y})")></#function>
<#function isAnyNegative x><#return asVectors?then("${x}.reduceLanes(VectorOperators.OR) < 0", "${x} < 0")></#function>
<#-- Of numbers, x where `near`, which in vectors is a mask of all bits, and else y. -->
<#function choose near x y><#return asVectors?then(ofBits("${bits(y)}.bitwiseBlend(${bits(x)}, ${near})"), "(${near} ? ${x} : ${y})")></#function>
<#-- The exponent that the bits of a double have, biased, and that number; the mantissa, in [√½, √2). -->
<#function exponent bits><#return shiftRight(add(bits, "Excess.EXPONENT_OFFSET"), "Excess.MANTISSA_BITS")></#function>
<#function toDouble exponent><#return sub(ofBits(or(exponent, "Excess.INTEGER")), "Excess.INTEGER_OFFSET")></#function>
<#function mantissa bits exponent>
<#return ofBits(sub(bits, shiftLeft(sub(exponent, "Excess.BIAS"), "Excess.MANTISSA_BITS")))>
</#function>
<#-- Declares `sum`, the polynomial of x, even and odd powers apart: a single chain takes twice as long. The last coefficient is that of 1. -->
<#macro polynomial sum coefficients x isCountOdd=true>
      ${vector} ${x}${x} = ${mul(x, x)};
      ${vector} first = ${broadcast("${coefficients}[0]")};
      ${vector} second = ${broadcast("${coefficients}[1]")};
      for (int c = 2; c < ${coefficients}.length - 1; c += 2) {
        first = ${add(mul(x + x, "first"), "${coefficients}[c]")};
        second = ${add(mul(x + x, "second"), "${coefficients}[c + 1]")};
      }
<#if isCountOdd>
      ${vector} ${sum} = ${add(add(mul("first", x + x), "${coefficients}[${coefficients}.length - 1]"), mul("second", x))};
<#else>
      ${vector} ${sum} = ${add("second", mul("first", x))};
</#if>
</#macro>
