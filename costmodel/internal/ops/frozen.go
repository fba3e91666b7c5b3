package ops

// frozenOther adds adapters to an op whose backward is not followed event by
// event: a moment for the widest adapter on top of the input's and the
// output's gradients.
func (cost *Cost) frozenOther(shape *Shape) { cost.adapted(shape, shape.kept(false)) }

// adapted is [Cost.frozenOther] with what the adapters keep.
func (cost *Cost) adapted(shape *Shape, kept int64) {
	cost.Step.Saved += kept
	cost.Step.Forward = max(cost.Step.Forward, cost.Step.Saved) + shape.work()
	work := 2 * cost.Output
	for i := range shape.Adapters {
		adapter := &shape.Adapters[i]
		work = max(work, cost.Output+shape.Tokens*((shape.elementBytes()+2*shape.adapterBytes())*adapter.Out+shape.elementBytes()*adapter.In))
	}
	cost.peak(backwardPoint{work + cost.Output, shape.NewGrads, shape.NewGrads})
}
