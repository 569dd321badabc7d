package diff

import "slices"

// stepsMax bounds the work of one comparison. A step takes some nanoseconds and four
// bytes.
const stepsMax = 1 << 20

// pair is a line that two texts have in common: its number in each.
type pair struct{ a, b int }

// common finds a longest series of lines that both texts have, in order; or none if that is too
// much work.
//
// It first leaves out lines that only one text has, so that completely different texts cost least.
func common(x, y [][]byte) []pair {
	inX, inY := numbered(x, y)
	var found []pair
	for _, p := range longest(inX.ids, inY.ids) {
		found = append(found, pair{inX.at[p.a], inY.at[p.b]})
	}
	return found
}

// series is the lines of a text that the other one has, too: each by the number of
// its content, and where it was.
type series struct{ ids, at []int }

func numbered(x, y [][]byte) (inX, inY series) {
	ids := make(map[string]int, len(y))
	for _, line := range y {
		if _, ok := ids[string(line)]; !ok {
			ids[string(line)] = len(ids)
		}
	}
	seen := make([]bool, len(ids))
	for i, line := range x {
		if id, ok := ids[string(line)]; ok {
			seen[id] = true
			inX.ids, inX.at = append(inX.ids, id), append(inX.at, i)
		}
	}
	for i, line := range y {
		if id := ids[string(line)]; seen[id] {
			inY.ids, inY.at = append(inY.ids, id), append(inY.at, i)
		}
	}
	return inX, inY
}

// longest is the greedy algorithm of Myers. A diagonal k holds the places (a, b) with
// a - b = k. Round d finds how far along each diagonal one gets with d lines that are
// in one text only; from there on lines are the same as long as they are. When the
// end of both is reached the rounds before tell the way.
func longest(x, y []int) []pair {
	if len(x) == 0 || len(y) == 0 {
		return nil
	}
	var rounds []round
	steps := 0
	for d := 0; ; d++ {
		r := newRound(d)
		for k := -d; k <= d; k += 2 {
			a := 0
			if d > 0 {
				a, _ = rounds[d-1].toward(k)
			}
			for b := a - k; a < len(x) && b < len(y) && x[a] == y[b]; b++ {
				a++
				steps++
			}
			r.set(k, a)
			if k == len(x)-len(y) && a >= len(x) {
				return wayBack(pair{len(x), len(y)}, rounds)
			}
		}
		if steps += len(r.reach); steps > stepsMax {
			return nil
		}
		rounds = append(rounds, r)
	}
}

// A round holds the furthest points on the diagonals -d, -d+2 … d.
type round struct {
	d     int
	reach []int32
}

func newRound(d int) round { return round{d, make([]int32, d+1)} }

func (r round) set(k, a int)  { r.reach[(k+r.d)/2] = int32(a) }
func (r round) get(k int) int { return int(r.reach[(k+r.d)/2]) }

// toward returns the furthest point on diagonal k that one more line reaches, and the diagonal
// from which: by a line of b from above, or by a line of a from below.
func (r round) toward(k int) (a, from int) {
	if k < -r.d || k <= r.d-1 && k-1 >= -r.d && r.get(k-1) < r.get(k+1) {
		return r.get(k + 1), k + 1
	}
	return r.get(k-1) + 1, k - 1
}

// wayBack lists the lines in common on the way from the start to a place.
func wayBack(at pair, rounds []round) []pair {
	var found []pair
	for d := len(rounds) - 1; d >= -1; d-- {
		var before pair
		if d >= 0 {
			_, k := rounds[d].toward(at.a - at.b)
			before.a = rounds[d].get(k)
			before.b = before.a - k
		}
		for at.a > before.a && at.b > before.b {
			at = pair{at.a - 1, at.b - 1}
			found = append(found, at)
		}
		at = before
	}
	slices.Reverse(found)
	return found
}
