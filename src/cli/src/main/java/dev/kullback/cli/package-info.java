/**
 * The command line. It uses only the public API of {@code dev.kullback}; every class here may
 * change.
 */
@NullMarked
package dev.kullback.cli;

import org.jspecify.annotations.NullMarked;
