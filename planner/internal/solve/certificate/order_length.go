package certificate

import "github.com/devmap-dev/devmap/planner/internal/solve/orders"

type numbered struct {
	orders.Pass
	batch int
}

// passGraph is which passes of an order wait for which.
type passGraph struct {
	after   map[numbered]numbered // the next pass of the row
	waiting map[numbered]int      // for how many passes each waits
}

// length returns the longest way through the graph of all passes: each waits for the one before it
// in its row, and for its input.
func (walk *orderWalk) length(order orders.Order) (int64, error) {
	graph, err := walk.rows(order)
	if err != nil {
		return 0, err
	}
	for one := range graph.waiting {
		passes, _ := walk.next(one.Pass)
		for _, next := range passes {
			if _, runs := graph.waiting[numbered{next, one.batch}]; !runs {
				return 0, fault("no row has %v of micro-batch %d", next, one.batch)
			}
			graph.waiting[numbered{next, one.batch}]++
		}
	}
	return walk.longest(graph)
}

// rows returns the graph of the rows alone. It refuses passes that the problem does not have.
func (walk *orderWalk) rows(order orders.Order) (*passGraph, error) {
	graph := &passGraph{map[numbered]numbered{}, map[numbered]int{}}
	for gpu, row := range order {
		count, before := map[orders.Pass]int{}, numbered{}
		for i, pass := range row {
			one := numbered{pass, count[pass]}
			count[pass]++
			if pass.Chunk < 0 || pass.Chunk >= len(walk.Chunks) || walk.Chunks[pass.Chunk].GPU != gpu || one.batch >= walk.MicroBatches {
				return nil, fault("row %d has %v of micro-batch %d", gpu, pass, one.batch)
			}
			graph.waiting[one] += 0
			if i > 0 {
				graph.after[before] = one
				graph.waiting[one]++
			}
			before = one
		}
	}
	each := 3
	if walk.Joint {
		each = 2
	}
	if want := each * len(walk.Chunks) * walk.MicroBatches; len(graph.waiting) != want {
		return nil, fault("an order of %d passes has %d", want, len(graph.waiting))
	}
	return graph, nil
}

// longest removes passes that wait for nothing, one after the other, and returns the end of the
// last.
func (walk *orderWalk) longest(graph *passGraph) (length int64, err error) {
	start, queue := map[numbered]int64{}, []numbered(nil)
	for one, count := range graph.waiting {
		if count == 0 {
			queue = append(queue, one)
		}
	}
	done := 0
	for ; len(queue) > 0; done++ {
		one := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		end := start[one] + walk.seconds(one.Pass)
		length = max(length, end)
		reach := func(next numbered, at int64) {
			start[next] = max(start[next], at)
			graph.waiting[next]--
			if graph.waiting[next] == 0 {
				queue = append(queue, next)
			}
		}
		if next, ok := graph.after[one]; ok {
			reach(next, end)
		}
		passes, waits := walk.next(one.Pass)
		for i, next := range passes {
			reach(numbered{next, one.batch}, end+waits[i])
		}
	}
	if done < len(graph.waiting) {
		return 0, fault("%d passes of an order wait for each other", len(graph.waiting)-done)
	}
	return length, nil
}
