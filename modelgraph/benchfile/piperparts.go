package benchfile

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

func (read *reading) piperEdges(edges []piperEdge, index map[int]int) []piperTransfer {
	var out []piperTransfer
	seen := make(map[[2]int]int)
	for i, edge := range edges {
		place := fmt.Sprintf("edges[%d]", i)
		from, to := read.node(place+".sourceId", edge.From, index), read.node(place+".destId", edge.To, index)
		if j, known := seen[[2]int{from, to}]; known {
			read.fault(place, "joins the same nodes as edges[%d]", j)
		}
		if from == to {
			read.fault(place, "from node %d to itself", read.whole(place, edge.From))
		}
		seen[[2]int{from, to}] = i
		out = append(out, piperTransfer{from, to, read.amount(place+".communicationCost", edge.Bytes)})
	}
	return out
}

// around maps, for each node, the ids of neighbouring nodes to edges: first for edges into it, then
// for edges out of it.
func (file *Piper) around() [][2]map[int]int {
	ends := make([][2]map[int]int, len(file.Nodes))
	for i := range ends {
		ends[i] = [2]map[int]int{make(map[int]int), make(map[int]int)}
	}
	if len(ends) == 0 {
		return nil
	}
	for i, edge := range file.Edges {
		ends[edge.To][0][file.Nodes[edge.From].ID] = i
		ends[edge.From][1][file.Nodes[edge.To].ID] = i
	}
	return ends
}

func (read *reading) piperConfigs(place string, configs map[string][]piperConfig, ends [2]map[int]int) map[int][]piperWay {
	out := make(map[int][]piperWay)
	for _, key := range slices.Sorted(maps.Keys(configs)) {
		at := fmt.Sprintf("%s[%q]", place, key)
		degree, err := strconv.Atoi(key)
		if err != nil || degree < 1 {
			read.fault(at, "%q is not a degree of tensor parallelism, 1 or more", key)
			continue
		}
		for i, config := range configs[key] {
			at := fmt.Sprintf("%s[%d]", at, i)
			if config.ID == "" {
				read.fault(at+".id", "a configuration needs a name")
			}
			out[degree] = append(out[degree], piperWay{
				ID: config.ID, Time: read.amount(at+".timePerSample", config.Time), Parameters: read.amount(at+".parameterSize", config.Parameters),
				PerMicroBatch: read.amount(at+".memoryUsageA", config.A), Fixed: read.amount(at+".memoryUsageB", config.B),
				SyncForward:  read.syncs(at+".syncTimeFw", config.SyncForward, ends[0]),
				SyncBackward: read.syncs(at+".syncTimeBw", config.SyncBackward, ends[1]),
			})
		}
	}
	return out
}

// syncs reads a map that must name every edge once, by the id at its other end.
func (read *reading) syncs(place string, syncs map[string]float64, ends map[int]int) map[int]float64 {
	out := make(map[int]float64, len(syncs))
	for _, key := range slices.Sorted(maps.Keys(syncs)) {
		at := fmt.Sprintf("%s[%q]", place, key)
		id, err := strconv.Atoi(key)
		edge, known := ends[id]
		if err != nil || !known {
			read.fault(at, "no edge joins this node and a node %q", key)
			continue
		}
		bytes := syncs[key]
		out[edge] = read.amount(at, &bytes)
	}
	for _, id := range slices.Sorted(maps.Keys(ends)) {
		if _, known := out[ends[id]]; !known {
			read.fault(place, "the edge that joins it and node %d is missing", id)
		}
	}
	return out
}
