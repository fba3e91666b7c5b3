package trainer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
)

// TestRead: lengths by line and in an array, and faults with their line.
func TestRead(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"", "600,2048", "mean 600 max 2048 of 0"},
		{"", " 1.5 , 4", "mean 1.5 max 4 of 0"},
		{"", "3000,2048", "the mean 3000 is above the maximum 2048"},
		{"", "0,2048", `"0" is no mean of 1 or more`},
		{"", "NaN,2048", `"NaN" is no mean of 1 or more`},
		{"", "5,x", `"x" is no maximum from 1 to 2^32`},
		{"f", "3\n\n5\r\n5\n", "mean 4.33 max 5 of 3"},
		{"f", "[3, 5,\n5]\n", "mean 4.33 max 5 of 3"},
		{"f", "3\nfive\n", `f: line 2: "five" is no number of tokens from 1 to 2^32`},
		{"f", "3\n0", `f: line 2: "0" is no number of tokens from 1 to 2^32`},
		{"f", "[3,\n\"5\"]", "f: line 2: the array has 5 in it, which is no number of tokens"},
		{"f", "[3,\n1.5]", `f: line 2: "1.5" is no number of tokens from 1 to 2^32`},
		{"f", "[3] 4", "f: line 1: there is more after the array"},
		{"f", "[3,\n", "f: line 2: unexpected EOF"},
		{"f", " \n", "f: line 1: there is no length: write one a line, or a JSON array"},
	} {
		var lengths Lengths
		err := lengths.Read(c.file, []byte(c.text))
		got := fmt.Sprintf("mean %v max %d of %d", lengths.Mean, lengths.Max, lengths.samples())
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (!strings.HasSuffix(c.want, "EOF") || !strings.HasSuffix(got, "EOF")) {
			t.Errorf("%q: %s, want %s", c.text, got, c.want)
		}
		if err == nil && lengths.Fault() != "" {
			t.Errorf("%q: %s", c.text, lengths.Fault())
		}
	}
}

// TestCounts: a plan file has them in one line, and reads the same back.
func TestCounts(t *testing.T) {
	all := counts{{3, 1}, {5, 20}}
	text, err := all.MarshalText()
	if err != nil || string(text) != "3:1 5:20" {
		t.Fatalf("%q, %v", text, err)
	}
	var read counts
	if err := read.UnmarshalText(text); err != nil || !slices.Equal(read, all) {
		t.Errorf("%v, %v", read, err)
	}
	for _, bad := range []string{"3", "3:x", ":1", "3:1,5:2", strings.Repeat("1:1 ", mostLengths+1)} {
		if err := read.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%.20q is read", bad)
		}
	}
}

// TestCompact: a list of many different lengths is rounded up, and its longest stays.
func TestCompact(t *testing.T) {
	var text strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&text, "%d\n", 1+7*i)
	}
	var lengths Lengths
	if err := lengths.Read("f", []byte(text.String())); err != nil {
		t.Fatal(err)
	}
	if n := len(lengths.Counts); n > mostLengths || lengths.Max != 1+7*49_999 || lengths.samples() != 50_000 || lengths.Fault() != "" {
		t.Errorf("%d lengths up to %d, %d samples: %s", n, lengths.Max, lengths.samples(), lengths.Fault())
	}
	if exact := 1 + 7*49_999/2.; lengths.Mean < exact || lengths.Mean > 1.001*exact {
		t.Errorf("mean %v of %v", lengths.Mean, exact)
	}
}

// randomLengths are the lengths of up to 64 samples.
func randomLengths(random *rand.Rand) *Lengths {
	var text strings.Builder
	for range 5 + random.IntN(60) {
		fmt.Fprintln(&text, 1+random.IntN(40))
	}
	var lengths Lengths
	if err := lengths.Read("f", []byte(text.String())); err != nil {
		panic(err)
	}
	return &lengths
}

// TestBatches: no random micro-batch exceeds the worst, and half of them not the usual one.
func TestBatches(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		lengths := randomLengths(random)
		all := lengths.sampled(1 << 20)
		rule := Rule{Samples: 1 + random.Int64N(min(5, int64(len(all)))), Seq: 1000, Packs: Packs{Multiple: 1 + random.Int64N(8)}}
		padded := fixtures.Must(rule.Batches(lengths))(t)
		rule.Packing = PaddingFree
		free := fixtures.Must(rule.Batches(lengths))(t)
		const trials = 4000
		within, smaller := [2]int{}, [2]int{}
		for range trials {
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			batch := all[:rule.Samples]
			longest, sum := rule.up(slices.Max(batch)), rule.up(total(batch))
			if longest > padded.Worst.Tokens || sum > free.Worst.Tokens {
				t.Fatalf("%v in %+v: %d and %d tokens, worst %+v and %+v", lengths.Counts, rule, longest, sum, padded.Worst, free.Worst)
			}
			if pads := longest != batch[0] || slices.Min(batch) != longest; pads && longest == padded.Worst.Tokens && !padded.Worst.Padding {
				t.Fatalf("%v in %+v: %v is padded", lengths.Counts, rule, batch)
			}
			for i, pair := range [2][2]int64{{longest, padded.Usual.Tokens}, {sum, free.Usual.Tokens}} {
				if pair[0] <= pair[1] {
					within[i]++
				}
				if pair[0] < pair[1] {
					smaller[i]++
				}
			}
		}
		for i := range within {
			if within[i] < trials*45/100 || smaller[i] > trials*55/100 {
				t.Errorf("%v in %+v: %d of %d are within, %d below", lengths.Counts, rule, within[i], trials, smaller[i])
			}
		}
	}
}

// TestPack: each sample is in one row, no row is over its room, and no two rows could share one.
func TestPack(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		all := randomLengths(random).sampled(1 << 20)
		slices.Reverse(all)
		rows := pack(all, 50)
		sum, samples := int64(0), int64(0)
		for i, row := range rows {
			sum, samples = sum+row.tokens, samples+row.documents
			if row.tokens > 50 {
				t.Fatalf("%v: a row of %d", all, row.tokens)
			}
			for _, other := range rows[:i] {
				if row.tokens+other.tokens <= 50 {
					t.Fatalf("%v: rows of %d and %d", all, row.tokens, other.tokens)
				}
			}
		}
		if sum != total(all) || samples != int64(len(all)) {
			t.Fatalf("%v: %d tokens, %d samples", all, sum, samples)
		}
	}
}

// TestRules: rows as the programs make them.
func TestRules(t *testing.T) {
	var lengths Lengths
	if err := lengths.Read("f", []byte("[300,500,700,900,1500,2040]")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		preset, packing string
		flash           bool
		worst           Batch
	}{
		{Loop, "", false, Batch{Rows: 2, Tokens: 2040, Real: 3540, Padding: true}},
		{"llamafactory", "", false, Batch{Rows: 2, Tokens: 2040, Real: 3540, Padding: true}},
		{"axolotl", "", false, Batch{Rows: 2, Tokens: 2048, Real: 3540, Padding: true}},
		{"llamafactory", Wrapped, false, Batch{Rows: 2, Tokens: 2056, Real: 4098, Padding: true}},
		{"trl-sft", Wrapped, false, Batch{Rows: 2, Tokens: 2048, Real: 4096}},
		{"llamafactory", Packed, false, Batch{Rows: 2, Tokens: 2056, Real: 4080, Documents: 6}},
		{"trl-sft", Packed, false, Batch{Rows: 1, Tokens: 4080, Real: 4080, Documents: 6}},
		{"ms-swift", PaddingFree, true, Batch{Rows: 1, Tokens: 3540, Real: 3540, Documents: 2}},
		{"axolotl", Packed, true, Batch{Rows: 1, Tokens: 4096, Real: 4080, Documents: 6}},
		{"axolotl", Packed, false, Batch{Rows: 2, Tokens: 2048, Real: 4080, Documents: 6}},
	} {
		packs := Of(c.preset).Packs
		packs.OneRow = packs.OneRow || packs.FlashOneRow && c.flash
		rule := Rule{Samples: 2, Seq: 2048, Packing: c.packing, Packs: packs}
		batches, err := rule.Batches(&lengths)
		if err != nil || batches.Worst != c.worst {
			t.Errorf("%s %s: %+v, %v, want %+v", c.preset, c.packing, batches, err, c.worst)
		}
	}
	few := Rule{Samples: 7, Seq: 2048}
	if _, err := few.Batches(&lengths); err == nil {
		t.Error("7 of 6 samples are a micro-batch")
	}
}

// FuzzRead: any text is read or refused, and lengths make batches.
func FuzzRead(f *testing.F) {
	for _, text := range []string{"3\n5\n", "[3, 5]", "[[3]]", "{", "4294967296\n", "9999999999999999999", "[1e3]", "\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var lengths Lengths
		if err := lengths.Read("f", []byte(text)); err != nil {
			if !strings.HasPrefix(err.Error(), "f: line ") {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if fault := lengths.Fault(); fault != "" {
			t.Fatalf("%q: %s", text, fault)
		}
		for _, packing := range Packings() {
			rule := Rule{Samples: 2, Seq: 4096, Packing: packing}
			batches, err := rule.Batches(&lengths)
			if err != nil {
				continue
			}
			if !batches.Worst.Sound() || !batches.Usual.Sound() || batches.Usual.Real > batches.Worst.Rows*batches.Worst.Tokens {
				t.Fatalf("%q %s: %+v", text, packing, batches)
			}
		}
	})
}
