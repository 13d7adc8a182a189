/**
 * Tries every operation on the machine it runs on, and compares the results with the plain text. It uses the engine, and plain for what is
 * expected. Start with {@link dev.kullback.internal.verify.Verify}.
 */
@NullMarked
package dev.kullback.internal.verify;

import org.jspecify.annotations.NullMarked;
