package paged

import (
	"fmt"
	"math"
	"slices"
)

// CacheKind says how long a layer keeps the keys and values of a token.
type CacheKind int

// The kinds of caches.
const (
	NoCache CacheKind = iota // no cache of its own
	Full                     // all tokens
	Latent                   // all tokens, one latent for all heads (MLA)
	Sliding                  // the tokens of a window
	Chunked                  // the tokens of a chunk
	State                    // a state of constant size (Mamba, linear attention)
)

// Cache is what one layer of one rank keeps of a request.
type Cache struct {
	Kind CacheKind
	// Heads are those of the keys. Head and Value are the numbers of a head in keys and in values.
	Heads, Head, Value int64
	Element            int64 // bytes of a number
	Window             int64 // tokens of a window or chunk
	Bytes              int64 // of a state
	Block              int64 // tokens of a block
}

// token is the bytes of one token.
func (cache *Cache) token() int64 { return cache.Heads * (cache.Head + cache.Value) * cache.Element }

// page is the bytes of one block.
func (cache *Cache) page() int64 {
	if cache.Kind == State {
		return cache.Bytes
	}
	return cache.Block * cache.token()
}

// sameSlots reports caches that need as many blocks for a request (vLLM 0.33,
// v1/kv_cache_interface.py, is_uniform_with_collection).
func (cache *Cache) sameSlots(other *Cache) bool {
	allTokens := func(cache *Cache) bool { return cache.Kind == Full || cache.Kind == Latent }
	switch {
	case cache.Block != other.Block && cache.Kind != State:
		return false
	case allTokens(cache):
		return allTokens(other)
	case cache.Kind == State:
		return other.Kind == State && cache.Bytes == other.Bytes
	}
	return cache.Kind == other.Kind && cache.Window == other.Window
}

// blocks are those that a request takes (v1/kv_cache_interface.py, max_memory_usage_bytes).
func (cache *Cache) blocks(request Request) int64 {
	length := request.Length
	switch cache.Kind { //nolint:exhaustive // the others have all tokens
	case Sliding:
		return divided(min(cache.Window-1+request.InFlight, length), cache.Block) + 1
	case Chunked:
		return divided(min(cache.Window+request.InFlight, length), cache.Block)
	case State:
		return max(1, request.States)
	}
	return divided(length, cache.Block)
}

func divided(size, by int64) int64 { return (size + by - 1) / by }

// Request is a request of the longest length that the engine accepts.
type Request struct {
	Length   int64 // tokens
	InFlight int64 // tokens that are computed at a time, of all concurrent batches
	States   int64 // copies of a layer's state; 0: one
}

// Pool is the cache of all layers. A block has a page of each layer of one group, and all groups
// take their blocks from the same pool.
type Pool struct {
	groups []Cache // one layer of each
	of     []int   // the group of each layer, or -1
	pages  []int64 // bytes of a page of each layer, or parts of them
	parts  int64   // of a byte, if a layer keeps fewer tokens than there are slots; else 1
}

// NewPool groups the layers of a model, in their order (vLLM 0.33, v1/core/kv_cache_planning.py,
// get_kv_cache_groups). The error is for pages that cannot have one size.
func NewPool(layers []Cache) (*Pool, error) {
	pool := &Pool{of: make([]int, len(layers)), pages: make([]int64, len(layers)), parts: 1}
	var cached []int
	for i := range layers {
		pool.of[i] = -1
		if layers[i].Kind != NoCache {
			cached = append(cached, i)
		}
	}
	if len(cached) == 0 {
		return pool, nil
	}
	first := &layers[cached[0]]
	if !slices.ContainsFunc(cached, func(i int) bool { return !first.sameSlots(&layers[i]) }) {
		pool.groups = []Cache{*first}
		for _, i := range cached {
			pool.of[i], pool.pages[i] = 0, layers[i].page()
		}
		return pool, nil
	}
	if packs(layers) {
		pool.pack(layers, cached)
		return pool, nil
	}
	err := pool.split(layers, cached)
	return pool, err
}

// packs reports caches whose pages lie in one block after another, in their own sizes. vLLM shares
// full caches over ranks of context parallelism, and no sliding ones. So the two kinds never get one
// page size if theirs differ (v1/attention/backends/utils.py, resolve_kv_cache_layout).
func packs(layers []Cache) bool {
	sizes := map[int64]bool{}
	var sliding, full bool
	for i := range layers {
		switch cache := &layers[i]; cache.Kind {
		case NoCache:
			continue
		case Sliding:
			sliding = true
		case Full, Latent, Chunked:
			full = true
		case State:
		}
		sizes[layers[i].page()] = true
	}
	return sliding && full && len(sizes) > 1
}

// pack makes one group of the layers that need as many blocks. Sliding layers and states are several
// groups, so that none is larger than the largest of the others (_get_packed_kv_cache_groups).
func (pool *Pool) pack(layers []Cache, cached []int) {
	var kinds []Cache
	var members [][]int
	for _, i := range cached {
		pool.pages[i] = layers[i].page()
		at := slices.IndexFunc(kinds, func(kind Cache) bool { return kind.sameSlots(&layers[i]) })
		if at < 0 {
			at = len(kinds)
			kinds, members = append(kinds, layers[i]), append(members, nil)
		}
		members[at] = append(members[at], i)
	}
	var largest int64
	for at, kind := range kinds {
		size := kind.page()
		if kind.Kind != Sliding && kind.Kind != State {
			size = 0
			for _, i := range members[at] {
				size += pool.pages[i]
			}
		}
		largest = max(largest, size)
	}
	for at, kind := range kinds {
		count := 1
		if kind.Kind == Sliding || kind.Kind == State {
			each := int(max(largest/kind.page(), 1))
			count = (len(members[at]) + each - 1) / each
		}
		for nth, i := range members[at] {
			pool.of[i] = len(pool.groups) + nth%count
		}
		for range count {
			pool.groups = append(pool.groups, kind)
		}
	}
}

// split makes groups of as many layers each, with pages of one size (unify_kv_cache_spec_page_size,
// _get_kv_cache_groups_uniform_page_size).
func (pool *Pool) split(layers []Cache, cached []int) error {
	var page int64
	for _, i := range cached {
		page = max(page, layers[i].page())
	}
	var kinds []Cache
	members := map[Cache][]int{}
	for _, i := range cached {
		cache := layers[i]
		switch own := cache.page(); {
		case own == page || cache.Kind == State:
		case page%own == 0:
			cache.Block *= page / own
		case cache.Kind == Latent:
			return fmt.Errorf("layer %d: pages of %d bytes and of %d cannot have one size", i, own, page)
		}
		if members[cache] == nil {
			kinds = append(kinds, cache)
		}
		members[cache] = append(members[cache], i)
		pool.pages[i] = page
	}
	least, most := len(cached), 0
	for _, kind := range kinds {
		least, most = min(least, len(members[kind])), max(most, len(members[kind]))
	}
	size := least
	if 2*most < 3*least {
		size = most
	}
	for _, kind := range kinds {
		count := (len(members[kind]) + size - 1) / size
		for at, layer := range members[kind] {
			pool.of[layer] = len(pool.groups) + at%count
		}
		for range count {
			pool.groups = append(pool.groups, kind)
		}
	}
	return nil
}

// In is the number of blocks in so many bytes of a rank with the layers from first to end. ok is false
// if none of them has a cache.
func (pool *Pool) In(bytes int64, first, end int) (blocks int64, ok bool) {
	size := pool.block(first, end)
	if size == 0 {
		return 0, false
	}
	return bytes * pool.parts / size, true
}

// Bytes are those of so many blocks.
func (pool *Pool) Bytes(blocks int64, first, end int) int64 {
	return blocks * pool.block(first, end) / pool.parts
}

// block is one block of a rank: the pages of its largest group.
func (pool *Pool) block(first, end int) int64 {
	sums := make([]int64, len(pool.groups))
	for i := first; i < end; i++ {
		if group := pool.of[i]; group >= 0 {
			sums[group] += pool.pages[i]
		}
	}
	largest := int64(0)
	for _, sum := range sums {
		largest = max(largest, sum)
	}
	return largest
}

// Blocks are those that a request takes from the pool.
func (pool *Pool) Blocks(request Request) (sum int64) {
	for i := range pool.groups {
		sum += pool.groups[i].blocks(request)
	}
	return sum
}

// Fits reports that a rank with so many blocks starts: one block stays empty (get_kv_cache_configs).
func (pool *Pool) Fits(blocks int64, request Request) bool {
	return pool.Blocks(request) < blocks
}

// Longest is the longest request that so many blocks hold, at most most tokens, or 0
// (_estimate_max_model_len_from_groups).
func (pool *Pool) Longest(blocks, most int64, request Request) int64 {
	fits := func(length int64) bool {
		request.Length = length
		return pool.Fits(blocks, request)
	}
	low, high := int64(0), most+1 // low fits, high does not
	for low+1 < high {
		if middle := (low + high) / 2; fits(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// Tokens are those that the engine prints as the size of its cache (get_kv_cache_capacity): the
// requests at a time, times their length.
func (pool *Pool) Tokens(blocks int64, request Request) int64 {
	if blocks == math.MaxInt64 { // states alone
		return 0
	}
	return int64(float64(blocks) / float64(pool.Blocks(request)) * float64(request.Length))
}
