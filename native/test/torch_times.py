"""Times what users of PyTorch do for the same matrices; rows for the table of `check_device time`.

    torch_times.py [TABLE]  on the GPU, against the rows in file TABLE if there is one
    torch_times.py --cpu    torch.compile on the CPU, one thread, (1024,128): prints microseconds

Exit status: 0; 1 if a result is wrong; 77 if there is no PyTorch, or none that reaches the device.
"""

import os
import signal
import statistics
import sys
import time

ROUNDS = 15
WARM_SECONDS = 0.2
GROUP_SECONDS = 2e-3
SHAPES = [(100, 256), (1024, 128), (4096, 256), (16384, 64), (16384, 512)]


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


try:
    import torch
except Exception as e:  # broken installations raise all sorts
    skip("no PyTorch (%s)" % e)


def inputs(b, h, device):
    generator = torch.Generator().manual_seed(42)
    mean = torch.randn(b, h, generator=generator)
    std = 0.5 * torch.exp(0.5 * torch.randn(b, h, generator=generator))
    return mean.to(device), std.to(device)


def broadcast(mean, std):
    """[B,B,H] temporaries, unless compiled."""
    b, h = mean.shape
    mq, sq = mean[:, None].expand(b, b, h), std[:, None].expand(b, b, h)
    mp, sp = mean[None].expand(b, b, h), std[None].expand(b, b, h)
    ratio = (sq / sp).pow(2)
    return 0.5 * (ratio + ((mq - mp) / sp).pow(2) - 1 - ratio.log()).sum(-1)


def product(mean, std):
    """One matrix product, with its cancellation."""
    v = std * std
    left = torch.cat([v + mean * mean, mean], 1)
    right = torch.cat([1 / v, -2 * mean / v], 1)
    log_det = std.log().sum(1)
    offset = 0.5 * (mean * mean / v).sum(1) + log_det - 0.5 * mean.shape[1]
    return 0.5 * left @ right.T + offset[None] - log_det[:, None]


def outer(mean, std):
    return mean @ mean.T


def reference(mean, std, rows):
    q_mean, q_std, mean, std = mean[rows].double(), std[rows].double(), mean.double(), std.double()
    out = torch.empty(len(rows), mean.shape[0], dtype=torch.double, device=mean.device)
    for n in range(len(rows)):
        ratio = (q_std[n] / std).pow(2)
        out[n] = 0.5 * (ratio + ((q_mean[n] - mean) / std).pow(2) - 1 - ratio.log()).sum(-1)
    return out


def agrees(result, mean, std):
    """To what float's rounding of terms of the size KL + H leaves."""
    rows = [0, mean.shape[0] // 2, mean.shape[0] - 1]
    exact = reference(mean, std, rows)
    return bool(((result[rows] - exact).abs() <= 1e-3 * (exact + mean.shape[1])).all())


def timed(call, count):
    """Seconds a call, by events of the stream."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(count):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e-3 / count


def warm(call):
    """Calls in a row for a group that is long enough."""
    spent, least, count = 0.0, float("inf"), 1
    while spent < WARM_SECONDS:
        once = timed(call, count)
        least = min(least, once)
        spent += max(once * count, 1e-6)
        count = min(2 * count, 64)
    return max(1, min(1000, int(GROUP_SECONDS / least)))


def ours(table):
    """Microseconds with preparation, by shape."""
    times = {}
    if not os.path.exists(table):
        return times
    with open(table, encoding="utf-8") as lines:
        for line in lines:
            cells = [cell.strip() for cell in line.split("|")]
            if len(cells) > 5 and cells[1] == "kullback: diagonal, float":
                times[cells[2]] = float(cells[4])
    return times


def gpu(table):
    notes = []
    # Ended before its time, it tells what it has.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(124))
    try:
        measure(table, notes)
    finally:
        if notes:
            print("\n" + "\n".join(notes), flush=True)
    sys.exit(1 if any(note.startswith("VIOLATION") for note in notes) else 0)


def measure(table, notes):
    if not torch.cuda.is_available():
        skip("PyTorch %s has no CUDA device" % torch.__version__)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
    times = ours(table)
    notes.append("PyTorch %s, CUDA %s, TF32 off" % (torch.__version__, torch.version.cuda))
    for b, h in SHAPES:
        shape = "(%d,%d)" % (b, h)
        mean, std = inputs(b, h, "cuda")
        contenders = []
        for name, function, checked in [
            ("mu@mu.T", outer, False),
            ("matrix product rewrite, fp32", product, True),
            ("broadcast", broadcast, True),
            ("broadcast, torch.compile", None, True),
        ]:
            # Five temporaries of [B,B,H] are alive at once.
            if function is broadcast and 5 * 4 * b * b * h > torch.cuda.mem_get_info()[0]:
                notes.append("%s %s: does not fit" % (name, shape))
                continue
            try:
                if function is None:
                    torch._dynamo.reset()
                    function = torch.compile(broadcast, dynamic=False)
                right = not checked or agrees(function(mean, std), mean, std)
                call = lambda function=function: function(mean, std)
                count = warm(call)
            except Exception as e:  # out of memory, no compiler
                torch.cuda.empty_cache()
                notes.append("%s %s: %s" % (name, shape, (str(e).splitlines() or [repr(e)])[0][:150]))
                continue
            if not right:
                notes.append("VIOLATION %s %s: wrong result" % (name, shape))
                continue
            contenders.append((name, call, count, []))
        for _ in range(ROUNDS):
            for _, call, count, seconds in contenders:
                seconds.append(timed(call, count))
        for name, _, _, seconds in contenders:
            microseconds = statistics.median(seconds) * 1e6
            against = "%.2f × kullback" % (microseconds / times[shape]) if shape in times else ""
            print("| torch: %s | %s | | %.1f | | | | %s |" % (name, shape, microseconds, against), flush=True)
        del contenders, mean, std
        torch.cuda.empty_cache()


def cpu():
    torch.set_num_threads(1)
    mean, std = inputs(1024, 128, "cpu")
    try:
        call = torch.compile(broadcast, dynamic=False)
        result = call(mean, std)
    except Exception as e:
        skip("torch.compile does not work on this CPU: %s" % (str(e).splitlines() or [repr(e)])[0])
    if not agrees(result, mean, std):
        print("VIOLATION torch.compile on the CPU: wrong result")
        sys.exit(1)
    seconds = []
    until = time.perf_counter() + 5
    while time.perf_counter() < until or len(seconds) < 5:
        start = time.perf_counter()
        call(mean, std)
        seconds.append(time.perf_counter() - start)
    print("%.1f" % (statistics.median(seconds) * 1e6))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        print(__doc__)
        sys.exit(2)
    cpu() if sys.argv[1:] == ["--cpu"] else gpu((sys.argv + [""])[1])
