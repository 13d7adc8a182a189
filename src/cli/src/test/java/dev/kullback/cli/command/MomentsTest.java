package dev.kullback.cli.command;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.cli.testing.CommandFixture;
import java.io.IOException;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The channels of means and log-variances in one array, as encoders of images and videos give them, on any axis. */
class MomentsTest extends CommandFixture {
  private static double mean(int row, int channel, int i, int j) {
    return (row + 2 * channel - 3 * i + j) / 8.0;
  }

  private static double logVariance(int row, int channel, int i, int j) {
    return (channel - row - i * j) / 4.0;
  }

  private static int at(int axis, int channels, int channel, int i, int j) {
    return switch (axis) {
      case 1 -> (channel * 2 + i) * 5 + j;
      case 2 -> (i * channels + channel) * 5 + j;
      default -> (i * 5 + j) * channels + channel;
    };
  }

  /** Saves moments of 2 rows, 3 channels and 2 x 5 places with the channels on an axis, and their means and variances as files of their own. */
  private void saveChannels(int axis) throws IOException {
    double[] both = new double[2 * 60];
    double[] means = new double[60];
    double[] variances = new double[60];
    for (int row = 0; row < 2; row++) {
      for (int c = 0; c < 3; c++) {
        for (int i = 0; i < 2; i++) {
          for (int j = 0; j < 5; j++) {
            for (int half = 0; half < 2; half++) {
              int channel = 3 * half + c;
              both[60 * row + at(axis, 6, channel, i, j)] =
                  half == 0 ? mean(row, c, i, j) : logVariance(row, c, i, j);
            }
            int at = 30 * row + at(axis, 3, c, i, j);
            means[at] = mean(row, c, i, j);
            variances[at] = Math.exp(logVariance(row, c, i, j));
          }
        }
      }
    }
    save("e.npy", "<f8", withChannels(axis, 6), both);
    save("m.npy", "<f8", withChannels(axis, 3), means);
    save("v.npy", "<f8", withChannels(axis, 3), variances);
  }

  private static String withChannels(int axis, int channels) {
    String[] axes = {"2", "2", "5"};
    axes[axis - 1] += " " + channels;
    return String.join(" ", axes);
  }

  /** Channels are on the axis that moments are halved along, that of p, too. */
  @ParameterizedTest
  @CsvSource({"1, 1", "1, -3", "2, 2", "2, -2", "3, 3", "3, -1"})
  void channelsOfAnyAxis(int axis, int given) throws IOException {
    saveChannels(axis);
    succeed("standard --moments e.npy --axis " + given + " --per-channel -o o.npy");
    double[] got = values(read("o.npy", 2, 3));
    for (int k = 0; k < 6; k++) {
      double sum = 0;
      for (int place = 0; place < 10; place++) {
        double mean = mean(k / 3, k % 3, place / 5, place % 5);
        double log = logVariance(k / 3, k % 3, place / 5, place % 5);
        sum += 0.5 * (Math.exp(log) + mean * mean - 1 - log);
      }
      assertThat(got[k]).as("%d", k).isCloseTo(sum, within(1e-14));
    }
    save("zero.npy", "<f8", withChannels(axis, 3), new double[60]);
    save("one.npy", "<f8", "1", 1);
    String channels = " --per-channel -o o.npy --axis " + given;
    succeed("aligned --moments e.npy --p-mean zero.npy --p-std one.npy" + channels);
    assertThat(values(read("o.npy", 2, 3))).containsExactly(got, within(1e-14));
    succeed("aligned --mean m.npy --var v.npy --p-moments e.npy" + channels);
    assertThat(values(read("o.npy", 2, 3))).containsExactly(new double[6], within(1e-14));
  }
}
