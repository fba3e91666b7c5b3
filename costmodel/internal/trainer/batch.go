package trainer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// How samples fill the rows of a batch.
const (
	Padded      = "none"         // a row each, padded to the longest of the batch
	Wrapped     = "wrapped"      // rows of one length, cut at any token; one document each
	Packed      = "packed"       // rows of one length, whole samples kept apart
	PaddingFree = "padding-free" // one row of all samples of the batch
)

// Packings are all, the default first.
func Packings() []string { return []string{Padded, Wrapped, Packed, PaddingFree} }

// Batch is what one micro-batch gives the model to read.
type Batch struct {
	Rows   int64 `json:"rows"`
	Tokens int64 `json:"tokens"` // of a row
	// Real are the tokens of all rows without padding.
	Real int64 `json:"real"`
	// Documents are kept apart by attention; 0: one a row.
	Documents int64 `json:"documents,omitzero"`
	// Padding: a row is padded, so that attention is given a mask.
	Padding bool `json:"padding,omitzero"`
}

// Batches are the largest micro-batch, and the usual one: half of all micro-batches
// are no larger. AtLeast: the usual one is a lower bound.
type Batches struct {
	Worst   Batch `json:"worst"`
	Usual   Batch `json:"usual"`
	AtLeast bool  `json:"at_least,omitzero"`
}

// Rule is how a program makes micro-batches.
type Rule struct {
	Samples int64 // or packed rows
	Seq     int64 // the longest sample, and a packed row's size
	Packing string
	Packs
}

// Packs are the rules that depend on the program.
type Packs struct {
	// Multiple: rows are padded to a multiple of it.
	Multiple int64 `json:"multiple"`
	// OneRow: packed rows lie end to end in one. FlashOneRow: under flash-attn.
	OneRow      bool `json:"one_row"`
	FlashOneRow bool `json:"flash_one_row"`
	// Fills: packed rows are padded to their full length, of Extra more tokens.
	Fills bool  `json:"fills"`
	Extra int64 `json:"extra"`
	// FlashOnly: samples share rows under flash-attn alone.
	FlashOnly bool `json:"flash_only"`
	// Drops: samples that are too long are left out, not cut.
	Drops bool `json:"drops"`
	// Indices: a packed row's mask numbers its documents. flash-attn then
	// unpads it; SDPA gets a mask of the compute's type from the collator.
	Indices bool `json:"indices"`
	// Varlen: SDPA's packed rows go through torch's varlen_attn, without a mask.
	Varlen bool `json:"varlen"`
	// Kinds are the kinds of packing that the program has; empty: all.
	Kinds []string `json:"kinds"`
}

// Sound reports a batch that can be counted: one of a plan file may not be.
func (batch *Batch) Sound() bool {
	const most = 1 << 32
	return batch.Rows >= 1 && batch.Tokens >= 1 && batch.Rows <= most && batch.Tokens <= most/batch.Rows &&
		batch.Real >= 0 && batch.Real <= batch.Rows*batch.Tokens && batch.Documents >= 0 && batch.Documents <= batch.Rows*batch.Tokens
}

// Batches are the micro-batches of samples with these lengths; without lengths all have the rule's.
func (rule *Rule) Batches(lengths *Lengths) (*Batches, error) {
	if lengths.Max == 0 {
		lengths = &Lengths{Mean: float64(rule.Seq), Max: rule.Seq}
	}
	if lengths = lengths.cut(rule.Seq, rule.Drops); rule.Drops && lengths.Max == 0 {
		return nil, fmt.Errorf("all samples are longer than %d tokens", rule.Seq)
	}
	known := len(lengths.Counts) > 0
	if have := lengths.samples(); known && rule.Packing != Wrapped && rule.Packing != Packed && have < rule.Samples {
		return nil, fmt.Errorf("%d samples are fewer than a micro-batch of %d", have, rule.Samples)
	}
	switch rule.Packing {
	case Wrapped:
		row := rule.Seq + rule.Extra
		full := Batch{Rows: rule.Samples, Tokens: rule.up(row), Real: rule.Samples * row}
		full.Padding = full.Tokens != row
		return &Batches{Worst: full, Usual: full}, nil
	case Packed:
		return rule.packed(lengths), nil
	case PaddingFree:
		return rule.paddingFree(lengths), nil
	}
	return rule.padded(lengths), nil
}

// up is a padded length.
func (rule *Rule) up(tokens int64) int64 {
	multiple := max(1, rule.Multiple)
	return (tokens + multiple - 1) / multiple * multiple
}

// padded are rows of a sample each.
func (rule *Rule) padded(lengths *Lengths) *Batches {
	n := rule.Samples
	out := &Batches{Worst: Batch{Rows: n, Tokens: rule.up(lengths.Max), Real: lengths.top(n)}}
	out.Worst.Padding = lengths.pads(out.Worst.Tokens, rule)
	usual := int64(math.Ceil(lengths.Mean)) // the longest is no shorter than the mean
	if len(lengths.Counts) > 0 {
		usual = lengths.medianOfLongest(n)
	} else {
		out.AtLeast = lengths.Mean < float64(lengths.Max)
	}
	out.Usual = Batch{Rows: n, Tokens: rule.up(usual)}
	out.Usual.Real = min(n*out.Usual.Tokens, int64(math.Round(float64(n)*lengths.Mean)))
	out.Usual.Padding = out.Usual.Real < n*out.Usual.Tokens
	return out
}

// pads reports that a micro-batch may have padding, to its longest sample or to a multiple.
func (lengths *Lengths) pads(tokens int64, rule *Rule) bool {
	if len(lengths.Counts) == 0 {
		return lengths.Mean < float64(lengths.Max) && (rule.Samples > 1 || rule.Multiple > 1) || tokens != lengths.Max
	}
	if rule.Samples > 1 && len(lengths.Counts) > 1 {
		return true
	}
	return slices.ContainsFunc(lengths.Counts, func(one [2]int64) bool { return one[0] != tokens && rule.up(one[0]) == tokens })
}

// top is the sum of the n longest.
func (lengths *Lengths) top(n int64) (sum int64) {
	for i := len(lengths.Counts) - 1; i >= 0 && n > 0; i-- {
		count := min(n, lengths.Counts[i][1])
		sum += count * lengths.Counts[i][0]
		n -= count
	}
	return sum + n*lengths.Max
}

// medianOfLongest is the median of the longest of n distinct random samples: the least length that
// all n are within with a probability of a half.
func (lengths *Lengths) medianOfLongest(n int64) int64 {
	all, within := lengths.samples(), int64(0)
	for _, one := range lengths.Counts {
		within += one[1]
		if within < n {
			continue
		}
		chance := 0. // its logarithm
		for k := range n {
			chance += math.Log(float64(within-k) / float64(all-k))
		}
		if chance >= math.Log(.5) {
			return one[0]
		}
	}
	return lengths.Max
}

// paddingFree is one row of all samples.
func (rule *Rule) paddingFree(lengths *Lengths) *Batches {
	n := rule.Samples
	row := func(tokens int64) Batch {
		padded := rule.up(tokens)
		return Batch{Rows: 1, Tokens: padded, Real: padded, Documents: n} // padding is a document, too short to count
	}
	usual := int64(math.Round(float64(n) * lengths.Mean))
	if len(lengths.Counts) > 0 {
		usual = lengths.medianSum(n)
	}
	return &Batches{Worst: row(lengths.top(n)), Usual: row(usual)}
}

// medianSum is the median of the sum of n samples, over the micro-batches of
// epochs in an order that a fixed seed gives.
func (lengths *Lengths) medianSum(n int64) int64 {
	const most, least = 1 << 20, 2001 // samples that are shuffled, sums
	all := lengths.sampled(most)
	if n == 1 || int64(len(all)) < n {
		return n * lengths.medianOfLongest(1)
	}
	random := rand.New(rand.NewPCG(1, 2))
	var sums []int64
	for len(sums) < least {
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for batch := range slices.Chunk(all, int(n)) {
			if int64(len(batch)) == n {
				sums = append(sums, total(batch))
			}
		}
	}
	slices.Sort(sums)
	return sums[(len(sums)-1)/2]
}

func total(lengths []int64) (sum int64) {
	for _, length := range lengths {
		sum += length
	}
	return sum
}

// sampled are the lengths one by one, evenly pruned to at most so many.
func (lengths *Lengths) sampled(most int64) []int64 {
	every := (lengths.samples() + most - 1) / most
	var out []int64
	next, seen := int64(0), int64(0)
	for _, one := range lengths.Counts {
		for seen += one[1]; next < seen; next += every {
			out = append(out, one[0])
		}
	}
	return out
}

// packed are rows that whole samples are packed into.
func (rule *Rule) packed(lengths *Lengths) *Batches {
	worst, usual, mean := rule.fill(lengths)
	n := rule.Samples
	often := usual.documents
	if n > 1 {
		often = int64(math.Ceil(float64(n) * mean)) // one row of several documents is enough for a mask
	}
	batch := func(row bin, documents int64) Batch {
		tokens := row.tokens
		if rule.Fills {
			tokens = rule.Seq + rule.Extra
		}
		if rule.OneRow {
			return Batch{Rows: 1, Tokens: rule.up(n * tokens), Real: n * row.tokens, Documents: documents}
		}
		if !rule.Fills && n > 1 {
			tokens = max(tokens, usual.tokens)
		}
		return Batch{Rows: n, Tokens: rule.up(tokens), Real: n * row.tokens, Documents: documents}
	}
	return &Batches{Worst: batch(worst, n*worst.documents), Usual: batch(usual, often)}
}

// bin is a packed row.
type bin struct{ tokens, documents int64 }

// fill packs the samples, the longest first, each into the fullest row that takes it (best fit
// decreasing: trl/data_utils.py, _pack_bfd). The worst row has the most tokens and the most
// documents, the usual one the median of both; mean is the mean number of documents. Without each
// sample's length, rows are full of samples of the mean.
func (rule *Rule) fill(lengths *Lengths) (worst, usual bin, mean float64) {
	if len(lengths.Counts) == 0 {
		documents := max(2, int64(math.Ceil(float64(rule.Seq)/lengths.Mean)))
		full := bin{rule.Seq, documents}
		return full, full, float64(documents)
	}
	const most = 1 << 16 // samples that are packed
	all := lengths.sampled(most)
	slices.Reverse(all)
	rows := pack(all, rule.Seq)
	var tokens, documents []int64
	for _, row := range rows {
		tokens, documents = append(tokens, row.tokens), append(documents, row.documents)
	}
	slices.Sort(tokens)
	slices.Sort(documents)
	last, middle := len(rows)-1, (len(rows)-1)/2
	return bin{tokens[last], documents[last]}, bin{tokens[middle], documents[middle]}, float64(len(all)) / float64(len(rows))
}

// pack is best fit for descending lengths. rooms are the rows' free sizes, ascending.
func pack(lengths []int64, capacity int64) []bin {
	var rows []bin
	var rooms []int64
	having := map[int64][]int{}
	for _, length := range lengths {
		row, left := len(rows), capacity
		at, _ := slices.BinarySearch(rooms, length)
		if at < len(rooms) {
			left = rooms[at]
			of := having[left]
			row = of[len(of)-1]
			if having[left] = of[:len(of)-1]; len(of) == 1 {
				rooms = slices.Delete(rooms, at, at+1)
			}
		} else {
			rows = append(rows, bin{})
		}
		rows[row].tokens += length
		rows[row].documents++
		if left -= length; left == 0 {
			continue
		}
		if at, found := slices.BinarySearch(rooms, left); !found {
			rooms = slices.Insert(rooms, at, left)
		}
		having[left] = append(having[left], row)
	}
	return rows
}
