package ansible_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/fleet"
)

// Authors of inventories must not be able to stall the server with deeply nested groups.
func TestDeeplyNestedGroupsAreReadFast(t *testing.T) {
	t.Parallel()
	const n = 30_000
	down := make([]int, n)
	for i := range down {
		down[i] = i
	}
	for name, order := range map[string][]int{
		"from the top": down, "in any order": rand.New(rand.NewPCG(1, 2)).Perm(n),
	} {
		var b strings.Builder
		for _, i := range order {
			fmt.Fprintf(&b, "[g%d:children]\ng%d\n", i, i+1)
		}
		fmt.Fprintf(&b, "[g60]\nshallow\n[g%d]\n", n)
		hosts := 0
		for i := 100; i < n; i += 10 {
			fmt.Fprintf(&b, "[g%d]\nh%d\n", i, i)
			hosts++
		}
		begun := time.Now()
		p := read("h", b.String())
		if d := time.Since(begun); d > 20*time.Second { // once it took minutes
			t.Errorf("%s: reading took %s", name, d)
		}
		if len(p.Mistakes) != hosts || !strings.Contains(p.Mistakes[0].Text, "groups in each other: at most 64") {
			t.Errorf("%s: %d mistakes, the first %v", name, len(p.Mistakes), p.Mistakes[:min(1, len(p.Mistakes))])
		}
		if name != "in any order" {
			continue
		}
		ring := read("h", b.String()+fmt.Sprintf("[g%d:children]\ng0\n", n))
		want := fmt.Sprintf(`group "g0" would be a part of itself, by way of "g%d"`, n)
		if !slices.ContainsFunc(ring.Mistakes, func(m fleet.Mistake) bool { return m.Text == want }) {
			t.Errorf("%s: the ring is not seen", name)
		}
	}
}
