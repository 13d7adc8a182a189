/**
 * Arrays of NumPy's .npy and .npz files, of safetensors and of text: reads them, and writes NumPy's headers. It may use terminal. Start with {@link dev.kullback.cli.npy.Npy}.
 */
@NullMarked
package dev.kullback.cli.npy;

import org.jspecify.annotations.NullMarked;
