package program

import (
	"fmt"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// lineOf is an instruction of its own, not a stretch of shared arrays.
type lineOf struct {
	Instr
	accesses []Access
	waits    []Wait
}

// taken apart: a program's lines, which can be removed and put elsewhere.
func apart(program *Program) []lineOf {
	lines := make([]lineOf, len(program.Instrs))
	for i, instr := range program.Instrs {
		lines[i] = lineOf{instr, slices.Clone(program.Accesses[instr.FirstAccess:instr.EndAccess]), slices.Clone(program.Waits[instr.FirstWait:instr.EndWait])}
	}
	return lines
}

// together is a program of the lines at these old places in their new order;
// waits follow the lines that they named, those for lines that are gone go too.
func together(program *Program, lines []lineOf, order []int32) *Program {
	made := *program
	made.Buffers = slices.Clone(program.Buffers)
	made.Devices = slices.Clone(program.Devices)
	made.Instrs, made.Accesses, made.Waits = nil, nil, nil
	place := make(map[int32]int32)
	for number, old := range order {
		place[old] = int32(number)
	}
	for _, old := range order {
		line := lines[old]
		instr := line.Instr
		instr.FirstAccess, instr.FirstWait = int32(len(made.Accesses)), int32(len(made.Waits))
		made.Accesses = append(made.Accesses, line.accesses...)
		for _, wait := range line.waits {
			if number, there := place[wait.Instr]; there {
				made.Waits = append(made.Waits, Wait{number, wait.Stream})
			}
		}
		instr.EndAccess, instr.EndWait = int32(len(made.Accesses)), int32(len(made.Waits))
		made.Instrs = append(made.Instrs, instr)
	}
	number := int32(0)
	for i := range made.Devices {
		made.Devices[i].First = number
		for number < int32(len(made.Instrs)) && int(made.Instrs[number].Device) == i {
			number++
		}
		made.Devices[i].End = number
	}
	return &made
}

// mutations change a program in one random way each, and say how.
var mutations = []struct {
	name string
	do   func(*Program, *rand.Rand) *Program
}{
	{"remove", func(program *Program, random *rand.Rand) *Program {
		order := inOrder(program)
		at := random.IntN(len(order))
		return together(program, apart(program), slices.Delete(order, at, at+1))
	}},
	{"swap neighbours", func(program *Program, random *rand.Rand) *Program {
		order := inOrder(program)
		for {
			at := random.IntN(len(order) - 1)
			if program.Instrs[at].Device == program.Instrs[at+1].Device {
				order[at], order[at+1] = order[at+1], order[at]
				return together(program, apart(program), order)
			}
		}
	}},
	{"swap any", func(program *Program, random *rand.Rand) *Program {
		order := inOrder(program)
		for {
			a, b := random.IntN(len(order)), random.IntN(len(order))
			if a != b && program.Instrs[a].Device == program.Instrs[b].Device {
				order[a], order[b] = order[b], order[a]
				return together(program, apart(program), order)
			}
		}
	}},
	{"drop wait", func(program *Program, random *rand.Rand) *Program {
		lines := apart(program)
		for {
			line := &lines[random.IntN(len(lines))]
			if len(line.waits) > 0 {
				at := random.IntN(len(line.waits))
				line.waits = slices.Delete(line.waits, at, at+1)
				return together(program, lines, inOrder(program))
			}
		}
	}},
	{"move buffer", func(program *Program, random *rand.Rand) *Program {
		made := together(program, apart(program), inOrder(program))
		buffer := &made.Buffers[random.IntN(len(made.Buffers))]
		buffer.Offset = max(0, buffer.Offset+block*int64(random.IntN(33)-16))
		return made
	}},
	{"change sequence", func(program *Program, random *rand.Rand) *Program {
		made := together(program, apart(program), inOrder(program))
		for {
			instr := &made.Instrs[random.IntN(len(made.Instrs))]
			if instr.Channel >= 0 {
				instr.Sequence = max(0, instr.Sequence+int32(random.IntN(5))-2)
				return made
			}
		}
	}},
}

func inOrder(program *Program) []int32 {
	order := make([]int32, len(program.Instrs))
	for i := range order {
		order[i] = int32(i)
	}
	return order
}

// TestCheckMutated breaks valid programs, and compares the verdict with runs in
// random interleavings: what is found valid makes the values that the program
// made before, in all of them.
func TestCheckMutated(t *testing.T) {
	seed := maphash.MakeSeed()
	counts := map[string]int{}
	for number := range 1_000 * uint64(*samples) {
		random := rand.New(rand.NewPCG(number, 2))
		of := pipeline{2 + random.IntN(2), 1 + random.IntN(5), 1 + random.IntN(3), 1 + random.IntN(2)}
		program := parsed(t, (&programText{pipeline: of}).String())
		want := newRunner(program, random, seed)
		if !want.all(None, None) {
			t.Fatal("does not run")
		}
		mutation := mutations[random.IntN(len(mutations))]
		mutant := mutation.do(program, random)
		err := mutant.Check().Err()
		if err != nil {
			counts[mutation.name+": broken"]++
			continue
		}
		counts[mutation.name+": sound"]++
		for range 4 {
			got := newRunner(mutant, random, seed)
			if !got.all(None, None) {
				t.Fatalf("draw %d, %+v, %s: comes to a halt", number, of, mutation.name)
			}
			if !maps.Equal(got.made, want.made) {
				t.Fatalf("draw %d, %+v, %s: makes other values, and is found sound: %s", number, of, mutation.name, difference(program, mutant))
			}
		}
	}
	for _, mutation := range mutations {
		if counts[mutation.name+": broken"] == 0 || mutation.name != "remove" && counts[mutation.name+": sound"] == 0 {
			t.Errorf("%s: %v", mutation.name, counts)
		}
	}
	t.Log(counts)
}

// difference is the first line that differs.
func difference(program, mutant *Program) string {
	for i := range mutant.Instrs {
		if got, want := mutant.Line(int32(i)), program.Line(int32(i)); got != want {
			return fmt.Sprintf("%q for %q", got, want)
		}
	}
	return "none"
}
