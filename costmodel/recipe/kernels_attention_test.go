package recipe_test

import (
	"math"

	"github.com/devmap-dev/devmap/modelgraph"
)

// frequencies are those of the rotation that the dims name.
func (c *call) frequencies(tokens int64) (inverse []float32, factor float64) {
	rotation := modelgraph.Rotation{Type: c.dims["rope"], Base: c.number("base"), Width: c.size("width")}
	for name, field := range map[string]*float64{"factor": &rotation.Factor, "slow": &rotation.Slow, "fast": &rotation.Fast, "attention_factor": &rotation.AttentionFactor} {
		if c.has(name) {
			*field = c.number(name)
		}
	}
	if c.has("trained") {
		rotation.Trained = c.size("trained")
	}
	attention := modelgraph.Attention{HeadDim: c.size("dim"), Rope: true, Rotation: rotation}
	inverse, factor, err := attention.Frequencies(tokens)
	if err != nil {
		c.t.Fatal(err)
	}
	return inverse, factor
}

// turn turns the heads of x in place, or back.
func (c *call) turn(x view, back bool) {
	if !c.has("rope") {
		return
	}
	dim, width := c.size("dim"), c.size("width")
	inverse, factor := c.frequencies(c.position(x.rows-1) + 1)
	for i := range x.rows {
		position := float64(c.position(i))
		for j := range width / 2 {
			angle := position * float64(inverse[j])
			cos, sin := factor*math.Cos(angle), factor*math.Sin(angle)
			if back {
				sin = -sin
			}
			for head := int64(0); head < x.columns; head += dim {
				a, b := x.at(i, head+j), x.at(i, head+j+width/2)
				*a, *b = *a*cos-*b*sin, *b*cos+*a*sin
			}
		}
	}
}

func ropeKernel(c *call) {
	for _, role := range []string{"q", "k"} {
		c.turn(c.view(role), false)
	}
}

func ropeBackward(c *call) {
	for _, role := range []string{"dq", "dk"} {
		c.turn(c.view(role), true)
	}
}

// headNorm is 1/σ of a head, and what element j of it is multiplied by.
func (c *call) headNorm(x view, i, head int64, weight view) (rstd float64, factor func(j int64) float64) {
	dim, squares := c.size("dim"), 0.
	for j := range dim {
		squares += *x.at(i, head+j) * *x.at(i, head+j) / float64(dim)
	}
	return 1 / math.Sqrt(squares+c.number("epsilon")), func(j int64) float64 {
		if c.dims["style"] == string(modelgraph.GemmaRMSNorm) {
			return 1 + *weight.at(0, j)
		}
		return *weight.at(0, j)
	}
}

func qknormKernel(c *call) {
	for _, role := range []string{"q", "k"} {
		x, y, dim := c.view(role), c.view("y"+role), c.size("dim")
		for i := range x.rows {
			for head := int64(0); head < x.columns; head += dim {
				rstd, factor := c.headNorm(x, i, head, c.view(role+"weight"))
				for j := range dim {
					*y.at(i, head+j) = *x.at(i, head+j) * rstd * factor(j)
				}
			}
		}
		c.turn(y, false)
	}
}

func qknormBackward(c *call) {
	for _, role := range []string{"q", "k"} {
		x, gradient, sums, dim := c.view(role), c.view("d"+role), c.view(role+"sums"), c.size("dim")
		sums.each(func(_, _ int64, at *float64) { *at = 0 })
		c.turn(gradient, true)
		for i := range x.rows {
			for head := int64(0); head < x.columns; head += dim {
				rstd, factor := c.headNorm(x, i, head, c.view(role+"weight"))
				product := 0.
				for j := range dim {
					normed := *x.at(i, head+j) * rstd
					*sums.at(i%sums.rows, j) += *gradient.at(i, head+j) * normed
					product += *gradient.at(i, head+j) * factor(j) * normed / float64(dim)
				}
				for j := range dim {
					at := gradient.at(i, head+j)
					*at = rstd * (*at*factor(j) - *x.at(i, head+j)*rstd*product)
				}
			}
		}
	}
}

// pair is the score of a query and a key, both by their rows and heads.
func (c *call) pair(q, k view, i, j, head, group int64) (score, slope float64) {
	query, key := q.values[q.first+i*q.stride+head*c.dim:][:c.dim], k.values[k.first+j*k.stride+group*c.dim:]
	for l := range query {
		score += query[l] * key[l]
	}
	return c.capped(score * c.factored)
}

// sees reports a position that another one sees.
func (c *call) sees(position, other int64) bool {
	return (!c.has("causal") || other <= position) && (!c.has("window") || position-other < c.size("window"))
}

// pairs calls f for every query, head, and key that it sees.
func (c *call) pairs(f func(i, j, head, group int64)) {
	seq, heads, kv := c.size("seq"), c.size("heads"), c.size("kv")
	for i := range c.size("sequences") * seq {
		for other := range seq {
			if !c.sees(i%seq, other) {
				continue
			}
			for head := range heads {
				f(i, i/seq*seq+other, head, head/(heads/kv))
			}
		}
	}
}

func attentionKernel(c *call) {
	q, k, v, y, heads := c.view("q"), c.view("k"), c.view("v"), c.view("y"), c.size("heads")
	sums := make([]float64, q.rows*heads)
	y.each(func(_, _ int64, at *float64) { *at = 0 })
	c.pairs(func(i, j, head, group int64) {
		score, _ := c.pair(q, k, i, j, head, group)
		sums[i*heads+head] += math.Exp(score)
		for l := range c.dim {
			*y.at(i, head*c.dim+l) += math.Exp(score) * *v.at(j, group*c.dim+l)
		}
	})
	y.each(func(i, j int64, at *float64) { *at /= sums[i*heads+j/c.dim] })
	if c.given("lse") {
		c.view("lse").each(func(i, j int64, at *float64) { *at = math.Log(sums[i*heads+j]) })
	}
}

func attentionDelta(c *call) {
	y, dy, dim := c.view("y"), c.view("dy"), c.size("dim")
	c.view("delta").each(func(i, j int64, at *float64) {
		*at = 0
		for l := range dim {
			*at += *y.at(i, j*dim+l) * *dy.at(i, j*dim+l)
		}
	})
}

// attentionBackward makes those of the three gradients that are given.
func attentionBackward(c *call) {
	q, k, v, dy, dim := c.view("q"), c.view("k"), c.view("v"), c.view("dy"), c.size("dim")
	for _, role := range []string{"dq", "dk", "dv"} {
		if c.given(role) {
			c.view(role).each(func(_, _ int64, at *float64) { *at = 0 })
		}
	}
	c.pairs(func(i, j, head, group int64) {
		score, slope := c.pair(q, k, i, j, head, group)
		part, gradient := math.Exp(score-*c.view("lse").at(i, head)), 0.
		for l := range dim {
			gradient += *dy.at(i, head*dim+l) * *v.at(j, group*dim+l)
		}
		gradient = part * (gradient - *c.view("delta").at(i, head)) * slope * c.factored
		for l := range dim {
			if c.given("dq") {
				*c.view("dq").at(i, head*dim+l) += gradient * *k.at(j, group*dim+l)
			} else {
				*c.view("dk").at(j, group*dim+l) += gradient * *q.at(i, head*dim+l)
				*c.view("dv").at(j, group*dim+l) += part * *dy.at(i, head*dim+l)
			}
		}
	})
}

// cacheKernel puts each row where its position stands in its sequence's ring.
func cacheKernel(c *call) {
	positions, sequences := c.size("positions"), c.size("sequences")
	for role, to := range map[string]string{"k": "keys", "v": "values"} {
		x, cache := c.view(role), c.view(to)
		x.each(func(i, j int64, at *float64) {
			sequence := i / (x.rows / sequences)
			*cache.at(sequence*positions+c.position(i)%positions, j) = *at
		})
	}
}

// attentionDecode attends to the cache, in parts of a span of its positions.
func attentionDecode(c *call) {
	heads, kv, dim, positions, span := c.size("heads"), c.size("kv"), c.size("dim"), c.size("positions"), c.size("span")
	q, keys, values := c.view("q"), c.view("keys"), c.view("values")
	for i := range c.size("sequences") {
		for head := range heads {
			for part := range (positions + span - 1) / span {
				out, most, sum := make([]float64, dim), math.Inf(-1), 0.
				for slot := part * span; slot < min(positions, (part+1)*span); slot++ {
					now := c.position(i)
					other := now - (now-slot+positions)%positions // the last position that lies here
					if now < slot {
						other = slot - positions*((slot-now+positions-1)/positions)
					}
					if other < 0 || !c.sees(now, other) {
						continue
					}
					score, _ := c.pair(q, keys, i, i*positions+slot, head, head/(heads/kv))
					largest := max(most, score)
					for l := range dim {
						out[l] = out[l]*math.Exp(most-largest) + math.Exp(score-largest)**values.at(i*positions+slot, head/(heads/kv)*dim+l)
					}
					sum = sum*math.Exp(most-largest) + math.Exp(score-largest)
					most = largest
				}
				for l := range dim {
					if c.given("y") {
						*c.view("y").at(i, head*dim+l) = out[l] / sum
					} else {
						*c.view("parts").at(part*q.rows+i, head*(dim+2)+l) = out[l]
					}
				}
				if c.given("parts") {
					*c.view("parts").at(part*q.rows+i, head*(dim+2)+dim), *c.view("parts").at(part*q.rows+i, head*(dim+2)+dim+1) = most, sum
				}
			}
		}
	}
}

func attentionJoin(c *call) {
	parts, dim, y := c.view("parts"), c.size("dim"), c.view("y")
	y.each(func(i, j int64, at *float64) {
		head, most, value, sum := j/dim*(dim+2), math.Inf(-1), 0., 0.
		for part := range c.size("parts") {
			most = max(most, *parts.at(part*y.rows+i, head+dim))
		}
		for part := range c.size("parts") {
			row := part*y.rows + i
			scale := math.Exp(*parts.at(row, head+dim) - most)
			value, sum = value+scale**parts.at(row, head+j%dim), sum+scale**parts.at(row, head+dim+1)
		}
		*at = value / sum
	})
}
