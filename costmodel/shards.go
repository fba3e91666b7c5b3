package costmodel

// Shards is a plan's list of the parameters' shards on each rank. All counts are elements.
type Shards struct {
	// Degree is the number of ranks that share a parameter. GPU d holds shard d mod Degree. Under HSDP a
	// group's GPUs are consecutive and hold all shards (init_device_mesh, replicas × shards).
	Degree int64 `json:"degree"`
	// Units are the parameters that are gathered together.
	Units []struct {
		Name        string   `json:"name"`
		Params      []string `json:"params"` // in the order they are reduced in
		Numel       int64    `json:"numel"`
		PaddedNumel int64    `json:"padded_numel"`
	} `json:"units"`
	// Params are all parameters. A tied one appears once, under the name that owns it.
	Params []struct {
		Name string `json:"name"`
		// Numel are its elements, PaddedNumel the elements that all ranks store together.
		Numel       int64 `json:"numel"`
		PaddedNumel int64 `json:"padded_numel"`
		// RankNumel are the elements each rank of a group holds, without padding.
		RankNumel []int64 `json:"rank_numel"`
	} `json:"params"`
}
