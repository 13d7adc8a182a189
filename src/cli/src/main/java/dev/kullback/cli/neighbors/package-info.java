/**
 * Files with lists of nearest neighbors, as topk and merge write them and merge reads them. It may use output, npy and terminal. Start
 * with {@link dev.kullback.cli.neighbors.NeighborOutput}.
 */
@NullMarked
package dev.kullback.cli.neighbors;

import org.jspecify.annotations.NullMarked;
