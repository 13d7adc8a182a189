/**
 * NumPy's .npy and .npz files: reads them, and writes headers. It may use terminal. Start with {@link dev.kullback.cli.npy.Npy}.
 */
@NullMarked
package dev.kullback.cli.npy;

import org.jspecify.annotations.NullMarked;
