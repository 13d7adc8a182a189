package dev.kullback.testing;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.Tag;

/**
 * Marks a test of the cases that {@link Share#OTHERS} has: it runs with the processor's own vectors alone. Other instructions, widths and devices get
 * those of {@link Share#SOME}, which meet every tail, kind and precision.
 */
@Tag("long")
@Tag("other-cases")
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
public @interface OtherCases {}
