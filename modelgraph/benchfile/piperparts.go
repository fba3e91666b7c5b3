package benchfile

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

func (r *reading) piperEdges(edges []piperEdge, index map[int]int) []piperTransfer {
	var out []piperTransfer
	seen := make(map[[2]int]int)
	for i, e := range edges {
		place := fmt.Sprintf("edges[%d]", i)
		from, to := r.node(place+".sourceId", e.From, index), r.node(place+".destId", e.To, index)
		if j, known := seen[[2]int{from, to}]; known {
			r.fault(place, "joins the same nodes as edges[%d]", j)
		}
		if from == to {
			r.fault(place, "from node %d to itself", r.whole(place, e.From))
		}
		seen[[2]int{from, to}] = i
		out = append(out, piperTransfer{from, to, r.amount(place+".communicationCost", e.Bytes)})
	}
	return out
}

// around maps, for each node, the ids of the nodes around it to edges: those into
// it, and those out of it.
func (p *Piper) around() [][2]map[int]int {
	ends := make([][2]map[int]int, len(p.Nodes))
	for i := range ends {
		ends[i] = [2]map[int]int{make(map[int]int), make(map[int]int)}
	}
	if len(ends) == 0 {
		return nil
	}
	for i, e := range p.Edges {
		ends[e.To][0][p.Nodes[e.From].ID] = i
		ends[e.From][1][p.Nodes[e.To].ID] = i
	}
	return ends
}

func (r *reading) piperConfigs(place string, configs map[string][]piperConfig, ends [2]map[int]int) map[int][]piperWay {
	out := make(map[int][]piperWay)
	for _, key := range slices.Sorted(maps.Keys(configs)) {
		at := fmt.Sprintf("%s[%q]", place, key)
		degree, err := strconv.Atoi(key)
		if err != nil || degree < 1 {
			r.fault(at, "%q is not a degree of tensor parallelism, 1 or more", key)
			continue
		}
		for i, c := range configs[key] {
			at := fmt.Sprintf("%s[%d]", at, i)
			if c.ID == "" {
				r.fault(at+".id", "a configuration needs a name")
			}
			out[degree] = append(out[degree], piperWay{
				ID: c.ID, Time: r.amount(at+".timePerSample", c.Time), Parameters: r.amount(at+".parameterSize", c.Parameters),
				PerMicroBatch: r.amount(at+".memoryUsageA", c.A), Fixed: r.amount(at+".memoryUsageB", c.B),
				SyncForward:  r.syncs(at+".syncTimeFw", c.SyncForward, ends[0]),
				SyncBackward: r.syncs(at+".syncTimeBw", c.SyncBackward, ends[1]),
			})
		}
	}
	return out
}

// syncs has to name every edge once, by the id at its other end.
func (r *reading) syncs(place string, syncs map[string]float64, ends map[int]int) map[int]float64 {
	out := make(map[int]float64, len(syncs))
	for _, key := range slices.Sorted(maps.Keys(syncs)) {
		at := fmt.Sprintf("%s[%q]", place, key)
		id, err := strconv.Atoi(key)
		edge, known := ends[id]
		if err != nil || !known {
			r.fault(at, "no edge joins this node and a node %q", key)
			continue
		}
		bytes := syncs[key]
		out[edge] = r.amount(at, &bytes)
	}
	for _, id := range slices.Sorted(maps.Keys(ends)) {
		if _, known := out[ends[id]]; !known {
			r.fault(place, "the edge that joins it and node %d is missing", id)
		}
	}
	return out
}
