package recipe_test

import (
	"math"
	"sort"

	"github.com/devmap-dev/devmap/modelgraph"
)

// kernelsByName are the kernels, as plain as they can be written.
var kernelsByName map[string]func(c *call)

func init() {
	kernelsByName = map[string]func(c *call){
		"gemm": gemm, "norm": normKernel, "norm_again": normKernel, "norm_backward": normBackward,
		"add_rows": columnSums, "column_sums": partialSums, "cast": copyKernel, "copy": copyKernel, "last": lastRows,
		"embedding": embeddingKernel, "sort": sortKernel, "embedding_backward": embeddingBackward,
		"activate": activateKernel, "activate_backward": activateBackward, "gate": gateKernel, "gate_backward": gateBackward,
		"softmax_sums": softmaxSums, "loss": lossKernel, "count": countLabels, "loss_backward": lossBackward, "softcap": softcapKernel, "argmax": argmaxKernel,
		"rope": ropeKernel, "rope_backward": ropeBackward, "qknorm": qknormKernel, "qknorm_backward": qknormBackward,
		"attention": attentionKernel, "attention_delta": attentionDelta, "attention_dkv": attentionBackward, "attention_dq": attentionBackward,
		"cache": cacheKernel, "attention_decode": attentionDecode, "attention_join": attentionJoin,
	}
}

// each calls f for every element.
func (v view) each(f func(i, j int64, at *float64)) {
	for i := range v.rows {
		for j := range v.columns {
			f(i, j, v.at(i, j))
		}
	}
}

func gemm(c *call) {
	a, b, d := c.view("a"), c.view("b"), c.view("d")
	m, n, k := c.size("m"), c.size("n"), c.size("k")
	// How far apart neighbours along m, n and k lie.
	aRow, aNext, bColumn, bNext := a.stride, int64(1), int64(1), b.stride
	switch c.dims["form"] {
	case "nt":
		bColumn, bNext = b.stride, 1
	case "tn":
		aRow, aNext = 1, a.stride
	}
	made := make([]float64, m*n)
	for i := range m {
		for j := range n {
			sum := 0.
			for l := range k {
				sum += a.values[a.first+i*aRow+l*aNext] * b.values[b.first+j*bColumn+l*bNext]
			}
			if c.given("bias") {
				sum += *c.view("bias").at(0, j)
			}
			if c.given("add") {
				sum += *c.view("add").at(i, j)
			}
			made[i*n+j] = sum
		}
	}
	d.each(func(i, j int64, at *float64) { *at = made[i*n+j] })
}

// factor is what a norm multiplies element j by.
func (c *call) factor(j int64) float64 {
	weight := *c.view("weight").at(0, j)
	if c.dims["style"] == string(modelgraph.GemmaRMSNorm) {
		return 1 + weight
	}
	return weight
}

// moments are a row's mean, of LayerNorm, and 1/σ: what was kept, or worked
// out and kept.
func (c *call) moments(i int64) (mean, rstd float64) {
	x, columns := c.view("x"), c.size("columns")
	if c.kernel.Name != "norm" {
		if c.given("mean") {
			mean = *c.view("mean").at(i, 0)
		}
		return mean, *c.view("rstd").at(i, 0)
	}
	layer := c.dims["style"] == string(modelgraph.LayerNorm)
	sum, squares := 0., 0.
	for j := range columns {
		sum += *x.at(i, j) / float64(columns)
	}
	if layer {
		mean = sum
	}
	for j := range columns {
		squares += (*x.at(i, j) - mean) * (*x.at(i, j) - mean) / float64(columns)
	}
	rstd = 1 / math.Sqrt(squares+c.number("epsilon"))
	if c.given("rstd") {
		*c.view("rstd").at(i, 0) = rstd
	}
	if c.given("mean") {
		*c.view("mean").at(i, 0) = mean
	}
	return mean, rstd
}

func normKernel(c *call) {
	x, y := c.view("x"), c.view("y")
	for i := range c.size("rows") {
		mean, rstd := c.moments(i)
		for j := range c.size("columns") {
			value := (*x.at(i, j) - mean) * rstd * c.factor(j)
			if c.given("bias") {
				value += *c.view("bias").at(0, j)
			}
			if c.given("add") {
				value += *c.view("add").at(i, j)
			}
			*y.at(i, j) = value
		}
	}
}

func normBackward(c *call) {
	x, dy, dx, sums := c.view("x"), c.view("dy"), c.view("dx"), c.view("sums")
	columns := c.size("columns")
	sums.each(func(_, _ int64, at *float64) { *at = 0 })
	if c.given("biases") {
		c.view("biases").each(func(_, _ int64, at *float64) { *at = 0 })
	}
	for i := range c.size("rows") {
		mean, rstd := c.moments(i)
		sum, product := 0., 0. // of the gradient of the normed row, and with the row
		for j := range columns {
			normed, gradient := (*x.at(i, j)-mean)*rstd, *dy.at(i, j)
			*sums.at(i%sums.rows, j) += gradient * normed
			if c.given("biases") {
				*c.view("biases").at(i%sums.rows, j) += gradient
			}
			sum += gradient * c.factor(j) / float64(columns)
			product += gradient * c.factor(j) * normed / float64(columns)
		}
		if c.dims["style"] != string(modelgraph.LayerNorm) {
			sum = 0
		}
		for j := range columns {
			normed := (*x.at(i, j) - mean) * rstd
			value := rstd * (*dy.at(i, j)*c.factor(j) - sum - normed*product)
			if c.given("add") {
				value += *c.view("add").at(i, j)
			}
			*dx.at(i, j) = value
		}
	}
}

// columnSums adds up rows to a gradient; there is one micro-batch.
func columnSums(c *call) {
	x, d := c.view("x"), c.view("d")
	d.each(func(_, j int64, at *float64) {
		*at = 0
		for i := range x.rows {
			*at += *x.at(i, j)
		}
	})
}

func partialSums(c *call) {
	x, sums := c.view("x"), c.view("sums")
	sums.each(func(_, _ int64, at *float64) { *at = 0 })
	x.each(func(i, j int64, at *float64) { *sums.at(i%sums.rows, j) += *at })
}

func copyKernel(c *call) {
	y := c.view("y")
	c.view("x").each(func(i, j int64, at *float64) { *y.at(i, j) = *at })
}

func lastRows(c *call) {
	x, seq := c.view("x"), c.size("seq")
	c.view("y").each(func(i, j int64, at *float64) { *at = *x.at(i*seq+seq-1, j) })
}

// row is that of a table for row i.
func (c *call) row(i int64) int64 {
	if !c.given("ids") {
		return c.position(i)
	}
	ids := c.view("ids")
	return int64(*ids.at(i/ids.columns, i%ids.columns))
}

func (c *call) scale() float64 {
	if c.has("scale") {
		return c.number("scale")
	}
	return 1
}

func embeddingKernel(c *call) {
	table := c.view("table")
	c.view("y").each(func(i, j int64, at *float64) {
		value := *table.at(c.row(i), j) * c.scale()
		if c.given("add") {
			value += *c.view("add").at(i, j)
		}
		*at = value
	})
}

// sortKernel writes ids in order, and where they stand.
func sortKernel(c *call) {
	ids, order := c.view("ids"), c.view("order")
	rows := make([]int64, c.size("rows"))
	for i := range rows {
		rows[i] = int64(i)
	}
	sort.SliceStable(rows, func(a, b int) bool {
		return *ids.at(rows[a]/ids.columns, rows[a]%ids.columns) < *ids.at(rows[b]/ids.columns, rows[b]%ids.columns)
	})
	for i, row := range rows {
		*order.at(0, int64(i)), *order.at(1, int64(i)) = *ids.at(row/ids.columns, row%ids.columns), float64(row)
	}
}

func embeddingBackward(c *call) {
	dy, d := c.view("dy"), c.view("d")
	d.each(func(_, _ int64, at *float64) { *at = 0 })
	for i := range c.size("rows") {
		from, to := i, int64(-1)
		if c.given("order") {
			from, to = int64(*c.view("order").at(1, i)), int64(*c.view("order").at(0, i))
		}
		if to < 0 {
			to = c.position(i)
		}
		for j := range c.size("columns") {
			*d.at(to, j) += c.scale() * *dy.at(from, j)
		}
	}
}

// activation is a function and its derivative.
func (c *call) activation(x float64) (value, slope float64) {
	const h = 1e-5
	f := map[string]func(x float64) float64{
		"silu": func(x float64) float64 { return x / (1 + math.Exp(-x)) },
		"gelu": func(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) },
		"gelu_tanh": func(x float64) float64 {
			return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
		},
		"relu": func(x float64) float64 { return max(x, 0) },
	}[c.dims["activation"]]
	return f(x), (f(x+h) - f(x-h)) / (2 * h)
}

func activateKernel(c *call) {
	y := c.view("y")
	c.view("x").each(func(i, j int64, at *float64) { *y.at(i, j), _ = c.activation(*at) })
}

func activateBackward(c *call) {
	dx, dy := c.view("dx"), c.view("dy")
	c.view("x").each(func(i, j int64, at *float64) {
		_, slope := c.activation(*at)
		*dx.at(i, j) = *dy.at(i, j) * slope
	})
}

func gateKernel(c *call) {
	gate, up := c.view("gate"), c.view("up")
	c.view("y").each(func(i, j int64, at *float64) {
		value, _ := c.activation(*gate.at(i, j))
		*at = value * *up.at(i, j)
	})
}

func gateBackward(c *call) {
	gate, up, dy, dgate, dup := c.view("gate"), c.view("up"), c.view("dy"), c.view("dgate"), c.view("dup")
	for i := range dy.rows {
		for j := range dy.columns {
			value, slope := c.activation(*gate.at(i, j))
			gradient := *dy.at(i, j)
			*dgate.at(i, j), *dup.at(i, j) = gradient**up.at(i, j)*slope, gradient*value
		}
	}
}

// label is what row i is to predict: the next id of its sequence; -1: nothing.
func (c *call) label(i int64) int64 {
	labels, seq := c.view("labels"), c.size("seq")
	if i%seq == seq-1 {
		return -1
	}
	return int64(*labels.at(i/seq, i%seq+1))
}

// capped is a logit under its cap, and the slope of that.
func (c *call) capped(x float64) (value, slope float64) {
	if !c.has("cap") {
		return x, 1
	}
	tanh := math.Tanh(x / c.number("cap"))
	return c.number("cap") * tanh, 1 - tanh*tanh
}

func softmaxSums(c *call) {
	x, sums, first := c.view("x"), c.view("sums"), c.size("first")
	for i := range x.rows {
		largest, sum := sums.at(i, 0), sums.at(i, 1)
		if first == 0 {
			*largest, *sum = math.Inf(-1), 0
		}
		for j := range x.columns {
			value, _ := c.capped(*x.at(i, j))
			most := max(*largest, value)
			*sum = *sum*math.Exp(*largest-most) + math.Exp(value-most)
			*largest = most
			if first+j == c.label(i) {
				*sums.at(i, 2) = value
			}
		}
	}
}

func lossKernel(c *call) {
	sums, total, count := c.view("sums"), 0., 0.
	for i := range sums.rows {
		lse := *sums.at(i, 0) + math.Log(*sums.at(i, 1))
		*c.view("lse").at(i, 0) = lse
		if c.label(i) >= 0 {
			total, count = total+lse-*sums.at(i, 2), count+1
		}
	}
	*c.view("loss").at(0, 0) = total / count
}

func countLabels(c *call) {
	count := 0.
	for i := range c.size("sequences") * c.size("seq") {
		if c.label(i) >= 0 {
			count++
		}
	}
	*c.view("y").at(0, 0) = count
}

func lossBackward(c *call) {
	first := c.size("first")
	c.view("x").each(func(i, j int64, at *float64) {
		if c.label(i) < 0 {
			*at = 0
			return
		}
		value, slope := c.capped(*at)
		gradient := math.Exp(value - *c.view("lse").at(i, 0))
		if first+j == c.label(i) {
			gradient--
		}
		*at = gradient * slope / *c.view("counted").at(0, 0) / c.number("micro_batches")
	})
}

func softcapKernel(c *call) {
	c.view("x").each(func(_, _ int64, at *float64) { *at, _ = c.capped(*at) })
}

func argmaxKernel(c *call) {
	x := c.view("x")
	for i := range x.rows {
		best := int64(0)
		for j := range x.columns {
			if *x.at(i, j) > *x.at(i, best) {
				best = j
			}
		}
		*c.view("y").at(i, 0) = float64(best)
	}
}
