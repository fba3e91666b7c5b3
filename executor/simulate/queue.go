package simulate

// event is a lane whose next instruction can start at a time.
type event struct {
	time int64
	lane int32
}

// queue is a binary heap of events by time, as container/heap would allocate for each event. Events
// of one time come out in an order that depends only on the pushes before. So the same program is
// always simulated in the same order.
type queue []event

func (q *queue) push(added event) {
	*q = append(*q, added)
	heap := *q
	child := len(heap) - 1
	for child > 0 {
		parent := (child - 1) / 2
		if added.time >= heap[parent].time {
			break
		}
		heap[child] = heap[parent]
		child = parent
	}
	heap[child] = added
}

// pop removes and returns the earliest event.
func (q *queue) pop() event {
	heap := *q
	first, moved := heap[0], heap[len(heap)-1]
	heap = heap[:len(heap)-1]
	*q = heap
	if len(heap) == 0 {
		return first
	}
	parent := 0
	for {
		child := 2*parent + 1
		if child >= len(heap) {
			break
		}
		if right := child + 1; right < len(heap) && heap[right].time < heap[child].time {
			child = right
		}
		if heap[child].time >= moved.time {
			break
		}
		heap[parent] = heap[child]
		parent = child
	}
	heap[parent] = moved
	return first
}
