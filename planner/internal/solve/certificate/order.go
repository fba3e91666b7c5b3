package certificate

import "github.com/devmap-dev/devmap/planner/internal/solve/orders"

// CheckOrder checks the order of a pipeline's passes and its bound. It shares only the numbers of
// the problem with package orders. It computes the longest way through all passes, the bytes of
// each row, and each argument for a lower bound by walking the chain. A complete search is not
// repeated: its bound must then be the length. An error is a [*FaultError].
func CheckOrder(problem *orders.Problem, solution *orders.Solution) error {
	walk := &orderWalk{Problem: problem}
	length, err := walk.length(solution.Order)
	if err != nil {
		return err
	}
	if err := walk.memory(solution.Order); err != nil {
		return err
	}
	if length != solution.Length {
		return fault("the solver says that its order takes %d, and the longest way through it is %d", solution.Length, length)
	}
	proved := walk.bound()
	switch {
	case solution.Why == orders.BySearch && solution.Value != length:
		return fault("a complete search found nothing below %d, and its order takes %d", solution.Value, length)
	case solution.Why != orders.BySearch && solution.Value > proved:
		return fault("the solver says that no order is below %d (%s), and the arguments prove %d", solution.Value, solution.Why, proved)
	case solution.Value > length:
		return fault("the solver says that no order is below %d, and its order takes %d", solution.Value, length)
	}
	return nil
}

// orderWalk walks passes one by one.
type orderWalk struct{ *orders.Problem }

// seconds is the time of a pass.
func (walk *orderWalk) seconds(pass orders.Pass) int64 {
	chunk := walk.Chunks[pass.Chunk]
	switch pass.Kind {
	case orders.Forward:
		return chunk.Forward
	case orders.Input:
		return chunk.Input
	case orders.Weight:
	}
	return chunk.Weight
}

// next lists the passes of the same micro-batch that wait for a pass, and their wait.
func (walk *orderWalk) next(pass orders.Pass) (out []orders.Pass, waits []int64) {
	last := len(walk.Chunks) - 1
	add := func(kind orders.Kind, chunk int, wait int64) {
		out, waits = append(out, orders.Pass{Kind: kind, Chunk: chunk}), append(waits, wait)
	}
	switch {
	case pass.Kind == orders.Forward && pass.Chunk < last:
		add(orders.Forward, pass.Chunk+1, walk.Chunks[pass.Chunk].Send)
	case pass.Kind == orders.Forward:
		add(orders.Input, last, 0)
	case pass.Kind == orders.Input:
		if pass.Chunk > 0 {
			add(orders.Input, pass.Chunk-1, walk.Chunks[pass.Chunk-1].Back)
		}
		if !walk.Chunks[pass.Chunk].Joint {
			add(orders.Weight, pass.Chunk, 0)
		}
	}
	return out, waits
}

type numbered struct {
	orders.Pass
	batch int
}

// rows returns the pass after each in its row, and the number of passes that each waits for there.
func (walk *orderWalk) rows(order orders.Order) (after map[numbered]numbered, waiting map[numbered]int, err error) {
	after, waiting = map[numbered]numbered{}, map[numbered]int{}
	for gpu, row := range order {
		count, before := map[orders.Pass]int{}, numbered{}
		for i, pass := range row {
			one := numbered{pass, count[pass]}
			count[pass]++
			if pass.Chunk < 0 || pass.Chunk >= len(walk.Chunks) || walk.Chunks[pass.Chunk].GPU != gpu || one.batch >= walk.MicroBatches {
				return nil, nil, fault("row %d has %v of micro-batch %d", gpu, pass, one.batch)
			}
			waiting[one] += 0
			if i > 0 {
				after[before] = one
				waiting[one]++
			}
			before = one
		}
	}
	want := 0
	for _, chunk := range walk.Chunks {
		want += 3 * walk.MicroBatches
		if chunk.Joint {
			want -= walk.MicroBatches
		}
	}
	if len(waiting) != want {
		return nil, nil, fault("an order of %d passes has %d", want, len(waiting))
	}
	return after, waiting, nil
}

// length returns the longest way through the graph of all passes: each waits for the one before it
// in its row, and for its input. It removes passes that wait for nothing, one after the other.
func (walk *orderWalk) length(order orders.Order) (longest int64, err error) {
	after, waiting, err := walk.rows(order)
	if err != nil {
		return 0, err
	}
	for one := range waiting {
		passes, _ := walk.next(one.Pass)
		for _, next := range passes {
			if _, runs := waiting[numbered{next, one.batch}]; !runs {
				return 0, fault("no row has %v of micro-batch %d", next, one.batch)
			}
			waiting[numbered{next, one.batch}]++
		}
	}
	start, queue := map[numbered]int64{}, []numbered(nil)
	for one, count := range waiting {
		if count == 0 {
			queue = append(queue, one)
		}
	}
	done := 0
	for ; len(queue) > 0; done++ {
		one := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		end := start[one] + walk.seconds(one.Pass)
		longest = max(longest, end)
		reach := func(next numbered, at int64) {
			start[next] = max(start[next], at)
			waiting[next]--
			if waiting[next] == 0 {
				queue = append(queue, next)
			}
		}
		if next, ok := after[one]; ok {
			reach(next, end)
		}
		passes, waits := walk.next(one.Pass)
		for i, next := range passes {
			reach(numbered{next, one.batch}, end+waits[i])
		}
	}
	if done < len(waiting) {
		return 0, fault("%d passes of an order wait for each other", len(waiting)-done)
	}
	return longest, nil
}

// memory adds up the rings of each row: the most micro-batches at once in each part of a chunk.
func (walk *orderWalk) memory(order orders.Order) error {
	for gpu, row := range order {
		total := int64(0)
		for i, chunk := range walk.Chunks {
			last := orders.Weight
			if chunk.Joint {
				last = orders.Input
			}
			total += deepest(row, i, orders.Forward, orders.Input)*chunk.ToInput + deepest(row, i, orders.Forward, last)*chunk.ToWeight + deepest(row, i, orders.Input, last)*chunk.Between
		}
		if total > walk.Caps[gpu] {
			return fault("row %d uses %d bytes of %d", gpu, total, walk.Caps[gpu])
		}
	}
	return nil
}

// deepest returns the most micro-batches that have begun one kind of a chunk's passes and not ended
// another.
func deepest(row []orders.Pass, chunk int, from, to orders.Kind) (most int64) {
	open := int64(0)
	for _, pass := range row {
		if pass == (orders.Pass{Kind: from, Chunk: chunk}) {
			open++
			most = max(most, open)
		}
		if pass == (orders.Pass{Kind: to, Chunk: chunk}) {
			open--
		}
	}
	return most
}

// follows returns the time from the end of a pass to the end of the last that waits for it.
func (walk *orderWalk) follows(pass orders.Pass) (longest int64) {
	passes, waits := walk.next(pass)
	for i, next := range passes {
		longest = max(longest, waits[i]+walk.seconds(next)+walk.follows(next))
	}
	return longest
}

// spans returns, for each chunk, the time before its first forward, and that from the start of a
// forward to the end of its input's gradient.
func (walk *orderWalk) spans() (heads, lives []int64) {
	last, head := len(walk.Chunks)-1, int64(0)
	heads, lives = make([]int64, last+1), make([]int64, last+1)
	for i, chunk := range walk.Chunks {
		heads[i] = head
		head += chunk.Forward + chunk.Send
		for j := i; j <= last; j++ {
			lives[i] += walk.Chunks[j].Forward + walk.Chunks[j].Input
			if j < last {
				lives[i] += walk.Chunks[j].Send + walk.Chunks[j].Back
			}
		}
	}
	return heads, lives
}

// sets returns the bytes of one set of each ring of a GPU.
func (walk *orderWalk) sets(gpu int) (total int64) {
	for _, chunk := range walk.Chunks {
		if chunk.GPU == gpu {
			total += chunk.ToInput + chunk.ToWeight + chunk.Between
		}
	}
	return total
}

// bound returns the best of the arguments of [orders.Problem.Bound].
func (walk *orderWalk) bound() (best int64) {
	heads, lives := walk.spans()
	for gpu, limit := range walk.Caps {
		var passes []orders.Pass
		first, spare := int64(-1), limit-walk.sets(gpu)
		for i, chunk := range walk.Chunks {
			if chunk.GPU != gpu {
				continue
			}
			if first < 0 {
				first = heads[i]
			}
			passes = append(passes, orders.Pass{Kind: orders.Forward, Chunk: i}, orders.Pass{Kind: orders.Input, Chunk: i})
			if !chunk.Joint {
				passes = append(passes, orders.Pass{Kind: orders.Weight, Chunk: i})
			}
			life, tail := lives[i], walk.follows(orders.Pass{Kind: orders.Input, Chunk: i})
			if chunk.ToInput+chunk.ToWeight > 0 {
				rounds := spare/(chunk.ToInput+chunk.ToWeight) + 1
				if chunk.ToInput == 0 && !chunk.Joint {
					life, tail = life+chunk.Weight, 0
				}
				best = max(best, heads[i]+(int64(walk.MicroBatches)+rounds-1)/rounds*life+tail)
			}
		}
		for _, least := range passes {
			work, tail := int64(0), walk.follows(least)
			for _, pass := range passes {
				if walk.follows(pass) >= tail {
					work += int64(walk.MicroBatches) * walk.seconds(pass)
				}
			}
			best = max(best, first+work+tail)
		}
	}
	return best
}
