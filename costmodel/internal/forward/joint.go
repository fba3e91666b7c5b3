package forward

// joint is a transformer at work that has a stream of the image and one of the text.
type joint struct {
	*tape
	batch, image, text int64 // tokens a sequence
	dim                int64
	shared             bool // each GPU has its part of the text
}

func (run joint) imageRows() int64 { return run.batch * run.image }
func (run joint) textRows() int64  { return run.batch * run.text }
func (run joint) rows() int64      { return run.batch * (run.image + run.text) }

// conditions is CombinedTimestep(Guidance)TextProjEmbeddings: sums of a few embedded vectors.
func (run joint) conditions(mod module) *value {
	sum := run.timestepEmbedding(mod.in("timestep_embedder"), run.batch)
	for _, name := range []string{"guidance_embedder", "text_embedder"} {
		if mod.has(name + ".linear_1.weight") {
			more := run.timestepEmbedding(mod.in(name), run.batch)
			both := run.new(run.batch * mod.out(name+".linear_2"))
			run.drop(sum, more)
			sum = both
		}
	}
	return sum
}

// end is norm_out and proj_out.
func (run joint) end(root module, image **value) {
	vectors := run.modulation(root, "norm_out.linear", run.batch)
	normed := run.modulated(run.batch, run.imageRows(), run.dim)
	run.drop(vectors)
	run.become(image, normed)
	run.drop(run.linear(root, "proj_out", run.imageRows()))
}

// gatedSum is x + gate * y.
func (run joint) gatedSum(elements int64) *value {
	product := run.new(elements)
	total := run.new(elements)
	run.drop(product)
	return total
}
