package program

import (
	"math/rand/v2"
	"os"
	"testing"
)

// FuzzCheck checks whatever can be read: no text makes it panic or run on, its
// report speaks of all instructions, a valid program is valid again, and what is
// found valid runs to its end.
func FuzzCheck(f *testing.F) {
	sound, err := os.ReadFile("testdata/sound.txt")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(sound))
	for seed := range uint64(20) {
		f.Add(randomText(rand.New(rand.NewPCG(seed, 1))))
	}
	f.Fuzz(func(t *testing.T, text string) {
		program, err := Parse("fuzz", []byte(text))
		if err != nil {
			return
		}
		report := program.Check()
		if len(report.Live) != len(program.Instrs) || len(report.Devices) != len(program.Devices) {
			t.Fatalf("%d live, %d devices", len(report.Live), len(report.Devices))
		}
		perRule := map[string]int{}
		for _, fault := range report.Faults {
			perRule[fault.Rule]++
			if fault.Message == "" {
				t.Fatalf("%+v says nothing", fault)
			}
		}
		for rule, count := range perRule {
			if rule != "names" && count > faultsPerRule+1 {
				t.Fatalf("%d faults of %s", count, rule)
			}
		}
		if report.Err() == nil && len(program.Instrs) < 200 && !runsToItsEnd(program) {
			t.Fatal("sound, and comes to a halt")
		}
	})
}
