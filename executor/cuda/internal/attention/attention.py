"""Attention, forward and backward, without a matrix of all scores.

FlashAttention-2 (arXiv 2307.08691): a program owns a block of queries (or, for
the gradients of keys and values, of keys), walks over the blocks of the other
side that it meets, and makes the scores of two blocks on the tensor cores.
Forward keeps a running maximum and sum a row; backward makes the weights again
from the rows' log-sum-exp. No two programs write the same value and each adds
up in one order, so that results repeat bit for bit.

Which keys a query sees is told at run time: with causal, none behind it; with
window > 0, of those before it the last window, itself among them. Blocks that
no row sees are left out, and only those that some rows see in part are masked.

Rows of a sequence lie one behind the other, heads side by side, so that a
tensor may be a part of a wider one: a row is its stride behind the one before.
Heads are dim wide and worked on in WIDTH columns, those behind dim read as 0.
"""

import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)
LN2 = tl.constexpr(0.6931471805599453)


@triton.jit
def places(base, first, end, stride, dim, ROWS: tl.constexpr, WIDTH: tl.constexpr, EXACT: tl.constexpr):
    """Rows [first, first+ROWS) × WIDTH columns, and which of them there are."""
    row = tl.arange(0, ROWS)
    column = tl.arange(0, WIDTH)
    at = base + first.to(tl.int64) * stride + row[:, None] * stride + column[None, :]
    mask = (first + row < end)[:, None]
    if not EXACT:
        mask = mask & (column < dim)[None, :]
    return at, mask


@triton.jit
def load_block(base, first, end, stride, dim, ROWS: tl.constexpr, WIDTH: tl.constexpr, EXACT: tl.constexpr):
    at, mask = places(base, first, end, stride, dim, ROWS, WIDTH, EXACT)
    return tl.load(at, mask=mask, other=0.0)


@triton.jit
def store_block(base, first, end, stride, dim, block, ROWS: tl.constexpr, WIDTH: tl.constexpr, EXACT: tl.constexpr):
    at, mask = places(base, first, end, stride, dim, ROWS, WIDTH, EXACT)
    tl.store(at, block.to(base.dtype.element_ty), mask=mask)


@triton.jit
def load_line(base, first, end, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """One value a row of ROWS rows, a stride apart. A block of no fewer values
    than there are threads is loaded by one thread each; of one with fewer each
    thread loads all that it needs itself, and holds their addresses. So there
    are more COLUMNS, which are not loaded. The first of 2 or 4 is split off: a
    product's threads then read it from where it was loaded to. A sum over them
    goes through shared memory once more, with barriers between the products."""
    row = tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    at = base + first.to(tl.int64) * stride + row[:, None] * stride + column[None, :]
    line = tl.load(at, mask=(first + row < end)[:, None] & (column == 0)[None, :], other=0.0)
    if COLUMNS == 2:
        line, _ = tl.split(line)
    elif COLUMNS == 4:
        line, _ = tl.split(tl.reshape(line, [ROWS, 2, 2]).trans(0, 2, 1))
        line, _ = tl.split(line)
    else:
        line = tl.sum(line, 1)
    return line


@triton.jit
def tanh(x, PRECISE: tl.constexpr):
    """1 - 2/(e^2x + 1), which is off by 2^-24 or two; where x is small that is
    much of it, and with PRECISE a polynomial takes over (Cephes, tanhf.c)."""
    y = 1.0 - 2.0 / (tl.math.exp2(x * (2 * LOG2E)) + 1.0)
    if PRECISE:
        square = x * x
        small = -5.70498872745e-3
        small = small * square + 2.06390887954e-2
        small = small * square - 5.37397155531e-2
        small = small * square + 1.33314422036e-1
        small = small * square - 3.33332819422e-1
        y = tl.where(tl.abs(x) < 0.625, small * square * x + x, y)
    return y


@triton.jit
def keys_seen(query, seq, causal, window):
    """The keys [low, high) that each of the queries sees; of one that is behind
    the sequence none."""
    low = tl.zeros_like(query)
    high = tl.zeros_like(query) + seq
    if window > 0:
        low = query - window + 1
    if causal != 0:
        high = query + 1
    return low, tl.where(query < seq, high, 0)


@triton.jit
def queries_seeing(key, seq, causal, window):
    """The queries [low, high) that see each of the keys."""
    low = tl.zeros_like(key)
    high = tl.zeros_like(key) + seq
    if causal != 0:
        low = key
    if window > 0:
        high = tl.minimum(key + window, seq)
    return low, high


@triton.jit
def keys_of(first, seq, causal, window, QUERIES: tl.constexpr, KEYS: tl.constexpr):
    """The blocks of keys [begin, end) that queries [first, first+QUERIES) meet,
    and those among them, [whole, rest), that each of the queries sees whole."""
    low = 0
    low_whole = 0
    if window > 0:
        low = tl.maximum(first - window + 1, 0)
        low_whole = tl.maximum(first + QUERIES - window, 0)
    high = seq
    high_whole = seq
    if causal != 0:
        high = tl.minimum(first + QUERIES, seq)
        high_whole = tl.minimum(first + 1, seq)
    return low // KEYS, (low_whole + KEYS - 1) // KEYS, high_whole // KEYS, (high + KEYS - 1) // KEYS


@triton.jit
def queries_of(first, seq, causal, window, QUERIES: tl.constexpr, KEYS: tl.constexpr):
    """As keys_of, the blocks of queries that meet keys [first, first+KEYS)."""
    low = 0
    low_whole = 0
    if causal != 0:
        low = first
        low_whole = first + KEYS - 1
    high = seq
    high_whole = seq
    if window > 0:
        high = tl.minimum(first + KEYS - 1 + window, seq)
        high_whole = tl.minimum(first + window, seq)
    return low // QUERIES, (low_whole + QUERIES - 1) // QUERIES, high_whole // QUERIES, (high + QUERIES - 1) // QUERIES


@triton.jit
def attention(q, k, v, y, lse, q_stride, k_stride, v_stride, y_stride, seq, heads, group, dim, causal, window, scale, cap,
              QUERIES: tl.constexpr, KEYS: tl.constexpr, WIDTH: tl.constexpr, EXACT: tl.constexpr):
    """y = softmax(q·kᵀ)·v and lse = log Σ exp, nowhere where lse is null. The
    grid is blocks of queries × heads × sequences; the longest come first."""
    PRECISE: tl.constexpr = q.dtype.element_ty == tl.float32
    program = tl.program_id(0)
    blocks = (seq + QUERIES - 1) // QUERIES
    first = (blocks - 1 - program % blocks) * QUERIES
    head = program // blocks % heads
    token = (program // blocks // heads).to(tl.int64) * seq
    q += token * q_stride + head * dim
    k += token * k_stride + head // group * dim
    v += token * v_stride + head // group * dim
    y += token * y_stride + head * dim

    # Scores become exponents of 2: times unit, or through the cap.
    inner = scale
    unit = scale * LOG2E
    if cap > 0:
        inner = scale / cap
        unit = cap * LOG2E
    query = load_block(q, first, seq, q_stride, dim, QUERIES, WIDTH, EXACT)
    most = tl.full([QUERIES], float("-inf"), tl.float32)
    total = tl.zeros([QUERIES], tl.float32)
    out = tl.zeros([QUERIES, WIDTH], tl.float32)
    begin, whole, rest, end = keys_of(first, seq, causal, window, QUERIES, KEYS)
    for block in range(begin, end):
        start = block * KEYS
        key = load_block(k, start, seq, k_stride, dim, KEYS, WIDTH, EXACT)
        score = tl.dot(query, tl.trans(key), input_precision="ieee")
        if cap > 0:
            score = tanh(score * inner, PRECISE)
        if (block < whole) | (block >= rest):
            low, high = keys_seen(first + tl.arange(0, QUERIES), seq, causal, window)
            column = tl.arange(0, KEYS)
            score = tl.where((column[None, :] >= (low - start)[:, None]) & (column[None, :] < (high - start)[:, None]), score, float("-inf"))
        larger = tl.maximum(most, tl.max(score, 1) * unit)
        base = tl.where(larger == float("-inf"), 0.0, larger)  # a row that has seen nothing yet
        weight = tl.math.exp2(score * unit - base[:, None])
        shrink = tl.math.exp2(most - base)
        total = total * shrink + tl.sum(weight, 1)
        out = out * shrink[:, None]
        value = load_block(v, start, seq, v_stride, dim, KEYS, WIDTH, EXACT)
        out = tl.dot(weight.to(value.dtype), value, out, input_precision="ieee")
        most = larger
    store_block(y, first, seq, y_stride, dim, out / total[:, None], QUERIES, WIDTH, EXACT)
    if lse.to(tl.int64) != 0:
        row = first + tl.arange(0, QUERIES)
        tl.store(lse + (token + row) * heads + head, (most + tl.math.log2(total)) * LN2, mask=row < seq)


@triton.jit
def added(left, right, sum, PRECISE: tl.constexpr):
    """sum + left·right. Sums over all heads that share keys are long: with
    PRECISE a block's product is summed by itself, which errs less than a chain
    through all blocks. The limit keeps Triton from making that chain of it."""
    if PRECISE:
        sum += tl.dot(left, right, input_precision="ieee", max_num_imprecise_acc=1)
    else:
        sum = tl.dot(left, right, sum, input_precision="ieee")
    return sum


@triton.jit
def load_halves(base, first, end, stride, dim, ROWS: tl.constexpr, WIDTH: tl.constexpr, EXACT: tl.constexpr):
    low = load_block(base, first, end, stride, dim, ROWS, WIDTH // 2, EXACT)
    return low, load_block(base + WIDTH // 2, first, end, stride, dim - WIDTH // 2, ROWS, WIDTH // 2, EXACT)


@triton.jit
def added_halves(low, high, other_low, other_high):
    """left·rightᵀ in halves of the heads' width. For dy·vᵀ in fp32: delta, which is
    taken from it, is a sum y·dy of its own, so that where a query sees few keys what
    the product errs is not taken off again (as it is in p·dy·vᵀ - p·Σ p·dy·vᵀ), and
    one chain over 256 columns errs more than all else of dq together."""
    sum = tl.dot(low, tl.trans(other_low), input_precision="ieee")
    return sum + tl.dot(high, tl.trans(other_high), input_precision="ieee", max_num_imprecise_acc=1)


@triton.jit
def attention_dkv(q, k, v, dy, lse, delta, dk, dv, parts, q_stride, k_stride, v_stride, dy_stride, dk_stride, dv_stride, seq, heads, group, dim, splits, causal, window, scale, cap,
                  QUERIES: tl.constexpr, KEYS: tl.constexpr, WIDTH: tl.constexpr, EXACT: tl.constexpr, COLUMNS: tl.constexpr):
    """The gradients of keys and values, over all heads that share them. The grid
    is blocks of keys × splits × heads of keys × sequences; the first keys of all
    sequences, which most queries see, come first. Where that is too few blocks
    for a GPU there are splits, each over some of the heads: their sums go into
    parts, and attention_dkv_join adds them up.

    Scores stand with their keys in rows, so that weights go into the products
    with what is theirs from registers."""
    PRECISE: tl.constexpr = q.dtype.element_ty == tl.float32
    program = tl.program_id(0)
    shares = heads // group
    side = tl.num_programs(0) // ((seq + KEYS - 1) // KEYS)
    first = program // side * KEYS
    split = program % side % splits
    share = program % side // splits % shares
    token = (program % side // splits // shares).to(tl.int64) * seq
    members = group // splits
    member0 = share * group + split * members
    q += token * q_stride + member0 * dim
    dy += token * dy_stride + member0 * dim
    lse += token * heads + member0
    delta += token * heads + member0
    k += token * k_stride + share * dim
    v += token * v_stride + share * dim

    inner = scale
    unit = scale * LOG2E
    if cap > 0:
        inner = scale / cap
        unit = cap * LOG2E
    key = load_block(k, first, seq, k_stride, dim, KEYS, WIDTH, EXACT)
    if PRECISE:
        value_low, value_high = load_halves(v, first, seq, v_stride, dim, KEYS, WIDTH, EXACT)
    else:
        value = load_block(v, first, seq, v_stride, dim, KEYS, WIDTH, EXACT)
    keys = tl.zeros([KEYS, WIDTH], tl.float32)
    values = tl.zeros([KEYS, WIDTH], tl.float32)
    begin, whole, rest, end = queries_of(first, seq, causal, window, QUERIES, KEYS)
    count = tl.maximum(end - begin, 1)
    for step in range((end - begin) * members):
        block = begin + step % count
        member = step // count
        start = block * QUERIES
        query = load_block(q + member * dim, start, seq, q_stride, dim, QUERIES, WIDTH, EXACT)
        score = tl.dot(key, tl.trans(query), input_precision="ieee")
        logarithm = load_line(lse + member, start, seq, heads, QUERIES, COLUMNS) * LOG2E
        if cap > 0:
            score = tanh(score * inner, PRECISE)
        weight = tl.math.exp2(score * unit - logarithm[None, :])
        if (block < whole) | (block >= rest):
            low, high = queries_seeing(first + tl.arange(0, KEYS), seq, causal, window)
            column = tl.arange(0, QUERIES)
            weight = tl.where((column[None, :] >= (low - start)[:, None]) & (column[None, :] < (high - start)[:, None]), weight, 0.0)
        part = weight.to(dy.dtype.element_ty)
        if cap > 0:
            weight = weight * (1.0 - score * score)
        slope = load_block(dy + member * dim, start, seq, dy_stride, dim, QUERIES, WIDTH, EXACT)
        values = added(part, slope, values, PRECISE)
        common = load_line(delta + member, start, seq, heads, QUERIES, COLUMNS)
        if PRECISE:
            slope_low, slope_high = load_halves(dy + member * dim, start, seq, dy_stride, dim, QUERIES, WIDTH, EXACT)
            gradient = weight * (added_halves(value_low, value_high, slope_low, slope_high) - common[None, :])
        else:
            gradient = weight * (tl.dot(value, tl.trans(slope), input_precision="ieee") - common[None, :])
        keys = added(gradient.to(query.dtype), query, keys, PRECISE)
    if splits == 1:
        dk += token * dk_stride + share * dim
        dv += token * dv_stride + share * dim
        store_block(dk, first, seq, dk_stride, dim, keys * scale, KEYS, WIDTH, EXACT)
        store_block(dv, first, seq, dv_stride, dim, values, KEYS, WIDTH, EXACT)
    else:
        columns = shares * dim
        rows = side // splits // shares * seq
        parts += (split * 2 * rows + token) * columns + share * dim
        store_block(parts, first, seq, columns, dim, keys * scale, KEYS, WIDTH, EXACT)
        store_block(parts + rows.to(tl.int64) * columns, first, seq, columns, dim, values, KEYS, WIDTH, EXACT)


@triton.jit
def attention_dkv_join(parts, dk, dv, dk_stride, dv_stride, rows, columns, splits, QUERIES: tl.constexpr, WIDTH: tl.constexpr, EXACT: tl.constexpr):
    """dk and dv as sums over the splits, in their order: parts are rows × columns
    of both a split. The grid is blocks of rows × blocks of columns."""
    program = tl.program_id(0)
    across = (columns + WIDTH - 1) // WIDTH
    first = program // across * QUERIES
    column = program % across * WIDTH
    parts += column
    keys = tl.zeros([QUERIES, WIDTH], tl.float32)
    values = tl.zeros([QUERIES, WIDTH], tl.float32)
    for _ in range(splits):
        keys += load_block(parts, first, rows, columns, columns - column, QUERIES, WIDTH, EXACT)
        parts += rows.to(tl.int64) * columns
        values += load_block(parts, first, rows, columns, columns - column, QUERIES, WIDTH, EXACT)
        parts += rows.to(tl.int64) * columns
    store_block(dk + column, first, rows, dk_stride, columns - column, keys, QUERIES, WIDTH, EXACT)
    store_block(dv + column, first, rows, dv_stride, columns - column, values, QUERIES, WIDTH, EXACT)


@triton.jit
def attention_dq(q, k, v, dy, lse, delta, dq, q_stride, k_stride, v_stride, dy_stride, dq_stride, seq, heads, group, dim, causal, window, scale, cap,
                 QUERIES: tl.constexpr, KEYS: tl.constexpr, WIDTH: tl.constexpr, EXACT: tl.constexpr):
    """The gradient of queries. The grid is attention's."""
    PRECISE: tl.constexpr = q.dtype.element_ty == tl.float32
    program = tl.program_id(0)
    blocks = (seq + QUERIES - 1) // QUERIES
    first = (blocks - 1 - program % blocks) * QUERIES
    head = program // blocks % heads
    token = (program // blocks // heads).to(tl.int64) * seq
    q += token * q_stride + head * dim
    dy += token * dy_stride + head * dim
    dq += token * dq_stride + head * dim
    lse += token * heads + head
    delta += token * heads + head
    k += token * k_stride + head // group * dim
    v += token * v_stride + head // group * dim

    inner = scale
    unit = scale * LOG2E
    if cap > 0:
        inner = scale / cap
        unit = cap * LOG2E
    query = load_block(q, first, seq, q_stride, dim, QUERIES, WIDTH, EXACT)
    if PRECISE:
        slope_low, slope_high = load_halves(dy, first, seq, dy_stride, dim, QUERIES, WIDTH, EXACT)
    else:
        slope = load_block(dy, first, seq, dy_stride, dim, QUERIES, WIDTH, EXACT)
    logarithm = load_line(lse, first, seq, heads, QUERIES, 1) * LOG2E
    common = load_line(delta, first, seq, heads, QUERIES, 1)
    out = tl.zeros([QUERIES, WIDTH], tl.float32)
    begin, whole, rest, end = keys_of(first, seq, causal, window, QUERIES, KEYS)
    for block in range(begin, end):
        start = block * KEYS
        key = load_block(k, start, seq, k_stride, dim, KEYS, WIDTH, EXACT)
        score = tl.dot(query, tl.trans(key), input_precision="ieee")
        if cap > 0:
            score = tanh(score * inner, PRECISE)
        weight = tl.math.exp2(score * unit - logarithm[:, None])
        if (block < whole) | (block >= rest):
            low, high = keys_seen(first + tl.arange(0, QUERIES), seq, causal, window)
            column = tl.arange(0, KEYS)
            weight = tl.where((column[None, :] >= (low - start)[:, None]) & (column[None, :] < (high - start)[:, None]), weight, 0.0)
        if cap > 0:
            weight = weight * (1.0 - score * score)
        if PRECISE:
            value_low, value_high = load_halves(v, start, seq, v_stride, dim, KEYS, WIDTH, EXACT)
            gradient = weight * (added_halves(slope_low, slope_high, value_low, value_high) - common[:, None])
        else:
            value = load_block(v, start, seq, v_stride, dim, KEYS, WIDTH, EXACT)
            gradient = weight * (tl.dot(slope, tl.trans(value), input_precision="ieee") - common[:, None])
        out = tl.dot(gradient.to(key.dtype), key, out, input_precision="ieee")
    store_block(dq, first, seq, dq_stride, dim, out * scale, QUERIES, WIDTH, EXACT)
