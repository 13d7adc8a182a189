/**
 * Pictures of a matrix. It may use npy and terminal. Start with {@link dev.kullback.cli.picture.Heatmap}.
 */
@NullMarked
package dev.kullback.cli.picture;

import org.jspecify.annotations.NullMarked;
