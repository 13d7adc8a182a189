/**
 * Scans that go through memory once: rows of results, for reductions, and panels of floats or codes, for an index. Each has a class for
 * vectors and one without, which is loaded where there are none; it may use vector and what that may. Start with
 * {@link dev.kullback.internal.vector.scan.PanelScanKernel}.
 */
@NullMarked
package dev.kullback.internal.vector.scan;

import org.jspecify.annotations.NullMarked;
