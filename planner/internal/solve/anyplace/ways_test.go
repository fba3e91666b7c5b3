package anyplace

import "testing"

// All ways are taken in turn, one that finds something better again and again, and for
// longer when all were taken.
func TestWaysAreTakenInTurn(t *testing.T) {
	turn := ways{list: allWays(3)}
	taken := make(map[way]int)
	for range turn.list {
		if turn.longer() != 1 {
			t.Fatal("longer before all were taken")
		}
		taken[turn.next()]++
		now := turn.next()
		for range 3 {
			turn.told(true)
			if turn.next() != now {
				t.Fatalf("%v found something better and is not taken again", now)
			}
		}
		turn.told(false)
	}
	for _, cool := range cools() {
		if taken[cool] != 1 {
			t.Errorf("%v was taken %d times", cool, taken[cool])
		}
	}
	if taken[way{how: byKicks}] < 3 || taken[way{how: byScatter}] < 3 || taken[way{how: byRegions}] < 3 {
		t.Errorf("kicks %d times, random starts %d", taken[way{how: byKicks}], taken[way{how: byScatter}])
	}
	if turn.longer() != 2 {
		t.Errorf("%d times as long the second time", turn.longer())
	}
	for range 10 * len(turn.list) {
		turn.told(false)
	}
	if turn.longer() != 8 {
		t.Errorf("%d times as long in the end", turn.longer())
	}
}
